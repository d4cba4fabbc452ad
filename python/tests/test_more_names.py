"""Tables and small functions of tf. The numbers are TensorFlow's own."""
import gzip
import subprocess
import sys

import berth as tf
import numpy as np
import pytest


def test_tables_of_keys_and_values():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    assert table.lookup(tf.constant([["b", "x"], ["a", "a"]])).numpy().tolist() == [[2, -1], [1, 1]]
    assert int(table.lookup(tf.constant("b"))) == 2 and int(table.size()) == 2
    assert table[tf.ragged.constant([["a"], ["b", "z"]])].to_list() == [[1], [2, -1]]
    back = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ["a", "b"]), "?")
    assert back.lookup(tf.constant([2, 5])).numpy().tolist() == [b"b", b"?"]
    rows = tf.data.Dataset.from_tensor_slices(["b", "q"]).map(table.lookup)
    assert [int(v) for v in rows] == [2, -1]
    assert tf.function(table.lookup)(tf.constant(["a"])).numpy().tolist() == [1]
    with pytest.raises(TypeError):
        table.lookup(tf.constant([1]))


def test_tables_of_files_and_vocabularies(tmp_path):
    path = str(tmp_path / "words.txt")
    with open(path, "w") as file:
        file.write("emerson\nlake\npalmer\n")
    lines = tf.lookup.TextFileInitializer(path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                          tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
    assert tf.lookup.StaticHashTable(lines, -1).lookup(tf.constant(["palmer", "x"])).numpy().tolist() == [2, -1]
    known = tf.lookup.KeyValueTensorInitializer(["emerson", "lake", "palmer"], tf.constant([0, 1, 2], tf.int64))
    table = tf.lookup.StaticVocabularyTable(known, 5)
    assert table.lookup(tf.constant(["lake", "and", "king", "crimson"])).numpy().tolist() == [1, 5, 6, 7]
    assert int(table.size()) == 8


def test_tables_that_grow():
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64))
    table.remove(tf.constant(["a", "z"]))
    assert table.lookup(tf.constant(["a", "b"])).numpy().tolist() == [-1, 2] and int(table.size()) == 1
    keys, values = table.export()
    assert keys.numpy().tolist() == [b"b"] and values.numpy().tolist() == [2]
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, [0.0, 0.0], empty_key=-1, deleted_key=-2)
    dense.insert(tf.constant([7], tf.int64), tf.constant([[1.0, 2.0]]))
    assert dense.lookup(tf.constant([7, 8], tf.int64)).numpy().tolist() == [[1.0, 2.0], [0.0, 0.0]]


