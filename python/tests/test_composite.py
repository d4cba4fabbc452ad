"""Values made of tensors: RaggedTensor, SparseTensor, ExtensionType. The numbers are TensorFlow's own."""
import typing

import berth as tf
import numpy as np
import pytest


def ragged(*rows, **options):
    return tf.ragged.constant(list(rows), **options)


DIGITS = [[3, 1, 4, 1], [], [5, 9, 2], [6], []]


def test_functions_of_elements_take_ragged_tensors():
    digits = ragged(*DIGITS)
    assert tf.add(digits, 3).to_list() == [[6, 4, 7, 4], [], [8, 12, 5], [9], []]
    assert (digits + digits).to_list() == (2 * digits).to_list() == [[6, 2, 8, 2], [], [10, 18, 4], [12], []]
    assert tf.square(digits).to_list()[2] == [25, 81, 4]
    assert (digits > 3).to_list() == [[False, False, True, False], [], [True, True, False], [True], []]
    words = ragged(["So", "long"], ["thanks", "for", "all"])
    assert tf.strings.substr(words, 0, 2).to_list() == [[b"So", b"lo"], [b"th", b"fo", b"al"]]
    assert tf.strings.join([words, words], separator="+").to_list()[0] == [b"So+So", b"long+long"]


def test_tensors_are_broadcast_over_rows():
    x = ragged([10, 87, 12], [19, 53], [12, 32])
    assert (x + [[1000], [2000], [3000]]).to_list() == [[1010, 1087, 1012], [2019, 2053], [3012, 3032]]
    y = tf.ragged.constant([[[1, 2], [3, 4], [5, 6]], [[7, 8]]], ragged_rank=1)
    assert (y + tf.constant([[10]])).to_list() == [[[11, 12], [13, 14], [15, 16]], [[17, 18]]]
    z = tf.ragged.constant([[[[1], [2]], [], [[3]]], [[[5], [6]]]], ragged_rank=2)
    assert (z + tf.constant([10, 20])).to_list() == [[[[11, 21], [12, 22]], [], [[13, 23]]], [[[15, 25], [16, 26]]]]
    for a, b in ((ragged([1, 2], [3, 4, 5]), tf.constant([[1, 2, 3, 4], [5, 6, 7, 8]])),
                 (ragged([1, 2, 3], [4]), ragged([10, 20], [30, 40]))):
        with pytest.raises(tf.errors.InvalidArgumentError):
            a + b


def test_reductions_of_rows():
    digits = ragged(*DIGITS)
    assert tf.reduce_sum(digits, axis=1).numpy().tolist() == [9, 0, 16, 6, 0]
    assert tf.reduce_sum(digits, axis=0).numpy().tolist() == [14, 10, 6, 1]
    assert tf.reduce_max(ragged([1, 2], [3], [4, 5, 6]), axis=-1).numpy().tolist() == [2, 3, 6]
    assert tf.reduce_mean(ragged([1.0, 2.0], [5.0]), axis=1).numpy().tolist() == [1.5, 5.0]
    assert tf.reduce_any(ragged([True, False], [False]), axis=1).numpy().tolist() == [True, False]
    deep = ragged([[1, 2], [3]], [[4]])
    assert tf.reduce_sum(deep, axis=2).to_list() == [[3, 3], [4]]
    assert tf.reduce_sum(deep, axis=1).to_list() == [[4, 2], [4]]
    assert int(tf.reduce_sum(deep)) == 10


