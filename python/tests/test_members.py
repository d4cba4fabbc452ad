"""Members of tensors, shapes, dtypes, variables and data sets that few programs ask for; the numbers are TensorFlow's own."""
import berth as tf
import numpy as np
import pytest


def test_shapes_are_checked_and_compared():
    shape = tf.TensorShape([1, None])
    assert shape.with_rank(2) == shape.with_rank_at_least(1) == shape.with_rank_at_most(3) == shape
    for wrong, says in ((lambda: shape.with_rank(3), "rank 3"), (lambda: shape.with_rank_at_least(3), "at least 3"),
                        (lambda: shape.with_rank_at_most(1), "at most 1"), (lambda: shape.assert_has_rank(1), "rank 1"),
                        (lambda: shape.assert_same_rank([1]), "same rank"),
                        (shape.assert_is_fully_defined, "not fully defined")):
        with pytest.raises(ValueError, match=says):
            wrong()
    shape.assert_same_rank([5, 6])
    tf.TensorShape([1, 2]).assert_is_fully_defined()
    assert tf.TensorShape([1, 2]).most_specific_compatible_shape([1, 3]).as_list() == [1, None]
    assert tf.TensorShape([1, 2]).most_specific_compatible_shape([1]).rank is None
    assert tf.TensorShape([1, 2]).is_subtype_of(shape) and not shape.is_subtype_of([1, 2])


def test_dtypes_say_what_they_are():
    assert [d for d in (tf.uint8, tf.int32, tf.float32, tf.bool) if d.is_unsigned] == [tf.uint8]
    assert [d.is_numeric for d in (tf.bool, tf.string, tf.bfloat16, tf.complex64)] == [False, False, True, True]
    assert (tf.complex64.real_dtype, tf.complex128.real_dtype, tf.int8.real_dtype) == (tf.float32, tf.float64, tf.int8)
    assert tf.int32.is_compatible_with("int32") and not tf.int32.is_compatible_with(tf.int64)
    assert not tf.int8.is_quantized and tf.string.is_numpy_compatible


def test_variables_are_written_and_read_in_places():
    v = tf.Variable([1.0, 2.0, 3.0])
    assert v.scatter_nd_add([[0], [2]], [1.0, 5.0]).numpy().tolist() == [2, 2, 8]
    assert v.numpy().tolist() == [2, 2, 8]
    assert v.scatter_nd_update([[0]], [9.0]).numpy().tolist() == [9, 2, 8]
    assert v.scatter_nd_max([[0], [1]], [100.0, 0.0]).numpy().tolist() == [100, 2, 8]
    assert v.scatter_nd_min([[0], [1]], [1.0, 5.0]).numpy().tolist() == [1, 2, 8]
    assert v.scatter_nd_sub([[2]], [8.0]).numpy().tolist() == [1, 2, 0]
    assert v.gather_nd([[1]]).numpy().tolist() == [2] and v.sparse_read([1, 1]).numpy().tolist() == [2, 2]
    add = tf.function(lambda: v.scatter_nd_add([[1]], [1.0]))
    add(), add()
    assert v.numpy().tolist() == [1, 4, 0]


def test_specs_and_slices_know_their_shapes():
    rows = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4]), tf.constant([5, 3]))
    assert rows.dtype == tf.float32 and rows.shape == [5, 3] and "CPU" in rows.device
    assert tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 4])).shape.rank is None
    named = tf.TensorSpec.from_spec(tf.TensorSpec([1], tf.int32, "a"), "b")
    assert (named.shape, named.dtype, named.name) == ([1], tf.int32, "b")
    value = tf.SparseTensor([[0, 1]], [1.0], [2, 3])
    spec = tf.SparseTensorSpec.from_value(value)
    assert spec.shape == [2, 3] and spec.is_compatible_with(value)
    assert not tf.SparseTensorSpec([2, 3], tf.int32).is_compatible_with(value)
    assert not tf.SparseTensorSpec([2, 4]).is_compatible_with(value) and not spec.is_compatible_with(tf.ones([2, 3]))
    made = tf.function(lambda x: (x + 1, x > 0)).get_concrete_function(tf.TensorSpec([2], tf.float32))
    assert made.output_shapes == ([2], [2]) and made.output_dtypes == (tf.float32, tf.bool)
    assert made.trainable_variables == ()
    x = tf.constant([1.0])
    assert x.cpu().numpy().tolist() == [1]


def test_batches_of_sparse_tensors():
    def parts(dataset):
        return [(s.indices.numpy().tolist(), s.values.numpy().tolist(), s.dense_shape.numpy().tolist()) for s in dataset]
    rows = tf.data.Dataset.from_tensor_slices([[1, 0], [0, 2], [3, 3]]).sparse_batch(2, [2])
    assert parts(rows) == [([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 0, 0, 2], [2, 2]), ([[0, 0], [0, 1]], [3, 3], [1, 2])]
    uneven = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32))
    assert parts(uneven.sparse_batch(2, [4])) == [([[0, 0], [1, 0], [1, 1]], [1, 1, 2], [2, 4])]
    with pytest.raises(tf.errors.DataLossError, match=r"element 1 has shape \[2\]"):
        list(uneven.sparse_batch(2, [1]))


def test_generators_draw_whole_numbers_of_all_bits_and_trials():
    drawn = tf.random.Generator.from_seed(1)
    for dtype, low, high in ((tf.int32, -2 ** 31, 2 ** 31), (tf.uint32, 0, 2 ** 32), (tf.int64, -2 ** 63, 2 ** 63),
                             (tf.uint64, 0, 2 ** 64)):
        values = [int(v) for v in drawn.uniform_full_int([4000], dtype).numpy()]
        assert low <= min(values) < low + (high - low) // 50 and high - (high - low) // 50 < max(values) < high
        assert len(set(values)) > 3990 and 0.45 < np.mean([v & 1 for v in values]) < 0.55
    trials = drawn.binomial([4000], counts=[5.0], probs=[0.5]).numpy()
    assert trials.dtype == np.int32 and set(trials) == set(range(6)) and abs(trials.mean() - 2.5) < 0.1
    with pytest.raises(ValueError, match="expected int32"):
        drawn.uniform_full_int([2], tf.float32)


def test_the_adjoint_of_an_operand():
    z, w = tf.constant([[1 + 2j], [-3 + 0.5j]]), tf.constant([[1j]])
    assert tf.matmul(z, z, adjoint_a=True).numpy().tolist() == [[14.25]]
    assert tf.linalg.matmul(w, z, adjoint_b=True).numpy().tolist() == [[2 + 1j, 0.5 - 3j]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="transpose and adjoint of the same operand"):
        tf.matmul(z, z, transpose_a=True, adjoint_a=True)