def test_parts_and_places():
    assert tf.saturate_cast(tf.constant([-5.0, 3.7, 300.0]), tf.uint8).numpy().tolist() == [0, 3, 255]
    parts = tf.dynamic_partition([[1, 2], [3, 4], [5, 6]], [1, 0, 1], 3)
    assert [p.numpy().tolist() for p in parts] == [[[3, 4]], [[1, 2], [5, 6]], []]
    assert tf.dynamic_stitch([[0, 2], [1, 2]], [[10, 30], [20, 99]]).numpy().tolist() == [10, 20, 99]
    assert tf.unravel_index([2, 5], [2, 3]).numpy().tolist() == [[0, 1], [2, 2]]
    x = tf.constant([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert tf.reverse_sequence(x, [2, 3], seq_axis=1, batch_axis=0).numpy().tolist() == [[2, 1, 3, 4], [7, 6, 5, 8]]
    assert tf.get_static_value(tf.constant([1])).tolist() == [1]
    assert tf.math.polyval([1.0, 2.0, 3.0], 2.0).numpy() == 11.0
    assert tf.math.confusion_matrix([0, 1, 2], [0, 2, 2]).numpy().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert bool(tf.math.is_non_decreasing([1, 1, 2])) and not bool(tf.math.is_strictly_increasing([1, 1, 2]))
    assert np.isclose(float(tf.math.lbeta([1.5, 2.5])), -1.6278589)


def test_pictures():
    x = tf.constant(np.arange(24, dtype="float32").reshape(1, 2, 4, 3))
    assert tf.image.total_variation(x).numpy().tolist() == [198.0]
    assert np.isclose(float(tf.image.psnr(x / 30, x / 30 + 0.1, 1.0)[0]), 20.0, atol=1e-3)
    dy, dx = tf.image.image_gradients(x)
    assert dy.numpy()[0, :, 0, 0].tolist() == [12.0, 0.0] and dx.numpy()[0, 0, :, 0].tolist() == [3.0, 3.0, 3.0, 0.0]


def test_bytes_and_texts():
    assert tf.io.encode_base64(["hello?>", ""]).numpy().tolist() == [b"aGVsbG8_Pg", b""]
    assert tf.io.decode_base64(["aGVsbG8_Pg"]).numpy().tolist() == [b"hello?>"]
    assert tf.io.decode_compressed([gzip.compress(b"abc")], "GZIP").numpy().tolist() == [b"abc"]
    assert tf.strings.unicode_encode([104, 228], "UTF-8").numpy() == "hä".encode()
    assert tf.strings.ngrams(["a", "b", "c"], 2, "-").numpy().tolist() == [b"a-b", b"b-c"]
    rows = tf.ragged.constant([["a", "b", "c"], ["d"]])
    assert tf.strings.ngrams(rows, 2, pad_values=("<", ">")).to_list() == [[b"< a", b"a b", b"b c", b"c >"], [b"< d", b"d >"]]


def test_values_of_checkpoints_by_name(tmp_path):
    path = tf.train.Checkpoint(step=tf.Variable(3), w=tf.Variable([1.0, 2.0])).save(str(tmp_path / "c"))
    reader = tf.train.load_checkpoint(path)
    key = "w/.ATTRIBUTES/VARIABLE_VALUE"
    assert reader.get_variable_to_shape_map()[key] == [2] and reader.get_variable_to_dtype_map()[key] == tf.float32
    assert reader.get_tensor(key).tolist() == [1.0, 2.0] and reader.has_tensor(key) and not reader.has_tensor("x")


def test_transforms_under_their_older_names():
    d = tf.data.Dataset.range(6)
    ex = tf.data.experimental
    assert [int(v) for v in d.apply(ex.take_while(lambda x: x < 3))] == [0, 1, 2]
    assert [b.numpy().tolist() for b in d.apply(ex.map_and_batch(lambda x: x * 2, 4))] == [[0, 2, 4, 6], [8, 10]]
    assert len(list(d.apply(ex.shuffle_and_repeat(6, 2)))) == 12
    assert [int(v) for v in d.batch(2).apply(ex.unbatch())] == list(range(6))
    assert ex.get_structure(d) == tf.TensorSpec([], tf.int64) and int(ex.at(d, 4)) == 4
    assert next(iter(d)) == iter(d).next()


def test_seeds_are_split_and_folded():
    seeds = tf.random.split([1, 2], 3)
    assert seeds.shape.as_list() == [3, 2] and seeds.dtype == tf.int32 and len(np.unique(seeds.numpy())) == 6
    assert (tf.random.split([1, 2], 3).numpy() == seeds.numpy()).all()
    folded = [tf.random.fold_in([1, 2], n).numpy().tolist() for n in (0, 1)]
    assert folded[0] != folded[1] and len(folded[0]) == 2


MANY = """
import os
import berth as tf
n = len(os.sched_getaffinity(0)) + 1
parts = [tf.config.LogicalDeviceConfiguration()] * n
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
assert len(tf.config.list_logical_devices("CPU")) == n
strategy = tf.distribute.MirroredStrategy(devices=["cpu:0", "cpu:1"])

def draw():
    g = tf.random.Generator.from_seed(1)
    return g.normal([2])
assert len(strategy.run(draw).values) == 2
"""


def test_more_cpu_devices_than_cores_share_them():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_lists_of_text_beside_tensors_of_it():
    steps = tf.constant([["Open"], ["Read"]])
    assert tf.concat((steps, [["Map"]]), axis=0).numpy().tolist() == [[b"Open"], [b"Read"], [b"Map"]]
    assert tf.tile([[["1st"]]], [2, 1, 1]).numpy().tolist() == [[[b"1st"]], [[b"1st"]]]


def test_unicode_encode_does_with_errors_what_it_is_told():
    rows = tf.constant([[72, 0xd800, 105], [0x1f600, -1, 33]])
    assert tf.strings.unicode_encode(rows, "UTF-8").numpy().tolist() == ["H\ufffdi".encode(), "\U0001f600\ufffd!".encode()]
    assert tf.strings.unicode_encode(rows, "UTF-8", errors="ignore").numpy().tolist() == [b"Hi", "\U0001f600!".encode()]
    assert tf.strings.unicode_encode(rows, "UTF-8", replacement_char=63).numpy()[0] == b"H?i"
    assert tf.strings.unicode_encode(tf.constant([0x20ac]), "UTF-16-BE").numpy() == b"\x20\xac"
    with pytest.raises(tf.errors.InvalidArgumentError, match="55296"):
        tf.strings.unicode_encode(rows, "UTF-8", errors="strict")


def test_raw_ops_have_tensorflows_arguments():
    import inspect
    x = tf.constant([[1.0, -2.0], [3.0, 4.0]])
    raw = tf.raw_ops
    assert raw.MatMul(a=x, b=x, transpose_b=True).numpy().tolist() == [[5, -5], [-5, 25]]
    assert raw.Sum(input=x, axis=tf.constant([1]), keep_dims=True).numpy().tolist() == [[-1], [7]]
    assert raw.ConcatV2(values=[x, x], axis=0).shape == [4, 2] and raw.AddN(inputs=[x, x, x])[0, 0].numpy() == 3
    assert [t.numpy().tolist() for t in raw.TopKV2(input=x, k=1)] == [[[1], [4]], [[0], [1]]]
    assert raw.Cast(x=x, DstT=tf.int32).dtype == tf.int32 and raw.Relu(features=x)[0, 1].numpy() == 0
    v = tf.Variable(3.0)
    raw.AssignAddVariableOp(resource=v, value=1.0)
    raw.ResourceApplyGradientDescent(var=v, alpha=0.5, delta=2.0)
    assert float(v) == 3
    assert str(inspect.signature(raw.MatMul)) == "(*, a, b, transpose_a=False, transpose_b=False, name=None)"
    with pytest.raises(TypeError, match="grad_a=True is not there"):
        raw.MatMul(a=x, b=x, grad_a=True)
    with pytest.raises(TypeError, match="missing"):
        raw.MatMul(a=x)

    @tf.function
    def f(x):
        return raw.Tanh(x=raw.Mul(x=x, y=x))

    np.testing.assert_allclose(f(x), np.tanh(x.numpy() ** 2), rtol=1e-6)


def test_texts_where_numbers_are_usual():
    empty = tf.zeros([0, 1], tf.string)
    assert tf.concat([empty, [["a"]]], 0).numpy().tolist() == [[b"a"]] and tf.zeros_like(tf.constant(["a"])).numpy() == [b""]
    y, at, count = tf.unique_with_counts(tf.constant(["b", "a", "b"]))
    assert y.numpy().tolist() == [b"b", b"a"] and at.numpy().tolist() == [0, 1, 0] and count.numpy().tolist() == [2, 1]
    with tf.control_dependencies([y]):
        assert tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [3]), -1).export()[1].numpy() == [3]


