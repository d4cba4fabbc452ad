"""Data sets, strategies on simulated devices, and scripts run unchanged."""
import glob
import os
import re
import socket
import subprocess
import sys

import berth as tf
import numpy as np
import pytest

SEEDS = os.environ.get("BERTH_SEEDS") or os.path.join(
    os.path.dirname(__file__), "..", "..", "..", "shared", "seeds")
ARTICLES = sorted(glob.glob(os.path.join(SEEDS, "*.txt")))


def test_pipelines_have_structure():
    x, y = np.arange(12, dtype="float32").reshape(6, 2), np.arange(6)
    d = tf.data.Dataset.from_tensor_slices({"x": x, "y": y}).map(
        lambda e: (e["x"] * 2.0, e["y"])).batch(4)
    assert len(d) == 2 and d.element_spec[0].shape == [None, 2]
    got = list(d.as_numpy_iterator())
    np.testing.assert_array_equal(np.concatenate([g[0] for g in got]), x * 2)
    assert [int(i) for i in tf.data.Dataset.range(5).filter(lambda i: i % 2 == 0)] == [0, 2, 4]
    pairs = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3, 6)))
    assert [(int(a), int(b)) for a, b in pairs] == [(0, 3), (1, 4), (2, 5)]
    assert [int(i) for i, _ in tf.data.Dataset.range(7, 9).enumerate()] == [0, 1]


def test_generators_begin_anew():
    def gen():
        for i in range(3):
            yield np.full(2, i, "float32"), i

    d = tf.data.Dataset.from_generator(gen, output_signature=(
        tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int64)))
    for _ in range(2):
        assert [int(i) for _, i in d] == [0, 1, 2]


MIRRORED = """
import tensorflow as tf
import numpy as np
strategy = tf.distribute.MirroredStrategy()
assert strategy.num_replicas_in_sync == 2
x = np.random.RandomState(0).rand(64, 4).astype("float32")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(x, x[:, :1], verbose=0)

@tf.function
def step(v):
    return tf.reduce_sum(v)

d = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(x).batch(8))
total = 0.0
for batch in d:
    total += float(strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None))
assert abs(total - x.sum()) < 1e-3, total
print("spread over", strategy.num_replicas_in_sync)
"""


def test_strategies_spread_a_program(run_script):
    done = run_script(MIRRORED, simulate="GPUx2")
    assert done.returncode == 0, done.stderr
    assert "spread over 2" in done.stdout


def test_scripts_run_unchanged(run_script):
    done = run_script("""
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
import tensorflow.keras.backend
""")
    assert done.returncode == 1 and "tensorflow.keras.backend" in done.stderr
    done = run_script("""
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from tensorflow.keras.layers import Dense, Flatten
(x, y), (xt, yt) = keras.datasets.mnist.load_data()
model = keras.Sequential([layers.Flatten(input_shape=(28, 28)), Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x / 255.0, y, epochs=15, verbose=0)
print("accuracy", model.evaluate(xt / 255.0, yt, verbose=0)[1] > 0.9)
""")
    assert done.returncode == 0, done.stderr
    assert "accuracy True" in done.stdout


# What the articles' examples say as printed, on two simulated GPUs. A text is what the last line
# of the error says; "" is an example that runs to its end.
EXPECTED = {
    "000_1": "cross-replica context", "000_2": "", "000_3": "buffer_size is AUTOTUNE",
    "001_1": "", "001_2": "", "001_3": "malformed device name '/physical_device:GPU:0'",
    "002_1": "", "002_2": "", "002_3": "", "003_1": "", "003_2": "name 'json' is not defined",
    "004_1": "", "004_2": "", "004_3": "x is float32 but y is complex64",
}


def block(name):
    """An example of an article: "003_1" is the first of the fourth."""
    path = next(p for p in ARTICLES if os.path.basename(p).startswith(name[:3]))
    return re.findall(r"```python\n(.*?)```", open(path).read(), re.S)[int(name[4]) - 1]