def test_rows_move():
    digits = ragged(*DIGITS)
    assert tf.concat([digits, [[5, 3]]], axis=0).to_list() == DIGITS + [[5, 3]]
    x, y = ragged(["John"], ["a", "big", "dog"]), ragged(["fell", "asleep"], ["barked"])
    assert tf.concat([x, y], axis=1).to_list() == [[b"John", b"fell", b"asleep"], [b"a", b"big", b"dog", b"barked"]]
    assert tf.tile(digits, [1, 2]).to_list()[2:4] == [[5, 9, 2, 5, 9, 2], [6, 6]]
    assert tf.reverse(digits, [1]).to_list() == [[1, 4, 1, 3], [], [2, 9, 5], [6], []]
    assert tf.stack([ragged([1], [2, 3]), ragged([4, 5], [6])]).to_list() == [[[1], [2, 3]], [[4, 5], [6]]]
    assert tf.gather(digits, [2, 0]).to_list() == [[5, 9, 2], [3, 1, 4, 1]]
    assert tf.gather(tf.constant([10, 20, 30]), ragged([0, 2], [1])).to_list() == [[10, 30], [20]]
    assert tf.ragged.boolean_mask([[1, 2, 3], [4, 5, 6]], [[True, False, True], [False, False, True]]).to_list() == [
        [1, 3], [6]]
    assert tf.expand_dims(ragged([1], [2, 3]), 0).to_list() == [[[1], [2, 3]]]
    assert tf.where(ragged([True, False], [True]), ragged([1, 2], [3]), ragged([10, 20], [30])).to_list() == [[1, 20], [3]]


def test_subscripts_of_ragged_tensors():
    digits = ragged(*DIGITS)
    assert digits[0].numpy().tolist() == [3, 1, 4, 1] and digits[1:3].to_list() == [[], [5, 9, 2]]
    assert digits[:, :2].to_list() == [[3, 1], [], [5, 9], [6], []]
    assert digits[:, -2:].to_list() == [[4, 1], [], [9, 2], [6], []]
    rt = ragged([[1, 2, 3], [4]], [[5], [], [6]], [[7]], [[8, 9], [10]])
    assert rt[1].to_list() == [[5], [], [6]] and rt[3, 0].numpy().tolist() == [8, 9]
    assert rt[:, 1:3].to_list() == [[[4]], [[], [6]], [], [[10]]]
    assert int(digits[2, 1]) == 9


def test_constructors_and_what_they_refuse():
    R = tf.RaggedTensor
    assert R.from_value_rowids([3, 1, 4, 1, 5, 9, 2], [0, 0, 0, 0, 2, 2, 3]).to_list() == [[3, 1, 4, 1], [], [5, 9], [2]]
    assert R.from_nested_row_splits([1, 2, 3, 4], ([0, 1, 3], [0, 2, 3, 4])).to_list() == [[[1, 2]], [[3], [4]]]
    assert R.from_uniform_row_length([1, 2, 3, 4], 2).shape.as_list() == [2, 2]
    assert R.from_tensor([[1, 3, -1, -1], [2, -1, -1, -1], [4, 5, 8, 9]], padding=-1).to_list() == [[1, 3], [2], [4, 5, 8, 9]]
    x = ragged(["Hi"], ["Welcome", "to", "the"])
    assert x.to_tensor(default_value="", shape=[None, 4]).numpy().tolist() == [[b"Hi", b"", b"", b""],
                                                                               [b"Welcome", b"to", b"the", b""]]
    sparse = x.to_sparse()
    assert sparse.indices.numpy().tolist() == [[0, 0], [1, 0], [1, 1], [1, 2]]
    assert R.from_sparse(sparse).to_list() == x.to_list() and x.bounding_shape().numpy().tolist() == [2, 3]
    for wrong in ([["one", "two"], [3, 4]], ["A", ["B", "C"]]):
        with pytest.raises(ValueError):
            tf.ragged.constant(wrong)
    with pytest.raises(tf.errors.InvalidArgumentError):
        R.from_row_splits([1, 2], [0, 3])


