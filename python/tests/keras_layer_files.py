"""Writes keras_layer_files.npz: configs of models that Keras 3.15 wrote, their weights and what they predict.

    cd python/tests && PYTHON_WITH_TENSORFLOW keras_layer_files.py
"""
import json
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import h5py  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

layers = keras.layers


def masked(x):
    e = layers.Dense(3)(layers.Embedding(5, 3, mask_zero=True)(x))
    s = layers.Add()([e, layers.GRU(3, return_sequences=True)(e)])
    return layers.GlobalAveragePooling1D()(layers.Bidirectional(layers.LSTM(2, return_sequences=True))(s))


def half_masked(x):
    both = [layers.Embedding(5, 3, mask_zero=True)(x), layers.Embedding(5, 2)(x)]
    return layers.LSTM(2)(layers.Concatenate()(both))


def attention(x):
    e = layers.Embedding(5, 3, mask_zero=True)(x)
    return layers.MultiHeadAttention(2, 3)(e, e)


def around(x):
    x = layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)], return_sequences=True)(x)
    return layers.Bidirectional(layers.RNN(layers.GRUCell(2)))(layers.TimeDistributed(layers.Dense(2))(x))


TOKENS, STEPS, IMAGE = ((4,), "int32"), ((4, 3), "float32"), ((5, 6, 2), "float32")
MODELS = {
    "unit": (lambda x: layers.UnitNormalization()(x), STEPS),
    "unit_axes": (lambda x: layers.UnitNormalization(axis=(1, 2))(x), STEPS),
    "softmax": (lambda x: layers.Softmax(axis=(1, 2))(x), STEPS),
    "masked": (masked, TOKENS),
    "half_masked": (half_masked, TOKENS),
    "attention": (attention, TOKENS),
    "masking": (lambda x: layers.GRU(3)(layers.Masking(0.0)(x)), STEPS),
    "times": (lambda x: layers.Dense(2)(x * 2.0), STEPS),
    "rnn": (lambda x: layers.RNN(layers.LSTMCell(2))(x), STEPS),
    "cells": (lambda x: layers.RNN([layers.LSTMCell(2), layers.GRUCell(3)], return_sequences=True)(x), STEPS),
    "around": (around, STEPS),
    "spatial": (lambda x: layers.SpatialDropout2D(0.2)(x), IMAGE),
    "padding": (lambda x: layers.ZeroPadding2D((1, 2))(x), IMAGE),
    "cropping": (lambda x: layers.Cropping2D(((1, 0), (2, 1)))(x), IMAGE)}

rng, kept, models = np.random.default_rng(4), {}, {}
with tempfile.TemporaryDirectory() as folder:
    for name, (make, (shape, dtype)) in MODELS.items():
        x = keras.Input(shape, dtype=dtype)
        model = keras.Model(x, make(x))
        weights = [np.round(rng.normal(size=w.shape), 2).astype("float32") for w in model.get_weights()]
        model.set_weights(weights)
        data = (rng.integers(0, 3, (2, *shape)) if dtype == "int32" else np.round(rng.normal(size=(2, *shape)))).astype(dtype)
        model.save(f"{folder}/m.h5")
        with h5py.File(f"{folder}/m.h5") as file:  # an older form of the config
            texts = [model.to_json(), file.attrs["model_config"]]
        models[name] = {"texts": texts, "x": data.tolist(), "y": model.predict(data, verbose=0).tolist(),
                        "weights": [w.tolist() for w in weights], "dtype": dtype}
        if name == "around":
            model.save(f"{folder}/m.keras")
            with open(f"{folder}/m.keras", "rb") as file:
                kept[f"{name}_keras"] = np.frombuffer(file.read(), "uint8")
np.savez_compressed("keras_layer_files.npz", models=np.frombuffer(json.dumps(models).encode(), "uint8"), **kept)