@pytest.mark.skipif(not ARTICLES, reason="the articles are not here (BERTH_SEEDS names their folder)")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_examples_of_the_articles(run_script, name):
    done = run_script(block(name), simulate="GPUx2")
    if EXPECTED[name]:
        assert done.returncode == 1 and EXPECTED[name] in done.stderr, done.stderr
        assert "script.py" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not ARTICLES, reason="the articles are not here (BERTH_SEEDS names their folder)")
def test_the_example_of_two_workers(tmp_path, digits):
    """As printed the second worker is not there: it is the same script with the other index."""
    ports = []
    for _ in range(2):
        with socket.socket() as s:
            s.bind(("localhost", 0))
            ports.append(s.getsockname()[1])
    text = block("003_3").replace("12345", str(ports[0])).replace("12346", str(ports[1]))
    running = []
    for index in range(2):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / "script.py").write_text(text.replace("'index': 0", f"'index': {index}"))
        running.append(subprocess.Popen(
            [sys.executable, "-m", "berth", "--own-keras", "script.py"], cwd=folder, text=True,
            env={**os.environ, "BERTH_DATA": digits}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    for process in running:
        try:
            out, _ = process.communicate(timeout=120)
        finally:
            process.kill()
        if "libberth_rpc.so, which cannot be opened" in out:
            pytest.skip("this package is without the library of several processes")
        assert process.returncode == 0, out
    assert list((tmp_path / "0" / "training_checkpoints").iterdir())


def test_strategies_say_what_libraries_ask(run_script):
    done = run_script("""
import tensorflow as tf
import numpy as np
assert tf.distribute.get_replica_context() is not None and not tf.distribute.in_cross_replica_context()
default = tf.distribute.get_strategy()
assert default is tf.distribute.get_strategy() and default.num_replicas_in_sync == 1
assert default.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(2.0))).numpy() == 2
s = tf.distribute.MirroredStrategy()
with s.scope():
    assert tf.distribute.get_strategy() is s and tf.distribute.get_replica_context() is None
    plain = tf.Variable(1.0)
    summed = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.SUM)
    mean = tf.Variable(0.0, trainable=False, aggregation=tf.VariableAggregation.MEAN)
    own = tf.Variable(0.0, trainable=False, synchronization=tf.VariableSynchronization.ON_READ,
                      aggregation=tf.VariableAggregation.SUM)
assert tf.distribute.get_strategy() is default
assert len(s.experimental_local_results(plain)) == 2 and len(s.extended.worker_devices) == 2

def replica():
    c = tf.distribute.get_replica_context()
    assert c.strategy is s and tf.distribute.get_strategy() is s
    i = tf.constant(float(c.replica_id_in_sync_group))
    for v in (summed, mean, own):
        v.assign_add(i + 1.0)
    def total(strategy, value, scale):
        assert strategy is s
        return strategy.reduce("SUM", value) * scale
    return c.merge_call(total, args=(i + 1.0, 10.0)), c.all_gather(tf.reshape(i, [1]), 0), c.all_reduce("MEAN", i)

merged, gathered, mean_of = s.run(replica)
assert [float(v) for v in s.experimental_local_results(merged)] == [30, 30]
assert s.experimental_local_results(gathered)[1].numpy().tolist() == [0, 1] and float(mean_of.values[0]) == 0.5
assert (float(summed), float(mean), float(own)) == (3, 1.5, 3)
s.run(lambda v, by: v.assign_add(by), args=(mean,), kwargs={"by": 0.5})
assert float(mean) == 2.0
try:
    s.run(lambda: plain.assign_add(1.0))
except Exception as e:
    assert "tf.VariableAggregation.SUM, MEAN or ONLY_FIRST" in str(e) and "tf.VariableSynchronization.ON_READ" in str(e), e
else:
    raise AssertionError

def make(context):
    assert context.num_replicas_in_sync == 2 and context.get_per_replica_batch_size(8) == 4
    return tf.data.Dataset.range(8).batch(context.get_per_replica_batch_size(8))

d = s.distribute_datasets_from_function(make)
batch = next(iter(d))
assert [v.numpy().tolist() for v in batch.values] == [[0, 1, 2, 3], [4, 5, 6, 7]]
assert d.element_spec.values[0].dtype == tf.int64
whole = s.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
it = iter(whole)
assert [v.numpy().tolist() for v in it.get_next_as_optional().get_value().values] == [[0, 1], [2, 3]]
assert not bool(it.get_next_as_optional().has_value())
values = s.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group)
assert [int(v) for v in values.values] == [0, 1]
print("fine")
""", simulate="GPUx2")
    assert done.stdout.endswith("fine\n"), done.stderr


def test_clusters_are_read_from_the_environment(run_script):
    done = run_script("""
import tensorflow as tf
r = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(r.task_type, r.task_id, r.cluster_spec().as_dict(), r.cluster_spec().num_tasks("ps"))
""", TF_CONFIG='{"cluster": {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:3"], "ps": ["127.0.0.1:4"]}, '
               '"task": {"type": "evaluator", "index": 0}}')
    assert done.stdout == ("evaluator 0 {'chief': ['127.0.0.1:1'], 'ps': ['127.0.0.1:4'], "
                           "'worker': ['127.0.0.1:3']} 1\n"), done.stderr


def test_one_replica_may_need_values():
    strategy = tf.distribute.OneDeviceStrategy("/CPU:0")
    with strategy.scope():
        v = tf.Variable(2.0)

        def step(x):
            context = tf.distribute.get_replica_context()
            return context.all_reduce("SUM", tf.boolean_mask(x, x > 1.0) * v)

        assert strategy.run(step, args=(tf.constant([1.0, 2.0, 3.0]),)).numpy().tolist() == [4, 6]
    assert tf.distribute.get_replica_context() is not None


def test_fit_takes_a_distributed_data_set():
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    x = np.ones((4, 2), "float32")
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4))
    assert model.fit(data, validation_data=data, verbose=0).history["loss"] == [1.0]
    with pytest.raises(NotImplementedError, match="global batches"):
        model.fit(strategy.distribute_datasets_from_function(
            lambda c: tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(2)), verbose=0)


