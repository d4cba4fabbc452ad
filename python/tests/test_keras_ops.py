"""Functions of keras.ops on Berth give in a traced function, and to KerasTensors, what they give op by op."""
import importlib.util
import os
import subprocess
import sys

import pytest

ONE = """abs arccos arcsin arctan arctanh arcsinh ceil floor cos cosh sin sinh tan tanh exp exp2 expm1 log log10
log1p log2 sqrt cbrt sinc deg2rad rad2deg square negative reciprocal sign signbit isfinite isinf isnan
isposinf isneginf isreal real imag angle trunc round nan_to_num relu relu6 sigmoid softplus softsign silu
log_sigmoid leaky_relu hard_sigmoid hard_silu elu selu gelu celu glu hard_tanh softmax log_softmax sparsemax
sparse_plus sparse_sigmoid tanh_shrink soft_shrink hard_shrink squareplus erf erfc erfinv rsqrt logsumexp
mean sum max min prod std var median any all argmax argmin argsort sort cumsum cumprod nanmax nanmin nanmean
nansum nanprod nanstd nanvar nanmedian ptp ravel flip transpose copy diff trace diagonal diagflat tril triu
corrcoef average count_nonzero trapezoid normalize norm""".split()
TWO = """add subtract multiply divide maximum minimum power arctan2 hypot logaddexp logaddexp2 fmax fmin mod fmod
floor_divide equal less greater logical_and logical_or logical_xor isclose allclose inner vdot outer heaviside
divide_no_nan nextafter append kron""".split()


def calls():
    """Names, functions and arguments."""
    import numpy as np
    from keras import ops
    r = np.random.RandomState(0)
    x, y, v = (r.rand(*shape).astype("float32") for shape in ((3, 4), (3, 4), (5,)))
    image, kernel = r.rand(2, 6, 8, 3).astype("float32"), r.rand(3, 3, 3, 5).astype("float32")
    square, heads = (r.rand(3, 3) + 3 * np.eye(3)).astype("float32"), r.rand(2, 3, 4, 8).astype("float32")
    whole = r.randint(1, 9, (3, 4)).astype("int32")
    yield from ((name, getattr(ops, name), (x,)) for name in ONE)
    yield from ((name, getattr(ops, name), (x, y)) for name in TWO)
    yield from ((name, getattr(ops, name), (whole, whole[::-1].copy()))
                for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "left_shift", "right_shift"))
    yield from (
        ("matmul", ops.matmul, (x, y.T.copy())), ("einsum", lambda a, b: ops.einsum("ij,kj->ik", a, b), (x, y)),
        ("cross", ops.cross, (x[:, :3], y[:, :3])), ("solve", ops.solve, (square, x)), ("det", ops.det, (square,)),
        ("quantile", lambda a: ops.quantile(a, [.1, .5], axis=1), (x,)),
        ("take", lambda a: ops.take(a, np.array([0, -1, 2]), axis=1), (x,)),
        ("take_along_axis", lambda a: ops.take_along_axis(a, np.array([[0], [1], [2]]), axis=1), (x,)),
        ("select", lambda a: ops.select([a > .5, a > .2], [a, a * 2], 0.), (x,)),
        ("digitize", lambda a: ops.digitize(a, np.array([.1, .5])), (x,)),
        ("linspace", lambda a: ops.linspace(a, a + 1, 5), (v,)), ("pad", lambda a: ops.pad(a, ((1, 2), (0, 1))), (x,)),
        ("split", lambda a: ops.split(a, 2, 1), (x,)), ("correlate", lambda a: ops.correlate(a, a, "full"), (v,)),
        ("unique", lambda a: ops.unique(a, size=7, return_counts=True, return_inverse=True), (whole,)),
        ("top_k", lambda a: ops.top_k(a, 2), (x,)), ("one_hot", lambda a: ops.one_hot(a, 10), (whole,)),
        ("segment_max", lambda a: ops.segment_max(a, np.array([0, 2, 0]), num_segments=4), (x,)),
        ("max_pool", lambda a: ops.max_pool(a, 2), (image,)),
        ("adaptive_average_pool", lambda a: ops.adaptive_average_pool(a, (3, 5)), (image,)),
        ("conv", lambda a, b: ops.conv(a, b, padding="same"), (image, kernel)),
        ("conv_transpose", lambda a, b: ops.conv_transpose(a, b, 2, "same"), (image, kernel.swapaxes(2, 3).copy())),
        ("unfold", lambda a: ops.unfold(a, 2), (image,)),
        ("categorical_crossentropy", lambda a, b: ops.categorical_crossentropy(a, b, True), (x, y)),
        ("moments", lambda a: ops.moments(a, [0]), (x,)),
        ("dot_product_attention", lambda a: ops.dot_product_attention(a, a, a, is_causal=True), (heads,)),
        ("resize", lambda a: ops.image.resize(a, (4, 4)), (image,)),
        ("affine_transform", lambda a: ops.image.affine_transform(a, np.array([1, .1, 0, 0, 1, .2, 0, 0], "f")),
         (image,)),
        ("gaussian_blur", ops.image.gaussian_blur, (image,)), ("sobel_edges", ops.image.sobel_edges, (image,)))


