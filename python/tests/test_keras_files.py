"""Models as Keras' own files. keras_files.py made the files that are read here, under Keras."""
import json
import os
import subprocess
import sys

import berth as tf
import numpy as np
import pytest

keras = tf.keras
KEPT = np.load(os.path.join(os.path.dirname(__file__), "keras_files.npz"))
FILES = {"image.keras": "i", "image.h5": "i", "text.keras": "t"}


@pytest.fixture
def files(tmp_path):
    for name in (*FILES, "text.weights.h5"):
        (tmp_path / name).write_bytes(KEPT[name.replace(".", "_")].tobytes())
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_models_of_keras_predict_and_score_as_there(files, name):
    which = FILES[name]
    model = keras.models.load_model(files / name)
    np.testing.assert_allclose(model.predict(KEPT["x" + which]), KEPT["p" + which], atol=1e-6)
    scores = model.evaluate(KEPT["x" + which], KEPT["y" + which], verbose=0)
    np.testing.assert_allclose(scores, KEPT["e" + which], rtol=1e-5)
    # And after a way through a file of Berth's.
    again = files / ("again_" + name)
    model.save(again)
    twin = keras.models.load_model(again)
    np.testing.assert_array_equal(twin.predict(KEPT["x" + which]), model.predict(KEPT["x" + which]))


@pytest.mark.parametrize("rounds", (0, 1))
def test_training_goes_on_where_keras_stopped(files, rounds):
    model = keras.models.load_model(files / "text.keras")
    if rounds:
        model.save(files / "own.keras")
        model = keras.models.load_model(files / "own.keras")
    assert int(model.optimizer.iterations) == 3
    model.fit(KEPT["xt"], KEPT["yt"], epochs=1, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.predict(KEPT["xt"]), KEPT["after_t"], atol=1e-6)


def test_weights_of_keras_fit_an_equally_built_model(files):
    model = keras.models.load_model(files / "text.keras", compile=False)
    want = model.predict(KEPT["xt"])
    for w in model.weights:
        w.assign(tf.zeros(w.shape))
    model.load_weights(files / "text.weights.h5")
    np.testing.assert_array_equal(model.predict(KEPT["xt"]), want)
    other = keras.Sequential([keras.layers.Dense(3, input_shape=(2,))])
    with pytest.raises(ValueError, match="layers/dense/vars.*expected an equally built model"):
        other.load_weights(files / "text.weights.h5")


def small():
    model = keras.Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


X = np.linspace(-1, 1, 24).reshape(8, 3).astype("float32")
Y = (X[:, :2] * 2).astype("float32")


@pytest.mark.parametrize("name", ("m.keras", "m.safetensors"))
def test_a_model_trains_on_after_load_as_without(tmp_path, name):
    model = small()
    model.fit(X, Y, epochs=3, verbose=0, shuffle=False)
    model.save(tmp_path / name)
    twin = keras.models.load_model(tmp_path / name)
    for m in (model, twin):
        m.fit(X, Y, epochs=3, verbose=0, shuffle=False)
    # Keras' files have no powers of Adam's betas, which are computed anew.
    np.testing.assert_allclose(twin.predict(X), model.predict(X), atol=5e-6)


def test_checkpoints_of_fit_have_keras_endings(tmp_path):
    model = small()
    model.fit(X, Y, epochs=4, batch_size=4, verbose=0, callbacks=[
        keras.callbacks.ModelCheckpoint(tmp_path / "{epoch:02d}.weights.h5", save_weights_only=True),
        keras.callbacks.ModelCheckpoint(tmp_path / "e{epoch}b{batch}.keras", save_freq=3),
        keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss", save_best_only=True)])
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "01.weights.h5", "02.weights.h5", "03.weights.h5", "04.weights.h5", "best.keras", "e2b1.keras", "e3b2.keras"]
    twin = small()
    twin.load_weights(tmp_path / "04.weights.h5")
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="save_freq is -1"):
        keras.callbacks.ModelCheckpoint("x.keras", save_freq=-1)


@keras.saving.register_keras_serializable("Tests")
class Scaled(keras.layers.Layer):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, shape):
        self.shift = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return x * self.factor + self.shift


