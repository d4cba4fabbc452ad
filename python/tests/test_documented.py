"""What users paste from TensorFlow's documentation: forms of arguments, and how values print; the numbers are TensorFlow's own."""
import berth as tf
import numpy as np
import pytest

X = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
PAIRS = [[0, 0], [1, 0], [1, 0], [0, 0]]
ROWS = tf.ragged.constant([[4, 2], [1]])

# An expression, and what it gives: an array or lists.
GIVES = [
    ("tf.tile([[7, 8]], tf.constant([2, 1]))", [[7, 8], [7, 8]]),
    ("tf.transpose([[1, 2, 3]], tf.constant([1, 0]))", [[1], [2], [3]]),
    ("tf.transpose([[1 + 2j, 3j]], conjugate=True)", [[1 - 2j], [-3j]]),
    ("tf.tensordot([[1, 2]], [[3, 4]], tf.constant([[1], [1]]))", [[11]]),
    ("tf.strided_slice([5, 6, 7], tf.constant([1]), tf.constant([3]))", [6, 7]),
    ("tf.image.resize(X, tf.constant([1, 1]), 'nearest')", [[[[10]]]]),
    ("tf.divide(tf.constant([9, 4]), 2)", np.array([4.5, 2.0])),
    ("tf.truediv(tf.constant([9], tf.int8), tf.constant([2], tf.int8))", np.array([4.5], "float32")),
    ("tf.math.truediv(7, 2)", np.array(3.5)),
    ("tf.gather_nd([[1, 2], [3, 4]], [[1], [0]], batch_dims=1)", [2, 3]),
    ("tf.gather_nd(indices=[[1], [0]], params=[['p', 'q'], ['r', 's']])", [[b"r", b"s"], [b"p", b"q"]]),
    ("tf.gather(['p', 'q', 'r'], [2, 0])", [b"r", b"p"]),
    ("tf.gather([['p', 'q'], ['r', 's']], [[1], [0]], batch_dims=1)", [[b"q"], [b"r"]]),
    ("tf.concat(axis=0, values=[['p'], ['q']])", [b"p", b"q"]),
    ("tf.linspace([0., 6.], [9., 30.], 4, axis=-1)", np.array([[0, 3, 6, 9], [6, 14, 22, 30]], "float32")),
    ("tf.linspace([1., 2.], 3., 1)", np.array([[1, 2]], "float32")),
    ("tf.math.bincount([[1, 2, 2], [0, 0, 3]], axis=-1)", [[0, 1, 2, 0], [2, 0, 0, 1]]),
    ("tf.math.bincount([[1, 2, 2], [0, 0, 3]], axis=-1, binary_output=True)", [[0, 1, 1, 0], [1, 0, 0, 1]]),
    ("tf.math.bincount([1, 1, 4], maxlength=3, axis=-1)", [0, 2, 0]),
    ("tf.math.accumulate_n([[1, 2], [3, 4]], shape=[2], tensor_dtype=tf.int32)", [4, 6]),
    ("tf.io.decode_raw(['abcd', 'e'], tf.uint8, fixed_length=3)", np.array([[97, 98, 99], [101, 0, 0]], "uint8")),
    ("tf.sequence_mask([1, 3], dtype=tf.int64)", np.array([[1, 0, 0], [1, 1, 1]])),
    ("tf.sign([3 + 4j, 0j])", [0.6 + 0.8j, 0]),
    ("tf.nn.conv2d(X, tf.ones([2, 2, 1, 1]), 1, PAIRS)[0, :2, :, 0]", np.array([[0, 1, 3, 5], [4, 10, 14, 18]], "float32")),
    ("tf.nn.depthwise_conv2d(X, tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], PAIRS)[0, 0, :, 0]", np.array([0, 1, 3, 5], "float32")),
    ("tf.nn.max_pool2d(X, 2, 2, [[0, 0], [1, 1], [1, 1], [0, 0]])[0, 0, :, 0]", np.array([0, 2, 3], "float32")),
    ("tf.nn.max_pool(X.astype('int32'), 2, 2, 'SAME')[0, :, :, 0]", [[5, 7], [13, 15]]),
    ("tf.map_fn(tf.strings.length, tf.constant(['pq', 'r']), fn_output_signature=tf.int32)", [2, 1]),
    ("tf.map_fn(tf.sparse.reduce_sum, tf.sparse.from_dense([[1, 0], [2, 3]]), fn_output_signature=tf.int32)", [1, 5]),
    ("tf.map_fn(tf.range, tf.constant([2, 0, 3]), fn_output_signature=tf.RaggedTensorSpec([None], tf.int32)).to_list()", [[0, 1], [], [0, 1, 2]]),
    ("tf.sparse.maximum(*SPARSE).values", [5, 2, 0]),
    ("tf.sparse.minimum(*SPARSE).indices", np.array([[0, 1], [1, 0], [1, 1]])),
    ("tf.sparse.bincount([[1, 1]], axis=-1).values", np.array([2], np.int32)),
    ("tf.constant_initializer([0, 1, 2, 3])([2, 2], tf.int64)", np.array([[0, 1], [2, 3]])),
    ("tf.constant_initializer(3.)([2])", np.array([3, 3], "float32")),
    ("tf.data.Dataset.range(5).reduce(np.int64(3), lambda s, x: s + x)", np.array(13)),
    ("next(tf.data.Dataset.from_tensors([1, 2]).padded_batch(1, padded_shapes=4, padding_values=9).as_numpy_iterator())",
     [[1, 2, 9, 9]]),
    ("tf.concat(next(iter(tf.data.Dataset.from_tensors(([1], [2])).padded_batch(1, ([2], [2]), -1))), 0)", [[1, -1], [2, -1]]),
    ("tf.ragged.stack([tf.constant([[1, 2]]), tf.constant([[3], [4]])]).to_list()", [[[1, 2]], [[3], [4]]]),
    ("tf.RaggedTensor.from_tensor(np.arange(8).reshape(2, 2, 2), lengths=([1, 2], [2, 0, 1])).to_list()", [[[0, 1]], [[], [6]]]),
    ("ROWS.nrows()", np.array(2)),
    ("tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2).uniform_row_length", np.array(2)),
    ("tf.image.draw_bounding_boxes(tf.zeros([1, 2, 2, 1]), [[[0, 0, 1, 1.]]], [[1., 2., 3.]])", np.ones([1, 2, 2, 1], "float32")),
]
SPARSE = tf.SparseTensor([[0, 1], [1, 0]], [-1, 2], [2, 2]), tf.SparseTensor([[0, 1], [1, 1]], [5, -7], [2, 2])


