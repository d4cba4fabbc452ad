"""State divided over devices: MirroredStrategy(sharding=...) gives the results of one device."""
import pytest

FIT = """
import berth as tf, numpy as np
def losses(strategy):
    tf.random.set_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(7, activation="tanh", input_shape=(5,)), tf.keras.layers.Dense(3)])
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    x, y = tf.random.normal([32, 5], seed=2), tf.random.normal([32, 3], seed=3)
    history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    return model, history
"""


@pytest.mark.parametrize("sharding", ["optimizer", "gradients", "parameters"])
def test_fit_is_that_of_one_device(run_script, sharding):
    done = run_script(FIT + f"""
one, want = losses(tf.distribute.OneDeviceStrategy("/GPU:0"))
sharded = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"], sharding={sharding!r})
model, got = losses(sharded)
np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
for a, b in zip(model.get_weights(), one.get_weights()):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
held = [r.peak_bytes for r in sharded.plan(model, 8).replicas]
assert len(held) == 2 and all(b > 0 for b in held)
""", "GPUx2")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line, said", [
    ("tf.distribute.MirroredStrategy(gpus, sharding='zero3')", "sharding 'zero3'; expected \"none\", \"optimizer\""),
    ("tf.distribute.MirroredStrategy(gpus, sharding='optimizer').run(lambda: 1)", "run()"),
    ("tf.distribute.MirroredStrategy(['/CPU:0', '/GPU:0'], sharding='optimizer')", "memory of their own"),
])
def test_refusals(run_script, line, said):
    done = run_script(f"""
import berth as tf
gpus = ["/GPU:0", "/GPU:1"]
{line}
""", "GPUx2")
    assert done.returncode == 1 and said in done.stderr and "line 4" in done.stderr
