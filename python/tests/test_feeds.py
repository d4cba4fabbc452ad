"""What neighbours give and take: pandas, PIL, PyTorch, notebooks."""
import os
import subprocess

import berth as tf
import numpy as np
import pytest

keras = tf.keras


def model(inputs=3):
    m = keras.Sequential([keras.layers.Dense(1, input_shape=(inputs,), kernel_initializer="zeros")])
    m.compile(keras.optimizers.SGD(0.1), "mse")
    return m


def losses(*data, **options):
    return model().fit(*data, epochs=3, shuffle=False, verbose=0, batch_size=4, **options).history["loss"]


X = np.arange(24.0).reshape(8, 3) / 24
Y = X.sum(1)


def test_frames_of_pandas_are_arrays():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    want = losses(X.astype("float32"), Y.astype("float32"))
    assert losses(frame, pandas.Series(Y)) == want
    rows = tf.data.Dataset.from_tensor_slices(dict(frame))
    assert [float(r["b"]) for r in rows.take(2)] == pytest.approx(X[:2, 1])


def test_pictures_of_pil_become_tensors():
    image = pytest.importorskip("PIL.Image")
    array = np.arange(48, dtype="uint8").reshape(4, 4, 3)
    picture = image.fromarray(array)
    t = tf.convert_to_tensor(picture)
    assert t.dtype == tf.uint8 and (t.numpy() == array).all()

    def pictures():
        for i in range(3):
            yield image.fromarray(array + i), i
    data = tf.data.Dataset.from_generator(pictures, output_signature=(
        tf.TensorSpec([4, 4, 3], tf.uint8), tf.TensorSpec([], tf.int32)))
    assert [int(x[0, 0, 0]) for x, _ in data] == [0, 1, 2]


LOADER = """
import sys
sys.path.insert(0, {package!r})
import berth as tf, numpy as np, torch
x = np.arange(24, dtype="float32").reshape(8, 3) / 24
y = x.sum(1)
def losses(*data):
    dense = tf.keras.layers.Dense(1, input_shape=(3,), kernel_initializer="zeros")
    model = tf.keras.Sequential([dense])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    return model.fit(*data, epochs=3, shuffle=False, verbose=0, batch_size=4).history["loss"]
data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
print(losses(torch.utils.data.DataLoader(data, batch_size=4)))
print(losses(x, y))
"""


def test_loaders_of_pytorch_feed_fit():
    python = python_with("torch")
    package = os.path.dirname(os.path.dirname(tf.__file__))
    done = subprocess.run([python, "-c", LOADER.format(package=package)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    loader, arrays = (eval(line) for line in done.stdout.splitlines())
    assert loader == pytest.approx(arrays, rel=1e-6)


def python_with(peer):
    """The interpreter of an environment in the folder BERTH_PEERS."""
    python = os.path.join(os.environ.get("BERTH_PEERS", ""), peer, "bin", "python")
    if not os.environ.get("BERTH_PEERS") or not os.path.exists(python):
        pytest.skip("BERTH_PEERS is no folder with an environment " + peer)
    return python


class Loader:
    """What fit knows of a DataLoader: it has a dataset, and gives lists of tensors."""
    dataset = range(8)

    def __iter__(self):
        return iter([[X[i:i + 4].astype("float32"), Y[i:i + 4].astype("float32")] for i in (0, 4)])


def test_what_looks_like_a_loader_feeds_fit():
    history = model().fit(Loader(), epochs=3, verbose=0).history["loss"]
    assert history == pytest.approx(losses(X.astype("float32"), Y.astype("float32")), rel=1e-6)


def test_reports_are_tables_in_notebooks():
    f = tf.function(lambda x: tf.matmul(x, x))
    f(tf.ones([4, 4]))
    report = tf.placement(f)
    html = report._repr_html_()
    assert "<table>" in html and "MatMul" in html and "CPU:0" in html and "CPU:0" in str(report)
    assert report.json()["devices"][0]["ops"] >= 1
    assert "MatMul" in tf.explain(f, "MatMul") and tf.explain(f, "MatMul")._repr_html_().startswith("<pre>")
    assert "region" in tf.plan(f) or "step" in tf.plan(f)
    m = model()
    m.fit(X.astype("float32"), Y.astype("float32"), verbose=0)
    assert "dense" in m._repr_html_() and "<table>" in tf.placement(m)._repr_html_()
    assert "&lt;b&gt;" in type(report)("<b>")._repr_html_()


def test_contracts_hold_in_blocks_functions_and_models(run_script):
    with tf.Contract(stays_on="/CPU:0", no_fallback=True) as c:
        tf.ones([4]) + 1.0
    assert c.moved_bytes() == 0
    done = run_script("""
import berth as tf
x = tf.ones([256])
f = tf.function(lambda x: tf.tanh(x) * 2.0, contract=tf.Contract(stays_on="/CPU:0", name="host"))
with tf.device("/GPU:0"):
    for broken in (lambda: f(x), lambda: inside(x)):
        def inside(x):
            with tf.Contract(stays_on="/CPU:0", name="block"):
                return tf.tanh(x)
        try:
            broken()
        except tf.errors.FailedPreconditionError as e:
            print("host" in str(e), "block" in str(e), "GPU:0" in str(e))
""", simulate="GPUx1")
    assert done.stdout.splitlines() == ["True False True", "False True True"], done.stdout + done.stderr


@pytest.mark.parametrize("dtype", ("uint8", "int64", "bool", "float64"))
def test_values_become_what_the_inputs_are(dtype):
    x = (np.arange(24).reshape(8, 3) % 5 > 1) if dtype == "bool" else (np.arange(24).reshape(8, 3) % 5)
    given, wide = x.astype(dtype), x.astype("float32")
    want = losses(wide, Y)
    assert losses(given, Y) == want
    batches = tf.data.Dataset.from_tensor_slices((given, Y.astype("float32"))).batch(4)
    assert model().fit(batches, epochs=3, verbose=0).history["loss"] == pytest.approx(want)
    inputs = keras.Input((3,))
    functional = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="ones")(inputs))
    late = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    for m in (functional, late):
        np.testing.assert_allclose(m.predict(given), wide.sum(1, keepdims=True))
        np.testing.assert_allclose(m(given), wide.sum(1, keepdims=True))
    # Numbers of tokens stay whole.
    tokens = keras.Sequential([keras.layers.Embedding(9, 2)])
    assert tokens(np.ones((2, 3), "int64")).shape == [2, 3, 2]