def test_shapes_of_ragged_tensors():
    rt = ragged([1], [2, 3, 4], [], [5, 6])
    shape = tf.shape(rt)
    assert shape.static_lengths() == [4, (1, 3, 0, 2)] and int(shape[0]) == 4
    assert tf.reshape(tf.constant([[1, 2], [3, 4], [5, 6]]), shape).to_list() == [[1], [2, 3, 4], [], [5, 6]]
    assert tf.zeros(shape).to_list() == [[0.0], [0.0] * 3, [], [0.0] * 2]
    with pytest.raises(ValueError):
        shape[1]
    made = tf.experimental.DynamicRaggedShape.from_lengths([3, (2, 1, 0), 5])
    assert made.static_lengths() == [3, (2, 1, 0), 5]


def test_gradients_reach_the_values_of_rows():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        x = tf.RaggedTensor.from_row_lengths(v * 1.0, [2, 1])
        loss = tf.reduce_sum(tf.reduce_sum(tf.concat([x, x], axis=1), axis=1) * [1.0, 10.0])
    assert tape.gradient(loss, v).numpy().tolist() == [2.0, 2.0, 20.0]


def test_functions_take_and_give_ragged_tensors():
    @tf.function
    def palindrome(x, axis):
        return tf.concat([x, tf.reverse(x, [axis])], axis)
    assert palindrome(ragged([1, 2], [3], [4, 5, 6]), axis=1).to_list() == [[1, 2, 2, 1], [3, 3], [4, 5, 6, 6, 5, 4]]

    @tf.function(input_signature=[tf.RaggedTensorSpec(shape=[None, None], dtype=tf.int32)])
    def most(rt):
        return tf.math.reduce_max(rt, axis=-1)
    assert most(ragged([1, 2], [3], [4, 5, 6])).numpy().tolist() == [2, 3, 6]
    with pytest.raises(TypeError):
        most(tf.ragged.constant([[1.0]]))

    @tf.function
    def increment(x):
        return x + 1
    rt = ragged([1, 2], [3])
    assert increment(rt).to_list() == increment.get_concrete_function(rt)(rt).to_list() == [[2, 3], [4]]


def test_nest_has_ragged_tensors_whole_or_by_their_parts():
    rt = ragged([1, 2], [3])
    assert tf.nest.flatten([rt, 1])[0] is rt and len(tf.nest.flatten(rt, expand_composites=True)) == 2
    doubled = tf.nest.map_structure(lambda v: v * 2, {"a": rt})
    assert doubled["a"].to_list() == [[2, 4], [6]]


def test_saved_functions_take_ragged_tensors(tmp_path):
    class Own(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable(100.0)

        @tf.function
        def grow(self, x):
            return x * self.v
    own = Own()
    own.grow.get_concrete_function(tf.RaggedTensorSpec(shape=[None, None], dtype=tf.float32))
    tf.saved_model.save(own, str(tmp_path / "own"))
    loaded = tf.saved_model.load(str(tmp_path / "own"))
    assert loaded.grow(tf.ragged.constant([[1.0, 4.0], [2.0]])).to_list() == [[100.0, 400.0], [200.0]]


def test_data_sets_of_rows():
    rt = ragged([1, 2], [3], [], [4, 5, 6])
    rows = tf.data.Dataset.from_tensor_slices({"a": rt, "b": [1, 2, 3, 4]})
    assert [e["a"].numpy().tolist() for e in rows] == rt.to_list()
    batches = list(rows.batch(3))
    assert [b["a"].to_list() for b in batches] == [[[1, 2], [3], []], [[4, 5, 6]]]
    assert batches[1]["b"].numpy().tolist() == [4]
    assert [e["a"].numpy().tolist() for e in rows.batch(3).unbatch()] == rt.to_list()
    assert [float(m) for m in rows.map(lambda e: tf.reduce_sum(e["a"]))] == [3, 3, 0, 15]
    plain = tf.data.Dataset.from_tensor_slices([1, 3, 2]).map(tf.range)
    assert [b.to_list() for b in plain.ragged_batch(2)] == [[[0], [0, 1, 2]], [[0, 1]]]


def test_sparse_tensors():
    a = tf.SparseTensor([[0, 2], [1, 0]], [1, 2], [2, 3])
    b = tf.SparseTensor([[1, 1]], [7], [2, 2])
    joined = tf.sparse.concat(1, [a, b])
    assert tf.sparse.to_dense(joined).numpy().tolist() == [[0, 0, 1, 0, 0], [2, 0, 0, 0, 7]]
    assert tf.sparse.to_dense(tf.sparse.slice(joined, [0, 2], [2, 9])).numpy().tolist() == [[1, 0, 0], [0, 0, 7]]
    assert tf.sparse.to_dense(tf.sparse.map_values(tf.add, a, 5)).numpy().tolist() == [[0, 0, 6], [7, 0, 0]]
    assert tf.sparse.reduce_max(tf.sparse.from_dense([-5, 0, -3])).numpy() == -3
    assert tf.sparse.reduce_max(a, axis=1).numpy().tolist() == [1, 2]
    assert tf.sparse.retain(a, [True, False]).values.numpy().tolist() == [1]
    text = tf.SparseTensor([[0, 1], [1, 0]], ["x", "y"], [2, 2])
    assert tf.sparse.to_dense(text, "").numpy().tolist() == [[b"", b"x"], [b"y", b""]]
    filled, empty = tf.sparse.fill_empty_rows(tf.SparseTensor([[0, 1]], [3], [2, 2]), 9)
    assert tf.sparse.to_dense(filled).numpy().tolist() == [[0, 3], [9, 0]] and empty.numpy().tolist() == [False, True]
    soft = tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], [1, 3]))
    assert soft.values.numpy().tolist() == [0.5, 0.5]


