"""Models of the package Keras in pipelines train as on one device; layers name their ops."""
import importlib.util

import pytest
from test_keras_backend import run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

TRAIN = """
import contextlib
L = keras.layers
rng = np.random.default_rng(0)
x, y = rng.normal(size=(64, 6)).astype("float32"), rng.normal(size=(64, 3)).astype("float32")

def pipeline(**options):
    return tf.distribute.PipelineStrategy(["GPU:0", "GPU:1"], micro_batches=4, **options)

def train(make, strategy=None, optimizer="adam", **options):
    keras.utils.set_random_seed(3)
    with contextlib.nullcontext() if strategy is None else strategy.scope():
        model = make()
        model.compile(optimizer() if callable(optimizer) else optimizer, "mse", metrics=["mae"], **options)
    history = model.fit(x, y, epochs=2, batch_size=16, verbose=0, shuffle=False, validation_data=(x[:20], y[:20]))
    return model, history.history, model.predict(x[:10], verbose=0)

def check(make, strategy, least=1e-5, **options):
    (one, logs, outputs), (model, got, predicted) = train(make, **options), train(make, strategy, **options)
    for a, b in zip(one.variables, model.variables, strict=True):
        np.testing.assert_allclose(np.array(a), np.array(b), rtol=least, atol=least)
    for name, values in logs.items():
        np.testing.assert_allclose(got[name], values, rtol=least, atol=least)
    np.testing.assert_allclose(predicted, outputs, rtol=least, atol=least)
    return model

def devices(*variables):
    return [v.value.device[-5:] for v in variables]

def blocks():
    i = keras.Input((6,))
    h = L.Dense(16, activation="relu", name="a")(i)
    h = keras.Sequential([L.Dense(16, activation="tanh", name="in1"), L.Dense(8, name="in2")], name="block")(h)
    return keras.Model(i, L.Dense(3, name="out")(h))

def plain():
    return keras.Sequential([L.Dense(8, name="a"), L.Dense(8, name="b"), L.Dense(3, name="c")])
"""


@pytest.mark.parametrize("options, at", [
    ('stages=["block"]', "0111"), ("", "0001"), ('stages=["out"], schedule="gpipe"', "0001"), ('schedule="zb-h1"', "0001"),
    ('schedule="zb-v"', "0110"), ('stages=["in1", "in2", "out"], schedule="interleaved-1f1b"', "0101")])
def test_each_schedule_trains_as_one_device_does(options, at):
    run(TRAIN + f"""
model = check(blocks, pipeline({options}))
kernels = [v for v in model.trainable_variables if v.name == "kernel"]
assert devices(*kernels) == ["GPU:" + k for k in {at!r}], devices(*kernels)
slots = [v for v in model.optimizer.variables if v.path.endswith("out_kernel_momentum")]
assert devices(*slots) == devices(kernels[-1]), "slots are where their variables are"
assert "block/in1/MatMul" in model.placement()
""", BERTH_SIM="GPUx2")


def test_each_kind_of_model_trains_as_one_device_does():
    run(TRAIN + """
class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.one, self.two = L.Dense(8, activation="tanh", name="one"), L.Dense(3, name="two")
    def call(self, x):
        return self.two(self.one(x))
class Steps(Own):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}
def tied():
    i, d = keras.Input((6,)), L.Dense(6, name="d")
    return keras.Model(i, L.Dense(3, name="f")(d(L.Dense(6, name="e")(d(i)))))
def scopes():
    i = keras.Input((6,))
    with tf.device("/GPU:0"):
        h = L.Dense(8)(i)
    with tf.device("/GPU:1"):
        return keras.Model(i, L.Dense(3)(h))
def dropped():
    return keras.Sequential([L.Dense(8), L.Dropout(.3, seed=4), L.Dense(8), L.Dense(3)])
def penalised():
    return keras.Sequential([L.Dense(8, kernel_regularizer="l2"), L.Dense(3, kernel_regularizer="l2")])
def series():
    return keras.Sequential([L.Reshape((3, 2)), L.LSTM(8, return_sequences=True), L.GRU(8), L.Dense(3)])
for make, options in [(Own, {}), (Own, {"stages": ["two"]}), (Steps, {}), (tied, {}), (tied, {"stages": ["e"]}), (scopes, {}),
                      (dropped, {}), (penalised, {}), (series, {})]:
    model = check(make, pipeline(**options))
    used = set(devices(*model.trainable_variables))
    assert used == {"GPU:0", "GPU:1"}, (make, used)
""", BERTH_SIM="GPUx2")


