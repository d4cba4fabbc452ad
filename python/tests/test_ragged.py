"""Rows of different lengths, and tensors that are mostly zero."""
import berth as tf
import numpy as np
import pytest

ROWS = [[1, 2, 3], [], [4, 5]]


def test_ragged_rows():
    r = tf.ragged.constant(ROWS)
    assert r.to_list() == ROWS and r.shape.as_list() == [3, None] and r.dtype == tf.int32
    assert [row.numpy().tolist() for row in r] == ROWS and r[-1].numpy().tolist() == [4, 5]
    assert r[0, 1].numpy() == 2 and r[1:].to_list() == ROWS[1:] and r[:, :2].to_list() == [[1, 2], [], [4, 5]]
    assert r.row_lengths().numpy().tolist() == [3, 0, 2] and r.flat_values.shape == [5]
    np.testing.assert_array_equal(r.to_tensor(), [[1, 2, 3], [0, 0, 0], [4, 5, 0]])
    assert (r * 2 + r).to_list() == [[3, 6, 9], [], [12, 15]]
    deep = tf.ragged.constant([[[1], [2, 3]], [[4]]])
    assert deep.ragged_rank == 2 and deep.to_list() == [[[1], [2, 3]], [[4]]]
    np.testing.assert_array_equal(deep.to_tensor(9), [[[1, 9], [2, 3]], [[4, 9], [9, 9]]])
    assert tf.ragged.range([3, 0, 2]).to_list() == [[0, 1, 2], [], [0, 1]]
    with pytest.raises(IndexError, match="3 rows"):
        r[3]


def test_texts_fall_apart_into_rows():
    assert tf.strings.split(["a b", "c"]).to_list() == [[b"a", b"b"], [b"c"]]
    assert tf.strings.split("a,b", ",").numpy().tolist() == [b"a", b"b"]
    assert tf.strings.bytes_split(["ab", ""]).to_list() == [[b"a", b"b"], []]
    assert tf.strings.unicode_split("aé", "UTF-8").numpy().tolist() == [b"a", "é".encode()]
    assert tf.strings.unicode_decode(["aé", "🦆"], "UTF-8").to_list() == [[97, 233], [0x1F986]]
    assert tf.strings.unicode_decode(b"\0a", "UTF-16-BE").numpy().tolist() == [97]
    with pytest.raises(ValueError, match="no encoding that Python has"):
        tf.strings.unicode_decode("a", "UTF-99")
    assert (tf.constant(["a", "b"]) + "c").numpy().tolist() == [b"ac", b"bc"]
    assert tf.gather(tf.constant(list("abc")), [2, 0]).numpy().tolist() == [b"c", b"a"]


DENSE = np.array([[0, 1, 0], [2, 0, 3]], "float32")


def test_sparse_tensors():
    s = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, 2.0, 3.0], [2, 3])
    np.testing.assert_array_equal(tf.sparse.to_dense(s), DENSE)
    np.testing.assert_array_equal(tf.sparse.to_dense(s, -1.0), np.where(DENSE, DENSE, -1))
    t = tf.sparse.from_dense(DENSE)
    np.testing.assert_array_equal(t.indices, s.indices)
    np.testing.assert_array_equal(tf.sparse.to_dense(t * [[1.0, 10.0, 100.0]]), DENSE * [[1, 10, 100]])
    m = np.arange(6.0, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(tf.sparse.sparse_dense_matmul(s, m), DENSE @ m)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.transpose(s)), DENSE.T)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.reshape(s, [3, -1])), DENSE.reshape(3, 2))
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.add(s, s)), DENSE * 2)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.eye(2, 3)), np.eye(2, 3))
    np.testing.assert_array_equal(tf.sparse.reduce_sum(s, 0), DENSE.sum(0))
    back = tf.sparse.reorder(tf.SparseTensor([[1, 2], [0, 1]], [3.0, 1.0], [2, 3]))
    assert back.indices.numpy().tolist() == [[0, 1], [1, 2]] and back.values.numpy().tolist() == [1, 3]
    with pytest.raises(ValueError, match="do not fit"):
        tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 3])


