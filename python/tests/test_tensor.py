"""Tensors and NumPy: values both ways, operators, indexing, what Python expects of them."""
import copy
import pickle

import berth as tf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64", "bool", "float16",
          "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_as_they_went(dtype):
    a = (np.arange(24).reshape(2, 3, 4) % 5).astype(dtype)
    for given_ in (a, a[:, ::2], a.T, a[:0]):
        t = tf.constant(given_)
        assert t.dtype.name == dtype and tuple(t.shape) == given_.shape
        np.testing.assert_array_equal(t.numpy(), given_)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64"])
def test_integers_of_every_width_hold_their_ends_and_wrap(dtype):
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    kind = getattr(tf, dtype)
    assert (kind.min, kind.max, kind.size, kind.is_integer) == (low, high, np.dtype(dtype).itemsize, True)
    t = tf.constant([low, high], kind)
    assert t.numpy().tolist() == [low, high] and [int(v) for v in t] == [low, high]
    assert (t + 1).numpy().tolist() == [low + 1, low]
    assert (t // 2).numpy().tolist() == [low // 2, high // 2]
    assert tf.reduce_max(t).numpy() == high and tf.argsort(t).numpy().tolist() == [0, 1]
    assert tf.cast(t, tf.float64).numpy().tolist() == [float(low), float(high)]
    assert (t > 1).numpy().tolist() == [False, True] and (t / 1).dtype == ("float64" if kind.size > 2 else "float32")
    assert tf.Variable(t).assign_add(t).numpy().tolist() == (t.numpy() + t.numpy()).tolist()
    assert f"{high}]" in repr(t)


def test_bfloat16_is_that_of_ml_dtypes():
    import ml_dtypes
    a = np.array([1.5, -2, 3.140625], dtype=ml_dtypes.bfloat16)
    t = tf.constant(a)
    assert t.dtype == tf.bfloat16
    assert t.numpy().dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(t.numpy().astype("float32"), a.astype("float32"))


def test_numbers_of_python_are_32_bits_wide():
    assert tf.constant(1).dtype == tf.int32
    assert tf.constant(1.0).dtype == tf.float32
    assert tf.constant([1, 2 ** 40]).dtype == tf.int64
    assert tf.constant(True).dtype == tf.bool
    assert tf.constant("text").numpy() == b"text"
    assert tf.constant([1.0, 2.0], dtype=tf.float64).dtype == tf.float64


def test_changes_of_an_array_do_not_change_the_tensor():
    a = np.ones(3, dtype="float32")
    t = tf.constant(a)
    a[:] = 7
    np.testing.assert_array_equal(t.numpy(), [1, 1, 1])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["x[1]", "x[-1]", "x[0:2]", "x[:, 1]", "x[..., -1]", "x[None]",
                                 "x[:, None, 1:3]", "x[::-1]", "x[0, 1:, ::2]", "x[:, -2:]",
                                 "x[1:1]", "x[..., 0:2, :]"]), min_size=1, max_size=4))
def test_subscripts_are_those_of_numpy(subscripts):
    a = np.arange(60, dtype="float32").reshape(3, 4, 5)
    for s in subscripts:
        got = eval(s, {"x": tf.constant(a)}).numpy()
        np.testing.assert_array_equal(got, eval(s, {"x": a}))


def test_masks_and_tensors_are_subscripts():
    a = np.arange(6, dtype="float32")
    x = tf.constant(a)
    np.testing.assert_array_equal(x[x > 2].numpy(), a[a > 2])
    np.testing.assert_array_equal(x[tf.constant([3, 1])].numpy(), a[[3, 1]])
    with pytest.raises(IndexError, match="out of range"):
        x[6]


OPERATORS = ["a + b", "a - b", "a * b", "a / b", "a ** b", "a // b", "a % b", "a < b", "a <= b",
             "a > b", "a >= b", "a == b", "a != b", "-a", "abs(a)", "2 + a", "2 - a", "2 * a",
             "2 / a", "a + 2", "a / 2"]


