"""A model of Keras on two devices of which one is three times as fast: it gets three quarters of each batch.

    BERTH_SIM=GPUx2 BERTH_SIM_SPEEDS=3,1 python keras_unequal_devices.py

The plan says before the first step what each device gets, how long a step takes, and what equal parts would cost.
"""
import os

os.environ["KERAS_BACKEND"] = "berth"
import berth as tf
import keras
import numpy as np

DEVICES, BATCH = ["/GPU:0", "/GPU:1"], 8192


def model_of():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(10)])
    model.compile(keras.optimizers.SGD(0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def main():
    rng = np.random.RandomState(0)
    x = rng.randn(16384, 256).astype("float32")
    y = (x @ rng.randn(256, 10)).argmax(axis=1).astype("int32")
    plans = {}
    for name, shares in (("equal", None), ("by speed", "auto")):
        strategy = tf.distribute.MirroredStrategy(DEVICES, shares=shares)
        with strategy.scope():
            model = model_of()
        plans[name] = strategy.plan(model, BATCH)
    print(plans["by speed"])
    history = model.fit(x, y, batch_size=BATCH, epochs=3, shuffle=False, verbose=0).history
    print(model.placement())
    print("losses", *(f"{v:.5f}" for v in history["loss"]))
    for name, plan in plans.items():
        print(f"{name}: {' + '.join(str(r.examples) for r in plan.replicas)} examples, {plan.step_us:.0f} us a step")


if __name__ == "__main__":
    main()
