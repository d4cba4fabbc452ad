"""Names around the computation: derivatives forward, training, data sets, configuration. The numbers are TensorFlow 2.21's."""
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time

import berth as tf
import numpy as np
import pytest

X = tf.data.experimental


def test_forward_derivatives():
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.5])) as acc:
        y = tf.sin(x) * x
        z = tf.reduce_sum(y)
    slope = np.array([1, 0.5]) * (np.cos([1, 2]) * [1, 2] + np.sin([1, 2]))
    np.testing.assert_allclose(acc.jvp(y), slope, rtol=1e-5)
    np.testing.assert_allclose(acc.jvp(z), slope.sum(), rtol=1e-5)
    assert acc.jvp(tf.constant(1.0)) is None and float(acc.jvp(tf.constant(1.0), "zero")) == 0
    assert [v is None for v in acc.jvp([y, tf.constant(2)])] == [False, True]
    assert acc.jvp(x).numpy().tolist() == [1, 0.5]
    for primals, tangents, says in [(x, tf.constant(1.0), "has shape"), ([x, x], [x, x], "twice"), ([x], [x, x], "one for each"),
                                    (tf.constant([1]), tf.constant([1]), "floating")]:
        with pytest.raises(ValueError, match=says):
            tf.autodiff.ForwardAccumulator(primals, tangents)


