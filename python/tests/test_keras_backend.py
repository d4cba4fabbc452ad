"""Real Keras on Berth: KERAS_BACKEND=berth."""
import importlib.util
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

MODEL = """
import berth as tf
import keras
import numpy as np
r = np.random.RandomState(0)
x = r.rand(200, 20).astype("float32")
y = (x[:, 0] > x[:, 1]).astype("int32")
def model(**options):
    keras.utils.set_random_seed(1)
    m = keras.Sequential([keras.Input((20,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(2)])
    m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
    return m
def losses(m, **options):
    return m.fit(x, y, epochs=3, batch_size=64, verbose=0, **options).history["loss"]
"""


def run(text, *arguments, folder=None, **environment):
    """What a script prints, which has a model, data and `losses`."""
    done = subprocess.run([sys.executable, *arguments, "-c", MODEL + text] if not arguments else
                          [sys.executable, *arguments], cwd=folder, text=True, capture_output=True, timeout=300,
                          env={**os.environ, "KERAS_BACKEND": "berth", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_update_follows_from_a_closed_form():
    run("""
w, b = r.rand(20, 1).astype("float32"), np.zeros(1, "float32")
m = keras.Sequential([keras.Input((20,)), keras.layers.Dense(1)])
m.compile(keras.optimizers.SGD(.1), "mse")
m.set_weights([w, b])
m.fit(x[:32], y[:32], batch_size=32, verbose=0)
error = x[:32] @ w + b - y[:32, None]
np.testing.assert_allclose(m.get_weights()[0], w - .1 * 2 / 32 * x[:32].T @ error, rtol=1e-4)
np.testing.assert_allclose(m.get_weights()[1], b - .1 * 2 * error.mean(0), rtol=1e-4)
""")


def test_adam_as_one_op_is_keras_own_adam():
    run("""
fused = losses(model())
from keras_berth.src import optimizer
optimizer._fused = lambda o: None
np.testing.assert_allclose(fused, losses(model()), rtol=1e-5)
""")


def test_groups_of_steps_are_single_steps():
    run("""
one = losses(model(), shuffle=False)
class Watches(keras.callbacks.Callback):
    seen = []
    def on_train_batch_end(self, batch, logs):
        self.seen.append(batch)
watched = losses(model(), shuffle=False, callbacks=[Watches()])
assert Watches.seen == [0, 1, 2, 3] * 3, Watches.seen
np.testing.assert_allclose(one, watched, rtol=1e-5)
np.testing.assert_allclose(one, losses(model(steps_per_execution=3), shuffle=False), rtol=1e-5)
np.testing.assert_allclose(one, losses(model(run_eagerly=True), shuffle=False), rtol=1e-4)
batches = [(x[i:i + 64], y[i:i + 64]) for i in range(0, 200, 64)]
def forever():
    while True:
        yield from batches
for data in (forever(), tf.data.Dataset.from_tensor_slices((x, y)).batch(64)):
    h = model().fit(data, steps_per_epoch=4 if data.__class__.__name__ == "generator" else None, epochs=3, verbose=0)
    np.testing.assert_allclose(one, h.history["loss"], rtol=1e-5)
""")


def test_a_step_with_dropout_is_one_plan(tmp_path):
    run("""
m = keras.Sequential([keras.Input((20,)), keras.layers.Dropout(.5), keras.layers.Dense(2)])
m.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
m.fit(x, y, batch_size=50, verbose=0)
assert "train_step" in m.placement() and "op by op" not in m.placement(), m.placement()
state = m.layers[0].seed_generator.state.numpy()
m.fit(x, y, batch_size=50, verbose=0)
assert (m.layers[0].seed_generator.state.numpy() != state).any()
""", folder=tmp_path)


def test_files_keep_models(tmp_path):
    run("""
m = model()
losses(m)
for name in ("m.keras", "m.h5"):
    m.save(name)
    n = keras.saving.load_model(name)
    np.testing.assert_array_equal(m.predict(x, verbose=0), n.predict(x, verbose=0))
    if name == "m.keras":  # Keras' optimizers of .h5 files do not know the model's variables, on any backend
        np.testing.assert_allclose(losses(m, shuffle=False), losses(n, shuffle=False), rtol=1e-6)
m.save_weights("m.weights.h5")
n = model()
n.load_weights("m.weights.h5")
np.testing.assert_array_equal(m.predict(x, verbose=0), n.predict(x, verbose=0))
""", folder=tmp_path)


def test_files_of_berth_keras_are_files_of_keras(tmp_path):
    run("""
own = tf.keras.Sequential([tf.keras.layers.Input((20,)), tf.keras.layers.Dense(3, activation="tanh")])
own.save("own.keras")
m = keras.saving.load_model("own.keras")
np.testing.assert_allclose(own.predict(x, verbose=0), m.predict(x, verbose=0), rtol=1e-6)
m.save("keras.keras")
np.testing.assert_allclose(tf.keras.models.load_model("keras.keras").predict(x, verbose=0), m.predict(x, verbose=0),
                           rtol=1e-6)
""", folder=tmp_path)


def test_replicas_train_as_one_device_does():
    run("""
one = losses(model(), shuffle=False)
devices = ["/GPU:0", "/GPU:1"]
for strategy in (tf.distribute.MirroredStrategy(devices),
                 tf.distribute.experimental.CentralStorageStrategy(devices)):
    with strategy.scope():
        m = model()
    np.testing.assert_allclose(one, losses(m, shuffle=False), rtol=1e-4)
    assert "GPU:1" in m.placement()
    assert m.predict(x, verbose=0).shape == (200, 2)
assert keras.distribution.list_devices() == ["gpu:0", "gpu:1"]
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=["gpu:0", "gpu:1"]))
m = model()
np.testing.assert_allclose(one, losses(m, shuffle=False), rtol=1e-4)
assert "GPU:1" in m.placement()
""", BERTH_SIM="GPUx2")


def test_devices_and_contracts():
    run("""
with keras.device("gpu:1"):
    assert keras.ops.ones((2,)).device.endswith("GPU:1")
    m = model()
losses(m)
assert '"dense/MatMul" is on GPU:' in tf.explain(m, "dense/MatMul") and "GPU:1" in m.placement()
try:
    tf.explain(m, "MatMul")
    raise SystemExit("an op without its layer was found")
except tf.errors.NotFoundError as error:
    assert "dense/MatMul" in str(error), error
with keras.device("gpu:1"):
    n = model(contract=tf.Contract(stays_on="/GPU:0"))
try:
    losses(n)
except tf.errors.FailedPreconditionError as error:
    assert "contract" in str(error)
else:
    raise AssertionError("the contract was kept")
""", BERTH_SIM="GPUx2")


def test_shapes_are_found_without_computing():
    run("""
import time
m = keras.Sequential([keras.Input((32, 32, 3)), keras.layers.Conv2D(4, 3), keras.layers.Flatten(), keras.layers.Dense(9)])
assert m.output_shape == (None, 9) and m.layers[1].output.shape == (None, 30 * 30 * 4)
spec = keras.src.backend.compute_output_spec(lambda a, b: keras.ops.matmul(a, b), keras.KerasTensor((None, 10 ** 5, 5)),
                                             keras.KerasTensor((None, 5, 10 ** 5)))
assert spec.shape == (None, 10 ** 5, 10 ** 5)
""")


def test_a_tape_beside_keras():
    run("""
m = model()
with tf.GradientTape() as tape:
    loss = keras.ops.mean(m(x) ** 2)
before = m.get_weights()
gradients = tape.gradient(loss, m.trainable_variables)
m.optimizer.apply_gradients(zip(gradients, m.trainable_variables))
assert all((a != b).any() for a, b in zip(before, m.get_weights()))
out, _ = m.stateless_call([v.value * 0 for v in m.trainable_variables], [], x)
assert not np.asarray(out).any()
""")


def test_a_script_of_tensorflow_gets_keras(tmp_path):
    (tmp_path / "script.py").write_text("""
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
assert keras.backend.backend() == "berth" and keras.__version__ == tf.keras.__version__
m = tf.keras.Sequential([layers.Dense(3), layers.LayerNormalization()])
m.compile(tf.optimizers.SGD(), "mse")
m.fit(tf.ones((8, 2)), tf.zeros((8, 3)), verbose=0)
print("trained")
""")
    assert "trained" in run("", "-m", "berth", "script.py", folder=tmp_path)


def test_fit_takes_the_dataset_of_a_strategy():
    run("""
strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
with strategy.scope():
    both = model()
batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(50)
split = both.fit(strategy.experimental_distribute_dataset(batches), epochs=2, verbose=0).history["loss"]
assert np.allclose(split, model().fit(batches, epochs=2, verbose=0).history["loss"], rtol=1e-4), split
""", BERTH_SIM="GPUx2")


def test_steps_with_conditions_are_those_of_one_device_under_a_strategy():
    run("""
import contextlib
start = r.normal(0, 0.3, (20, 1)).astype("float32")
def weights(optimizer, devices):
    with tf.distribute.MirroredStrategy(devices).scope() if devices else contextlib.nullcontext():
        m = keras.Sequential([keras.Input((20,)), keras.layers.Dense(1, use_bias=False)])
        m.set_weights([start])
        m.compile(optimizer(), "mse")
    m.fit(x, y.astype("float32"), batch_size=40, epochs=2, shuffle=False, verbose=0)
    return m.get_weights()[0], int(m.optimizer.iterations)
for optimizer in (lambda: keras.optimizers.SGD(0.05, gradient_accumulation_steps=2),
                  lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05, momentum=0.5))):
    (one, n), (two, k) = weights(optimizer, None), weights(optimizer, ["/GPU:0", "/GPU:1"])
    assert n == k and np.allclose(one, two, rtol=1e-5, atol=1e-6) and not np.allclose(one, start), (n, k, one, two)
""", BERTH_SIM="GPUx2")


def test_optimizers_update_variables_of_tensorflow(tmp_path):
    (tmp_path / "script.py").write_text("""
import tensorflow as tf
w, sgd = tf.Variable(2.0), tf.keras.optimizers.SGD(0.1)
def step():
    with tf.GradientTape() as tape:
        loss = w * w
    sgd.apply_gradients([(tape.gradient(loss, w), w)])
step()
tf.function(step)()
assert abs(float(w) - 2 * 0.8 ** 2) < 1e-6, w
for _ in range(2):
    with tf.GradientTape() as tape:
        loss = 0.0 * w
    sgd.apply_gradients([(tape.gradient(loss, v), v) for v in tape.watched_variables()])
tf.keras.optimizers.Adam(0.1).apply_gradients([(tf.constant(3.0), w)])
assert abs(float(w) - 1.18) < 1e-5, w
print("updated")
""")
    assert "updated" in run("", "-m", "berth", "script.py", folder=tmp_path)


def test_batches_smaller_than_the_replicas():
    run("""
import contextlib
u, v = x[:9, :3], x[:9, 3:4]
def fitted(devices, size, dataset):
    with tf.distribute.MirroredStrategy(devices).scope() if devices else contextlib.nullcontext():
        m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
        m.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    data = (tf.data.Dataset.from_tensor_slices((u, v)).batch(size),) if dataset else (u, v)
    options = {} if dataset else {"batch_size": size, "shuffle": False}
    h = m.fit(*data, epochs=2, verbose=0, validation_data=(u[:5], v[:5]), validation_batch_size=4, **options)
    return [*h.history.values(), *m.get_weights(), m.predict(u, batch_size=1, verbose=0)]
for size, dataset in ((4, False), (4, True), (1, False)):
    for one, two in zip(fitted(None, size, dataset), fitted(["/GPU:0", "/GPU:1"], size, dataset)):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
""", BERTH_SIM="GPUx2")


def test_loops_of_ones_own_under_a_strategy():
    run("""
strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"])
with strategy.scope():
    w, seen = tf.Variable(1.0), keras.metrics.Mean()
    m, sgd, adamax = keras.Sequential([keras.layers.Dense(1)]), keras.optimizers.SGD(1.0), keras.optimizers.Adamax(0.1)
    try:
        sgd.apply_gradients([(tf.constant(1.0), w)])
    except tf.errors.FailedPreconditionError as error:
        assert "cross-replica" in str(error) and "run" in str(error)
    else:
        raise AssertionError("taken")

def step(v):
    with tf.GradientTape() as tape:
        loss = w * tf.reduce_sum(v) * 0.1
    sgd.apply_gradients([(tape.gradient(loss, w), w)])
    with tf.GradientTape() as tape:
        other = tf.reduce_sum(m(v[:, None]))  # its first call, and that of its optimizer
    adamax.apply_gradients(zip(tape.gradient(other, m.trainable_variables), m.trainable_variables))
    seen.update_state(loss)
    return loss

for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)):
    losses = strategy.run(step, args=(batch,))
assert abs(float(w)) < 1e-6 and abs(float(seen.result()) - 0.5) < 1e-6 and int(adamax.iterations) == 1
assert abs(float(strategy.reduce("SUM", losses, axis=None)) - 1.0) < 1e-6
""", BERTH_SIM="GPUx2")


def test_checkpoints_and_saved_models_of_keras(tmp_path):
    run(f"""
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)
    def call(self, x):
        return self.last(self.first(x))

def made():
    net, adam = Net(), keras.optimizers.Adam(0.1)
    @tf.function
    def step(u, v):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(u) - v) ** 2)
        adam.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
        return loss
    return net, adam, step, tf.train.Checkpoint(net=net, adam=adam)

u, v = x[:8], x[:8, :1]
net, adam, step, checkpoint = made()
for _ in range(3):
    step(u, v)
assert step.experimental_get_tracing_count() == 1
path = checkpoint.save({str(tmp_path / "c")!r})
expected = [float(step(u, v)) for _ in range(3)]
checkpoint.restore(path)
np.testing.assert_allclose([float(step(u, v)) for _ in range(3)], expected, rtol=1e-5)
net, adam, step, checkpoint = made()
checkpoint.restore(path)
np.testing.assert_allclose([float(step(u, v)) for _ in range(3)], expected, rtol=1e-5)
assert int(adam.iterations) == 6

m = keras.Sequential([keras.Input((20,)), keras.layers.Dense(2)])
tf.saved_model.save(m, {str(tmp_path / "m")!r})
loaded = tf.saved_model.load({str(tmp_path / "m")!r})
np.testing.assert_allclose(loaded.signatures["serving_default"](tf.constant(u))["output_0"], m(u))
""")


def test_layers_of_text_and_pictures_in_scripts_of_tensorflow(tmp_path):
    (tmp_path / "script.py").write_text("""
import numpy as np
import tensorflow as tf
layers = tf.keras.layers
scaled = layers.Normalization()
scaled.adapt(np.arange(6.0).reshape(3, 2))
m = tf.keras.Sequential([scaled, layers.Dense(1)])
m.compile("adam", "mse")
assert m.predict(np.ones((4, 2)), verbose=0).shape == (4, 1)
turned = tf.keras.Sequential([layers.RandomFlip(), layers.Rescaling(0.5)])
pictures = tf.data.Dataset.from_tensors(tf.ones([4, 4, 3])).map(lambda p: turned(p, training=True))
assert float(tf.reduce_sum(next(iter(pictures)))) == 24
look = layers.StringLookup(vocabulary=["a", "b"])
assert look(tf.constant(["b", "z"])).numpy().tolist() == [2, 0]
words = layers.TextVectorization(output_sequence_length=3)
words.adapt(["a b c", "b c", "c"])
rows = tf.data.Dataset.from_tensor_slices(["b c", "z c"]).batch(2).map(words)
assert next(iter(rows)).numpy().tolist() == [[3, 2, 0], [1, 2, 0]]
print("read")
""")
    assert "read" in run("", "-m", "berth", "script.py", folder=tmp_path)


def test_another_keras_is_an_error_that_names_the_tested():
    from keras_berth import TESTED, hook
    with pytest.raises(ImportError, match=TESTED[0]):
        hook.edited("keras.src.models.model", "if backend.backend() == 'x':\n")


def test_layers_run_in_the_device_scope_they_were_called_in():
    run("""
i = keras.Input((4,))
with tf.device("/GPU:1"):
    a = keras.layers.Dense(10, name="first")(i)
with tf.device("/GPU:0"):
    b = keras.layers.Dense(1, name="second")(a)
m = keras.Model(i, keras.layers.Dense(1, name="third")(b))
m.compile("sgd", "mse")
ones = np.ones((8, 4), "float32")
for step in lambda: m.fit(ones, np.ones((8, 1)), verbose=0), lambda: m.predict(ones, verbose=0):
    step()
    moved = [(t.source[-5:], t.target[-5:], t.bytes) for t in m.placement().transfers]
    assert ("GPU:1", "GPU:0", 320) in moved, moved  # what the first layer gives, 8 rows of 10
m(tf.ones([2, 4]))
assert "GPU:1" in m.layers[1](tf.ones([2, 4])).device and m.layers[3]._device == ""
with tf.device("/CPU:0"):
    n = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
n.add(keras.layers.Dense(3))
assert [d._device for d in n.layers] == ["/device:CPU:0", ""] and n.predict(np.ones((1, 2)), verbose=0).shape == (1, 3)
""", BERTH_SIM="GPUx2")


def test_a_weight_for_each_example_is_one_for_all_of_its_losses():
    run("""
u, v, w = r.rand(5, 4, 4, 1).astype("float32"), r.rand(5, 4, 4, 1).astype("float32"), np.array([1., 2, 3, 4, 5])
loss = keras.losses.MeanAbsoluteError()(v, u, sample_weight=w)
np.testing.assert_allclose(loss, (np.abs(u - v)[..., 0] * w[:, None, None]).mean(), rtol=1e-6)
square = r.rand(4, 4, 4, 1).astype("float32")
loss = keras.losses.MeanSquaredError()(square, square * 0, sample_weight=w[:4])
np.testing.assert_allclose(loss, (square[..., 0] ** 2 * w[:4, None, None]).mean(), rtol=1e-6)
m = keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Conv2D(1, 3, padding="same")])
m.compile("sgd", "mae", weighted_metrics=["mse"])
out = m.predict(u, verbose=0)
found = m.evaluate(u, v, sample_weight=w, verbose=0, return_dict=True)
np.testing.assert_allclose(found["loss"], (np.abs(out - v)[..., 0] * w[:, None, None]).mean(), rtol=1e-5)
m.fit(u, v, sample_weight=w, batch_size=2, verbose=0)
""")


def test_training_goes_on_from_an_h5_file(tmp_path):
    run(f"""
m = model()
losses(m)
m.save({str(tmp_path / "m.h5")!r})
n = keras.models.load_model({str(tmp_path / "m.h5")!r})
assert int(n.optimizer.iterations) == 12
for a, b in zip(m.optimizer.variables, n.optimizer.variables, strict=True):
    np.testing.assert_array_equal(a, b)
more = [k.fit(x, y, batch_size=200, epochs=2, verbose=0).history["loss"] for k in (m, n)]
np.testing.assert_allclose(more[0], more[1], rtol=1e-6)
""")


def test_names_in_checkpoints_are_those_of_attributes(tmp_path):
    run(f"""
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.l1, self.more = keras.layers.Dense(5), [keras.layers.Dense(2), keras.layers.Dense(3)]
        self.by = {{"a": keras.layers.Dense(1)}}
    def call(self, x):
        return self.by["a"](self.more[1](self.more[0](self.l1(x))))
def names(**parts):
    path = tf.train.Checkpoint(**parts).save({str(tmp_path / "c")!r})
    return path, {{name for name, _ in tf.train.list_variables(path)}}
net = Net()
net(tf.ones([1, 1]))
path, found = names(net=net)
assert found == {{f"net/{{layer}}/{{v}}" for layer in ("l1", "more/0", "more/1", "by/a") for v in ("_kernel", "bias")}}
adam = keras.optimizers.Adam()
adam.build(net.trainable_variables[:1])
assert names(adam=adam)[1] == {{"adam/_iterations", "adam/_learning_rate", "adam/_variables/2", "adam/_variables/3"}}
m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
m.compile("adam", "mse", metrics=["mae"])
m.fit(np.ones((2, 2)), np.ones((2, 2)), verbose=0)
at = "m/_functional/_operations"
assert {{f"{{at}}/1/_kernel", f"{{at}}/1/bias", f"{{at}}/2/gamma", f"{{at}}/2/moving_mean"}} <= names(m=m)[1]
assert names(mean=keras.metrics.Mean())[1] == {{"mean/total", "mean/count"}}

# Parts of a net come back by their names, also those that are there later.
net.l1.bias.assign([1, 2, 3, 4, 5])
path, _ = names(net=net)
bias, kernel = tf.Variable(tf.zeros([5])), tf.Variable(tf.zeros([1, 5]))
layer = tf.train.Checkpoint(bias=bias)
status = tf.train.Checkpoint(net=tf.train.Checkpoint(l1=layer)).restore(path)
status.assert_existing_objects_matched()
assert bias.numpy().tolist() == [1, 2, 3, 4, 5]
layer._kernel = kernel
np.testing.assert_array_equal(kernel, net.l1.kernel)
""")


def test_ranges_take_variables_of_keras():
    run("""
v, n = keras.Variable(3.0), keras.Variable(4, dtype="int32")
assert tf.range(v).numpy().tolist() == [0, 1, 2] and tf.range(v).dtype == tf.float32
assert tf.range(n).numpy().tolist() == [0, 1, 2, 3] and tf.range(n).dtype == tf.int32
assert tf.range(1.0, v, 0.5).numpy().tolist() == [1, 1.5, 2, 2.5] and tf.range(0, v).dtype == tf.float32
assert tf.range(np.int64(2)).dtype == tf.int64
""")


def test_texts_without_targets_are_shuffled():
    run("""
from keras_berth.src.epoch import Epochs
rows = np.array([f"row {i}" for i in range(64)])
def order(**options):
    batches = Epochs(rows, batch_size=16, **options)._get_iterator()
    return [t.decode() for batch in batches for t in batch[0].numpy().ravel()]
assert order(shuffle=False) == rows.tolist() != order(shuffle=True) and sorted(order(shuffle=True)) == sorted(rows)
""")


def test_models_take_sparse_tensors():
    run("""
i = keras.Input((4,), sparse=True)
m = keras.Model(i, keras.layers.Dense(2)(i))
m.compile("sgd", "mse")
rows = tf.SparseTensor([(0, 0), (0, 2), (4, 3), (5, 1)], [1, 2, 3, 4], (6, 4))
np.testing.assert_allclose(m.predict(rows, verbose=0), m(rows), rtol=1e-6)
dense = tf.sparse.to_dense(rows).numpy()
assert m.evaluate(rows, np.ones((6, 2)), verbose=0) == m.evaluate(dense, np.ones((6, 2)), verbose=0)
m.fit(rows, np.ones((6, 2)), verbose=0)
""")



def test_fits_finds_the_largest_batch_without_training():
    run("""
m = model()
report = m.fits(20000, memory="4MiB")
assert not report and 0 < report.largest_batch < 20000, report
assert m.fits(report.largest_batch, memory="4MiB")
assert not m.fits(report.largest_batch + 1, memory="4MiB")
assert int(m.optimizer.iterations) == 0
data = (np.ones((64, 20), "float32"), np.ones(64, "int32"))
assert m.fits(data, memory="1GiB").batch == 64
""")


def test_gradient_norms_are_logged():
    run("""
m = model(gradient_norms=True)
history = m.fit(x, y, epochs=2, batch_size=200, shuffle=False, verbose=0).history
norms = sorted(n for n in history if n.startswith("gradient_norm/"))
assert len(norms) == 2, history
again = model()
with tf.GradientTape() as tape:
    loss = again.compute_loss(x, y, again(x, training=True))
gradients = tape.gradient(loss, again.trainable_variables)
first = float(np.sqrt(sum(np.sum(np.array(g) ** 2) for g in gradients[:2])))
assert abs(history[norms[0]][0] / first - 1) < 1e-3, (history, first)
""")


def test_gradient_norms_of_replicas_are_those_of_one_device():
    run("""
history = {}
for gpus in (1, 2):
    with tf.distribute.MirroredStrategy([f"/GPU:{i}" for i in range(gpus)]).scope():
        keras.utils.set_random_seed(1)
        m = model(gradient_norms=True)
    history[gpus] = m.fit(x, y, epochs=2, batch_size=50, shuffle=False, verbose=0).history
one, two = ([h[n] for n in sorted(h) if n.startswith("gradient_norm/")] for h in history.values())
assert len(one) == 2
np.testing.assert_allclose(two, one, rtol=1e-4)
""", BERTH_SIM="GPUx2")


def test_tensorboard_profiles_batches(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(MODEL + """
import sys
m = model()
m.fit(x, y, batch_size=20, verbose=0, callbacks=[keras.callbacks.TensorBoard(sys.argv[1], profile_batch=(2, 4))])
""")
    run("", "-m", "berth", str(script), str(tmp_path / "logs"))
    files = list((tmp_path / "logs").glob("**/plugins/profile/*/*.xplane.pb"))
    assert len(files) == 1 and files[0].stat().st_size > 100


def test_objects_of_berth_keras_are_refused_by_name():
    run("""
own, m = tf.keras, model()
def refused(call, *words):
    try:
        call()
    except TypeError as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError(words)
refused(lambda: m.compile(own.optimizers.Adam(), "mse"), "compile: ", "class Optimizer of berth.keras", "is of the package keras")
refused(lambda: m.compile("sgd", "mse", metrics=["mae", own.metrics.MeanAbsoluteError()]), "class Metric of berth.keras")
for call in m.fit, m.evaluate:
    refused(lambda: call(x, y, verbose=0, callbacks=[own.callbacks.EarlyStopping()]), "callbacks: ", "class Callback of berth.keras")
refused(lambda: own.Sequential([keras.layers.Dense(3)]), "layers of berth.keras", "is of the package keras: use keras.Sequential")
""")


def test_layers_track_what_they_are_told_to():
    run("""
class Around(keras.layers.Wrapper):
    def __init__(self, layer):
        super().__init__(layer)
        assert self._track_trackable(layer, name="layer") is layer
        self._track_trackable(keras.layers.Dense(2), name="more")
        try:
            self._track_trackable(layer, name="more")
            raise SystemExit("not refused")
        except ValueError as error:
            assert "overwrite=True" in str(error)
    def call(self, x):
        return self.more(self.layer(x))
m = keras.Sequential([keras.Input((3,)), Around(keras.layers.Dense(4))])
assert len(m.trainable_variables) == 4
""")
