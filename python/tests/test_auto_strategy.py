"""AutoStrategy: what it chooses runs and equals one device, is saved and runs again; refusals. Simulated GPUs."""
import pytest

FIT = """
import sys
import numpy as np
import berth as tf
def losses(strategy):
    tf.random.set_seed(3)
    with strategy.scope():
        m = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="tanh", name="a", input_shape=(6,)),
                                 tf.keras.layers.Dense(256, activation="tanh", name="b"),
                                 tf.keras.layers.Dense(256, activation="tanh", name="c"), tf.keras.layers.Dense(3, name="d")])
        m.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.linspace(-1, 1, 192, dtype="f").reshape(32, 6), np.arange(32) % 3
    history = m.fit(x, y, epochs=3, batch_size=16, verbose=0, shuffle=False).history
    return m, history["loss"] + m.predict(x, batch_size=16, verbose=0).ravel().tolist()
"""


@pytest.mark.parametrize("options, kind", [
    ("", None),
    ("memory_bytes_per_device=1_600_000, replicas=False, divided_layers=False", "pipeline"),
    ("memory_bytes_per_device=1_800_000, replicas=False, pipelines=False", "divided layers"),
])
def test_the_choice_is_one_device_and_runs_again(run_script, tmp_path, options, kind):
    done = run_script(FIT + f"""
_, one = losses(tf.distribute.OneDeviceStrategy("/GPU:0"))
automatic = tf.distribute.AutoStrategy(["/GPU:0", "/GPU:1"], {options})
assert automatic.chosen is None
model, got = losses(automatic)
np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-5)
plan = automatic.chosen
assert plan.json()["choice"]["kind"] == ({kind!r} or plan.json()["choice"]["kind"]), str(plan)
assert "no plan is under" in str(plan) and plan.json()["bound_us"] <= plan.json()["step_us"] * 1.000001
plan.save({str(tmp_path / "plan.json")!r})
_, again = losses(tf.distribute.PlannedStrategy({str(tmp_path / "plan.json")!r}))
np.testing.assert_allclose(again, got, rtol=1e-5, atol=1e-6)
""", "GPUx2")
    assert done.returncode == 0, done.stderr


# Estimates of the search are up to a third off here: the plans of the steps decide.
SLOW = """
import json, os
os.environ["BERTH_SIM_SPEEDS"] = "0.0002,0.0002,0.0002,0.0001"
import berth as tf
def step_us(strategy):
    with strategy.scope():
        layers = [tf.keras.layers.Dense(256, activation="relu", name=f"layer_{i}") for i in range(8)]
        m = tf.keras.Sequential([tf.keras.Input((256,)), *layers, tf.keras.layers.Dense(10, name="out")])
        m.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return strategy.plan(m, 64).json()["step_us"]
"""


def test_the_choice_is_the_fastest_by_the_plans_of_the_steps(run_script, tmp_path):
    done = run_script(SLOW + f"""
automatic = tf.distribute.AutoStrategy([f"/GPU:{{d}}" for d in range(4)])
best = step_us(automatic)
plan = automatic.chosen.json()
assert abs(plan["step_us"] / best - 1) < 0.01, (plan["step_us"], best)
assert plan["bound_us"] <= plan["step_us"] and len(plan["others"]) > 3
for other in plan["others"]:
    with open({str(tmp_path / "other.json")!r}, "w") as file:
        json.dump({{**plan, "choice": other["choice"], "peak_bytes": [0] * len(other["choice"]["devices"])}}, file)
    assert step_us(tf.distribute.PlannedStrategy(file.name)) > 0.99 * best, other
""", "GPUx4")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code, said", [
    ("tf.distribute.AutoStrategy(['/GPU:0'], most_micro_batches=0)", "most_micro_batches 0"),
    ("tf.distribute.AutoStrategy(['/GPU:7'])", "GPU:7"),
    ("tf.distribute.AutoStrategy(['/GPU:0']).run(lambda: 1)", "run()"),
    ("tf.distribute.PlannedStrategy('/nowhere.json')", "no such file"),
    ("losses(tf.distribute.AutoStrategy(['/GPU:0', '/GPU:1'], memory_bytes_per_device=1000))", "does not fit GPU:"),
])
def test_refusals(run_script, code, said):
    done = run_script(FIT + code, "GPUx2")
    assert done.returncode == 1 and said in done.stderr, done.stderr
