"""RaggedTensors, SparseTensors and Datasets where an op wants a tensor: what takes them does, the rest says what to do instead."""
import inspect
import operator

import berth as tf
import berth.experimental.numpy  # noqa: F401  imported at its first use
import numpy as np
import pytest

from test_public import CALLABLES

KINDS = {
    "RaggedTensor": lambda: tf.ragged.constant([[1.0, 2.0], [3.0]]),
    "SparseTensor": lambda: tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2]),
    "Dataset": lambda: tf.data.Dataset.from_tensor_slices([1.0, 2.0]),
}
MODULES = ("tf", "tf.math", "tf.nn", "tf.linalg", "tf.signal", "tf.image", "tf.strings", "tf.bitwise", "tf.random", "tf.io",
           "tf.experimental.numpy", "tf.raw_ops")
# What an error says that is about the form of the call, or about the dtype or the shapes of values that are taken.
FORM = ("takes 0 ", "takes no ", "positional argument", "missing", "cannot create", "needs the argument", "expected strings",
        "expected one of", "has no argument", "expected a value of", "must be functions", "at least one array", "does not hold",
        "expected int32 or int64", "expected equal shapes", "blank_index is None", "a number is wanted", "where string is asked for")
# Of a Dataset they take whatever it is, or ask for nothing of it.
ANYTHING = set("""tf.control_dependencies tf.custom_gradient tf.device tf.function tf.get_static_value tf.group
tf.is_symbolic_tensor tf.is_tensor tf.name_scope tf.no_op tf.numpy_function tf.print tf.py_function tf.recompute_grad
tf.signal.inverse_stft_window_fn tf.timestamp tf.type_spec_from_value""".split())


def required(function):
    """How many arguments must be given, at least one."""
    return max(1, sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                      for p in inspect.signature(function).parameters.values()))


OPS = {path: f for path, f in CALLABLES.items() if path.rpartition(".")[0] in MODULES and not inspect.isclass(f)
       and "enable_numpy_behavior" not in path  # which other tests would see
       and path not in ("tf.gradients", "tf.hessians")}  # which work in traced functions


@pytest.mark.parametrize("kind", KINDS)
def test_ops_name_what_they_do_not_take(kind):
    taken, plain = set(), []
    for path, function in OPS.items():
        try:
            function(*[KINDS[kind]()] * required(function))
            taken.add(path)
        except (TypeError, ValueError, NotImplementedError, tf.errors.OpError) as error:
            text = str(error)
            if kind not in text and not any(form in text for form in FORM):
                plain.append(f"{path}: {type(error).__name__}: {text}")
        except Exception as error:
            plain.append(f"{path}: {type(error).__name__}: {error}")
    assert len(OPS) > 500 and not plain, "\n".join(plain)
    if kind == "Dataset":
        assert taken <= ANYTHING, taken - ANYTHING
    elif kind == "SparseTensor":
        from berth._sparse_ops import OF_VALUES
        own = {path for path in taken if path.rpartition(".")[2] not in [
            *OF_VALUES, "divide", "shape", "size", "rank", "edit_distance", "serialize_sparse", "serialize_many_sparse"]}
        assert own <= ANYTHING, own - ANYTHING


def test_what_they_say_instead():
    for kind, instead in {"RaggedTensor": "to_tensor()", "SparseTensor": "tf.sparse.to_dense()", "Dataset": "iterate over it"}.items():
        for call in (lambda x: tf.linalg.det(x), lambda x: tf.concat([tf.ones([2, 2]), x], 0) if kind != "RaggedTensor" else
                     tf.linalg.det(x), tf.convert_to_tensor, tf.Variable, lambda x: tf.sort(x)):
            with pytest.raises(TypeError, match=f"not a {kind}; .*{instead.replace('(', '.').replace(')', '.')}"):
                call(KINDS[kind]())
    with pytest.raises(TypeError, match="zeros.*'shape'.*Dataset"):
        tf.zeros(tf.data.Dataset.range(2))


OPERATORS = "add sub mul matmul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_name_what_they_do_not_take(kind, name):
    function, value = getattr(operator, name), KINDS[kind]()
    for sides in ((value, tf.ones([2, 2])), (tf.ones([2, 2]), value), (value, 2), (2, value), (value, value)):
        try:
            function(*sides)
            assert kind != "Dataset"
        except (TypeError, tf.errors.InvalidArgumentError) as error:
            assert kind in str(error) or "ragged" in str(error) or "expected one of" in str(error), (sides, error)
    for alone in (operator.neg, operator.pos, operator.invert, abs) if kind == "Dataset" else ():
        with pytest.raises(TypeError, match="a Dataset has no such operator"):
            alone(value)


# Expected values and shapes: TensorFlow 2.21 gives these.
CUBE = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]


