"""Real Keras on Berth: scopes of variables, kinds of steps and of data, and what callbacks see of each."""
import importlib.util
import signal
import time

import numpy as np
import pytest
from test_keras_backend import MODEL, run
from test_parameter_servers import Cluster

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")


def test_variables_are_where_their_scopes_say():
    run("""
with keras.device("gpu:1"):
    v = keras.Variable(np.ones((2, 2)))
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
assert v.value.device.endswith("GPU:1") and layer.kernel.value.device.endswith("GPU:1"), v.value.device
both = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
with both.scope():
    w = keras.Variable(np.zeros(2, "float32"), aggregation="sum")
    seen = keras.Variable(np.zeros((), "float32"), trainable=False, synchronization="on_read", aggregation="sum")
def add():
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    w.assign_add(tf.ones(2) * (1.0 + tf.cast(number, "float32")))
    seen.assign_add(1.0)
both.run(add)
assert w.numpy().tolist() == [3, 3] and float(seen.value) == 2, (w, seen)
with tf.distribute.experimental.CentralStorageStrategy(["/GPU:0", "/GPU:1"]).scope():
    assert keras.Variable(np.ones(2)).value.device.endswith("CPU:0")
""", BERTH_SIM="GPUx2")


def test_shapes_take_under_a_millisecond_and_no_memory():
    run("""
import resource, time
layers = [keras.layers.Dense(64), keras.layers.Conv2D(8, 3), keras.layers.BatchNormalization(), keras.layers.LayerNormalization(),
          keras.layers.MultiHeadAttention(2, 8), keras.layers.Dropout(.5), keras.layers.MaxPooling2D(), keras.layers.Flatten()]
def inputs(layer):
    if isinstance(layer, (keras.layers.Conv2D, keras.layers.MaxPooling2D)):
        return [keras.KerasTensor((None, 32, 32, 3))]
    return [keras.KerasTensor((None, 7, 64))] * (2 if isinstance(layer, keras.layers.MultiHeadAttention) else 1)
def seconds(layer):
    start = time.thread_time()
    keras.src.backend.compute_output_spec(layer.call, *inputs(layer))
    return time.thread_time() - start
for layer in layers:
    layer(*[keras.ops.ones((2, *t.shape[1:])) for t in inputs(layer)])
best = {layer.name: min(seconds(layer) for _ in range(20)) for layer in layers}
print(best)
assert np.median(list(best.values())) < 1e-3, best
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
keras.src.backend.compute_output_spec(keras.ops.matmul, keras.KerasTensor((None, 10 ** 5, 5)), keras.KerasTensor((None, 5, 10 ** 5)))
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
""")


def test_single_batches_and_steps_of_ones_own():
    run("""
one, whole = model(), model()
for i in range(0, 200, 50):
    logs = one.train_on_batch(x[i:i + 50], y[i:i + 50], return_dict=True)
    assert set(logs) == {"loss", "accuracy"}, logs
whole.fit(x, y, batch_size=50, shuffle=False, verbose=0)
for a, b in zip(one.get_weights(), whole.get_weights()):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
np.testing.assert_allclose(one.test_on_batch(x, y), whole.evaluate(x, y, batch_size=200, verbose=0), rtol=1e-4)
np.testing.assert_allclose(one.predict_on_batch(x), whole.predict(x, verbose=0), rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(losses(model(jit_compile=True), shuffle=False), losses(model(jit_compile=False), shuffle=False),
                           rtol=1e-6)

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense, self.seen = keras.layers.Dense(2), keras.metrics.Mean("own")
    def call(self, x):
        return self.dense(x)
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = keras.ops.mean(keras.losses.sparse_categorical_crossentropy(y, self(x, training=True), from_logits=True))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights))
        self.seen.update_state(loss)
        return {"own": self.seen.result()}
own = Own()
own.compile("adam")
h = own.fit(x, y, epochs=5, verbose=0).history["own"]
assert h[-1] < h[0] and 'placement of "own' in own.placement().replace(own.name, "own"), own.placement()

# A loop of one's own without state in objects.
m = model()
m.optimizer.build(m.trainable_variables)
state = ([v.value + 0 for v in m.trainable_variables], [v.value + 0 for v in m.non_trainable_variables],
         [v.value + 0 for v in m.optimizer.variables])
before = m.get_weights()
@tf.function
def step(trainable, other, slots, x, y):
    with tf.GradientTape() as tape:
        tape.watch(trainable)
        out, other = m.stateless_call(trainable, other, x, training=True)
        loss = keras.ops.mean(keras.losses.sparse_categorical_crossentropy(y, out, from_logits=True))
    trainable, slots = m.optimizer.stateless_apply(slots, tape.gradient(loss, trainable), trainable)
    return loss, trainable, other, slots
found = []
for _ in range(20):
    loss, *state = step(*state, x, y)
    found.append(float(loss))
assert found[-1] < found[0], found
for a, b in zip(before, m.get_weights()):
    np.testing.assert_array_equal(a, b)
""")