def test_forward_derivatives_of_gradients_and_the_other_way_round():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.autodiff.ForwardAccumulator(v, tf.ones([2, 2])) as acc:
        with tf.autodiff.GradientTape() as tape:
            loss = tf.reduce_sum(v ** 3)
        g = tape.gradient(loss, v)
    assert acc.jvp(g).numpy().tolist() == [[6, 12], [18, 24]]
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as acc:
            y = x ** 3
        j = acc.jvp(y)
    assert tape.gradient(j, x).numpy().tolist() == [6, 12]
    with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as outer:
        with tf.autodiff.ForwardAccumulator(x, tf.ones(2)) as inner:
            y = x ** 3
        j = inner.jvp(y)
    assert outer.jvp(j).numpy().tolist() == [6, 12]

    @tf.function
    def f(x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = tf.tanh(x)
        return acc.jvp(y)
    np.testing.assert_allclose(f(x, tf.constant([1.0, 2.0])), [0.41997433, 0.14130163], rtol=1e-5)
    z = tf.constant([1 + 2j, .5 - 1j])
    with tf.autodiff.ForwardAccumulator(z, tf.constant([1j, 2 + 0j])) as acc:
        y = z * z * (1 + 3j)
    assert acc.jvp(y).numpy().tolist() == [-10 - 10j, 14 + 2j]


def test_averages_of_variables():
    v, w = tf.Variable([1.0, 2.0], name="w"), tf.Variable(3.0)
    e = tf.train.ExponentialMovingAverage(0.9)
    e.apply([v, w])
    v.assign([3.0, 4.0])
    e.apply([v, w])
    np.testing.assert_allclose(e.average(v), [1.2, 2.2], rtol=1e-6)
    assert float(e.average(w)) == 3 and e.average(tf.Variable(1.0)) is None
    assert e.average_name(v) == "w/ExponentialMovingAverage" and list(e.variables_to_restore())[0] == e.average_name(v)
    few = tf.train.ExponentialMovingAverage(0.9, num_updates=3)
    few.apply([v])
    v.assign([5.0, 5.0])
    few.apply([v])
    np.testing.assert_allclose(few.average(v), [3 + 2 * 9 / 13, 4 + 9 / 13], rtol=1e-6)
    for wrong in (tf.constant(1.0), tf.Variable(1)):
        with pytest.raises(TypeError, match="ExponentialMovingAverage"):
            e.apply([wrong])

    @tf.function
    def step():
        v.assign_add([1.0, 1.0])
        few.apply([v])
    step()
    np.testing.assert_allclose(few.average(v), np.array([4.3846154, 4.6923075]) * 4 / 13 + np.array([6, 6]) * 9 / 13, rtol=1e-6)


def test_folders_of_checkpoints(tmp_path):
    step = tf.Variable(4)
    checkpoint = tf.train.Checkpoint(step=step, parts=[tf.Variable(1.0)])
    assert tf.train.get_checkpoint_state(str(tmp_path)) is None
    paths = [checkpoint.save(str(tmp_path / "ck")) for _ in range(2)]
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[1] and state.all_model_checkpoint_paths == paths
    assert list(tf.train.checkpoints_iterator(str(tmp_path), timeout=0.1)) == paths[1:]
    assert list(tf.train.checkpoints_iterator(str(tmp_path / "no"), timeout=0, timeout_fn=lambda: True)) == []
    view = tf.train.CheckpointView(paths[1])
    assert sorted(view.children(0)) == ["parts", "step"] and len(view.descendants()) == 4
    assert view.match(checkpoint)[view.children(0)["step"]] is step
    other = tf.train.Checkpoint(more=tf.Variable(2.0), step=step)
    found, lost, new = view.diff(other)
    assert len(found) == 2 and len(lost) == 2 and new == [other.more]
    assert sorted(tf.train.TrackableView(checkpoint).children(checkpoint)) == ["parts", "step"]
    assert len(tf.train.TrackableView(checkpoint).descendants()) == 4


def test_state_of_python_in_checkpoints(tmp_path):
    class State(tf.train.experimental.PythonState):
        value = b"first"

        def serialize(self):
            return self.value

        def deserialize(self, string_value):
            self.value = string_value
    state = State()
    checkpoint = tf.train.Checkpoint(state=state, step=tf.Variable(1))
    path = checkpoint.save(str(tmp_path / "ck"))
    state.value = b"another, longer"
    checkpoint.restore(path).assert_consumed()
    assert state.value == b"first"
    state.value = b""
    checkpoint.restore(checkpoint.save(str(tmp_path / "ck")))
    assert state.value == b""


def test_threads_that_end_together():
    coordinator, turns = tf.train.Coordinator(), []

    def work():
        while not coordinator.should_stop():
            turns.append(1)
            time.sleep(0.001)
            if len(turns) > 5:
                coordinator.request_stop()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    coordinator.join(threads)
    assert coordinator.joined and coordinator.should_stop()
    coordinator.clear_stop()

    def fails():
        with coordinator.stop_on_exception():
            raise ValueError("of a thread")
    thread = threading.Thread(target=fails)
    coordinator.register_thread(thread)
    thread.start()
    with pytest.raises(ValueError, match="of a thread"):
        coordinator.join()
    late, stuck = tf.train.Coordinator(), threading.Event()
    thread = threading.Thread(target=stuck.wait, daemon=True)
    thread.start()
    assert not late.wait_for_stop(0.01)
    late.request_stop(tf.errors.OutOfRangeError("the end"))
    with pytest.raises(RuntimeError, match="still run"):
        late.join([thread], stop_grace_period_secs=0.01)
    stuck.set()


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
    assert rows.element_spec[2] == tf.TensorSpec([], tf.float64) and list(rows.map(lambda a, b, c: a * 2).as_numpy_iterator()) == [2, 4]
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
    made = X.make_batched_features_dataset(examples, 2, FEATURES, num_epochs=1, shuffle=False, label_key="x", drop_final_batch=True)
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
    assert tf.data.DatasetSpec(data.element_spec).is_compatible_with(data) and tf.data.DatasetSpec(1).value_type is tf.data.Dataset
    assert tf.data.IteratorSpec.from_value(iter(data)).element_spec == data.element_spec
    optional = tf.experimental.Optional.from_value(1)
    assert tf.type_spec_from_value(optional) == tf.OptionalSpec(tf.TensorSpec([], tf.int32))
    assert tf.NoneTensorSpec().is_compatible_with(None) and tf.NoneTensorSpec() == tf.NoneTensorSpec()
    spec = tf.type_spec_from_value(tf.IndexedSlices(tf.zeros([1, 2]), tf.constant([0])))
    assert repr(spec) == "IndexedSlicesSpec(TensorShape([None, 2]), tf.float32, tf.int32, None, TensorShape([1]))"
    assert isinstance(data.as_numpy_iterator(), tf.data.NumpyIterator)
    assert data.as_numpy_iterator().element_spec == data.element_spec


def test_scopes_of_names_and_variables():
    assert tf.get_current_name_scope() == ""
    with tf.name_scope("a") as a:
        with tf.name_scope("b") as b:
            assert (a, b, tf.get_current_name_scope()) == ("a/", "a/b/", "a/b")
        with tf.name_scope("x/") as x:
            assert (x, tf.get_current_name_scope()) == ("x/", "x")
    asked = []

    def frozen(next_creator, **kwargs):
        asked.append(kwargs["name"])
        return next_creator(**{**kwargs, "trainable": False})
    with tf.variable_creator_scope(frozen):
        v = tf.Variable(1.0, name="q")
        with tf.variable_creator_scope(lambda make, **given: asked.append("inner") or make(**given)):
            assert isinstance(tf.Variable(2.0, name="r"), tf.Variable)
    assert asked == ["q", "inner", "r"] and not v.trainable and tf.Variable(1.0).trainable and isinstance(v, tf.Variable)


def test_conversions_of_classes():
    class Quantity:
        def __init__(self, values):
            self.values = values
    tf.register_tensor_conversion_function(Quantity, lambda value, dtype=None, name=None, as_ref=False: tf.constant(value.values))
    assert tf.add(Quantity([1.0, 2.0]), tf.constant([1.0, 1.0])).numpy().tolist() == [2, 3]
    tf.register_tensor_conversion_function(Quantity, lambda value, **_: NotImplemented if len(value.values) > 1 else tf.constant(7.0),
                                           priority=50)
    assert float(tf.convert_to_tensor(Quantity([1.0]))) == 7 and float(tf.reduce_sum(Quantity([3.0, 4.0]))) == 7
    with pytest.raises(TypeError, match="of your own"):
        tf.register_tensor_conversion_function(int, lambda *_, **__: None)


def test_critical_sections():
    section, n = tf.CriticalSection(), tf.Variable(0)

    def add():
        n.assign(n + 1)
        return n.read_value()
    threads = [threading.Thread(target=lambda: [section.execute(add) for _ in range(20)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert int(n) == 80
    assert int(tf.function(lambda: section.execute(add))()) == 81
    with pytest.raises(ValueError, match="for ever"):
        section.execute(lambda: section.execute(add))


def test_calls_that_become_one():
    sizes = []

    @tf.nondifferentiable_batch_function(1, 4, 200000, allowed_batch_sizes=[2, 4])
    def squares(x):
        sizes.append(x.shape[0])
        return x * x
    assert squares(tf.constant([2.0])).numpy().tolist() == [4] and sizes == [2]
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, squares(tf.constant([float(i)])).numpy().tolist()))
               for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {i: [i * i] for i in range(4)}
    assert squares(tf.range(6.0)).numpy().tolist() == [0, 1, 4, 9, 16, 25]
    with pytest.raises(tf.errors.InvalidArgumentError, match="one first axis"):
        squares(tf.constant(1.0))


def test_configuration():
    c = tf.config.experimental
    c.enable_op_determinism()
    assert c.tensor_float_32_execution_enabled() and c.get_synchronous_execution()
    c.enable_tensor_float_32_execution(False)
    c.set_synchronous_execution(False)
    assert not c.tensor_float_32_execution_enabled() and not c.get_synchronous_execution()
    c.enable_tensor_float_32_execution(True)
    c.set_synchronous_execution(True)
    assert c.get_device_details(tf.config.list_physical_devices("CPU")[0]) == {}
    tf.config.experimental_run_functions_eagerly(True)
    assert tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    assert tf.get_logger().name == "berth" and tf.AggregationMethod.DEFAULT == 0
    assert issubclass(tf.errors.UnauthenticatedError, tf.errors.OpError)
    assert issubclass(tf.errors.OperatorNotAllowedInGraphError, TypeError)


def test_the_strategy_of_a_program():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


def records(folder):
    """The records of the files of events in a folder."""
    for name in sorted(os.listdir(folder)):
        data, at = (folder / name).read_bytes(), 0
        while at < len(data):
            size, = struct.unpack_from("<Q", data, at)
            yield data[at + 12:at + 12 + size]
            at += 16 + size


def test_summaries_of_sounds_and_graphs(tmp_path):
    f = tf.function(lambda x: tf.tanh(x))
    graph = f.get_concrete_function(tf.TensorSpec([2])).graph
    assert tf.summary.audio("s", tf.zeros([1, 4, 1]), 8000, step=1) is False
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default(step=3):
        assert tf.summary.audio("sound", tf.zeros([2, 4, 1]), 8000, description="quiet") and tf.summary.graph(graph)
        assert tf.summary.experimental.write_raw_pb(b"\x0a\x03\x0a\x01q", step=5)
        with pytest.raises(ValueError, match="samples, channels"):
            tf.summary.audio("sound", tf.zeros([4]), 8000)
    writer.close()
    found = list(records(tmp_path))
    sound = next(r for r in found if b"sound" in r)
    assert sound.count(b"RIFF") == 2 and b"audio" in sound and b"quiet" in sound and sound[9:11] == b"\x10\x03"
    assert any(r.endswith(b"\x2a\x05\x0a\x03\x0a\x01q") and r[9:11] == b"\x10\x05" for r in found)
    with pytest.raises(TypeError, match="graph of a concrete function"):
        tf.summary.graph(3)


PREEMPTED = """
import os, signal, sys
import berth as tf
step = tf.Variable(0)
checkpoint = tf.train.Checkpoint(step=step)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(None, checkpoint, sys.argv[1])
print("begins at", handler.total_run_calls, int(step), flush=True)
def train():
    step.assign_add(1)
    if int(step) == 3:
        os.kill(os.getpid(), signal.SIGTERM)
while handler.total_run_calls < 5:
    handler.run(train)
print("ends at", int(step))
"""


def test_a_preempted_program_goes_on_where_it_was(tmp_path):
    first, second = (subprocess.run([sys.executable, "-c", PREEMPTED, str(tmp_path)], capture_output=True, text=True)
                     for _ in range(2))
    assert first.returncode == 143 and first.stdout == "begins at 0 0\n", first.stderr
    assert second.returncode == 0 and second.stdout == "begins at 3 3\nends at 5\n", second.stderr


def test_notices_of_preemption(tmp_path):
    told, ends = [False, False, True], []
    config = tf.distribute.experimental.TerminationConfig(lambda: told.pop(0), lambda: ends.append(handler.total_run_calls),
                                                          save_fn=lambda: ends.append("saved"))
    handler = tf.distribute.experimental.PreemptionCheckpointHandler(
        None, tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1)), str(tmp_path), 1), termination_config=config)
    for _ in range(3):
        assert handler.run(lambda x: x + 1, 1) == 2
    assert ends == ["saved", 3]
    before = signal.getsignal(signal.SIGTERM)
    try:
        watcher = tf.distribute.experimental.PreemptionWatcher()
        assert watcher.preemption_message is None
        os.kill(os.getpid(), signal.SIGTERM)
        watcher.block_until_worker_exit()
        assert "SIGTERM" in watcher.preemption_message
    finally:
        signal.signal(signal.SIGTERM, before)
    with pytest.raises(ValueError, match="needs checkpoint_dir"):
        tf.distribute.experimental.PreemptionCheckpointHandler(None, tf.train.Checkpoint())