def test_functions_that_are_imported_later_take_ragged_rows():
    r = tf.ragged.constant(ROWS)
    assert tf.map_fn(tf.math.square, r).to_list() == [[1, 4, 9], [], [16, 25]]
    assert tf.saturate_cast(tf.ragged.constant([[300], []]), tf.uint8).to_list() == [[255], []]


def test_places_of_rows_have_a_dtype():
    r = tf.ragged.constant([[[1, 2], [3]], [[4]]], row_splits_dtype=tf.int32)
    assert [s.dtype for s in r.nested_row_splits] == [tf.int32, tf.int32]
    assert r.row_lengths().dtype == tf.int32 and (r + 1).row_splits.dtype == tf.int32
    assert [s.dtype for s in r.with_row_splits_dtype(tf.int64).nested_row_splits] == [tf.int64, tf.int64]
    assert tf.RaggedTensorSpec.from_value(r).row_splits_dtype == tf.int32
    assert tf.ragged.range([2, 3], row_splits_dtype=tf.int32).row_splits.dtype == tf.int32
    assert tf.RaggedTensor.from_tensor([[1, 2]], row_splits_dtype=tf.int32).row_splits.dtype == tf.int32
    assert tf.RaggedTensor.from_row_splits([1, 2], [0, 1, 2]).row_splits.dtype == tf.int64
    assert [v.row_splits.dtype for v in tf.data.Dataset.from_tensors(r)] == [tf.int32]
    assert tf.function(lambda v: v * 2)(r).row_splits.dtype == tf.int32
    rows = tf.data.Dataset.range(3).map(lambda n: (tf.range(n), n)).ragged_batch(2, row_splits_dtype=tf.int32)
    assert [(v.row_splits.dtype, v.to_list()) for v, _ in rows] == [(tf.int32, [[], [0]]), (tf.int32, [[0, 1]])]
    with pytest.raises(ValueError, match="int32 or int64"):
        r.with_row_splits_dtype(tf.float32)


def test_axes_merge_and_rows_are_split_and_counted():
    deep = tf.ragged.constant([[[1], [2, 3]], [], [[4]]])
    assert deep.merge_dims(0, 1).to_list() == [[1], [2, 3], [4]] and deep.merge_dims(1, 2).to_list() == [[1, 2, 3], [], [4]]
    assert deep.merge_dims(0, -1).numpy().tolist() == [1, 2, 3, 4]
    even = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    assert even.merge_dims(1, 2).to_list() == [[1, 2], [3, 4, 5, 6]]
    assert [ids.numpy().tolist() for ids in deep.nested_value_rowids()] == [[0, 0, 2], [0, 1, 1, 2]]
    again = tf.RaggedTensor.from_nested_value_rowids([1, 2, 3, 4], deep.nested_value_rowids())
    assert again.to_list() == deep.to_list()
    rows = tf.ragged.constant([[1], [2, 3], [4], [5]])
    assert [part.to_list() for part in tf.split(rows, 2)] == [[[1], [2, 3]], [[4], [5]]]
    np.testing.assert_allclose(tf.nn.softmax(tf.ragged.constant([[1.0, 2.0], [3.0]])).flat_values,
                               [0.26894143, 0.7310586, 1.0], rtol=1e-6)
    assert tf.ragged.stack_dynamic_partitions(["a", "b", "c"], [0, 1, 0], 2).to_list() == [[b"a", b"c"], [b"b"]]
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert tf.sparse.segment_sum(x, [0, 2, 1], [0, 0, 1]).numpy().tolist() == [[6, 8], [3, 4]]
    assert tf.sparse.segment_mean(x, [0, 2, 1], [0, 0, 1]).numpy().tolist() == [[3, 4], [3, 4]]
    np.testing.assert_allclose(tf.sparse.segment_sqrt_n(x, [0, 2], [0, 0]), [[6 / 2**.5, 8 / 2**.5]], rtol=1e-6)
    counts = tf.sparse.bincount(tf.constant([[1, 1, 2], [0, 2, 2]]), axis=-1)
    assert tf.sparse.to_dense(counts).numpy().tolist() == [[0, 2, 1], [1, 0, 2]]