@pytest.mark.parametrize("text", OPERATORS)
def test_operators_broadcast_as_in_numpy(text):
    rng = np.random.default_rng(1)
    a = rng.uniform(0.5, 3, (2, 3)).astype("float32")
    b = rng.uniform(0.5, 3, (3,)).astype("float32")
    got = eval(text, {"a": tf.constant(a), "b": tf.constant(b)}).numpy()
    np.testing.assert_allclose(got, eval(text, {"a": a, "b": b}), rtol=1e-6)


def test_arrays_on_the_left_leave_the_work_to_the_tensor():
    out = np.ones(2, dtype="float32") + tf.constant([1.0, 2.0])
    assert isinstance(out, tf.Tensor)
    np.testing.assert_array_equal(out.numpy(), [2, 3])


def test_what_python_asks_of_values():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [row.numpy().tolist() for row in x] == [[1, 2], [3, 4]]
    assert float(tf.constant(2.5)) == 2.5 and int(tf.constant(3)) == 3
    assert bool(tf.constant(True)) and f"{tf.constant(1.5):.2f}" == "1.50"
    assert list(range(5))[tf.constant(2)] == 2
    assert "dtype=float32, numpy=" in repr(x) and "shape=(2, 2)" in str(x)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), x.numpy())
    assert copy.deepcopy(x) is x
    with pytest.raises(tf.errors.InvalidArgumentError):
        float(x)


def test_variables_change():
    v = tf.Variable([1.0, 2.0], name="v")
    v.assign_add([1.0, 1.0])
    v[0]
    np.testing.assert_array_equal((v * 2).numpy(), [4, 6])
    v.assign([5, 6])
    np.testing.assert_array_equal(v.numpy(), [5, 6])
    assert v.name == "v:0" and v.trainable
    with pytest.raises(tf.errors.InvalidArgumentError, match="test_tensor.py"):
        v.assign([1.0, 2.0, 3.0])


def test_dlpack_gives_the_values_to_others():
    np.testing.assert_array_equal(np.from_dlpack(tf.constant([1.0, 2.0])), [1, 2])


def test_names_that_are_not_there_have_neighbours():
    with pytest.raises(AttributeError, match="near it: sin"):
        tf.math.sine
    with pytest.raises(AttributeError, match="reduce_sum"):
        tf.reduce_summ


def test_text_is_moved_as_numbers_are():
    a = np.array([["a", "bb"], ["", "d"], ["bb", "f"]], object)
    t = tf.constant(a.tolist())

    def texts(t):
        return np.vectorize(lambda b: b.decode(), otypes=[object])(t.numpy()).tolist() if len(t.shape) else t.numpy().decode()

    i = tf.constant(1)
    for got, want in ((t[0], a[0]), (t[:, 1], a[:, 1]), (t[1:, ::-1], a[1:, ::-1]), (t[..., None], a[..., None]),
                      (t[t == "bb"], a[a == "bb"]), (t[i], a[1]), (tf.reshape(t, [-1]), a.ravel()),
                      (tf.transpose(t), a.T), (tf.concat([t, t], 1), np.concatenate([a, a], 1)),
                      (tf.expand_dims(t, 0), a[None]), (tf.squeeze(t[:1]), a[0]), (tf.tile(t, [2, 1]), np.tile(a, (2, 1))),
                      (tf.where(t == "", "none", t), np.where(a == "", "none", a)), (tf.reverse(t, [0]), a[::-1]),
                      (tf.split(t, 3)[2], a[2:]), (tf.unstack(t)[2], a[2])):
        assert texts(got) == want.tolist()
    assert texts(t[2, 1]) == "f" and [texts(row) for row in t] == a.tolist()
    f = tf.function(lambda t: tf.strings.join([t[0, 0], tf.strings.split("x y")[1]]))
    assert f(t).numpy() == b"ay" and "op by op" in f.plan_text()


def test_shapes_let_others_say_whether_they_are_equal():
    class Other:
        def __eq__(self, shape):
            return list(shape) == [2]
    shape = tf.ones([2]).shape
    assert shape == Other() and shape == [2] and shape != [3] and shape != 2 and shape is not None
