"""A model of Keras that two processes train together, each on its half of every batch.

    berth launch --workers 2 -- python keras_workers.py

Keras on TensorFlow has no MultiWorkerMirroredStrategy any more; on Berth it is the strategy around the model.
"""
import os

os.environ["KERAS_BACKEND"] = "berth"
import berth as tf
import keras
import numpy as np


def spirals(n):
    """Points of two spirals, and which spiral each is of."""
    rng = np.random.RandomState(0)
    label = rng.randint(0, 2, n)
    angle = rng.rand(n) * 6
    radius = angle / 6 + rng.randn(n) * 0.02
    turned = angle + np.pi * label
    return np.stack([radius * np.cos(turned), radius * np.sin(turned)], 1).astype("float32"), label.astype("int32")


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((2,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(2)])
        model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                      metrics=["accuracy"])
    x, y = spirals(2048)
    plan = strategy.plan(model, 128)
    history = model.fit(x, y, batch_size=128, epochs=12, shuffle=False, verbose=0).history
    loss, accuracy = model.evaluate(x, y, batch_size=128, verbose=0)
    if strategy.is_chief:
        print(plan)
        print(model.placement())
        print("losses", *(f"{v:.5f}" for v in history["loss"]))
        print(f"replicas {strategy.num_replicas_in_sync}, loss {loss:.4f}, accuracy {accuracy:.3f}")
    strategy.leave()


if __name__ == "__main__":
    main()
