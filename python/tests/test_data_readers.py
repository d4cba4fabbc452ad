"""tf.data.experimental and the options and specs of data sets. The numbers are TensorFlow 2.21's."""
import sqlite3
import subprocess
import sys

import berth as tf
import pytest

X = tf.data.experimental


def test_groups_that_are_reduced():
    reducer = X.Reducer(lambda k: (k * 0, k * 100), lambda s, v: (s[0] + v, s[1]), lambda a, b: (a, b))
    found = list(tf.data.Dataset.range(10).apply(X.group_by_reducer(lambda x: x % 3, reducer)).as_numpy_iterator())
    assert found == [(18, 0), (12, 100), (15, 200)]
    with pytest.raises(ValueError, match="int64 scalar"):
        tf.data.Dataset.range(3).apply(X.group_by_reducer(lambda x: tf.cast(x, tf.int32), reducer))


def test_padded_data_sets():
    data = tf.data.Dataset.from_tensor_slices({"a": [1, 2]})
    found = list(data.apply(X.pad_to_cardinality(4)).as_numpy_iterator())
    assert [(e["a"], bool(e["valid"])) for e in found] == [(1, True), (2, True), (0, False), (0, False)]
    for wrong in (data.repeat(), data.repeat(4), tf.data.Dataset.range(2)):
        with pytest.raises(ValueError, match="pad_to_cardinality"):
            wrong.apply(X.pad_to_cardinality(4))


def test_tables_of_data_sets():
    keys = tf.data.Dataset.from_tensor_slices(["a", "b", "c"])
    pairs = tf.data.Dataset.zip((keys, tf.data.Dataset.range(5, 8)))

    def looked_up(table, *texts):
        return table.lookup(tf.constant(texts)).numpy().tolist()
    assert looked_up(X.table_from_dataset(pairs, default_value=-1), "b", "z") == [6, -1]
    assert looked_up(X.index_table_from_dataset(keys, num_oov_buckets=1), "c", "zz") == [2, 3]
    assert looked_up(X.index_table_from_dataset(keys, default_value=-7), "c", "zz") == [2, -7]
    assert looked_up(X.index_table_from_dataset(keys, vocab_size=2), "c", "b") == [-1, 1]
    assert looked_up(tf.lookup.StaticHashTable(X.DatasetInitializer(pairs), -1), "a", "q") == [5, -1]
    with pytest.raises(ValueError, match="pairs"):
        X.DatasetInitializer(keys)


def test_rows_of_a_database(tmp_path):
    path = str(tmp_path / "x.db")
    with sqlite3.connect(path) as base:
        base.execute("create table p(a integer, b text, c real)")
        base.executemany("insert into p values(?, ?, ?)", [(1, "x", 1.5), (2, None, 2.5)])
    base.close()
    rows = X.SqlDataset("sqlite", path, "select a, b, c from p order by a", (tf.int32, tf.string, tf.float64))
    assert list(rows.as_numpy_iterator()) == [(1, b"x", 1.5), (2, b"", 2.5)]
    assert rows.element_spec[2] == tf.TensorSpec([], tf.float64)
    assert list(rows.map(lambda a, b, c: a * 2).as_numpy_iterator()) == [2, 4]
    for args, error in [(("mysql", path, "select a from p", [tf.int32]), tf.errors.InvalidArgumentError),
                        (("sqlite", path, "select nothing from p", [tf.int32]), tf.errors.UnknownError),
                        (("sqlite", path, "select a, b from p", [tf.int32]), tf.errors.InvalidArgumentError)]:
        with pytest.raises(error):
            list(X.SqlDataset(*args))


FEATURES = {"x": tf.io.FixedLenFeature([], tf.int64), "y": tf.io.VarLenFeature(tf.float32)}


@pytest.fixture
def examples(tmp_path):
    def example(i):
        return tf.train.Example(features=tf.train.Features(feature={
            "x": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
            "y": tf.train.Feature(float_list=tf.train.FloatList(value=[i] * i))})).SerializeToString()
    path = str(tmp_path / "examples")
    X.TFRecordWriter(path).write(tf.data.Dataset.from_tensor_slices([example(i) for i in range(5)]))
    return path


