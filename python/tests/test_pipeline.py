"""Pipelines: stages by layers' names, plans, refusals. Two simulated GPUs, each script in a process of its own."""
import pytest

FIT = """
import numpy as np
import berth as tf
def losses(strategy):
    tf.random.set_seed(3)
    with strategy.scope():
        m = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="tanh", name="a", input_shape=(6,)),
                                 tf.keras.layers.Dropout(0.2, name="d"), tf.keras.layers.Dense(8, activation="tanh", name="b"),
                                 tf.keras.layers.Dense(3, name="c")])
        m.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    x, y = np.linspace(-1, 1, 132, dtype="f").reshape(22, 6), np.arange(22) % 3
    history = m.fit(x, y, epochs=5, batch_size=8, verbose=0, shuffle=False).history
    return m, history["loss"] + history["accuracy"] + m.predict(x, batch_size=8, verbose=0).ravel().tolist()
"""


@pytest.mark.parametrize("options", ["schedule='gpipe', stages=['b']", "schedule='1f1b'", "stages=['c']", "schedule='zb-h1', stages=['b']",
                                     "schedule='zb-v', stages=['d', 'b', 'c']"])
def test_fit_is_that_of_one_device(run_script, options):
    done = run_script(FIT + f"""
_, one = losses(tf.distribute.OneDeviceStrategy("/GPU:0"))
pipe = tf.distribute.PipelineStrategy(["/GPU:0", "/GPU:1"], micro_batches=4, {options})
model, got = losses(pipe)
np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-5)
assert {{v.device.rsplit(":", 2)[-1] for v in model.weights}} == {{"0", "1"}}
plan = pipe.plan(model, 8)
assert plan.pipeline.micro_batches == 4 and len(plan.pipeline.instructions.splitlines()) == 2
assert pipe.instructions == plan.pipeline.instructions and 0 < plan.pipeline.bubble < 1
assert [r.examples for r in plan.replicas] == [8] and pipe.num_replicas_in_sync == 1
""", "GPUx2")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("options, said", [
    ("micro_batches=0", "micro_batches is 0"),
    ("schedule='2f2b'", 'schedule is "2f2b"; expected one of "gpipe"'),
    ("stages=['a', 'b']", "3 stages on 2 devices; schedule 1f1b expects 2"),
    ("micro_batches=1, instructions='0F0 0B0\\n1B0 1F0'", "1B0 of device 1 comes before 1F0"),
    ("micro_batches=2, instructions='0F0 0B0 0F1 0B1\\n1F1 1B1 1F0 1B0'", "wait for each other; device 0 at 0B0"),
])
def test_refusals(run_script, options, said):
    done = run_script(f"""
import berth as tf
tf.distribute.PipelineStrategy(["/GPU:0", "/GPU:1"], {options})
""", "GPUx2")
    assert done.returncode == 1 and said in done.stderr and "line 3" in done.stderr