@pytest.mark.parametrize("make, name, says", [
    (lambda: tf.data.Dataset.range(2), "make_one_shot_iterator", r"iter\(dataset\)"),
    (lambda: tf.data.Dataset.range(2), "shufle", "near it: shuffle"),
    (lambda: iter(tf.data.Dataset.range(2)), "output_types", "element_spec"),
    (lambda: tf.distribute.OneDeviceStrategy("/cpu:0"), "experimental_run_v2", r"run\(\)"),
    (lambda: tf.function(lambda x: x), "function_spec", "input_signature"),
    (lambda: tf.function(lambda x: x).get_concrete_function(tf.TensorSpec([])), "function_def", "graph"),
    (lambda: tf.ragged.constant([[1]]), "to_lists", "near it: to_list"),
    (lambda: tf.SparseTensor([[0]], [1.0], [1]), "numpy", "to_dense"),
    (lambda: tf.random.Generator.from_seed(1), "uniform_full", "uniform_full_int")],
    ids="dataset near iterator strategy function concrete ragged sparse generator".split())
def test_members_that_are_missing_say_what_to_do(make, name, says):
    value = make()
    with pytest.raises(AttributeError, match=says):
        getattr(value, name)
    assert not hasattr(value, name) and not hasattr(value, "_hidden")


def test_asserts_of_own_types():
    class Wrapped(tf.experimental.ExtensionType):
        value: tf.Tensor
    seen = []

    @tf.experimental.dispatch_for_binary_elementwise_assert_apis(Wrapped, Wrapped)
    def handler(assert_func, x, y):
        seen.append(1)
        return assert_func(x.value, y.value)
    tf.debugging.assert_equal(Wrapped([1, 2]), Wrapped([1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.debugging.assert_less(Wrapped([1, 2]), Wrapped([1, 2]))
    assert len(seen) == 2
    tf.experimental.unregister_dispatch_for(handler)


def test_small_names(capsys):
    with tf.experimental.async_scope(), tf.experimental.function_executor_type("x"):
        tf.experimental.async_clear_error()
    tf.autograph.trace("now", 1)
    assert capsys.readouterr().out == "now 1\n"
    assert tf.autograph.experimental.Feature.ALL.value == "ALL"
    assert tf.types.experimental.distributed.PerReplica is not None
