"""Functions of tf on RaggedTensors that pick, move or group parts, as TensorFlow 2.21 answers."""
import numpy as np
import pytest

import berth as tf

R = tf.ragged.constant
I, B3 = R([[1, 2], [], [3]]), R([[[1, 2], [3]], [[4, 5, 6]], []])
S = R([["aB", "c "], [], ["12"]])
INNER = R([[[1], [2]], [[3]]], ragged_rank=1, inner_shape=(1,))
F = R([[0.5, 2.0], [], [1.0]])

CASES = [
    (lambda: tf.gather_nd(I, [[0, 1], [2, 0]]), [2, 3]),
    (lambda: tf.gather_nd(I, [[0], [2]]), [[1, 2], [3]]),
    (lambda: tf.gather_nd(I, [0, 1]), 2),
    (lambda: tf.gather_nd(B3, [[0, 1], [1, 0]]), [[3], [4, 5, 6]]),
    (lambda: tf.gather_nd(B3, [[0, 1, 0], [1, 0, 2]]), [3, 6]),
    (lambda: tf.gather_nd(B3, R([[[0, 1]], [], [[1, 0], [0, 0]]], ragged_rank=1)), [[[3]], [], [[4, 5, 6], [1, 2]]]),
    (lambda: tf.gather_nd(tf.constant([[1, 2], [3, 4]]), R([[[0, 1]], [[1, 0], [0, 0]]], ragged_rank=1)), [[2], [3, 1]]),
    (lambda: tf.gather_nd(I, [[[0], [1]], [[2], [0]]]), [[[1, 2], []], [[3], [1, 2]]]),
    (lambda: tf.gather_nd(INNER, [[0, 1]]), [[2]]),
    (lambda: tf.gather_nd(I, tf.zeros([2, 0], tf.int32)), [[[1, 2], [], [3]]] * 2),
    (lambda: tf.squeeze(INNER, 2), [[1, 2], [3]]),
    (lambda: tf.squeeze(input=INNER, axis=[-1]), [[1, 2], [3]]),
    (lambda: tf.squeeze(INNER, []), [[[1], [2]], [[3]]]),
    (lambda: tf.squeeze(R([[1, 2, 3]]), 0), [1, 2, 3]),
    (lambda: tf.squeeze(R([[[1, 2]], [[3]]]), 1), [[1, 2], [3]]),
    (lambda: tf.squeeze(R([[[1, 2]]]), [0, 1]), [1, 2]),
    (lambda: tf.reshape(I, [-1]), [1, 2, 3]),
    (lambda: tf.reshape(R([[1, 2], [3, 4]]), [2, 2]), [[1, 2], [3, 4]]),
    (lambda: tf.broadcast_to(tf.constant([[1], [2]]), tf.experimental.DynamicRaggedShape.from_lengths([2, (1, 3)])), [[1], [2, 2, 2]]),
    (lambda: tf.dynamic_partition(I, [0, 1, 0], 2)[0], [[1, 2], [3]]),
    (lambda: tf.dynamic_partition(I, R([[0, 1], [], [0]]), 2)[0], [1, 3]),
    (lambda: tf.dynamic_partition(B3, [1, 0, 0], 2)[0], [[[4, 5, 6]], []]),
    (lambda: tf.math.unsorted_segment_sum(F, R([[0, 1], [], [0]]), 2), [1.5, 2]),
    (lambda: tf.math.unsorted_segment_sum(R([[1.0, 2], [3], [4, 5]]), [0, 1, 0], 3), [[5, 7], [3], []]),
    (lambda: tf.math.unsorted_segment_mean(R([[1.0, 2], [3], [4]]), [0, 1, 0], 2), [[2.5, 2], [3]]),
    (lambda: tf.math.unsorted_segment_sqrt_n(R([[1.0, 4], [3], [3]]), [0, 1, 0], 2), [[4 / 2 ** 0.5, 4], [3]]),
    (lambda: tf.math.unsorted_segment_max(R([[1, 2], [3], [4]]), [0, 1, -1], 2), [[1, 2], [3]]),
    (lambda: tf.math.unsorted_segment_prod(R([[2, 2], [3], [4]]), [0, 1, 0], 2), [[8, 2], [3]]),
    (lambda: tf.math.scalar_mul(2, I), [[2, 4], [], [6]]),
    (lambda: tf.split(tf.RaggedTensor.from_row_lengths([[1, 2], [3, 4]], [1, 1]), 2, axis=2)[1], [[[2]], [[4]]]),
    (lambda: tf.gather(R([[1, 2], [3, 4]]), [0], axis=1), [[1], [3]]),
    (lambda: tf.strings.reduce_join(R([[["a", "b"], ["c"]], [["d"]]]), axis=[1, 2]), [b"abc", b"d"]),
    (lambda: tf.strings.reduce_join(R([[["a", "b"], ["c"]], [["d"]]]), axis=1), [[b"ac", b"b"], [b"d"]]),
    (lambda: tf.strings.reduce_join(S, axis=1, separator="+", keepdims=True), [[b"aB+c "], [b""], [b"12"]]),
    (lambda: tf.strings.format("a {} b {}", [I, S]), b"a [[1, 2], [], [3]] b [['aB', 'c '], [], ['12']]"),
    (lambda: tf.strings.unicode_script(R([[65], []])), [[25], []]),
    (lambda: tf.debugging.check_numerics(F, "m"), [[0.5, 2], [], [1]]),
    (lambda: tf.nn.experimental.stateless_dropout(F, 0.0, [1, 2]), [[0.5, 2], [], [1]]),
    (lambda: tf.math.special.bessel_j0(R([[0.0], []])), [[1], []]),
    (lambda: tf.image.resize(tf.ragged.stack([tf.ones([2, 3, 1]), tf.ones([3, 2, 1])]), [1, 1]), [[[[1]]]] * 2),
    (lambda: tf.math.reduce_variance(R([[[1.0, 2], [3]], [[4, 6]]]), axis=[1, 2]), [2 / 3, 1]),
    (lambda: tf.math.reduce_std(R([[[1.0, 2], [3]], [[4, 6]]]), axis=[1, 2], keepdims=True), [[[(2 / 3) ** 0.5]], [[1]]]),
]