@keras.saving.register_keras_serializable("Tests")
class Own(keras.Model):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.first, self.rest = Scaled(2.0), [keras.layers.Dense(units), keras.layers.Dense(1)]

    def call(self, x):
        for layer in (self.first, *self.rest):
            x = layer(x)
        return x


def test_classes_of_ones_own_come_back(tmp_path):
    own = Own(5)
    want = own(X).numpy()
    listed = keras.Sequential([Scaled(3.0, name="s"), keras.layers.Dense(2)])
    listed(X)
    for name, model, expected in (("own", own, want), ("listed", listed, listed(X).numpy())):
        model.save(tmp_path / f"{name}.keras")
        twin = keras.models.load_model(tmp_path / f"{name}.keras")
        np.testing.assert_array_equal(twin(X).numpy(), expected)
    assert isinstance(twin.layers[0], Scaled) and twin.layers[0].factor == 3.0
    assert keras.saving.get_registered_name(Own) == "Tests>Own"
    assert Scaled(2.0).get_config()["factor"] == 2.0


def test_code_in_a_file_is_not_run_unasked(tmp_path):
    model = keras.Sequential([keras.layers.Lambda(lambda x: x * 2.0), keras.layers.Dense(1)])
    want = model(X).numpy()
    model.save(tmp_path / "l.keras")
    with pytest.raises(ValueError, match="safe_mode=False"):
        keras.models.load_model(tmp_path / "l.keras")
    twin = keras.models.load_model(tmp_path / "l.keras", safe_mode=False)
    np.testing.assert_array_equal(twin(X).numpy(), want)


def test_unknown_classes_are_named(tmp_path):
    script = tmp_path / "make.py"
    script.write_text("import berth as tf\n"
                      "class Strange(tf.keras.layers.Layer):\n    def call(self, x): return x\n"
                      "m = tf.keras.Sequential([Strange(), tf.keras.layers.Dense(1)])\n"
                      "m(tf.ones([1, 2])); m.save('m.keras')\n")
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path)
    with pytest.raises(ValueError, match="Strange .*register_keras_serializable"):
        keras.models.load_model(tmp_path / "m.keras")


def test_a_file_that_is_there_stays_if_asked(tmp_path):
    model = small()
    model.save(tmp_path / "m.keras")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        model.save(tmp_path / "m.keras", overwrite=False)


GRAPH = np.load(os.path.join(os.path.dirname(__file__), "keras_graph.npz"))


def same_outputs(model, want, tolerance=1e-6):
    got = model.predict([GRAPH["xg"][0], GRAPH["xg"][1]])
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, atol=tolerance)
    return got


def test_a_functional_model_of_keras_with_operators_and_models_inside(tmp_path):
    path = tmp_path / "graph.keras"
    path.write_bytes(GRAPH["graph_keras"].tobytes())
    model = keras.models.load_model(path)
    got = same_outputs(model, (GRAPH["p_one"], GRAPH["p_two"]))
    # Through a file, the JSON and the config of Berth's own.
    model.save(tmp_path / "again.keras")
    same_outputs(keras.models.load_model(tmp_path / "again.keras"), got, 0)
    for twin in (keras.models.model_from_json(model.to_json()), keras.Model.from_config(model.get_config()),
                 keras.models.clone_model(model)):
        assert [w.shape for w in twin.weights] == [w.shape for w in model.weights]
        twin.set_weights(model.get_weights())
        same_outputs(twin, got, 0)
    fresh = keras.models.model_from_json(GRAPH["graph_json"].tobytes().decode())
    fresh.set_weights(model.get_weights())
    same_outputs(fresh, got, 0)


@keras.saving.register_keras_serializable("Tests")
class Mixed(keras.layers.Layer):
    """Several inputs, and weights."""

    def build(self, shapes):
        self.share = self.add_weight(shape=(), initializer="ones", name="share")

    def call(self, inputs):
        return inputs[0] * self.share + inputs[1]


