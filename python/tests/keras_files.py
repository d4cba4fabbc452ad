"""Writes keras_files.npz: files of models that Keras 3.15 trained, what they predict, and their scores.

    cd python/tests && PYTHON_WITH_TENSORFLOW keras_files.py
"""
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras  # noqa: E402
import numpy as np  # noqa: E402

keras.utils.set_random_seed(7)
layers = keras.layers
image = keras.Sequential([
    layers.Input((8, 8, 2)), layers.Conv2D(3, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
    layers.Dropout(0.2), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(4, activation="softmax")])
tokens = layers.Input((6,), dtype="int32")
e = layers.Embedding(11, 5)(tokens)
x = layers.LayerNormalization()(layers.Add()([layers.MultiHeadAttention(2, 3)(e, e), e]))
h = layers.GRU(4)(layers.LSTM(4, return_sequences=True)(x))
text = keras.Model(tokens, layers.Dense(2, name="head")(h))

rng = np.random.default_rng(3)
values = {"xi": rng.normal(size=(5, 8, 8, 2)).astype("float32"), "xt": rng.integers(0, 11, (5, 6)).astype("int32"),
          "yi": rng.integers(0, 4, 5), "yt": rng.normal(size=(5, 2)).astype("float32")}
image.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
text.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"])
image.fit(values["xi"], values["yi"], epochs=3, verbose=0)
text.fit(values["xt"], values["yt"], epochs=3, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    def kept(name, write):
        path = os.path.join(folder, name)
        write(path)
        with open(path, "rb") as file:
            values[name.replace(".", "_")] = np.frombuffer(file.read(), "uint8")
    kept("image.keras", image.save)
    kept("image.h5", image.save)
    kept("text.keras", text.save)
    kept("text.weights.h5", text.save_weights)
for name, model, x, y in (("i", image, "xi", "yi"), ("t", text, "xt", "yt")):
    values["p" + name] = model.predict(values[x], verbose=0)
    values["e" + name] = np.array(model.evaluate(values[x], values[y], verbose=0))
    # A step on, which needs the optimizer's state.
    if name == "t":
        model.fit(values[x], values[y], epochs=1, shuffle=False, verbose=0)
        values["after_t"] = model.predict(values[x], verbose=0)
np.savez_compressed("keras_files.npz", **values)

# A functional model with everything: operators, a shared layer, a model inside that is used twice, two inputs and outputs.
keras.utils.set_random_seed(8)
inner_in = layers.Input((4,), name="inner_in")
inner = keras.Model(inner_in, layers.Dense(3, activation="tanh", name="inner_dense")(inner_in), name="inner")
shared = layers.Dense(4, name="shared")
left, right = layers.Input((4,), name="left"), layers.Input((4,), name="right")
a, b = inner(shared(left)), inner(shared(right))
both = layers.Concatenate(name="both")([a * 2.0 - b, -(1.0 / (a ** 2 + 1.5)), b[:, 1:]])
graph = keras.Model([left, right], [layers.Dense(2, name="one")(both), layers.Add(name="two")([a, b])])
graph.compile("sgd", "mse")
xg = [rng.normal(size=(5, 4)).astype("float32") for _ in range(2)]
pg = graph.predict(xg, verbose=0)
more = {"xg": np.stack(xg), "p_one": pg[0], "p_two": pg[1],
        "graph_json": np.frombuffer(graph.to_json().encode(), "uint8")}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "graph.keras")
    graph.save(path)
    with open(path, "rb") as file:
        more["graph_keras"] = np.frombuffer(file.read(), "uint8")
np.savez_compressed("keras_graph.npz", **more)
