"""Broadcasting, dtypes and errors of binary ops by Hypothesis, against NumPy's."""
import berth as tf
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

FAST = settings(max_examples=60, deadline=None, derandomize=True)
OPS = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract, "maximum": np.maximum,
       "less": np.less, "not_equal": np.not_equal}
DTYPES = ("float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64")
shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def filled(shape, dtype, seed):
    return np.random.default_rng(seed).integers(0, 9, shape).astype(dtype)


@FAST
@given(st.sampled_from(sorted(OPS)), st.sampled_from(DTYPES), shapes, shapes, st.integers(0, 99))
def test_shapes_broadcast_as_numpys_or_name_both(op, dtype, a, b, seed):
    x, y = filled(a, dtype, seed), filled(b, dtype, seed + 1)
    try:
        wanted = OPS[op](x, y)
    except ValueError:
        with pytest.raises(tf.errors.InvalidArgumentError) as e:
            getattr(tf.math, op)(x, y)
        for shape in (a, b):
            assert "[" + ",".join(map(str, shape)) + "]" in str(e.value)
        return
    got = getattr(tf.math, op)(x, y)
    assert got.shape == list(wanted.shape) and got.dtype == wanted.dtype.name
    np.testing.assert_array_equal(got.numpy(), wanted)


@FAST
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_dtypes_are_never_mixed_silently(a, b):
    x, y = tf.constant(filled((2,), a, 1)), tf.constant(filled((2,), b, 2))
    if a == b:
        assert (x + y).dtype == a
        return
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        x + y
    assert a in str(e.value) and b in str(e.value)


@FAST
@given(st.sampled_from(DTYPES), st.integers(0, 9), st.booleans())
def test_numbers_of_python_take_the_dtype_beside_them(dtype, number, left):
    x = tf.constant(filled((3,), dtype, 4))
    got = number + x if left else x + number
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.numpy(), x.numpy() + np.asarray(number, dtype))
    if dtype.startswith(("int", "uint")):
        with pytest.raises(TypeError, match="tf.cast"):
            x + 0.5


@FAST
@given(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), st.data())
def test_subscripts_are_numpys(shape, data):
    x = filled(shape, "int32", 7)
    keys = tuple(data.draw(st.one_of(
        st.slices(n), st.none(), *([st.integers(-n, n - 1)] if n else []))) for n in shape)
    try:
        wanted = x[keys]
    except IndexError:
        with pytest.raises(IndexError):
            tf.constant(x)[keys]
        return
    got = tf.constant(x)[keys].numpy()
    assert np.shape(got) == wanted.shape
    np.testing.assert_array_equal(got, wanted)