def own_graph():
    a, b = keras.Input((3,)), keras.Input((3,))
    scaled = Scaled(2.0, name="scaled")
    inner = keras.Model(a, keras.layers.Dense(3)(Scaled(0.5)(a)), name="inner")
    x, y = keras.Input((3,)), keras.Input((3,))
    first, second = scaled(x), scaled(y)  # shared
    nested = keras.Sequential([Scaled(3.0), keras.layers.Dense(3)], name="nested")
    out = Mixed(name="mixed")([inner(first), nested(second)])
    doubled = keras.layers.Lambda(lambda v: v * 2.0, name="doubled")(out)
    return keras.Model([x, y], [doubled, 1.0 - out]), b


def test_functional_models_with_layers_of_ones_own_come_back(tmp_path):
    model, _ = own_graph()
    x, y = X, X[::-1].copy()
    model.get_layer("scaled").shift.assign([1.0, 2.0, 3.0])
    model.get_layer("mixed").share.assign(0.25)
    want = [v.copy() for v in model.predict([x, y])]
    model.save(tmp_path / "own.keras")
    with pytest.raises(ValueError, match="safe_mode=False"):  # the Lambda's code
        keras.models.load_model(tmp_path / "own.keras")
    twin = keras.models.load_model(tmp_path / "own.keras", safe_mode=False)
    for g, w in zip(twin.predict([x, y]), want):
        np.testing.assert_array_equal(g, w)
    assert isinstance(twin.get_layer("mixed"), Mixed) and isinstance(twin.get_layer("scaled"), Scaled)
    assert len([p for p in twin.layers if isinstance(p, Scaled)]) == 1  # used twice, there once
    assert twin.get_layer("scaled").shift.numpy().tolist() == [1, 2, 3]
    assert len(twin.weights) == len(model.weights)
    twin.compile("sgd", "mse")
    before = twin.get_layer("scaled").shift.numpy()
    twin.fit([x, y], [w + 1 for w in want], epochs=1, verbose=0)
    assert (twin.get_layer("scaled").shift.numpy() != before).all()


def test_clone_function_makes_the_layers():
    model, _ = own_graph()
    seen = []

    def clone(layer):
        seen.append(layer.name)
        if isinstance(layer, Scaled):
            return Scaled(7.0, name=layer.name)
        return keras.models.clone_model(layer) if hasattr(layer, "layers") else type(layer).from_config(
            layer.get_config()) if not isinstance(layer, keras.layers.Lambda) else layer
    # Operators are layers of their own class.
    plain = keras.Sequential([keras.layers.Input((3,)), Scaled(2.0), keras.layers.Dense(2)])
    twin = keras.models.clone_model(plain, clone_function=clone)
    assert twin.layers[0].factor == 7.0 and len(seen) == 2 and twin.layers[1] is not plain.layers[1]


def far(y_true, y_pred):
    return tf.reduce_mean(tf.abs(y_true - y_pred), axis=-1)


@keras.saving.register_keras_serializable("Tests")
class Weighted(keras.losses.Loss):
    def __init__(self, weight, **kwargs):
        super().__init__(**kwargs)
        self.weight = weight

    def call(self, y_true, y_pred):
        return self.weight * far(y_true, y_pred)

    def get_config(self):
        return {**super().get_config(), "weight": self.weight}


@keras.saving.register_keras_serializable("Tests")
class Most(keras.metrics.Metric):
    def __init__(self, name="most", **kwargs):
        super().__init__(name=name, **kwargs)
        self.value = self.add_weight(name="value")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.value.assign(tf.maximum(self.value, tf.reduce_max(y_pred)))

    def result(self):
        return self.value.read_value()


@pytest.mark.parametrize("given", (
    {"loss": far}, {"loss": Weighted(2.0)}, {"loss": "mse", "metrics": [Most(), "mae"]}, {"loss": "mse", "metrics": [far]},
    {"loss": Weighted(3.0), "metrics": [keras.losses.mean_absolute_error, far, keras.metrics.RootMeanSquaredError()]}))