def test_matmul_of_ragged_tensors():
    x = tf.ragged.constant(CUBE, ragged_rank=1)
    out = tf.matmul(x, tf.ones([2, 2, 2]))
    assert out.to_list() == [[[3, 3], [7, 7]], [[11, 11]]] and out.ragged_rank == 1 and out.shape.as_list() == [2, None, 2]
    assert tf.linalg.matmul(tf.ragged.constant(CUBE), tf.ones([2, 2, 2])).to_list() == out.to_list()
    assert (x @ tf.ones([2, 2, 2])).to_list() == out.to_list()
    assert tf.matmul(x, x, transpose_b=True).to_list() == [[[5, 11], [11, 25]], [[61]]]
    assert tf.matmul(x, x, transpose_a=True).to_list() == [[[10, 14], [14, 20]], [[25, 30], [30, 36]]]
    across = tf.matmul(tf.ones([2, 3, 2]), x, transpose_b=True)
    assert across.to_list() == [[[3, 7]] * 3, [[11]] * 3] and across.ragged_rank == 2
    square = tf.ragged.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(tf.ones([2, 2]) @ square, [[4, 6], [4, 6]])
    assert tf.linalg.matvec(x, tf.ones([2, 2])).to_list() == [[3, 7], [11]]
    deep = tf.ragged.constant([CUBE, [[[7.0, 8.0]]]], ragged_rank=2)
    assert tf.matmul(deep, deep, transpose_b=True).to_list() == [[[[5, 11], [11, 25]], [[61]]], [[[113]]]]


def test_matmul_of_ragged_tensors_has_gradients():
    flat, w = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.Variable([[[1.0], [2.0]], [[3.0], [4.0]]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.matmul(tf.RaggedTensor.from_row_splits(flat, [0, 2, 3]), w).flat_values)
    dx, dw = tape.gradient(y, [flat, w])
    np.testing.assert_array_equal(dx, [[1, 2], [1, 2], [3, 4]])
    np.testing.assert_array_equal(dw, [[[4], [6]], [[5], [6]]])


@pytest.mark.parametrize("a, b, says", {
    "rows of other lengths": ([[1.0, 2.0], [3.0]], np.ones([2, 2], "f"), r"a matrix of 'a' .* rows of \[2, 1\] elements"),
    "other ranks": (CUBE, np.ones([2, 2], "f"), "a has rank 3 and b has rank 2; expected equal ranks"),
    "other numbers": (CUBE, np.ones([3, 2, 2], "f"), "a has 2 matrices and b has 3"),
}.values())
def test_matmul_of_ragged_tensors_refuses(a, b, says):
    with pytest.raises(tf.errors.InvalidArgumentError, match=says):
        tf.matmul(tf.ragged.constant(a), b)


def test_more_functions_of_ragged_tensors():
    x, n = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[1, 2], [3]])
    assert tf.cumsum(x).to_list() == [[1, 2], [4]] and tf.cumsum(x, axis=1).to_list() == [[1, 3], [3]]
    assert tf.cumsum(x, axis=1, reverse=True).to_list() == [[3, 2], [3]]
    assert tf.cumsum(tf.ragged.constant(CUBE), axis=2).to_list() == [[[1, 3], [3, 7]], [[5, 11]]]
    assert tf.math.bincount(n, minlength=5).numpy().tolist() == [0, 1, 1, 1, 0]
    assert tf.math.bincount(n, axis=-1).numpy().tolist() == [[0, 1, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(tf.reduce_logsumexp(x, axis=1), np.log([np.exp(1) + np.exp(2), np.exp(3)]), 1e-6)
    np.testing.assert_allclose(tf.reduce_logsumexp(x), np.log(np.exp([1, 2, 3]).sum()), 1e-6)
    assert tf.bitwise.invert(n).to_list() == [[-2, -3], [-4]] and tf.bitcast(x, tf.int32)[1, 0] == 0x40400000
    assert tf.image.adjust_gamma(x, 2.0).to_list() == [[1, 4], [9]]
    assert tf.io.encode_base64(tf.ragged.constant([["a"], []], dtype=tf.string)).to_list() == [[b"YQ"], []]
    tf.debugging.assert_less(x, x + 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not hold"):
        tf.debugging.assert_less(x, x)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2, 1\] and \[1, 2\]"):
        tf.debugging.assert_equal(x, tf.ragged.constant([[1.0], [2.0, 3.0]]))


def test_functions_of_the_values_of_sparse_tensors():
    s = tf.SparseTensor([[0, 0], [1, 1]], [1.0, -4.0], [2, 3])
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.abs(s)), [[1, 0, 0], [0, 4, 0]])
    assert tf.cast(s, tf.int32).dtype == tf.int32 and tf.identity(s).shape.as_list() == [2, 3]
    np.testing.assert_array_equal(tf.divide(s, 2.0).values, [0.5, -2])
    np.testing.assert_array_equal((-s).values, [-1, 4])
    assert tf.shape(s).numpy().tolist() == [2, 3] and tf.shape(s).dtype == tf.int32 and int(tf.size(s)) == 6
    assert int(tf.rank(s)) == 2 and tf.math.bincount(tf.cast(tf.abs(s), tf.int32)).numpy().tolist() == [0, 1, 0, 0, 1]
    assert tf.is_tensor(s) and tf.is_tensor(tf.ragged.constant([[1]])) and not tf.is_tensor(tf.data.Dataset.range(1))