KINDS = """
expected = losses(model(), shuffle=False)
def same(name, data, **options):
    h = model().fit(data, epochs=3, verbose=0, shuffle=False, **options).history["loss"]
    np.testing.assert_allclose(expected, h, rtol=1e-5, err_msg=name)
"""


def test_kinds_of_data_are_one():
    run(KINDS + """
class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return x[64 * i:64 * i + 64], y[64 * i:64 * i + 64]
same("threads", Batches(workers=3, max_queue_size=4))
same("one thread", Batches())
def once():
    for i in range(0, 200, 64):
        yield x[i:i + 64], y[i:i + 64]
def forever():
    while True:
        yield from once()
same("generator", forever(), steps_per_epoch=4)
same("berth.data", tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(2))
same("berth.data without a size", tf.data.Dataset.from_generator(
    once, output_signature=(tf.TensorSpec([None, 20]), tf.TensorSpec([None], tf.int32))))
same("berth.data that goes on", tf.data.Dataset.from_tensor_slices((x, y)).batch(64).repeat(), steps_per_epoch=4)
""")


def test_data_sets_of_tensorflow():
    pytest.importorskip("tensorflow")
    run("import tensorflow\n" + KINDS + """
same("tf.data", tensorflow.data.Dataset.from_tensor_slices((x, y)).batch(64))
""", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")


def test_data_loaders_of_torch():
    pytest.importorskip("torch")
    run("import torch\n" + KINDS + """
rows = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
same("DataLoader", torch.utils.data.DataLoader(rows, batch_size=64))
""")


def test_steps_of_a_call_are_single_steps_under_strategies():
    run("""
import contextlib
devices, steps = ["/GPU:0", "/GPU:1"], []
class Watches(keras.callbacks.Callback):
    seen = []
    def on_train_batch_end(self, batch, logs):
        self.seen.append((batch, logs["loss"]))
def history(strategy, data, watched, **options):
    with strategy().scope() if strategy else contextlib.nullcontext():
        m = model()
    watches = [Watches()] if watched else []
    h = m.fit(*data(), epochs=3, verbose=0, callbacks=watches, validation_data=(x[:90], y[:90]), **options).history
    steps.append(int(m.optimizer.iterations))
    return h
def once():
    for i in range(0, 200, 64):
        yield x[i:i + 64], y[i:i + 64]
signature = (tf.TensorSpec([None, 20]), tf.TensorSpec([None], tf.int32))
kinds = {
    "arrays": (lambda: (x, y), {"batch_size": 64, "shuffle": False}),
    "dataset": (lambda: (tf.data.Dataset.from_tensor_slices((x, y)).batch(64),), {}),
    "unknown size": (lambda: (tf.data.Dataset.from_generator(once, output_signature=signature),), {}),
    "goes on": (lambda: (tf.data.Dataset.from_tensor_slices((x, y)).batch(64).repeat(),), {"steps_per_epoch": 4})}
expected = history(None, *kinds["arrays"][:1], True, **kinds["arrays"][1])
seen = list(Watches.seen)
assert [b for b, _ in seen] == [0, 1, 2, 3] * 3
for strategy in (None, lambda: tf.distribute.OneDeviceStrategy("/GPU:0"), lambda: tf.distribute.MirroredStrategy(devices),
                 lambda: tf.distribute.experimental.CentralStorageStrategy(devices)):
    for name, (data, options) in kinds.items():
        for watched in (False, True):
            Watches.seen.clear()
            h = history(strategy, data, watched, **options)
            for key, values in expected.items():
                np.testing.assert_allclose(values, h[key], rtol=1e-4, err_msg=f"{name} {key}")
            assert steps[-1] == 12, (name, steps)
            if watched:
                assert [b for b, _ in Watches.seen] == [0, 1, 2, 3] * 3, (name, Watches.seen)
                np.testing.assert_allclose([v for _, v in seen], [v for _, v in Watches.seen], rtol=1e-4)
""", BERTH_SIM="GPUx2")


def test_an_error_in_a_step_ends_fit():
    run("""
def batches():
    for i in range(8):
        labels = y[:40].copy()
        labels[3] = 7 if i == 5 else labels[3]
        yield x[:40], labels
data = tf.data.Dataset.from_generator(batches, output_signature=(tf.TensorSpec([40, 20]), tf.TensorSpec([40], tf.int32)))
def checked(v, y):
    tf.debugging.assert_less(y, 2, message="a label of no class")
    return v, y
with tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"]).scope():
    m = model()
for call in (lambda: m.fit(data.map(checked), epochs=2, verbose=0), lambda: m.evaluate(data.map(checked), verbose=0)):
    try:
        call()
    except tf.errors.InvalidArgumentError as error:
        assert "a label of no class" in str(error), error
    else:
        raise AssertionError("trained")
assert int(m.optimizer.iterations) == 5, m.optimizer.iterations
m.fit(x, y, batch_size=64, verbose=0)
assert int(m.optimizer.iterations) == 9
""", BERTH_SIM="GPUx2")


WORKERS = "import os\nos.environ[\"KERAS_BACKEND\"] = \"berth\"\n" + MODEL + """
import sys
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    m = model()
"""


def test_tasks_shuffle_alike(tmp_path):
    text = WORKERS + """
rows = np.arange(200, dtype="float32")[:, None]
with strategy.scope():
    sums = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    sums.compile(keras.optimizers.SGD(1.0), loss=lambda y, p: keras.ops.sum(p, -1))
np.random.seed(strategy.task_id)
for _ in range(3):  # a step's gradient is minus the mean of its rows: each row is in one step of an epoch
    sums.set_weights([np.zeros((1, 1), "float32")])
    sums.fit(rows, rows, batch_size=20, epochs=2, verbose=0)
    np.testing.assert_allclose(sums.get_weights()[0], [[-2 * 199 * 200 / 2 / 20]], rtol=1e-5)
print("each once")
"""
    with Cluster(tmp_path, text, workers=2, ps=0, options=()) as cluster:
        for i in range(2):
            status, out = cluster.ended("worker", i)
            assert status == 0 and out.endswith("each once\n"), out


SIZES = """
for n in (127, 65, 128):  # halves of the last batch are 32 and 31, or one of them is empty
    for optimizer in ("adam", "rmsprop"):
        with strategy.scope() if strategy else keras.name_scope("alone"):
            m = model()
            m.compile(optimizer, m.loss, metrics=["accuracy"])
        h = m.fit(x[:n], y[:n], batch_size=64, epochs=2, shuffle=False, verbose=0, validation_data=(x[:n], y[:n])).history
        print("losses", *(f"{v:.5f}" for values in h.values() for v in values), int(m.optimizer.iterations))
"""


def test_uneven_batches_of_tasks(tmp_path):
    def found(out):
        return [[float(v) for v in line.split()[1:]] for line in out.splitlines() if line.startswith("losses")]
    with Cluster(tmp_path, WORKERS + SIZES + "strategy.leave()\n", workers=2, ps=0, options=()) as cluster:
        for i in range(2):
            status, out = cluster.ended("worker", i)
            assert status == 0, out
    np.testing.assert_allclose(found(out), found(run("strategy = None" + SIZES)), rtol=1e-3)


def test_data_parallel_over_tasks(tmp_path):
    alone = run("""
print("losses", *(f"{v:.5f}" for v in losses(model(), shuffle=False)))
""")
    text = WORKERS.split("strategy =")[0] + """
import json
task = json.loads(os.environ.pop("TF_CONFIG"))
try:
    keras.distribution.initialize("localhost:1,localhost:2", 3, 0)
except ValueError as error:
    assert "2 addresses" in str(error)
addresses = ",".join(task["cluster"]["worker"])
keras.distribution.initialize(addresses, num_processes=2, process_id=task["task"]["index"])
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=["cpu:0"]))
m = model()
assert m.distribute_strategy.num_replicas_in_sync == 2
found = losses(m, shuffle=False)
m.distribute_strategy.leave()
print("losses", *(f"{v:.5f}" for v in found))
"""
    with Cluster(tmp_path, text, workers=2, ps=0, options=()) as cluster:
        for i in range(2):
            status, out = cluster.ended("worker", i)
            assert status == 0, out
    np.testing.assert_allclose(*[[float(v) for v in t.split("losses ")[1].split()] for t in (out, alone)],
                               rtol=1e-3)


def test_a_lost_worker_ends_the_fit_of_others(tmp_path):
    text = WORKERS + """
class Says(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        print("epoch", epoch, flush=True)
try:
    m.fit(x, y, batch_size=20, epochs=10 ** 6, verbose=0, callbacks=[Says()])
except tf.errors.UnavailableError as error:
    print("lost:", error, flush=True)
    sys.stdout.flush()
    os._exit(3)
"""
    with Cluster(tmp_path, text, workers=2, ps=0, options=()) as cluster:
        for i in range(2):
            assert "epoch 0" in next(line for line in cluster.tasks["worker", i].stdout if line.startswith("epoch"))
        time.sleep(0.5)
        cluster.tasks["worker", 1].send_signal(signal.SIGKILL)
        status, out = cluster.ended("worker", 0)
    assert status == 3 and "lost: " in out and "worker:1" in out, out


def test_batches_are_normalized_over_all_replicas():
    run("""
import contextlib
x, y = np.random.RandomState(0).rand(32, 5).astype("float32"), np.random.RandomState(1).rand(32, 1).astype("float32")
x[:16] += 3  # replicas see other halves
def trained(strategy, **how):
    keras.utils.set_random_seed(1)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = keras.Sequential([keras.Input((5,)), keras.layers.BatchNormalization(**how), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=0)
    return model.get_weights()
one = trained(None, synchronized=True)
two = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
for a, b in zip(one, trained(two, synchronized=True)):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
assert any(np.abs(a - b).max() > 1e-2 for a, b in zip(one, trained(two)))  # each half by itself
""", BERTH_SIM="GPUx2")
