"""The placement policy "fit": steps that do not fit a device compute results again, with the same bits."""
import importlib.util
import json

import pytest

BEGIN = """
import json, sys
import berth as tf, numpy as np
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit={limit})])
tf.config.set_placement_policy("{policy}")
rows = np.random.RandomState(0).randn({rows}, 64).astype("float32")
"""

LAYERS = BEGIN + """
from berth import keras
tf.random.set_seed(3)
strategy = {strategy}
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(64, activation="tanh") for _ in range(12)] + [keras.layers.Dense(1)])
    model.build((None, 64))
    model.compile("sgd", "mse")
report = model.fits(4096)
losses = model.fit(rows, rows[:, :1], batch_size=4096, epochs=3, verbose=0).history["loss"]
print(json.dumps(dict(losses=losses, fits=bool(report))))
"""

BLOCKS = BEGIN + """
import keras
keras.utils.set_random_seed(1)
with tf.device("/GPU:0"):
    x = inputs = keras.Input((16, 64))
    for _ in range(6):
        h = keras.layers.LayerNormalization()(x)
        x = x + keras.layers.MultiHeadAttention(4, 16)(h, h)
        h = keras.layers.Dropout(0.1)(keras.layers.LayerNormalization()(x))
        x = x + keras.layers.Dense(64)(keras.layers.Dense(256, activation="gelu")(h))
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(x)))
    model.compile("adam", "mse")
    x = rows.reshape(-1, 16, 64)
    losses = model.fit(x, x[:, 0, :1], batch_size=64, epochs=2, verbose=0, shuffle=False).history["loss"]
print(json.dumps(dict(losses=losses, peak=model.placement().peak_bytes())))
"""


def run(program, run_script, **kw):
    done = run_script(program.format(**{"rows": 4096, "strategy": 'tf.distribute.OneDeviceStrategy("/GPU:0")', **kw}),
                      simulate="GPUx2", own_keras=False, KERAS_BACKEND="berth")
    return (json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None), done.stderr


def test_a_step_that_does_not_fit_trains_with_the_same_bits(run_script):
    whole, said = run(LAYERS, run_script, limit=400, policy="fit")
    assert whole["fits"] and "run twice" not in said
    again, said = run(LAYERS, run_script, limit=9, policy="fit")
    assert again == whole and "ops run twice so that their results need not be kept, which takes " in said
    without, said = run(LAYERS, run_script, limit=9, policy="rules")
    assert without is None and "ResourceExhausted" in said


def test_the_search_of_auto_strategy_counts_results_that_are_computed_again(run_script):
    automatic = 'tf.distribute.AutoStrategy(["/GPU:0"])'
    without, said = run(LAYERS.replace("report = model.fits(4096)", "report = True"), run_script, limit=9, policy="rules",
                        strategy=automatic)
    assert without is None and "no plan of 1 for batches of 4096 fits" in said
    again, said = run(LAYERS.replace("report = model.fits(4096)", "report = True"), run_script, limit=9, policy="fit",
                      strategy=automatic)
    assert again["fits"] and again["losses"][2] < again["losses"][0]


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
def test_blocks_of_the_package_keras_fit_inside_the_loop_that_repeats_their_step(run_script):
    whole, _ = run(BLOCKS, run_script, limit=800, policy="fit", rows=16384)
    again, said = run(BLOCKS, run_script, limit=32, policy="fit", rows=16384)
    assert again, said
    assert again["losses"] == whole["losses"] and "run twice" in said
    assert again["peak"] < 0.75 * whole["peak"], (again["peak"], whole["peak"])


LARGE = BEGIN + """
import keras
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((64,))] + [keras.layers.Dense(1024, activation="tanh") for _ in range(6)])
model.compile("adam", "mse")
losses = model.fit(rows, rows[:, :1], batch_size=64, epochs=2, verbose=0).history["loss"]
on = [w.value.device[-5:] for w in model.weights[2::2]]
slots = [v.value.device[-5:] for v in model.optimizer.variables if "kernel" in v.path]
print(json.dumps(dict(losses=losses, on=on, slots=slots)))
"""


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")
@pytest.mark.parametrize("limit, policy, on_host", [(60, "fit", range(1, 5)), (16, "fit", [5]), (40, "auto", range(1, 6)),
                                                    (36, "rules", range(1, 6))])
def test_models_of_the_package_keras_may_be_larger_than_a_device(run_script, limit, policy, on_host):
    """Weights and slots take 61 MiB, a step 82."""
    whole, _ = run(LARGE, run_script, limit=400, policy=policy, rows=256)
    assert set(whole["on"]) == {"GPU:0"}
    part, said = run(LARGE, run_script, limit=limit, policy=policy, rows=256)
    assert part and part["losses"] == whole["losses"], said
    assert part["on"].count("CPU:0") in on_host and part["slots"].count("CPU:0") >= 2 * part["on"].count("CPU:0"), part
    assert ("variables are on the host" in said) == (policy == "fit")

STRATEGIES = """
import json
import berth as tf, numpy as np
from berth import keras
for i, gpu in enumerate(tf.config.list_physical_devices("GPU")):
    tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=200 if i < 2 else 10)])
tf.config.set_placement_policy("fit")
rows = np.random.RandomState(0).randn(8192, 64).astype("float32")

def losses(strategy):
    tf.random.set_seed(3)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(64, activation="tanh", name=f"d{i}") for i in range(12)] + [keras.layers.Dense(1)])
        model.build((None, 64))
        model.compile("sgd", "mse")
    return model.fit(rows, rows[:, :1], batch_size=8192, epochs=2, verbose=0).history["loss"]

of = {"mirrored": tf.distribute.MirroredStrategy, "central": tf.distribute.experimental.CentralStorageStrategy,
      "sharded": lambda gpus: tf.distribute.MirroredStrategy(gpus, sharding="parameters"),
      "pipeline": lambda gpus: tf.distribute.PipelineStrategy(gpus, micro_batches=2, stages=["d6"])}
print(json.dumps({name: [losses(make(["/GPU:0", "/GPU:1"])), losses(make(["/GPU:2", "/GPU:3"]))] for name, make in of.items()}))
"""


def test_steps_of_strategies_fit_each_of_their_devices(run_script):
    done = run_script(STRATEGIES, simulate="GPUx4", own_keras=True)
    assert done.returncode == 0, done.stderr
    for name, (whole, again) in json.loads(done.stdout.splitlines()[-1]).items():
        assert again == whole, name
    assert "that GPU:2 has left" in done.stderr and "that GPU:3 has left" in done.stderr and "GPU:0 has left" not in done.stderr
