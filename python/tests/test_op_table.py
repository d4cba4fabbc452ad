"""Every op from Python on NumPy's arrays: op_table.py has what each gives, or ABSENT why it has none."""
import types

import berth as tf
import numpy as np
import pytest
from berth import _core
from op_table import TABLE

# Ops without a row of the table: what judges them instead.
ABSENT = {
    "random": "drawn values: test_random_ops_have_their_moments",
    "image.random": "drawn values: conformance/ops/image.cc",
    "image.stateless_random": "drawn values: conformance/ops/image.cc",
    "image.decode": "files: src/io and conformance/ops/image_files.cc", "io": "files: the same",
    "image.encode": "files: the same", "image.extract_jpeg_shape": "files: the same",
    "image.adjust_jpeg_quality": "files: the same", "audio": "files: the same",
    "image.resize": "kernels of filters: conformance/ops/resize.cc",
    "image.rotate": "kernels of filters: conformance/ops/resize.cc",
    "image.rgb_to_hsv": "cases: conformance/ops/image.cc", "image.hsv_to_rgb": "cases: the same",
    "image.adjust_hue": "cases: the same", "image.adjust_saturation": "cases: the same",
    "image.rgb_to_yuv": "cases: the same", "image.yiq_to_rgb": "cases: the same",
    "image.yuv_to_rgb": "cases: the same",
    "nn": "layers' parity and conformance/ops/{conv,norm,attention}.cc",
    "strings": "several results of unknown length: conformance/ops/strings.cc",
    **{f"linalg.{n}": "test_numeric" for n in """adjoint eig eigh eigvals eigvalsh logdet lstsq lu lu_matrix_inverse
       lu_reconstruct lu_solve matrix_rank pinv qr slogdet svd""".split()},
    "signal": "test_numeric and src/ops/signal_test.cc",
    "math.bessel_i1": "src/ops/adaptive_test.cc", "math.bessel_i1e": "the same", "bitcast": "src/ops/adaptive_test.cc",
    **{f"image.{n}": "src/preprocess/boxes_test.cc" for n in """crop_and_resize non_max_suppression projective_transform
       sobel_edges""".split()},
    "float_range": "tf.range",
    "identity_n": "identity", "constant": "test_tensor", "strided_slice": "test_tensor",
    "tensor_strided_slice_update": "conformance/ops/slice.cc", "unique_with_counts": "unique", "clip_by_global_norm": "linalg.global_norm",
}


def functions():
    """Names of the engine's ops, without Keras."""
    found = []

    def walk(module, prefix):
        for name, value in vars(module).items():
            if isinstance(value, types.ModuleType) and not name.startswith("_") and name != "keras":
                walk(value, prefix + name + ".")
            elif isinstance(value, types.BuiltinFunctionType):
                found.append(prefix + name)
    walk(_core.ops, "")
    return found


def function_of(name):
    module = tf
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", sorted(TABLE))
def test_ops_give_what_the_table_says(name):
    for args, options, expected in TABLE[name]:
        got, wanted = function_of(name)(*args, **options), expected
        pairs = zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]
        for g, w in pairs:
            g, w = g.numpy(), np.asarray(w)
            assert np.shape(g) == w.shape, (options, np.shape(g), w.shape)
            if w.dtype == object or w.dtype.kind in "bi":
                np.testing.assert_array_equal(g, w)
            else:
                np.testing.assert_allclose(g, w, rtol=3e-5, atol=3e-6)


def test_every_op_has_a_row_or_a_reason():
    unknown = [n for n in functions() if n not in TABLE and n not in ABSENT
               and not any(n.startswith((a + ".", a + "_")) for a in ABSENT)
               and "math." + n.split(".")[-1] not in TABLE and n.split(".")[-1] not in TABLE
               and "linalg." + n.split(".")[-1] not in TABLE]
    assert not unknown, unknown


@pytest.mark.parametrize("draw, mean, deviation", [
    (lambda: tf.random.normal([20000], 2.0, 3.0), 2, 3),
    (lambda: tf.random.uniform([20000], -1.0, 3.0), 1, 4 / 12 ** 0.5),
    (lambda: tf.random.truncated_normal([20000]), 0, 0.8796),
    (lambda: tf.random.stateless_normal([20000], [1, 2]), 0, 1),
    (lambda: tf.random.stateless_uniform([20000], [1, 2]), 0.5, 12 ** -0.5),
    (lambda: tf.cast(tf.random.categorical([[0.0, np.log(3.0)]], 20000), tf.float32), 0.75, 0.75 ** 0.5 / 2),
])
def test_random_ops_have_their_moments(draw, mean, deviation):
    tf.random.set_seed(3)
    x = draw().numpy().astype("float64")
    assert abs(x.mean() - mean) < 5 * deviation / 20000 ** 0.5
    assert abs(x.std() / deviation - 1) < 0.03