def test_each_way_of_updates_is_that_of_one_device():
    run(TRAIN + """
O = keras.optimizers
for make in (lambda: O.Adam(.01, global_clipnorm=.1), lambda: O.SGD(.01, gradient_accumulation_steps=2), lambda: O.AdamW(.01),
             lambda: O.LossScaleOptimizer(O.SGD(.01)), lambda: O.SGD(.01, use_ema=True)):
    model = check(plain, pipeline(), optimizer=make)
    assert set(devices(*model.trainable_variables)) == {"GPU:0", "GPU:1"}, "averages follow their variables"
check(plain, pipeline(), steps_per_execution=4)
""", BERTH_SIM="GPUx2")


def test_moments_of_a_batch_are_those_of_the_whole_batch():
    run(TRAIN + """
check(lambda: keras.Sequential([L.Dense(8), L.BatchNormalization(), L.Dense(8), L.Dense(3)]), pipeline(), optimizer="sgd")
""", BERTH_SIM="GPUx2")


def test_single_batches_and_files(tmp_path):
    run(TRAIN + f"""
path = {str(tmp_path / "model.keras")!r}
model = train(plain, pipeline())[0]
model.save(path)
loss = model.test_on_batch(x, y, return_dict=True)
with pipeline(stages=["c"]).scope():
    other = keras.saving.load_model(path)
assert abs(other.test_on_batch(x, y, return_dict=True)["loss"] - loss["loss"]) < 1e-6
assert other.train_on_batch(x, y) and devices(*other.trainable_variables)[-1] == "GPU:1"
alone = keras.saving.load_model(path)
alone.train_on_batch(x, y)
np.testing.assert_allclose(alone.predict_on_batch(x), other.predict_on_batch(x), atol=1e-6)
""", BERTH_SIM="GPUx2")


@pytest.mark.parametrize("make, options, compiled, words", [
    ("plain", 'stages=["nope"]', "", 'begins with layer "nope", which the model does not call after "its input"; expected some of a, b, c'),
    ("lambda: keras.Sequential([L.Dense(3)])", "", "", "2 stages for a model of 1 layer"),
    ("plain", "", "run_eagerly=True", "run_eagerly: a PipelineStrategy divides a step that was traced")])
def test_what_cannot_be_cut_is_refused(make, options, compiled, words):
    run(TRAIN + f"""
try:
    train({make}, pipeline({options}), **dict({compiled}))
    raise SystemExit("nothing was refused")
except ValueError as error:
    assert {words!r} in str(error), error
""", BERTH_SIM="GPUx2")


def test_layers_name_their_ops_and_lines_are_the_users():
    out = run(TRAIN + """
model = train(blocks)[0]
text = model.plan_text("trace")
assert "node a/Relu" in text and "node block/in1/MatMul" in text and "node out/AddV2" in text, text
assert "keras_berth" not in text and "/keras/src/" not in text, "lines of libraries"
class Mine(L.Layer):
    def call(self, x):
        return keras.ops.matmul(x, x)
try:
    Mine(name="mine")(np.ones((2, 3), "float32"))
except ValueError as error:
    print(error)
""")
    assert "<string>" in out and "keras_berth" not in out, out


def test_plans_are_said_and_drawn():
    run(TRAIN + """
from xml.dom import minidom
pipe = pipeline(stages=["out"])
with pipe.scope():
    model = blocks()
    model.compile("adam", "mse")
plan = pipe.plan(model, 16).pipeline
assert plan.schedule == "1f1b" and plan.micro_batches == 4 and plan.stages[1].layers == ["out"], plan
assert len(minidom.parseString(plan.svg()).getElementsByTagName("rect")) >= 16, "each pass of each micro-batch"
""", BERTH_SIM="GPUx2")


@pytest.mark.parametrize("level", ["optimizer", "gradients", "parameters"])
def test_sharded_state_trains_as_one_device_does(level):
    run(TRAIN + f"""
strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], sharding={level!r})
model = check(plain, strategy)
def held(strategy):  # with variables that are more than all else
    with strategy.scope():
        wide = keras.Sequential([keras.Input((512,)), L.Dense(512), L.Dense(512)])
        wide.compile("adam", "mse")
    return max(r.peak_bytes for r in strategy.plan(wide, 2).replicas)
whole = held(tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"]))
assert held(strategy) < .85 * whole, "what an optimizer keeps is half of the bytes; each device has half of that"
""", BERTH_SIM="GPUx2")
