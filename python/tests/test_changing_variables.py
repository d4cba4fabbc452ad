"""Variables of values of several shapes, of text, and tables: assigned, read, in functions, in checkpoints."""
import copy
import pickle

import numpy as np
import pytest

import berth as tf


def growing(rows=1):
    return tf.Variable(np.ones((rows, 2), "float32"), shape=tf.TensorShape([None, 2]))


def test_a_variable_takes_values_of_the_shapes_that_fit():
    v = growing()
    assert v.shape.as_list() == [None, 2] and v.read_value().shape == [1, 2]
    was = v.read_value()
    v.assign([[1, 2], [3, 4], [5, 6]])
    assert v.shape.as_list() == [None, 2] and tf.shape(v).numpy().tolist() == [3, 2]
    assert was.numpy().tolist() == [[1, 1]]  # reading gave a snapshot
    assert len(v) == 3 and [r.numpy().tolist() for r in v][2] == [5, 6] and v[-1, 0].numpy() == 5
    v.assign_add(tf.ones([3, 2]))
    v[0].assign([9, 9])
    v.scatter_nd_update([[1]], [[7, 7]])
    v.scatter_update(tf.IndexedSlices(tf.zeros([1, 2]), [2]))
    assert v.numpy().tolist() == [[9, 9], [7, 7], [0, 0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,3\] to variable 'Variable:0'; expected a shape that fits \[\?,2\]"):
        v.assign(np.zeros((2, 3)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected equal shapes"):
        v.assign_add(tf.ones([2, 2]))
    assert v.numpy().tolist() == [[9, 9], [7, 7], [0, 0]]
    for made in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert made.assign(np.zeros((0, 2))).shape.as_list() == [None, 2]
    with pytest.raises(ValueError, match="expected one that fits"):
        tf.Variable([1.0], shape=tf.TensorShape([None, 3]))
    assert tf.Variable([1.0, 2], shape=[2]).shape == [2]


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool", "complex64", "string"])
def test_a_variable_of_any_rank(dtype):
    of = (lambda n: np.full(n, b"x", object)) if dtype == "string" else lambda n: np.ones(n, dtype)
    v = tf.Variable(of([2]), shape=tf.TensorShape(None))
    assert v.shape.rank is None
    for shape in ([], [3, 1], [0], [2, 2, 2]):
        assert v.assign(of(shape)).read_value().shape == shape
        assert np.array_equal(v.numpy(), of(shape) if shape else of(shape)[()])


def test_functions_assign_it_again_and_again():
    v = growing()

    @tf.function
    def grow(x):
        v.assign(tf.concat([v, x], 0))
        return tf.shape(v), tf.reduce_sum(v)
    for n in range(2, 6):
        shape, total = grow(tf.ones([1, 2]))
        assert shape.numpy().tolist() == [n, 2] and float(total) == 2 * n
    assert "op by op" in grow.placement() and "whose shape may change" in grow.placement()


def test_gradients_and_optimizers_follow_the_shape():
    v = growing().assign([[1, 2], [3, 4]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    assert tape.gradient(loss, v).numpy().tolist() == [[2, 4], [6, 8]]


def test_checkpoints_of_variables_that_change(tmp_path):
    v, s = growing().assign([[1, 2], [3, 4]]), tf.Variable(["é", "b\0c"])
    path = tf.train.Checkpoint(v=v, s=s).save(str(tmp_path / "c"))
    again, text = growing(), tf.Variable(["", "x"])
    tf.train.Checkpoint(v=again, s=text).restore(path).assert_consumed()
    assert again.numpy().tolist() == [[1, 2], [3, 4]] and text.numpy().tolist() == ["é".encode(), b"b\0c"]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2,2\] in the checkpoint and float32 \[\?,3\] here"):
        tf.train.Checkpoint(v=tf.Variable(np.ones((2, 3), "f"), shape=[None, 3])).restore(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit"):
        tf.train.Checkpoint(s=tf.Variable(["a"])).restore(path)


def test_variables_of_text():
    s = tf.Variable("hello")
    assert s.dtype == tf.string and s.shape == [] and s.numpy() == b"hello" and "b'hello'" in repr(s)
    was = s.read_value()
    s.assign(tf.strings.join([s, "!"]))
    assert s.numpy() == b"hello!" and was.numpy() == b"hello" and (s + "?").numpy() == b"hello!?"
    texts = tf.Variable([["a", "b"], ["c", "d"]], name="texts")
    texts[0, 1].assign("x")
    texts[1].assign(["y", "z"])
    assert texts.numpy().tolist() == [[b"a", b"x"], [b"y", b"z"]] and texts[1, 0].numpy() == b"y"
    assert texts.scatter_nd_update([[0]], [["m", "n"]])[0].numpy().tolist() == [b"m", b"n"]
    for wrong in (["a"], 3):
        with pytest.raises((tf.errors.InvalidArgumentError, TypeError)):
            texts.assign(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError, match="value is string"):
        s.assign_add("x")

    @tf.function
    def longer(x):
        s.assign(tf.strings.join([s, x]))
        return tf.strings.length(s)
    assert [int(longer("ab")) for _ in range(3)] == [8, 10, 12]

    class Named(tf.Module):
        def __init__(self):
            self.text, self.number = tf.Variable("t"), tf.Variable(1.0)
    assert [v.dtype for v in Named().trainable_variables] == [tf.float32, tf.string] or len(Named().variables) == 2
    with tf.GradientTape() as tape:
        y = tf.cast(tf.strings.length(s), tf.float32)
    assert tape.gradient(y, s) is None


def test_tables_in_checkpoints(tmp_path):
    class Counts(tf.Module):
        def __init__(self):
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.fixed = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
            self.step = tf.Variable(0)
    m, rows = Counts(), tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0], -1, -2)
    m.table.insert(["a", "b"], [1, 2])
    rows.insert([4], [[1.0, 2]])
    assert len(m.variables) == 1
    path = tf.train.Checkpoint(m=m, rows=rows).save(str(tmp_path / "c"))
    m.table.insert(["c"], [3])
    assert m.table.lookup(tf.constant(["a", "c"])).numpy().tolist() == [1, 3]
    n, other = Counts(), tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0], -1, -2)
    n.table.insert(["gone"], [9])
    tf.train.Checkpoint(m=n, rows=other).restore(path).assert_consumed()
    assert n.table.lookup(tf.constant(["a", "b", "gone"])).numpy().tolist() == [1, 2, -1] and int(n.table.size()) == 2
    assert other.lookup(tf.constant([4, 5], tf.int64)).numpy().tolist() == [[1, 2], [0, 0]]
    tf.train.Checkpoint(t=m.fixed, m=m, rows=rows).restore(path).expect_partial()
    assert m.table.lookup(tf.constant("c")).numpy() == -1
