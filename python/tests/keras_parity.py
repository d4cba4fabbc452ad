"""Six small models whose losses over 50 steps are compared between Keras and Berth.

    python keras_parity.py --write keras_parity.npz   under TensorFlow: weights and losses anew
    python -m berth keras_parity.py keras_parity.npz  under Berth: prints the greatest difference

Both run this text. Every step sees a batch of its own, and is a call of fit, whose loss is that of
the step.
"""
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

STEPS, BATCH = 50, 16


def mlp():
    model = keras.Sequential([keras.Input((12,)), layers.Dense(16, activation="relu"),
                              layers.Dense(8, activation="tanh"), layers.Dense(3)])
    model.compile(keras.optimizers.Adam(0.01),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def cnn():
    model = keras.Sequential([
        keras.Input((10, 10, 2)), layers.Conv2D(6, 3, padding="same", use_bias=False),
        layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(2),
        layers.Conv2D(8, 3, strides=2), layers.BatchNormalization(momentum=0.9),
        layers.Activation("elu"), layers.GlobalAveragePooling2D(),
        layers.Dense(3, activation="softmax", kernel_regularizer=keras.regularizers.L2(0.01))])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
                  "sparse_categorical_crossentropy")
    return model


def lstm():
    model = keras.Sequential([
        keras.Input((9,), dtype="int32"), layers.Embedding(20, 6),
        layers.LSTM(8, return_sequences=True), layers.LSTM(5), layers.Dense(1, activation="sigmoid")])
    # Not RMSprop: Keras squares the gradients of a row that occurs twice in a batch one by one.
    model.compile(keras.optimizers.SGD(0.2, momentum=0.9), "binary_crossentropy")
    return model


def transformer():
    x = tokens = keras.Input((7, 12))
    h = layers.LayerNormalization(epsilon=1e-5)(x)
    h = layers.MultiHeadAttention(num_heads=3, key_dim=4)(h, h)
    x = layers.Add()([x, h])
    h = layers.LayerNormalization(epsilon=1e-5)(x)
    h = layers.Dense(12)(layers.Dense(24, activation="gelu")(h))
    x = layers.GlobalAveragePooling1D()(layers.Add()([x, h]))
    model = keras.Model(tokens, layers.Dense(3)(x))
    model.compile(keras.optimizers.AdamW(0.005, weight_decay=0.02, clipnorm=1.0),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def functional():
    a, b = keras.Input((5,), name="a"), keras.Input((3,), name="b")
    shared = layers.Dense(4, activation="swish", name="shared")
    left, right = shared(a), shared(layers.Dense(5, name="widen")(b))
    joined = layers.concatenate([left, right, layers.multiply([left, right])])
    model = keras.Model([a, b], [layers.Dense(1, name="amount")(joined),
                                 layers.Dense(3, activation="softmax", name="kind")(joined)])
    model.compile(keras.optimizers.Adagrad(0.05),
                  loss={"amount": keras.losses.Huber(), "kind": "sparse_categorical_crossentropy"},
                  loss_weights={"amount": 2.0, "kind": 0.5})
    return model


class Gate(layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones", name="scale")

    def call(self, x):
        return x * tf.sigmoid(x * self.scale)


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.gate = layers.Dense(10), Gate()
        self.norm, self.head = layers.BatchNormalization(), layers.Dense(3)

    def call(self, x, training=False):
        return self.head(self.norm(self.gate(self.first(x)), training=training))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"own": loss}  # Keras puts its own mean in the place of a "loss"


def subclassed():
    model = Own()
    model.compile(optimizer=keras.optimizers.Nadam(0.01))
    model(np.zeros((2, 12), "float32"))
    return model


MODELS = {f.__name__: f for f in (mlp, cnn, lstm, transformer, functional, subclassed)}


def batches(name):
    """Inputs and targets of all steps; what is to be learnt is in them."""
    rng = np.random.default_rng(7)
    n = STEPS * BATCH
    if name == "lstm":
        x = rng.integers(0, 20, (n, 9)).astype("int32")
        return x, (x[:, -3:].sum(1) > 28).astype("float32")[:, None]
    if name == "functional":
        a = rng.normal(size=(n, 5)).astype("float32")
        b = rng.normal(size=(n, 3)).astype("float32")
        return {"a": a, "b": b}, {"amount": a[:, :1] * b[:, :1], "kind": a[:, :3].argmax(1)}
    shape = {"cnn": (10, 10, 2), "transformer": (7, 12)}.get(name, (12,))
    x = rng.normal(size=(n, *shape)).astype("float32")
    return x, x.reshape(n, -1)[:, :3].argmax(1).astype("int32")


def cut(value, step):
    if isinstance(value, dict):
        return {k: cut(v, step) for k, v in value.items()}
    return value[step * BATCH:(step + 1) * BATCH]


def losses(model, name):
    x, y = batches(name)
    return np.array([model.fit(cut(x, i), cut(y, i), batch_size=BATCH, shuffle=False, verbose=0)
                     .history["own" if name == "subclassed" else "loss"][0] for i in range(STEPS)])


def write(path):
    keras.utils.set_random_seed(11)
    out = {}
    for name, make in MODELS.items():
        model = make()
        for i, w in enumerate(model.get_weights()):
            out[f"{name}/{i:02}"] = w
        out[f"{name}/losses"] = losses(model, name)
        print(name, out[f"{name}/losses"][[0, -1]])
    np.savez_compressed(path, **out)


def start(model, kept, name):
    """Gives the model the weights that Keras began with."""
    values = [kept[k] for k in sorted(kept.files) if k.startswith(name + "/") and k[-1].isdigit()]
    if name == "functional":
        # Keras lists the layers of a functional model by depth, Berth as they are met.
        for i, layer in enumerate(("widen", "shared", "amount", "kind")):
            model.get_layer(layer).set_weights(values[2 * i:2 * i + 2])
    else:
        model.set_weights(values)


def check(path):
    kept = np.load(path)
    for name, make in MODELS.items():
        model = make()
        start(model, kept, name)
        wanted = kept[f"{name}/losses"]
        print(name, np.abs(losses(model, name) - wanted).max(), wanted[0], wanted[-1])


if __name__ == "__main__":
    write(sys.argv[2]) if sys.argv[1] == "--write" else check(sys.argv[1])