def test_results_of_several_tensors_have_names():
    found = tf.nn.top_k(tf.constant([3.0, 1.0, 2.0]), 2)
    assert found.values.numpy().tolist() == [3, 2] and found.indices.numpy().tolist() == [0, 2] == list(tf.math.top_k(
        tf.constant([3.0, 1.0, 2.0]), 2, index_type=tf.int64)[1].numpy())
    assert tf.unique([1, 1, 2]).y.numpy().tolist() == [1, 2] and tf.unique_with_counts([1, 1, 2]).count.numpy().tolist() == [2, 1]
    a = tf.constant([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(tf.linalg.qr(a).q @ tf.linalg.qr(a).r, a, rtol=1e-5)
    assert tf.linalg.lu(a).p.numpy().tolist() == [0, 1] and tf.linalg.lu(a).lu.shape == (2, 2)


def test_what_was_said_is_told_again():
    tf.config.optimizer.set_jit(True)
    tf.config.optimizer.set_experimental_options({"layout_optimizer": True})
    assert tf.config.optimizer.get_jit() == "autoclustering"
    assert tf.config.optimizer.get_experimental_options()["layout_optimizer"] is True
    tf.config.optimizer.set_jit(False)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    assert tf.data.Dataset.range(2).with_options(options).options() is options
    v = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN, synchronization=tf.VariableSynchronization.ON_READ)
    assert v.aggregation is tf.VariableAggregation.MEAN and v.synchronization is tf.VariableSynchronization.ON_READ
    assert tf.train.ClusterSpec({"worker": ["a:1"]}) == {"worker": ["a:1"]}
    state = tf.random.create_rng_state(3, "philox")
    two = tf.random.Generator.from_state(state, "philox"), tf.random.Generator.from_seed(3, tf.random.Algorithm.PHILOX)
    assert (two[0].uniform([3]).numpy() == two[1].uniform([3]).numpy()).all()
    with pytest.raises(ValueError, match="alg is 'dice'"):
        tf.random.Generator.from_seed(3, "dice")
    assert tf.random.split([1, 2], 3).shape == (3, 2)


def test_arrays_of_functions_are_read_twice():
    @tf.function
    def twice(n):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, tf.cast(i, tf.float32))
        return array.read(1) + array.read(1), tf.inside_function()
    total, inside = twice(tf.constant(3))
    assert float(total) == 2.0 and bool(inside) and not tf.inside_function()


