"""Training steps in TensorFlow: Keras models under fit() and in an own tf.function, XLA on and
off."""
import common

args = common.parse()
common.use_cores(args.cores)

import tensorflow as tf

keras = tf.keras
tf.config.threading.set_intra_op_parallelism_threads(args.cores)
tf.random.set_seed(0)


def norm_relu(h, relu=True):
    h = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(h)
    return keras.layers.ReLU()(h) if relu else h


def conv(h, channels, kernel, stride):
    return keras.layers.Conv2D(channels, kernel, stride, "same", use_bias=False)(h)


def resnet18():
    x = keras.Input((32, 32, 3), batch_size=32)
    h = norm_relu(conv(x, 64, 3, 1))
    for stage in range(4):
        for i in range(2):
            channels, stride = 64 << stage, 2 if stage and not i else 1
            y = norm_relu(conv(h, channels, 3, stride))
            y = norm_relu(conv(y, channels, 3, 1), relu=False)
            if stride == 2:
                h = norm_relu(conv(h, channels, 1, stride), relu=False)
            h = keras.layers.ReLU()(y + h)
    return keras.Model(x, keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(h)))


class Positions(keras.layers.Layer):
    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:])

    def call(self, x):
        return x + self.table


class Attention(keras.layers.Layer):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def call(self, qkv):
        batch, seq, width = qkv.shape
        depth = width // 3 // self.heads
        parts = tf.transpose(tf.reshape(qkv, (batch, seq, 3, self.heads, depth)), (2, 0, 3, 1, 4))
        q, k, v = tf.unstack(parts)
        scores = tf.matmul(q, k, transpose_b=True) * depth**-0.5
        mask = tf.linalg.band_part(tf.ones((seq, seq)), -1, 0)
        mixed = tf.matmul(tf.nn.softmax(scores - 1e9 * (1 - mask)), v)
        return tf.reshape(tf.transpose(mixed, (0, 2, 1, 3)), (batch, seq, width // 3))


def gpt(layers, dim, heads, seq, batch, vocab):
    dense, norm = keras.layers.Dense, keras.layers.LayerNormalization
    x = keras.Input((seq,), batch_size=batch, dtype="int64")
    h = Positions()(keras.layers.Embedding(vocab, dim)(x))
    for _ in range(layers):
        h = h + dense(dim)(Attention(heads)(dense(3 * dim)(norm(epsilon=1e-5)(h))))
        h = h + dense(dim)(dense(4 * dim, activation="gelu")(norm(epsilon=1e-5)(h)))
    return keras.Model(x, dense(vocab, use_bias=False)(norm(epsilon=1e-5)(h)))


def build():
    """model, optimizer, x and y of four batches"""
    if args.model == "gpt":
        g = common.GPT
        shape = (4 * g["batch"], g["seq"])
        x, y = (tf.random.uniform(shape, 0, g["vocab"], tf.int64) for _ in range(2))
        return gpt(**g), keras.optimizers.AdamW(3e-4, weight_decay=0.01), x, y, g["batch"]
    if args.model == "lstm":
        m = common.LSTM
        shape, batch, optimizer = (m["seq"], m["units"]), m["batch"], keras.optimizers.Adam(1e-3)
        rest = [keras.layers.LSTM(m["units"], return_sequences=True)
                for _ in range(m["layers"] - 1)]
        model = keras.Sequential([keras.Input(shape, batch_size=batch), *rest,
                                  keras.layers.LSTM(m["units"]), keras.layers.Dense(10)])
    elif args.model == "resnet18":
        model, shape, batch = resnet18(), (32, 32, 3), 32
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9, weight_decay=5e-4)
    elif args.model == "cnn":
        shape, batch, optimizer = (28, 28, 1), 64, keras.optimizers.Adam(1e-3)
        model = keras.Sequential([
            keras.Input(shape, batch_size=batch), keras.layers.Conv2D(32, 3, padding="same",
                                                                      activation="relu"),
            keras.layers.MaxPool2D(2), keras.layers.Flatten(), keras.layers.Dense(10)])
    else:
        shape, batch, optimizer = (784,), 64, keras.optimizers.Adam(1e-3)
        model = keras.Sequential([keras.Input(shape, batch_size=batch),
                                  keras.layers.Dense(128, activation="relu"),
                                  keras.layers.Dense(10)])
    x = tf.random.uniform((4 * batch, *shape))
    y = tf.random.uniform((4 * batch,), 0, 10, tf.int64)
    return model, optimizer, x, y, batch


def function_step(xla):
    model, optimizer, x, y, batch = build()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=xla)
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss

    batches = list(zip(tf.split(x, 4), tf.split(y, 4)))
    count = 0

    def step():
        nonlocal count
        train(*batches[count % 4]).numpy()
        count += 1

    return step


def fit_step(xla):
    model, optimizer, x, y, batch = build()
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile=xla)
    steps = 8 if args.model in ("resnet18", "gpt", "lstm") else 400
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True)
    data = data.cache().repeat().prefetch(2)
    return lambda: model.fit(data, epochs=1, steps_per_epoch=steps, verbose=0), steps


variants = [("function", lambda: function_step(False)), ("function_xla", lambda: function_step(True)),
            ("fit", lambda: fit_step(False)), ("fit_xla", lambda: fit_step(True))]
common.report("tensorflow", tf.__version__, args, variants)
