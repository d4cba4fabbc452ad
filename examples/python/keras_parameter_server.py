"""A model of Keras whose table of words lives on parameter servers, trained by workers at their own pace.

    berth launch --workers 1 --ps 2 -- python keras_parameter_server.py

One script for all tasks: workers and servers serve in the constructor of the strategy until the chief is done, before
they import Keras, which they do not need.
"""
import os

os.environ["KERAS_BACKEND"] = "berth"
import berth as tf

WORDS, LENGTH = 5_000, 8
strategy = tf.distribute.ParameterServerStrategy(
    variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(max_shards=2))

import keras
import numpy as np


def sentences(n):
    """Sentences of word numbers; the label says whether a word below 100 is in one."""
    rng = np.random.RandomState(0)
    words = rng.randint(100, WORDS, (n, LENGTH))
    rare = rng.rand(n) < 0.5
    words[rare, rng.randint(0, LENGTH, n)[rare]] = rng.randint(0, 100, rare.sum())
    return words.astype("int32"), rare.astype("float32")


def main():
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((LENGTH,), dtype="int32"), keras.layers.Embedding(WORDS, 16),
            keras.layers.GlobalMaxPooling1D(), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.02), keras.losses.BinaryCrossentropy(from_logits=True))
    x, y = sentences(4096)
    history = model.fit(x, y, batch_size=64, epochs=3, shuffle=False, verbose=0).history
    print(model.placement())
    print("losses", *(f"{v:.5f}" for v in history["loss"]))


if __name__ == "__main__":
    main()
