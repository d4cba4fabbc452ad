"""strategy.elastic(): tasks come, are killed and are told to end, and the weights are those of one task alone."""
import importlib.util
import os
import signal
import subprocess
import sys
import time

import berth as tf
import numpy as np
import pytest
from test_parameter_servers import LIMIT, Cluster

SCRIPT = """
import os, time
import berth as tf
import numpy as np
from berth import keras
strategy = tf.distribute.MultiWorkerMirroredStrategy(slices=6, min_tasks=2)
alone = "TF_CONFIG" not in os.environ
tf.random.set_seed(1)
rows = np.random.default_rng(0).normal(size=(48, 3)).astype("float32")
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(4, activation="tanh", input_shape=(3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")

class Stage(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if alone:
            return
        with open(f"steps_{strategy.task_id}", "a") as file:
            file.write(".")
        if not os.path.exists("told"):
            time.sleep(0.1)
        if os.path.exists("steps_2"):  # all three are there
            end = time.monotonic() + 60
            while not os.path.exists("killed") and time.monotonic() < end:
                time.sleep(0.02)

def train():
    model.fit(rows, rows[:, :1], batch_size=12, epochs=50, verbose=0, callbacks=[Stage()])

strategy.elastic(train, min=1)
strategy.leave()
print("bits", np.concatenate([w.ravel() for w in model.get_weights()]).tobytes().hex())
"""


# The package Keras: the order of rows is drawn, a callback counts. (Replicas draw dropout apart.)
PACKAGE = """
import os, time
os.environ["KERAS_BACKEND"] = "berth"
import berth as tf
import keras
import numpy as np
strategy = tf.distribute.MultiWorkerMirroredStrategy(slices=6, min_tasks=2)
alone = "TF_CONFIG" not in os.environ
keras.utils.set_random_seed(1)
tf.random.set_seed(1)
rows = np.random.default_rng(0).normal(size=(48, 3)).astype("float32")
with strategy.scope():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
""" + SCRIPT[SCRIPT.index("class Stage"):].replace("callbacks=[Stage()]", """callbacks=[
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=3, min_delta=0.05), Stage()]""") + """
history = model.history
assert history.epoch == list(range(50)) and all(len(v) == 50 for v in history.history.values())
print("losses", *history.history["loss"], *history.history["learning_rate"])
"""


def bits(out):
    return next(line for line in out.splitlines() if line.startswith("bits")).split()[1]


def wait_for_steps(cluster, folder, index, most):
    """Until the file of that task's steps has so many; the tasks must be alive."""
    path, end = folder / f"steps_{index}", time.monotonic() + LIMIT
    while not path.exists() or path.stat().st_size < most:
        ended = [t for t, p in cluster.tasks.items() if p.poll() is not None and p.returncode != -signal.SIGKILL]
        assert not ended, (ended, cluster.ended(*ended[0]))
        assert time.monotonic() < end, f"worker {index} makes no step"
        time.sleep(0.02)
    return path.stat().st_size


@pytest.mark.parametrize("script", [SCRIPT, pytest.param(PACKAGE, marks=pytest.mark.skipif(
    importlib.util.find_spec("keras") is None, reason="Keras is not installed"))], ids=["berth.keras", "keras"])
def test_tasks_come_and_go(tmp_path, script):
    with Cluster(tmp_path, script, workers=3, ps=0, options=()) as cluster:
        # The third comes later.
        cluster.tasks["worker", 2].kill()
        cluster.tasks["worker", 2].wait()
        (tmp_path / "steps_2").unlink(missing_ok=True)
        try:
            wait_for_steps(cluster, tmp_path, 0, 2)
        except AssertionError:
            cluster.ended("worker", 0)  # skips without the library of several processes
            raise
        cluster.start("worker", 2)
        wait_for_steps(cluster, tmp_path, 2, 1)
        cluster.tasks["worker", 0].kill()  # it coordinates
        cluster.tasks["worker", 0].wait()
        (tmp_path / "killed").touch()
        wait_for_steps(cluster, tmp_path, 2, wait_for_steps(cluster, tmp_path, 2, 1) + 2)
        cluster.tasks["worker", 2].send_signal(signal.SIGTERM)
        (tmp_path / "told").touch()
        assert cluster.ended("worker", 2)[0] == 143
        status, out = cluster.ended("worker", 1)
        assert status == 0, out
    environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    expected = subprocess.run([sys.executable, str(tmp_path / "script.py")], cwd=tmp_path, text=True, capture_output=True,
                              env={**environment, "BERTH_DEVICES": "CPUx1"}, timeout=LIMIT, check=False)
    assert expected.returncode == 0, expected.stderr
    if script is SCRIPT:
        assert bits(out) == bits(expected.stdout)
        return
    weights, alone = (np.frombuffer(bytes.fromhex(bits(text)), "float32") for text in (out, expected.stdout))
    np.testing.assert_allclose(weights, alone, rtol=1e-4, atol=1e-5)
    # In an epoch in which a task was lost, what it had counted is not in the mean.
    losses, undisturbed = (np.array(next(line for line in text.splitlines() if line.startswith("losses")).split()[1:], float)
                           for text in (out, expected.stdout))
    assert np.isclose(losses, undisturbed, rtol=1e-3).sum() >= len(losses) - 3, (losses, undisturbed)


def test_arguments_that_do_not_fit_are_refused():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with pytest.raises(TypeError, match="a function without arguments"):
        strategy.elastic(3)
    for wrong in ({"min": 0}, {"min": 2, "max": 1}, {"steps_per_copy": 0}, {"timeout_seconds": 0}):
        with pytest.raises(tf.errors.InvalidArgumentError, match="min is"):
            strategy.elastic(lambda: None, **wrong)
    called = []
    strategy.elastic(lambda: called.append(1))  # alone
    assert called == [1]
    with pytest.raises(ZeroDivisionError):
        strategy.elastic(lambda: 1 // 0)