@pytest.mark.parametrize("text, wanted", GIVES, ids=[text for text, _ in GIVES])
def test_forms_of_arguments(text, wanted):
    got = eval(text)
    if isinstance(wanted, list) and isinstance(got, list):
        assert got == wanted
        return
    got = got.numpy() if hasattr(got, "numpy") else got
    if isinstance(wanted, np.ndarray):
        assert got.dtype == wanted.dtype
    assert got.shape == np.shape(wanted) and np.array_equal(got, wanted) or np.allclose(got, wanted)


SHOWS = [
    ("tf.constant([[1, 2], [3, 4]])", "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>"),
    ("tf.constant(2.5)", "<tf.Tensor: shape=(), dtype=float32, numpy=2.5>"),
    ("tf.constant('p')", "<tf.Tensor: shape=(), dtype=string, numpy=b'p'>"),
    ("tf.Variable([7], name='v')", "<tf.Variable 'v:0' shape=(1,) dtype=int32, numpy=array([7], dtype=int32)>"),
    ("str(tf.constant([[1], [2]]))", "'tf.Tensor(\\n[[1]\\n [2]], shape=(2, 1), dtype=int32)'"),
    ("str(tf.int8)", '"<dtype: \'int8\'>"'), ("tf.int8", "tf.int8"),
    ("tf.ragged.constant([[2.2], [3.2, 1]])", "<tf.RaggedTensor [[2.2], [3.2, 1.0]]>"),
    ("tf.ragged.constant([[1, 2], [3, 4]])", "<tf.RaggedTensor [[1, 2],\n [3, 4]]>"),
    ("tf.ragged.constant([[], []], dtype=tf.int32)", "<tf.RaggedTensor [[], []]>"),
    ("tf.SparseTensor([[0]], [5], [2])", "SparseTensor(indices=tf.Tensor([[0]], shape=(1, 1), dtype=int64), values=tf.Tensor([5], shape=(1,), "
     "dtype=int32), dense_shape=tf.Tensor([2], shape=(1,), dtype=int64))"),
    ("tf.as_dtype('float'), tf.as_dtype(9), tf.as_dtype('half'), tf.bool.as_datatype_enum", "(tf.float32, tf.int64, tf.float16, 10)"),
    ("tf.experimental.Optional.from_value(3).element_spec", "TensorSpec(shape=(), dtype=tf.int32, name=None)"),
    ("tf.data.experimental.from_list([[1], [2, 3]]).element_spec", "TensorSpec(shape=(None,), dtype=tf.int32, name=None)"),
    ("tf.data.Dataset.range(3).padded_batch(2)", "<_PaddedBatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"),
    ("tf.data.Dataset.from_tensor_slices([1])", "<_TensorSliceDataset element_spec=TensorSpec(shape=(), dtype=tf.int32, name=None)>"),
    ("ROWS == tf.ragged.constant([[4], [2, 1]]), ROWS != tf.ragged.constant([[4], [2, 1]])", "(False, True)"),
]


