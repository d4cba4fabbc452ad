"""Layers divided over devices train as on one: tf.distribute.ModelParallel, and keras.distribution of the package Keras."""
import importlib.util

import pytest
from test_keras_backend import run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")

TRAIN = """
import contextlib, pytest, warnings
L = keras.layers
rng = np.random.default_rng(0)
ids = rng.integers(0, 12, size=(64, 5))
x, y = rng.normal(size=(64, 6)).astype("float32"), rng.normal(size=(64, 3)).astype("float32")

def by_keras(layouts, n=2, replicas=1):
    devices = [f"gpu:{k}" for k in range(n * replicas)]
    map = keras.distribution.LayoutMap(keras.distribution.DeviceMesh((replicas, n), ["batch", "model"], devices))
    for key, axes in layouts.items():
        map[key] = axes
    return keras.distribution.ModelParallel(layout_map=map, batch_dim_name="batch").scope()

def by_berth(layouts, n=2, replicas=1):
    grid = tf.distribute.Mesh({"model": n, "batch": replicas}, [f"GPU:{k}" for k in range(n * replicas)])
    return tf.distribute.ModelParallel(tf.distribute.LayoutMap(grid, layouts), batch_dim_name="batch").scope()

def train(make, inputs, outputs, loss, scope=None, optimizer="adam"):
    keras.utils.set_random_seed(3)
    keras.backend.clear_session()
    with contextlib.nullcontext() if scope is None else scope:
        model = make()
        model.compile(optimizer() if callable(optimizer) else optimizer, loss)
        history = model.fit(inputs, outputs, epochs=2, batch_size=16, verbose=0, shuffle=False,
                            validation_data=(inputs[:20], outputs[:20]))
        return model, history.history, model.predict(inputs[:10], verbose=0)

def check(make, layouts, inputs, outputs, loss="mse", least=2e-5, n=2, replicas=1, ways=(by_keras, by_berth), **options):
    one, logs, predicted = train(make, inputs, outputs, loss, **options)
    for way in ways:
        model, got, outcome = train(make, inputs, outputs, loss, way(layouts, n, replicas), **options)
        for a, b in zip(one.variables, model.variables, strict=True):
            np.testing.assert_allclose(np.array(a), np.array(b), rtol=least, atol=least, err_msg=a.path)
        for name, values in logs.items():
            np.testing.assert_allclose(got[name], values, rtol=least, atol=least)
        np.testing.assert_allclose(outcome, predicted, rtol=least, atol=least)
    return model

def dense():
    return keras.Sequential([keras.Input((6,)), L.Dense(12, activation="gelu", name="up"), L.Dense(6, name="down"),
                             L.LayerNormalization(), L.Dropout(0.2), L.Dense(3, name="out")])
DENSE = {".*up/kernel": (None, "model"), ".*up/bias": ("model",), ".*down/kernel": ("model", None)}
"""


@pytest.mark.parametrize("options", [
    "", "n=3", "optimizer=lambda: keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)",
    "optimizer=lambda: keras.optimizers.AdamW(0.01, global_clipnorm=0.5, use_ema=True)",
    "optimizer=lambda: keras.optimizers.RMSprop(0.01, gradient_accumulation_steps=2)",
    "optimizer=lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01))",
    "optimizer=lambda: keras.optimizers.Adafactor(0.01)", "optimizer=lambda: keras.optimizers.Lamb(0.01)"])
def test_dense_layers_by_columns_and_rows(options):
    run(TRAIN + f"""
model = check(dense, DENSE, x, y, {options})
""", BERTH_SIM="GPUx4")


def test_stages_of_a_pipeline_divide_their_layers():
    run(TRAIN + """
def pipeline(layouts, n=2, replicas=1):
    mesh = tf.distribute.Mesh({"stage": 2, "model": n}, [f"GPU:{k}" for k in range(2 * n)])
    return tf.distribute.PipelineStrategy(layout_map=tf.distribute.LayoutMap(mesh, layouts), micro_batches=4,
                                          schedule="zb-h1", stages=["down"]).scope()
check(dense, DENSE, x, y, ways=(pipeline,))
held = [tf.config.experimental.get_memory_info(f"GPU:{k}")["current"] for k in range(4)]
assert all(held), held
with pytest.raises(TypeError, match="one of them"):
    tf.distribute.PipelineStrategy(["GPU:0"], layout_map={})
with pytest.raises(TypeError, match="expected devices"):
    tf.distribute.PipelineStrategy()
""", BERTH_SIM="GPUx4")


def test_slots_are_divided_and_devices_hold_halves():
    run(TRAIN + """
import gc
def wide():
    return keras.Sequential([keras.Input((256,)), L.Dense(512, activation="relu", name="up"), L.Dense(256, name="down")])
big = rng.normal(size=(32, 256)).astype("float32")
def bytes_held():
    gc.collect()
    return [tf.config.experimental.get_memory_info(f"GPU:{k}")["current"] for k in range(2)]
for way in by_keras, by_berth:
    model = None
    before = bytes_held()
    with way(DENSE):
        model = wide()
        model.compile("adam", "mse")
        model.fit(big, big, batch_size=16, verbose=0)
        held = [a - b for a, b in zip(bytes_held(), before)]
        half = 3 * 4 * 256 * 512
        assert all(half <= h < half * 3 / 2 for h in held), held
""", BERTH_SIM="GPUx2")