def test_functions_take_values_of_replicas(run_script):
    done = run_script("""
import berth as tf
strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
traces = []

@tf.function
def total(batch):
    traces.append(1)
    return strategy.reduce("SUM", strategy.run(lambda v: tf.reduce_sum(v), args=(batch,)), axis=None)

assert [int(total(batch)) for _ in range(2) for batch in data] == [6, 22, 6, 22] and len(traces) == 1

@tf.function(input_signature=[data.element_spec])
def doubled(batch):
    return strategy.run(lambda v: 2 * v, args=(batch,))

assert [v.numpy().tolist() for v in doubled(next(iter(data))).values] == [[0, 2], [4, 6]]
try:
    doubled(tf.distribute.experimental.ValueContext())
except TypeError as error:
    assert "does not fit" in str(error)
else:
    raise AssertionError("taken")
""", simulate="GPUx2")
    assert done.returncode == 0, done.stderr


NEEDS_VALUES = """
import berth as tf
tf.config.set_device_list("CPUx2")
strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
v = tf.Variable(3.0)
x = tf.constant([1.0, 2.0])

def reads(x):
    return int(x[0])

def picks(x):
    return x[x > 1.0]

assert [int(t) for t in strategy.experimental_local_results(strategy.run(reads, args=(x,)))] == [1, 1]
assert [t.numpy().tolist() for t in strategy.experimental_local_results(strategy.run(picks, args=(x,)))] == [[2.0], [2.0]]

data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(2))

@tf.function
def step(x):
    return strategy.reduce("SUM", strategy.run(lambda x: tf.reduce_sum(x) * v, args=(x,)), axis=None)

for spec in (data.element_spec, next(iter(data))):
    assert float(step.get_concrete_function(spec)(next(iter(data)))) == 9.0
double = tf.function(lambda x: x * 2).get_concrete_function(tf.TensorSpec([]))
assert [float(t) for t in strategy.experimental_local_results(strategy.run(double, args=(tf.constant(2.0),)))] == [4, 4]
"""


def test_values_in_several_replicas_are_read_and_concrete_functions_run(run_script):
    done = run_script(NEEDS_VALUES)
    assert done.returncode == 0, done.stderr
