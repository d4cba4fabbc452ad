"""Real Keras over several processes and devices: the programs of examples/python, and the articles' examples."""
import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from test_parameter_servers import Cluster
from test_spread import ARTICLES, EXPECTED, block

HERE = os.path.dirname(__file__)
pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")


def example(name):
    with open(os.path.join(HERE, "..", "..", "examples", "python", name)) as file:
        return file.read()


def run(text, folder, *options, **environment):
    """What a script prints."""
    (folder / "script.py").write_text(text)
    done = subprocess.run([sys.executable, *options, "script.py"], cwd=folder, text=True, capture_output=True,
                          timeout=300, env={**os.environ, "KERAS_BACKEND": "berth", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(out):
    return [float(v) for v in re.search(r"losses (.*)", out)[1].split()]


def test_two_workers_train_as_one(tmp_path):
    alone = run(example("keras_workers.py"), tmp_path)
    with Cluster(tmp_path, example("keras_workers.py"), workers=2, ps=0, options=()) as cluster:
        (status, out), (other, text) = cluster.ended("worker", 0), cluster.ended("worker", 1)
    assert status == 0 and other == 0, out + text
    assert "replicas 2, " in out and "replicas 1, " in alone
    np.testing.assert_allclose(losses(out), losses(alone), rtol=2e-3)
    assert losses(out)[-1] < 0.1 and "between tasks" in out and "_TaskEnd" in out, out


def test_servers_and_a_worker_train_as_one(tmp_path):
    text = example("keras_parameter_server.py")
    with Cluster(tmp_path, text, workers=1, ps=2, options=()) as cluster:
        out = cluster.all_ended_well()
    alone = re.sub(r"(?s)strategy = .*?\n\n", 'strategy = tf.distribute.OneDeviceStrategy("/CPU:0")\n\n', text, count=1)
    np.testing.assert_allclose(losses(out), losses(run(alone, tmp_path)), rtol=1e-4)
    assert "embeddings (5000, 16): /job:ps/task:0, /job:ps/task:1" in out and "192 functions done, 0 failed" in out, out


def test_unequal_devices_train_as_one(tmp_path):
    text = example("keras_unequal_devices.py")
    out = run(text, tmp_path, BERTH_SIM="GPUx2", BERTH_SIM_SPEEDS="3,1")
    alone = run(text.replace('["/GPU:0", "/GPU:1"]', '["/CPU:0"]'), tmp_path)
    np.testing.assert_allclose(losses(out), losses(alone), rtol=1e-4)
    equal, by_speed = (float(us) for us in re.findall(r": \d+ \+ \d+ examples, (\d+) us", out))
    assert "by speed: 6144 + 2048 examples" in out and by_speed < equal and "GPU:1" in out, out


def test_plans_of_models(tmp_path):
    out = run("""
import berth as tf
import keras
import numpy as np
strategy = tf.distribute.MirroredStrategy(["/GPU:0", "/GPU:1"], shares=[3, 1])
with strategy.scope():
    x = keras.Input((4,), name="x")
    m = keras.Model({"x": x}, {"a": keras.layers.Dense(3, name="a")(x), "b": keras.layers.Dense(1, name="b")(x)})
    m.compile("adam", {"a": "sparse_categorical_crossentropy", "b": "mse"}, metrics={"b": ["mae"]})

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
    def call(self, x):
        return self.dense(x)

plan = strategy.plan(m, 64)
assert [r.examples for r in plan.replicas] == [48, 16] and plan.step_us > 0, plan
with strategy.scope():
    own = Own()
    own.compile("sgd", "mse")
assert strategy.plan(own, (np.ones((8, 2), "float32"), np.ones((8, 1), "float32"))).batch == 8
for wrong in (lambda: strategy.plan(Own(), 8), lambda: tf.distribute.OneDeviceStrategy("/CPU:0").plan(m, 8),
              lambda: strategy.plan(m, 1)):
    try:
        wrong()
    except ValueError as error:
        print(error)
    else:
        raise AssertionError
with strategy.scope():
    own = Own()
    own.compile("sgd", "mse")
try:
    strategy.plan(own, 8)
except ValueError as error:
    print(error)
""", tmp_path, BERTH_SIM="GPUx2")
    assert "compile()" in out and "expected at least one example" in out and "a batch of data in place" in out, out


# A share of the articles' examples by the seed; all of them in a whole run.
SHARE = 1 if os.environ.get("BERTH_WHOLE") else 4
NAMES = sorted(EXPECTED)[int(os.environ.get("BERTH_SEED", "1")) % SHARE::SHARE]

# Keras downloads its data sets; here a file with drawn digits stands for them.
DIGITS = """
import os, struct
import keras, numpy as np
def _read(name, offset):
    with open(os.path.join(os.environ["BERTH_DATA"], name), "rb") as file:
        return np.frombuffer(file.read()[offset:], "uint8")
keras.datasets.mnist.load_data = lambda: tuple(
    (_read(s + "-images-idx3-ubyte", 16).reshape(-1, 28, 28), _read(s + "-labels-idx1-ubyte", 8)) for s in ("train", "t10k"))
import keras._tf_keras.keras.datasets.mnist as _mnist
_mnist.load_data = keras.datasets.mnist.load_data
"""


@pytest.mark.skipif(not ARTICLES, reason="the articles are not here (BERTH_SEEDS names their folder)")
@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_articles(tmp_path, digits, name):
    (tmp_path / "script.py").write_text((DIGITS if name.startswith("003") else "") + block(name))
    done = subprocess.run([sys.executable, "-m", "berth", "script.py"], cwd=tmp_path, text=True, capture_output=True,
                          timeout=300, env={**os.environ, "KERAS_BACKEND": "berth", "BERTH_SIM": "GPUx2",
                                            "BERTH_DATA": digits})
    if EXPECTED[name]:
        assert done.returncode == 1 and EXPECTED[name] in done.stderr, done.stderr
    else:
        assert done.returncode == 0, done.stderr
    if name == "001_2":
        assert "lint not-distributed" in done.stderr, done.stderr


@pytest.mark.skipif(not ARTICLES, reason="the articles are not here (BERTH_SEEDS names their folder)")
def test_the_example_of_two_workers(tmp_path, digits, monkeypatch):
    monkeypatch.setenv("BERTH_DATA", digits)
    monkeypatch.setenv("KERAS_BACKEND", "berth")
    text = DIGITS + re.sub(r"(?s)os\.environ\['TF_CONFIG'\].*?\}\)\n", "\n", block("003_3"))
    (tmp_path / "script.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "berth", "script.py"], cwd=tmp_path, text=True, capture_output=True,
                          timeout=300)
    assert done.returncode == 1 and "must end in `.weights.h5`" in done.stderr, done.stderr  # as Keras 3 has it anywhere
    own_folder = "import json, os\nos.makedirs(n := str(json.loads(os.environ['TF_CONFIG'])['task']['index']))\nos.chdir(n)\n"
    with Cluster(tmp_path, own_folder + text.replace("ckpt_{epoch}", "{epoch}.weights.h5"), workers=2, ps=0,
                 options=("-m", "berth")) as cluster:
        for i in range(2):
            status, out = cluster.ended("worker", i)
            assert status == 0, out
    weights = [(tmp_path / str(i) / "training_checkpoints" / "2.weights.h5").stat().st_size for i in range(2)]
    assert weights[0] == weights[1] > 100_000
