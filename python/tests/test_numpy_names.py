"""tf.experimental.numpy: NumPy's functions on tensors. The numbers are NumPy's, the dtypes TensorFlow's own."""
import subprocess
import sys

import berth as tf
import numpy as np
import pytest

import berth.experimental.numpy as tnp

A = np.arange(6.0).reshape(2, 3) - 2


@pytest.mark.parametrize("name, args", [
    ("exp", (A,)), ("sqrt", (A * A,)), ("arcsin", (A / 9,)), ("exp2", (A,)), ("log10", (A * A + 1,)), ("cbrt", (A,)),
    ("fix", (A / 2,)), ("sum", (A, 1)), ("prod", (A,)), ("mean", (A, 0)), ("var", (A, 1)), ("std", (A,)),
    ("cumsum", (A, 1)), ("argmax", (A, 1)), ("diag", (A,)), ("diagonal", (A, 1)), ("trace", (A,)), ("tril", (A,)),
    ("triu", (A, 1)), ("flip", (A, 1)), ("roll", (A, 2)), ("repeat", (A, 2, 0)), ("tile", (A, (2, 1))),
    ("transpose", (A,)), ("swapaxes", (A, 0, 1)), ("ravel", (A,)), ("diff", (A,)), ("clip", (A, -1, 2)),
    ("sort", (-A,)), ("argsort", (-A,)), ("outer", (A[0], A[1])), ("dot", (A, A.T)), ("inner", (A, A)), ("kron", (A, A)),
    ("matmul", (A, A[0])), ("hypot", (A, 3)), ("floor_divide", (A, 2)), ("logaddexp", (A, 0.5)), ("heaviside", (A, 0.5)),
    ("vstack", ([A, A],)), ("hstack", ([A, A],)), ("dstack", ([A, A],)), ("isclose", (A, A + 1e-9)),
    ("average", (A, 0)), ("linspace", (0, 1, 5)), ("arange", (2, 8, 3)), ("eye", (2, 3, 1)), ("count_nonzero", (A,)),
    ("moveaxis", (A[None], 0, 2)), ("vander", (A[1],)), ("broadcast_to", (A, (2, 2, 3))), ("pad", (A, ((1, 0), (0, 2)))),
])
def test_functions_are_numpys(name, args):
    wanted, got = np.asarray(getattr(np, name)(*args)), getattr(tnp, name)(*args)
    assert np.allclose(got.numpy(), wanted, equal_nan=True) and got.numpy().shape == wanted.shape


def test_numbers_have_numpys_dtypes():
    assert tnp.asarray(1).dtype == tf.int64 and tnp.asarray(1.0).dtype == tf.float64
    assert tnp.add(tnp.asarray(1, tnp.int32), tnp.asarray(1, tnp.float32)).dtype == tf.float64
    assert tnp.sum(tnp.ones([2], tnp.int32)).dtype == tf.int64 and tnp.sqrt(4).dtype == tf.float64
    assert tnp.ones([2, 3]).dtype == tf.float64 and isinstance(tnp.ones([2]), tnp.ndarray)
    assert np.sum(tnp.ones([2, 3])) == 6.0


def test_gradients_go_through_moved_elements():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.flip(x, 1) * tnp.asarray([[1, 10], [100, 1000]], tnp.float32))
    assert tape.gradient(y, x).numpy().tolist() == [[10.0, 1.0], [1000.0, 100.0]]


BEHAVIOUR = """
import berth as tf, numpy as np
import berth.experimental.numpy as tnp
tnp.experimental_enable_numpy_behavior()
x = tnp.arange(24).reshape(2, 3, 4)
n = np.arange(24).reshape(2, 3, 4)
assert x.T.shape == (4, 3, 2) and x.astype(tnp.float32).dtype == tf.float32 and x.size == 24
assert (x[:, (True, False, True)].numpy() == n[:, (True, False, True)]).all()
assert x[1, (0, 0, 1), tnp.asarray([0, 1, 1])].numpy().tolist() == [12, 13, 17]
assert (tnp.asarray(1, tnp.int32) + tnp.asarray(1.0)).dtype == tf.float64
assert (2 * tnp.ones(2)).dtype == tf.float64 and (tf.ones(2) + np.ones(2)).dtype == tf.float64
try:
    x[0] = 1
    raise SystemExit("x[0] = 1 was taken")
except TypeError:
    pass
tnp.experimental_enable_numpy_behavior(prefer_float32=True)
assert tnp.asarray(1.0).dtype == tf.float32
"""


def test_tensors_have_numpys_methods_once_they_are_enabled():
    done = subprocess.run([sys.executable, "-c", BEHAVIOUR], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError):
        tf.ones(2).T