def test_data_sets_and_functions_of_sparse_tensors():
    whole = tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1, 2, 3], [3, 3])
    rows = tf.data.Dataset.from_tensor_slices(whole)
    assert [e.values.numpy().tolist() for e in rows] == [[1], [], [2, 3]]
    assert [e.values.numpy().tolist() for e in rows.map(lambda x: x * 2)] == [[2], [], [4, 6]]
    assert [tf.sparse.to_dense(b).numpy().tolist() for b in rows.batch(2)] == [[[0, 1, 0], [0, 0, 0]], [[2, 0, 3]]]

    @tf.function
    def product(x, y):
        return tf.sparse.sparse_dense_matmul(x, y)
    assert product(whole, tf.constant([[1], [10], [100]])).numpy().tolist() == [[10], [0], [302]]


class Masked(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    shape = property(lambda self: self.values.shape)

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    def with_default(self, default):
        return tf.where(self.mask, self.values, default)


class Toy(tf.experimental.ExtensionType):
    name: str = "ball"
    prices: typing.Mapping[str, tf.Tensor] = {}
    parts: typing.Tuple[tf.Tensor, ...] = ()


def test_fields_of_extension_types():
    m = Masked(values=[1, 2, 3], mask=[True, False, True])
    assert m.values.dtype == tf.int32 and m.with_default(0).numpy().tolist() == [1, 0, 3]
    toy = Toy(prices={"a": 1.5}, parts=[1, 2])
    assert toy.name == "ball" and float(toy.prices["a"]) == 1.5 and len(toy.parts) == 2
    with pytest.raises(AttributeError):
        m.mask = 3
    with pytest.raises(AttributeError):
        del m.mask
    with pytest.raises(TypeError):
        Masked([1, 2], None)
    with pytest.raises(ValueError):
        Masked([1, 2, 3], [True, False])
    assert bool(m == m) and not bool(m == Masked([1, 2, 4], [True, False, True])) and not m == 3


def test_functions_take_and_give_extension_types():
    traces = []

    @tf.function
    def doubled(m):
        traces.append(m)
        return Masked(m.values * 2, m.mask)
    for value in ([1, 2], [3, 4]):
        out = doubled(Masked(value, [True, False]))
        assert isinstance(out, Masked) and out.values.numpy().tolist() == [2 * value[0], 2 * value[1]]
    assert len(traces) == 1
    spec = Masked.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool))

    @tf.function(input_signature=[spec])
    def first(m):
        return m.values[0]
    assert float(first(Masked([5.0, 6.0], [True, True]))) == 5.0
    assert tf.type_spec_from_value(Masked([5.0, 6.0], [True, True])).values == tf.TensorSpec([2])

    @tf.function
    def chosen(x, b):
        if b:
            m = Masked(x, x < 0)
        else:
            m = Masked(x, x > 0)
        return m
    assert chosen(tf.constant([1, -2]), tf.constant(True)).mask.numpy().tolist() == [False, True]


