"""Functional models and their files. tools/differential keras_files made, under Keras, the files that are read here."""
import json
import os
import sys
import tarfile
import zipfile

import berth as tf
import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/differentials"))
import keras_files  # noqa: E402

keras = tf.keras
L = keras.layers
with tarfile.open(keras_files.KEPT) as _archive:
    CASES = json.load(_archive.extractfile("cases.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("keras")
    with tarfile.open(keras_files.KEPT) as archive:
        archive.extractall(path, filter="data")
    return path


@pytest.mark.parametrize("k, g", CASES)
def test_files_of_keras_give_its_outputs(folder, k, g):
    assert keras_files.read(keras, k, g, str(folder)) == {}


def places(file):
    """What is where in a .h5, by the order in which Keras reads it."""
    import h5py
    found = []

    def note(name, item):
        if isinstance(item, h5py.Dataset):
            found.append((name, item.shape, str(item.dtype)))
        elif "name" in item.attrs and "/_" not in name:  # what has no weights inside of attention
            found.append((name, item.attrs["name"]))
    with h5py.File(file, "r") as kept:
        if "model_weights" not in kept:
            kept.visititems(note)
            return sorted(found)
        root = kept["model_weights"]
        return [(n, [root[n][w].shape for w in root[n].attrs["weight_names"]]) for n in root.attrs["layer_names"]]


def edges(config):
    """The layers of a model's JSON and what they are called with; operators by their numbers."""
    names, found = {}, []
    for entry in config["layers"]:
        operator = "keras.src.ops" in str(entry.get("module"))
        names[entry["name"]] = f"op{len(names)}" if operator else entry["name"]
        inner = edges(entry["config"]) if "input_layers" in entry["config"] else entry["config"].get("batch_shape")
        found.append([entry["class_name"], names[entry["name"]], inner, entry["inbound_nodes"]])

    def named(value):
        if isinstance(value, list):
            value = [named(v) for v in value]
            return [names.get(value[0], value[0]), *value[1:]] if keras_files.is_end(value) else value
        if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
            return {"history": named(value["config"]["keras_history"])}
        return {k: named(v) for k, v in value.items() if k != "kwargs"} if isinstance(value, dict) else value
    return [named(found), named(config["input_layers"]), named(config["output_layers"])]


@pytest.mark.parametrize("k, g", CASES)
def test_what_is_written_has_the_layout_of_keras(folder, tmp_path, k, g):
    assert "error" not in keras_files.write(keras, k, g, str(tmp_path))
    for kind in ("h5", "weights.h5"):
        assert places(tmp_path / f"{k}.{kind}") == places(folder / f"{k}.{kind}")
    ours, theirs = (json.loads(zipfile.ZipFile(f / f"{k}.keras").read("config.json")) for f in (tmp_path, folder))
    assert edges(ours["config"]) == edges(theirs["config"])


def test_hundreds_of_residual_connections_are_built_at_once():
    i = h = keras.Input((4,))
    for _ in range(60):  # 2^60, were each addition twice what is before it
        h = L.Add()([h, L.Dense(4)(h)])
        h = h + L.Dense(4)(h)
    model = keras.Model(i, h)
    assert len(model.weights) == 240 and len(model.layers) == 181  # an operator is not a layer
    assert keras.Model.from_config(model.get_config()).count_params() == model.count_params()


def branches():
    i = keras.Input((4,))
    s = L.Dense(4, name="short")(i)
    h = L.Dense(4, name="long2")(L.Dense(4, activation="relu", name="long1")(i))
    return keras.Model(i, L.Add(name="add")([s, h]))


@pytest.mark.parametrize("name", ("m.keras", "m.h5", "m.weights.h5"))
def test_older_files_of_berth_are_read_in_their_order(tmp_path, name):
    """They had layers in the order of their first use, and no inputs."""
    import h5py
    import io
    model = branches()
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    path = tmp_path / name
    (model.save_weights if "weights" in name else model.save)(path)

    def age(file):
        with h5py.File(file, "r+") as kept:
            if "model_weights" in kept:
                del kept.attrs["layers"]
                kept["model_weights"].attrs["layer_names"] = [b"short", b"long1", b"long2", b"add"]
                return
            layers = kept["layers"]
            del layers["input_layer"]
            layers.move("dense", "then"), layers.move("dense_1", "dense"), layers.move("then", "dense_1")
    if name.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            parts = {n: archive.read(n) for n in archive.namelist()}
        weights = io.BytesIO(parts["model.weights.h5"])
        age(weights)
        parts["model.weights.h5"] = weights.getvalue()
        with zipfile.ZipFile(path, "w") as archive:
            for n, data in parts.items():
                archive.writestr(n, data)
    else:
        age(path)
    twin = branches() if "weights" in name else keras.models.load_model(path)
    if "weights" in name:
        twin.load_weights(path)
    np.testing.assert_array_equal(twin(x), model(x))


def test_a_layer_after_an_input_has_its_weights_at_once():
    layer = L.Dense(3)
    model = keras.Sequential([keras.Input((2,)), layer])
    assert [w.shape for w in layer.get_weights()] == [(2, 3), (3,)]
    more = L.Dense(1)
    model.add(more)
    assert len(more.get_weights()) == 2 and len(model.weights) == 4 and model.layers == [layer, more]


def test_outputs_are_held_together_as_they_were_given(tmp_path):
    i, j = keras.Input((2,), name="z"), keras.Input((2,), name="a")
    x, y = np.ones((3, 2), "float32"), np.zeros((3, 2), "float32")
    model = keras.Model([i, j], {"q": i - j, "p": [L.Dense(1)(i)]})
    model.save(tmp_path / "m.keras")
    for m in (model, keras.models.load_model(tmp_path / "m.keras")):
        for out in (m.predict([x, y]), m([x, y]), m({"a": y, "z": x})):
            assert sorted(out) == ["p", "q"] and isinstance(out["p"], list)
            np.testing.assert_array_equal(out["q"], x - y)
        assert len(m.input) == 2 and sorted(m.output) == ["p", "q"]
    named = keras.Model(i, {"out": L.Dense(2)(i)})
    named.compile("sgd", {"out": "mse"})
    assert named.fit(x, {"out": y}, verbose=0).history["loss"]
    assert L.Add()([i, j]) is not None and keras.Model([i], [i * 2.0]).predict(x).shape == (3, 2)


def test_a_batch_of_its_own_is_declared_and_kept(tmp_path):
    i = keras.Input((3,), batch_size=4)
    assert tuple(i.shape) == (4, 3)
    for model in (keras.Model(i, L.Dense(2)(i)), keras.Sequential([keras.Input((3,), batch_size=4), L.Dense(2)])):
        model.save(tmp_path / "m.keras")
        twin = keras.models.load_model(tmp_path / "m.keras")
        assert tuple(twin.input.shape) == (4, 3)
        assert twin.predict(np.ones((2, 3), "float32")).shape == (2, 2)


@pytest.mark.parametrize("ending", ("keras", "h5"))
def test_policies_come_back(tmp_path, ending):
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        i = keras.Input((2,))
        model = keras.Model(i, L.Dense(1, dtype="float32")(L.Dense(4)(i)))
    finally:
        keras.mixed_precision.set_global_policy("float32")
    model.save(tmp_path / f"m.{ending}")
    twin = keras.models.load_model(tmp_path / f"m.{ending}")
    assert [p.compute_dtype for p in twin.layers[1:]] == ["float16", "float32"]
    np.testing.assert_array_equal(twin(np.ones((3, 2))), model(np.ones((3, 2))))