def test_numbers_of_python_and_lists_of_them_take_the_dtype_beside_them():
    """The dtypes are TensorFlow's."""
    half, single = tnp.ones(2, np.float16), tnp.ones(2, np.float32)
    for number in (1, 1.0, True, [1.0], [1], [[1.0, 2.0]]):
        for f in (tnp.add, tnp.multiply, tnp.maximum, tnp.divide, tnp.power, tnp.arctan2, lambda x, y: tnp.where([True, False], x, y)):
            assert f(half, number).dtype == tf.float16 and f(single, number).dtype == tf.float32
            assert f(number, single).dtype == tf.float32
        assert tnp.result_type(single, number) == np.float32
    assert tnp.add(single, np.float64(1)).dtype == tf.float64 and tnp.add(single, np.ones(1)).dtype == tf.float64
    whole = tnp.ones(2, np.int32)
    assert tnp.add(whole, 1).dtype == tf.int32 and tnp.add(whole, 1.0).dtype == tf.float64
    assert tnp.add(1, 2).dtype == tf.int64 and tnp.add(1, 2.0).dtype == tf.float64
    assert tnp.array([tf.constant(1.0), 2]).dtype == tf.float32 and tnp.append(single, 1.0).dtype == tf.float64
    assert tnp.add(tnp.ones(2, np.complex64), 1j).dtype == tf.complex64
    small = tnp.array([250, 3], np.uint8)
    assert tnp.divide(small, 2).dtype == tf.float32 and tnp.divide(whole, 2).dtype == tf.float64
    assert tnp.sum(small).dtype == tf.uint64 and tnp.cumsum(small).dtype == tf.int64 and int(tnp.cumsum(small)[1]) == 253
    assert tnp.prod(whole).dtype == tf.int64 and tnp.cumprod(whole).dtype == tf.int64


def test_truths_are_added_compared_and_searched():
    x, y = tf.constant([True, True, False, False]), tf.constant([True, False, True, False])
    for f in (tnp.add, tnp.multiply, tnp.maximum, tnp.minimum, tnp.less, tnp.greater_equal, tnp.equal):
        expected = getattr(np, f.__name__)(x.numpy(), y.numpy())
        assert f(x, y).dtype == tf.bool
        np.testing.assert_array_equal(f(x, y), expected)
    assert bool(tnp.max(x)) and not bool(tnp.min(x)) and tnp.max(x).dtype == tf.bool
    assert int(tnp.argmax(y[1:])) == 1 and int(tnp.argmin(x)) == 2


def test_gradients_go_through_numbers_between_two():
    """The values are TensorFlow's."""
    x = tf.constant([1.0, 2.0])
    for f, expected in ((tnp.linspace, [14, 14]), (tnp.logspace, [21667.326, 20815600.0]), (tnp.geomspace, [13.464102, 13.464102])):
        def gradient():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(tf.cast(f(x, x * 3, 3), tf.float64) * [[1.0], [2.0], [3.0]])
            return tape.gradient(y, x)
        np.testing.assert_allclose(gradient(), expected, rtol=1e-5)
        np.testing.assert_allclose(tf.function(gradient)(), expected, rtol=1e-5)
    assert tnp.linspace(x, 3.0, 3, axis=1).dtype == tf.float32 and tnp.linspace(0, 1).dtype == tf.float64
    np.testing.assert_allclose(tnp.linspace(x, 3.0, 3, axis=-1), [[1, 2, 3], [2, 2.5, 3]])
    np.testing.assert_allclose(tnp.linspace(1, 2, 4, endpoint=False), [1, 1.25, 1.5, 1.75])


def test_take_stays_inside_and_goes_with_the_trace():
    assert tnp.take([1, 2, 3], [-1, 5]).numpy().tolist() == [1, 3]
    assert tnp.take([1, 2, 3], [-1, 5], mode="wrap").numpy().tolist() == [3, 3]
    f = tf.function(lambda x, i: tnp.take(x, i, axis=1))
    assert f(tf.constant([[1, 2], [3, 4]]), tf.constant([-1, 5])).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="mode is 'raise'"):
        tnp.take([1], 0, mode="raise")


def test_products_and_grids_of_every_rank():
    v, m = tf.constant([1.0, 2.0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    for a, b in ((v, m), (m, v), (2.0, v), (v, v), (m, m)):
        np.testing.assert_allclose(tnp.kron(a, b), np.kron(a, b))
    np.testing.assert_allclose(tnp.inner(v, 3.0), [3, 6])
    assert tnp.trace(tf.constant([[1, 2], [3, 4]])).dtype == tf.int32
    np.testing.assert_allclose(tnp.angle(tf.constant([1.0, -2.0]), True), [0, 180])
    assert [g.shape.as_list() for g in tnp.meshgrid(m, 3.0)] == [[1, 4], [1, 4]]