def nested(value):
    return value.to_list() if hasattr(value, "to_list") else value.numpy().tolist() if value.shape.rank else value.numpy()


def numbers_of(value):
    return [n for v in value for n in numbers_of(v)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_results(case):
    call, want = CASES[case]
    got = nested(call())
    if isinstance(numbers_of(want)[0], float):
        np.testing.assert_allclose(numbers_of(got), numbers_of(want), rtol=1e-5)
    else:
        assert got == want


def test_shapes_and_dtypes():
    assert tf.expand_dims(I, 0).shape.as_list() == [1, 3, None]
    assert tf.ragged.stack([tf.ones([2, 3, 3]), tf.ones([3, 2, 3])]).shape.as_list() == [2, None, None, 3]
    assert tf.ragged.range([1, 3], [4, 3]).dtype == tf.int32


@pytest.mark.parametrize("call, error", [
    (lambda: tf.squeeze(I, 1), r"axis 1 of the RaggedTensor has lengths \[2, 0, 1\]; expected 1"),
    (lambda: tf.squeeze(I), "axis is None"), (lambda: tf.gather_nd(I, [[5, 0]]), "name rows"),
    (lambda: tf.gather_nd(I, [[1, 0]]), "name places"), (lambda: tf.split(I, 2, axis=1), "rows of other lengths")])
def test_what_is_wrong_is_named(call, error):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=error):
        call()


def test_gradients_reach_the_values():
    values = tf.constant([1.0, 2, 3])
    with tf.GradientTape() as tape:
        tape.watch(values)
        x = tf.RaggedTensor.from_row_lengths(values, [2, 1])
        y = tf.reduce_sum(tf.gather_nd(x, [[0, 1], [0, 1], [1, 0]]))
    assert tape.gradient(y, values).numpy().tolist() == [0, 2, 1]


@pytest.mark.parametrize("kind, want", [("MAX", [27, 28, 35, 36]), ("AVG", [13.5, 14.5, 21.5, 22.5])])
def test_pooling_of_elements_that_are_apart(kind, want):
    x = tf.reshape(tf.range(64.0), [1, 8, 8, 1])
    y = tf.nn.pool(x, [2, 2], kind, dilations=[3, 3])
    assert y.shape.as_list() == [1, 5, 5, 1] and y[0, :2, :2, 0].numpy().ravel().tolist() == want
    first = tf.nn.pool(tf.transpose(x, [0, 3, 1, 2]), [2, 2], kind, dilations=[3, 3], data_format="NCHW")
    assert first.numpy().ravel().tolist() == y.numpy().ravel().tolist()
    assert tf.nn.pool(x, [2, 2], kind, padding=[[0, 0], [1, 1], [1, 0], [0, 0]], dilations=[2, 2]).shape.as_list() == [1, 8, 7, 1]
    for wrong in ({"padding": "SAME"}, {"strides": 2}):
        with pytest.raises(ValueError, match="expected dilations of 1 or more, and with those above 1 strides of 1"):
            tf.nn.pool(x, [2, 2], kind, dilations=[2, 2], **wrong)


def test_texts_move_without_being_compared():
    """Rows of many texts, one after the other: each is read once."""
    texts = tf.constant([f"t{i}" for i in range(3000)])
    rows = tf.RaggedTensor.from_row_lengths(texts, [3] * 1000)
    assert [r.numpy().tolist() for r in rows][999] == [b"t2997", b"t2998", b"t2999"]
    assert tf.concat([texts[:2], texts[-1:]], 0).numpy().tolist() == [b"t0", b"t1", b"t2999"]
    assert tf.where([True, False], tf.constant(["a", "b"]), "").numpy().tolist() == [b"a", b""]
    assert rows.to_tensor(shape=[2, 4]).numpy().tolist() == [[b"t0", b"t1", b"t2", b""], [b"t3", b"t4", b"t5", b""]]