def test_a_transformer_by_heads_and_vocabulary():
    run(TRAIN + """
def words():
    i = keras.Input((5,), dtype="int32")
    h = L.Embedding(12, 8, name="table")(i)
    h = L.Add()([h, L.MultiHeadAttention(4, 4, name="attention")(h, h)])
    h = L.Add()([h, L.Dense(8, name="down")(L.Dense(16, activation="gelu", name="up")(h))])
    return keras.Model(i, L.Dense(12, name="logits")(h))
layouts = {**DENSE, "table/embeddings": ("model", None), "attention/(query|key|value)/kernel": (None, "model", None),
           "attention/(query|key|value)/bias": ("model", None), "attention/attention_output/kernel": ("model", None, None),
           "logits/kernel": (None, "model"), "logits/bias": ("model",)}
loss = lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True)
check(words, layouts, ids, ids, loss=loss(), least=1e-4)
softmax = lambda: keras.Model((m := words()).inputs, keras.ops.softmax(m.output))
check(softmax, layouts, ids, ids, loss="sparse_categorical_crossentropy", least=1e-4)
""", BERTH_SIM="GPUx4")


def test_labels_and_words_out_of_range_are_as_on_one_device():
    run(TRAIN + """
def words():
    i = keras.Input((5,), dtype="int32")
    return keras.Model(i, L.Dense(12, name="logits")(L.Embedding(12, 8, name="table")(i)))
layouts = {"table/embeddings": ("model", None), "logits/kernel": (None, "model"), "logits/bias": ("model",)}

def outcome(bad, column, scope=None):
    keras.utils.set_random_seed(3)
    with contextlib.nullcontext() if scope is None else scope:
        model = words()
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        given = [ids.copy(), ids.copy()]
        given[column][3, 2] = bad
        try:
            return model.fit(*given, batch_size=16, verbose=0, shuffle=False).history["loss"][0]
        except tf.errors.OpError as e:
            for k in range(2):
                tf.config.reset_device_error(f"GPU:{k}")
            return type(e)
for bad in -1, 11, 12, 1000:
    for column in 0, 1:
        one, two = outcome(bad, column), outcome(bad, column, by_berth(layouts))
        assert one is two or abs(one - two) < 1e-4, (bad, column, one, two)
""", BERTH_SIM="GPUx2")


def test_files_and_weights_are_those_of_whole_variables():
    run(TRAIN + """
import os, tempfile
with by_keras(DENSE):
    model = dense()
    model.compile("adam", "mse")
    model.fit(x, y, batch_size=16, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "m.keras")
        model.save(file)
        plain = keras.models.load_model(file)
    for a, b in zip(plain.weights, model.weights, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
    model.set_weights([w * 0.5 for w in plain.get_weights()])
    np.testing.assert_array_equal(np.array(model.layers[0].kernel), np.array(plain.layers[0].kernel) * 0.5)
    before = model.predict(x, verbose=0)
keras.distribution.set_distribution(None)
other = dense()
other.set_weights(model.get_weights())
np.testing.assert_allclose(other.predict(x, verbose=0), before, rtol=1e-5, atol=1e-5)
""", BERTH_SIM="GPUx2")


def test_what_cannot_be_divided_is_refused_by_name():
    run(TRAIN + """
for layouts, expected in [({".*up/kernel": ("model",)}, "a name or"), ({".*up/kernel": (None, "rows")}, "axis of the mesh"),
                          ({".*out/kernel": (None, "model")}, "multiple of the sum of shares"),
                          ({".*u.*": (None, "model"), ".*kernel": (None, "model")}, "both match")]:
    with pytest.raises(ValueError, match=expected):
        with by_berth(layouts):
            dense()
with pytest.raises(ValueError, match="matches no variable"):
    train(dense, x, y, "mse", by_berth({"upp/kernel": (None, "model")}))
with pytest.warns(UserWarning, match="'upp/kernel' of the layout map matches no variable"):
    train(dense, x, y, "mse", by_keras({**DENSE, "upp/kernel": (None, "model")}))
with pytest.raises(ValueError, match="there are 3 devices"):
    tf.distribute.Mesh({"model": 2}, ["GPU:0", "GPU:1", "GPU:2"])
with pytest.raises(ValueError, match="2 other axes have several devices"):
    tf.distribute.ModelParallel(tf.distribute.LayoutMap(tf.distribute.Mesh([("a", 2), ("b", 2)], [f"GPU:{k}" for k in range(4)])))
strategy = tf.distribute.ModelParallel(tf.distribute.LayoutMap(tf.distribute.Mesh({"model": 4})))
with pytest.raises(NotImplementedError, match="run"):
    strategy.run(lambda: tf.constant(1.0))
with pytest.raises(ValueError, match="run_eagerly: a ModelParallel"):
    with by_berth(DENSE):
        dense().compile("adam", "mse", run_eagerly=True)
assert repr(strategy.layout_map).startswith("LayoutMap(Mesh({'model': 4}")
""", BERTH_SIM="GPUx4")