@pytest.mark.parametrize("text, wanted", SHOWS, ids=[text for text, _ in SHOWS])
def test_what_values_show(text, wanted):
    assert repr(eval(text)) == wanted


REFUSES = [("bool(ROWS)", TypeError), ("tf.gather_nd(['p'], [[0]], bad_indices_policy='no')", ValueError),
           ("tf.gather(['p'], [-1])", tf.errors.InvalidArgumentError), ("tf.math.accumulate_n([[1]], shape=[2])", ValueError),
           ("tf.io.decode_raw('abc', tf.int16, fixed_length=3)", ValueError), ("tf.nn.conv2d(X, tf.ones([1, 1, 1, 1]), 1, [[0, 0]])", ValueError),
           ("tf.constant_initializer([1, 2])([3])", TypeError), ("SPARSE[0].set_shape([3, None])", ValueError),
           ("tf.data.experimental.from_list([])", ValueError), ("tf.convert_to_tensor(tf.ragged.constant([[1], [2]]))", TypeError)]


@pytest.mark.parametrize("text, error", REFUSES, ids=[text for text, _ in REFUSES])
def test_what_is_refused(text, error):
    with pytest.raises(error):
        eval(text)


def test_a_tensor_beside_rows_of_equal_lengths_gives_rows():
    rows, x = tf.ragged.constant([[1, 2], [3, 4]]), tf.constant([[1, 2], [3, 9]])
    for got in (x == rows, x >= rows, x + rows, rows + x):
        assert isinstance(got, tf.RaggedTensor)
    assert (x == rows).to_list() == [[True, True], [True, False]] and (x >= rows).to_list() == [[True, True], [True, True]]


def test_gradients_of_rows_are_rows():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        total = tf.reduce_sum(x)
    assert tape.gradient(y, x).to_list() == [[2, 4], [6]]
    assert tape.gradient(total, [x])[0].to_list() == [[1, 1], [1]]
    assert tape.gradient(y, x, output_gradients=x).to_list() == [[2, 8], [18]]
    assert tape.gradient(tf.constant(1.0), x) is None


def test_text_of_a_traced_tensor_needs_no_value():
    seen = []

    @tf.function
    def twice(x):
        seen.append(f"{x}")
        return 2 * x

    assert [int(twice(tf.constant(n))) for n in (3, 4)] == [6, 8]
    assert len(seen) == 1 and "shape=()" in seen[0]


def test_a_concrete_function_is_the_same_for_the_same_arguments():
    f = tf.function(lambda x, n=1: x * n).get_concrete_function
    assert f(tf.constant(1)) is f(tf.constant(2)) and f(tf.constant(1)) is not f(tf.constant(1.0))
    assert f(tf.constant(1), n=2) is not f(tf.constant(1), n=3) and int(f(tf.constant(1), n=3)(tf.constant(5))) == 15


def test_functions_that_were_read_before_the_first_rows():
    import subprocess
    import sys
    text = "import berth as tf; print(tf.reduce_sum(tf.ragged.constant([[1, 2], [3]]), axis=1).numpy().tolist())"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout.strip() == "[3, 3]"


def test_whole_numbers_of_64_bits_stay_what_they_are_in_keras():
    import os
    import subprocess
    import sys
    text = "import berth, keras, numpy as np; print(*[keras.ops.convert_to_tensor(np.array([n])).numpy()[0] for n in (2 ** 40, 7)])"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "KERAS_BACKEND": "berth"})
    assert run.stdout.split() == ["1099511627776", "7"], run.stderr