def test_functions_take_the_dtypes_that_tensorflow_takes():
    t = tf.constant(["x", "y"])
    assert tf.add(t, "z").numpy().tolist() == tf.math.add(t, ["z", "z"]).numpy().tolist() == [b"xz", b"yz"]
    assert tf.scatter_nd([[1]], ["k"], [3]).numpy().tolist() == [b"", b"k", b""]
    assert tf.tensor_scatter_nd_update(t, [[0]], ["k"]).numpy().tolist() == [b"k", b"y"]
    assert tf.pad(t, [[1, 0]]).numpy().tolist() == [b"", b"x", b"y"]
    assert tf.linalg.matrix_transpose([["a", "b"]]).numpy().tolist() == [[b"a"], [b"b"]]
    assert tf.ensure_shape(t, [None]).numpy().tolist() == [b"x", b"y"]
    assert tf.argmax([False, True]).numpy() == 1 and tf.argmin(tf.constant([[True, False]]), 1).numpy().tolist() == [1]
    assert tf.gather([1, 2], tf.constant([1], tf.int16)).numpy().tolist() == [2]
    got = tf.math.divide_no_nan([4, 2], [2, 0])
    assert got.dtype == tf.float64 and got.numpy().tolist() == [2, 0]
    assert tf.math.divide_no_nan(tf.constant([1], tf.int8), tf.constant([2], tf.int8)).dtype == tf.float32
    assert tf.nn.relu6(tf.constant([9, -1])).numpy().tolist() == [6, 0]