def test_batches_of_features(examples):
    made = X.make_batched_features_dataset(examples, 2, FEATURES, num_epochs=1, shuffle=False)
    assert [(e["x"].numpy().tolist(), e["y"].dense_shape.numpy().tolist()) for e in made] == [
        ([0, 1], [2, 1]), ([2, 3], [2, 3]), ([4], [1, 4])]
    made = X.make_batched_features_dataset(examples, 2, FEATURES, num_epochs=1, shuffle=False, label_key="x",
                                           drop_final_batch=True)
    assert [(list(e), label.numpy().tolist()) for e, label in made] == [(["y"], [0, 1]), (["y"], [2, 3])]
    shuffled = X.make_batched_features_dataset(examples, 5, FEATURES, num_epochs=1, shuffle_seed=1)
    assert sorted(next(iter(shuffled))["x"].numpy().tolist()) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="label_key"):
        X.make_batched_features_dataset(examples, 2, FEATURES, label_key="z")
    with pytest.raises(TypeError, match="scalar texts"):
        X.TFRecordWriter(examples).write(tf.data.Dataset.range(3))


def test_a_map_that_needs_values_gives_each_element_its_own_result(examples):
    batches = tf.data.TFRecordDataset(examples).batch(3)
    parsed = batches.apply(X.parse_example_dataset(FEATURES))
    assert [e["x"].numpy().tolist() for e in parsed] == [[0, 1, 2], [3, 4]]
    texts = tf.data.Dataset.from_tensor_slices(["a", "bb", "ccc", "dddd", "eeeee"]).batch(3)
    assert [n.numpy().tolist() for n in texts.map(lambda t: tf.strings.length(t))] == [[1, 2, 3], [4, 5]]


def test_sparse_batches():
    rows = tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda n: tf.fill([n], n))
    assert [tf.sparse.to_dense(e).numpy().tolist() for e in rows.apply(X.dense_to_sparse_batch(2, [4]))] == [
        [[1, 0, 0, 0], [2, 2, 0, 0]], [[3, 3, 3, 0]]]


def test_options_of_data_sets():
    options = tf.data.Options()
    options.threading.private_threadpool_size = 4
    options.experimental_optimization.map_fusion = options.deterministic = True
    other = tf.data.Options()
    other.autotune.enabled = False
    merged = options.merge(other)
    assert merged.threading.private_threadpool_size == 4 and merged.autotune.enabled is False and merged.deterministic is True
    assert isinstance(options.threading, tf.data.ThreadingOptions) and tf.data.Options() == tf.data.Options() != options
    for target, name, value, error in [(options, "nothing", 1, AttributeError), (options.threading, "q", 1, AttributeError),
                                       (options.threading, "private_threadpool_size", "x", TypeError)]:
        with pytest.raises(error, match=name):
            setattr(target, name, value)
    assert tf.data.Dataset.range(2).with_options(options).options() is options


def test_functions_of_data_sets_under_a_debugger():
    code = ("import berth as tf\ntf.data.experimental.enable_debug_mode()\nseen = []\n"
            "d = tf.data.Dataset.range(3).map(lambda x: seen.append(int(x)) or x + 1)\n"
            "assert list(d.as_numpy_iterator()) == [1, 2, 3] and {0, 1, 2} <= set(seen)\n")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_specs():
    data = tf.data.Dataset.from_tensor_slices((["a", "b"], [5, 6]))
    assert tf.data.DatasetSpec.from_value(data) == tf.data.DatasetSpec(data.element_spec)
    assert tf.data.DatasetSpec(data.element_spec).is_compatible_with(data)
    assert tf.data.DatasetSpec(1).value_type is tf.data.Dataset
    assert tf.data.IteratorSpec.from_value(iter(data)).element_spec == data.element_spec
    optional = tf.experimental.Optional.from_value(1)
    assert tf.type_spec_from_value(optional) == tf.OptionalSpec(tf.TensorSpec([], tf.int32))
    assert tf.NoneTensorSpec().is_compatible_with(None) and tf.NoneTensorSpec() == tf.NoneTensorSpec()
    spec = tf.type_spec_from_value(tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([0])))
    assert repr(spec) == "IndexedSlicesSpec(TensorShape([None, 2]), tf.float32, tf.int32, None, TensorShape([1]))"
    assert isinstance(data.as_numpy_iterator(), tf.data.NumpyIterator)
    assert data.as_numpy_iterator().element_spec == data.element_spec