@pytest.mark.parametrize("ending", ("keras", "h5"))
def test_losses_and_metrics_of_ones_own_come_back(tmp_path, given, ending):
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", **given)
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / f"m.{ending}")
    twin = keras.models.load_model(tmp_path / f"m.{ending}", custom_objects={"far": far})
    np.testing.assert_allclose(twin.evaluate(X, Y, verbose=0), model.evaluate(X, Y, verbose=0), rtol=1e-6)
    if far in (given["loss"], *given.get("metrics", [])):
        with pytest.raises(ValueError, match="function far .*register"):
            keras.models.load_model(tmp_path / f"m.{ending}")
        keras.models.load_model(tmp_path / f"m.{ending}", compile=False)


def test_a_function_is_a_metric_of_means():
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile("sgd", "mse", metrics=[far])
    loss, mean = model.evaluate(X, Y, batch_size=3, verbose=0)
    np.testing.assert_allclose(mean, np.abs(Y - model.predict(X)).mean(), rtol=1e-6)
    assert model.metrics_names[-1] == "far"


def test_what_no_operator_is_says_what_there_is():
    text = GRAPH["graph_json"].tobytes().decode().replace('"class_name": "Negative"', '"class_name": "Cumsum"')
    with pytest.raises(ValueError, match="Cumsum.*expected one of Add"):
        keras.models.model_from_json(text)


LAYERS = np.load(os.path.join(os.path.dirname(__file__), "keras_layer_files.npz"))
MODELS = json.loads(LAYERS["models"].tobytes())


@pytest.mark.parametrize("name", MODELS)
def test_layers_in_files_of_keras_mean_what_they_mean_there(tmp_path, name):
    made = MODELS[name]
    x, want = np.array(made["x"], made["dtype"]), made["y"]
    for text in made["texts"]:  # of .keras and .h5
        model = keras.models.model_from_json(text)
        model.set_weights([np.array(w, "float32") for w in made["weights"]])
        np.testing.assert_allclose(model.predict(x), want, atol=1e-6)
        for ending in ("keras", "h5"):
            model.save(tmp_path / f"m.{ending}")
            np.testing.assert_allclose(keras.models.load_model(tmp_path / f"m.{ending}").predict(x), want, atol=1e-6)
    if name + "_keras" in LAYERS:
        (tmp_path / "theirs.keras").write_bytes(LAYERS[name + "_keras"].tobytes())
        np.testing.assert_allclose(keras.models.load_model(tmp_path / "theirs.keras").predict(x), want, atol=1e-6)


def test_masks_that_a_file_computes_otherwise_are_refused():
    text = MODELS["masked"]["texts"][0].replace('"mask_zero": true', '"mask_zero": false')
    with pytest.raises(ValueError, match="NotEqual"):
        keras.models.model_from_json(text)


def test_the_config_of_spatial_dropout_has_what_keras_takes():
    for layer in (keras.layers.SpatialDropout1D(0.2), keras.layers.SpatialDropout3D(0.2)):
        assert "trainable" not in keras.saving.serialize_keras_object(layer)["config"]


def test_a_state_of_another_optimizer_is_left_out_with_a_warning(tmp_path):
    model = small()
    model.fit(X, Y, verbose=0)
    model.save_weights(tmp_path / "m.weights.h5")
    other = keras.Sequential([keras.layers.Dense(4, activation="relu", input_shape=(3,)), keras.layers.Dense(2)])
    other.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse")
    with pytest.warns(UserWarning, match="10 values.*sgd has 6.*begins anew"):
        other.load_weights(tmp_path / "m.weights.h5")
    assert int(other.optimizer.iterations) == 0
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_a_h5_keeps_the_optimizer_and_more_names_than_an_attribute_holds(tmp_path):
    parts = [keras.layers.Dense(1, name=f"{'x' * 500}{i}") for i in range(140)]
    model = keras.Sequential([keras.Input((1,)), *parts])
    model.compile("adam", "mse")
    model.fit(X[:, :1], X[:, :1], epochs=2, verbose=0)
    model.save(tmp_path / "m.h5")
    twin = keras.models.load_model(tmp_path / "m.h5")
    assert int(twin.optimizer.iterations) == 2
    for a, b in zip(model.optimizer.variables, twin.optimizer.variables):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-6)
