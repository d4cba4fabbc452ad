"""Work that must leave nothing behind: `./dev asan --python` runs it with LeakSanitizer."""
import gc

import berth as tf
import numpy as np


def work():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 3), "float32"), np.ones((8, 2), "float32"), verbose=0, epochs=2)

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        return tape.gradient(y, x)
    np.asarray(f(tf.ones([3])))
    tf.experimental.dlpack.from_dlpack(np.ones(3))


for _ in range(3):
    work()
    gc.collect()
