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
            [sys.executable, "-m", "berth", "script.py"], cwd=folder, text=True,
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