def test_functions_of_tf_answer_for_extension_types():
    @tf.experimental.dispatch_for_api(tf.stack)
    def stacked(values: typing.List[Masked], axis=0):
        return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def unary(function, x):
        return Masked(function(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def binary(function, x, y):
        return Masked(function(x.values, y.values), x.mask & y.mask)
    a, b = Masked([1, -2], [True, False]), Masked([3, 4], [True, True])
    try:
        assert tf.stack([a, b]).values.numpy().tolist() == [[1, -2], [3, 4]]
        assert tf.abs(a).values.numpy().tolist() == [1, 2]
        assert tf.math.add(a, b).mask.numpy().tolist() == [True, False]
        assert tf.ones_like(a, dtype=tf.float32).values.numpy().tolist() == [1.0, 1.0]
        assert tf.stack([1, 2]).numpy().tolist() == [1, 2]
    finally:
        for function in (stacked, unary, binary):
            tf.experimental.unregister_dispatch_for(function)
    with pytest.raises((TypeError, ValueError)):
        tf.stack([a, b])


def test_data_sets_of_extension_types():
    m = Masked([[1, 2], [3, 4], [5, 6]], [[True, False]] * 3)
    rows = tf.data.Dataset.from_tensor_slices(m)
    assert [r.values.numpy().tolist() for r in rows] == [[1, 2], [3, 4], [5, 6]]
    assert [b.values.numpy().tolist() for b in rows.batch(2)] == [[[1, 2], [3, 4]], [[5, 6]]]
    assert [r.mask.numpy().tolist() for r in rows.batch(2).unbatch()] == [[True, False]] * 3
    made = tf.data.Dataset.from_generator(lambda: iter([Masked([1], [True]), Masked([2], [False])]),
                                          output_signature=Masked.Spec(tf.TensorSpec([1], tf.int32), tf.TensorSpec([1], tf.bool)))
    assert [int(e.values[0]) for e in made] == [1, 2]
    assert tf.map_fn(lambda r: Masked(r.values + 1, r.mask), m).values.numpy().tolist() == [[2, 3], [4, 5], [6, 7]]


def test_buckets_of_texts_are_tensorflows():
    texts = ["", "a", "abc", "abcdefg", "hello world", "x" * 17, "y" * 33,
             "the quick brown fox jumps over the lazy dog, and then some more text follows here", "z" * 64, "w" * 128, "q" * 129]
    fast = [797982799, 920614371, 1961358185, 483095381, 198619163, 1937846181, 755371774, 1135309992,
            1946264088, 582046616, 952290977]
    slow = [429891131, 652921340, 804031926, 63516224, 376452079, 429240630, 805703498, 563977609, 1420561816,
            687300425, 6186422]
    assert tf.strings.to_hash_bucket_fast(texts, 2**31).numpy().tolist() == fast
    assert tf.strings.to_hash_bucket(texts, 2**31).numpy().tolist() == slow
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        tf.strings.to_hash_bucket_fast(texts, 0)


def test_specs_are_type_specs():
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert isinstance(tf.TensorSpec([2]), tf.TypeSpec) and isinstance(tf.RaggedTensorSpec([None, None]), tf.TypeSpec)
    assert not isinstance(ragged, tf.TypeSpec) and not isinstance(tf.float32, tf.TypeSpec)