def compare(name, function, arguments):
    import berth as tf
    import keras
    from keras.src.backend import compute_output_spec
    import numpy as np

    def leaves(*args):
        return keras.tree.flatten(function(*args))
    at_once = [np.asarray(v) for v in leaves(*arguments)]
    traced = tf.function(leaves, autograph=False)(*map(tf.constant, arguments))
    specs = keras.tree.flatten(compute_output_spec(
        leaves, *[keras.KerasTensor(a.shape, a.dtype.name) for a in arguments]))
    for value, other, spec in zip(at_once, traced, specs):
        assert value.dtype == other.numpy().dtype == spec.dtype, name
        assert value.shape == tuple(other.shape) == spec.shape, name
        np.testing.assert_allclose(other.numpy().astype("float64"), value.astype("float64"), rtol=1e-4, atol=1e-5,
                                   err_msg=name)


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
def test_a_trace_gives_what_op_by_op_gives():
    done = subprocess.run([sys.executable, __file__], env={**os.environ, "KERAS_BACKEND": "berth"}, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0 and "untraced" not in done.stderr, done.stderr

# What keras.ops give on TensorFlow by two float64 arrays, by float64 and float32, by int64; - where nothing is asked.
BY_64_BITS = """add float64 float64 int64, subtract float64 float64 int64, multiply float64 float64 int64,
divide float64 float64 float32, maximum float64 float64 int64, power float64 float64 int64, arctan2 float64 float64 float32,
matmul float64 float64 int64, where float64 float64 int64, concatenate float64 float64 int64, equal bool bool bool"""
BY_ONE = """abs float64 int64, exp float64 float32, erf float64 -, rsqrt float64 -, sum float64 int64, mean float64 float32,
var float64 float32, cumsum float64 int64, prod float64 int64, sort float64 int64, median float64 float32, softmax float64 -,
logsumexp float64 -, normalize float64 -, norm float64 float32, relu float64 int64, square float64 int64,
argmax int32 int32, ravel float64 int64, max float64 int64, log_softmax float64 -, sigmoid float64 -"""

KEEPS_64_BITS = """
import numpy as np, berth as tf, keras
from keras import ops
x = np.array([[.1, .7, .3], [.4, .2, .9]])
n = np.array([[1, 2, 3], [4, 5, 2 ** 40]])
two = dict(matmul=lambda a, b: ops.matmul(a, ops.transpose(b)), where=lambda a, b: ops.where(x > .3, a, b),
           concatenate=lambda a, b: ops.concatenate([a, b]))
for row in {two!r}.split(","):
    name, *wanted = row.split()
    call = two.get(name, getattr(ops, name))
    got = [call(x, x).dtype.name, call(x, x.astype("float32")).dtype.name, call(n, n).dtype.name]
    assert got == wanted, (name, got, wanted)
for row in {one!r}.split(","):
    name, *wanted = row.split()
    for value, dtype in zip((x, n), wanted):
        if dtype != "-":
            for call in (getattr(ops, name), tf.function(getattr(ops, name), autograph=False)):
                assert call(value).dtype.name == dtype, (name, call(value).dtype, dtype)
assert ops.add(n, n).numpy()[1, 2] == 2 ** 41
layer = keras.layers.Dense(4, dtype="float64")
y = layer(x)
assert y.dtype == "float64"
np.testing.assert_allclose(y, x @ layer.kernel.numpy(), rtol=1e-12, atol=1e-14)
keras.config.set_floatx("float64")
inputs = keras.Input([3])
model = keras.Model(inputs, keras.layers.Dense(2)(keras.layers.LayerNormalization()(inputs)))
model.compile("adam", "mse")
model.fit(x, x[:, :2], verbose=0)
assert model.predict(x, verbose=0).dtype == "float64" and model(x).dtype == "float64"
"""


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
def test_arrays_of_64_bits_keep_them_as_on_tensorflow():
    done = subprocess.run([sys.executable, "-c", KEEPS_64_BITS.format(two=BY_64_BITS, one=BY_ONE)],
                          env={**os.environ, "KERAS_BACKEND": "berth"}, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    import berth  # noqa: F401  it answers for the backend
    import keras.backend
    for call in calls():
        compare(*call)
