"""What the published examples of Keras do beside Keras: TensorFlow's names given what Keras makes. Values are TensorFlow's."""
import importlib.util

import pytest
from test_keras_backend import run

pytestmark = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")


def test_functions_of_numpy_take_variables_of_keras_and_pass_gradients_on():
    run("""
import inspect
tnp = tf.experimental.numpy
a, b = np.array([[0.5, 0.25], [0.125, 0.75]], "float32"), np.array([[0.3, -0.6], [0.9, 0.2]], "float32")
two = "matmul maximum add multiply subtract divide power arctan2 dot inner outer kron hypot logaddexp".split()
one = "exp sqrt log sum mean max var std cumsum square abs tanh transpose ravel sinc ptp diagonal trace".split()
calls = {n: (lambda x, y, n=n: getattr(tnp, n)(x, y)) for n in two}
calls |= {n: (lambda x, y, n=n: getattr(tnp, n)(x)) for n in one}
calls |= {"stack": lambda x, y: tnp.stack([x, y]), "concatenate": lambda x, y: tnp.concatenate([x, y]),
          "where": lambda x, y: tnp.where(x > 0.4, x, y), "einsum": lambda x, y: tnp.einsum("ij,jk->ik", x, y),
          "nested": lambda x, y: tnp.array([[x[0, 0], x[1, 1]], [y[0, 0], y[1, 0]]]), "in a list": lambda x, y: tnp.array([x, y]),
          "reshape": lambda x, y: tnp.reshape(x, (4,)), "zeros_like": lambda x, y: tnp.zeros_like(x) + x,
          "promoted": lambda x, y: tnp.multiply(x, tnp.array([[1.0, 2.0], [3.0, 4.0]]))}

def of(call, x, y, watched):
    with tf.GradientTape() as tape:
        tape.watch(watched)
        out = call(x, y)
        total = tf.reduce_sum(tf.cast(out, tf.float64) * tf.reshape(tf.range(tf.size(out), dtype=tf.float64) + 1.0, tf.shape(out)))
    return out, tape.gradient(total, watched, unconnected_gradients="zero")

for name, call in calls.items():
    x, y = tf.constant(a), tf.constant(b)
    expected, gradients = of(call, x, y, [x, y])
    for traced in (False, True):
        v, w = keras.Variable(a), keras.Variable(b)
        f = (lambda: of(call, v, w, [v.value, w.value]))
        out, got = (tf.function(f) if traced else f)()
        assert out.dtype == expected.dtype, (name, out.dtype, expected.dtype)
        np.testing.assert_allclose(out, expected, rtol=1e-6, err_msg=name)
        for g, e in zip(got, gradients):
            np.testing.assert_allclose(tf.convert_to_tensor(g), tf.convert_to_tensor(e), rtol=1e-6, err_msg=name)
assert tnp.result_type(keras.Variable(a), 1.0) == np.float32 and tnp.shape(keras.Variable(a)) == (2, 2)
""")


def test_a_step_of_the_models_own_is_given_what_the_model_does_not_take():
    """Pairs in a batch, as of metric learning; layers are made by the step alone. TensorFlow's losses."""
    run("""
K, A, B = (r.rand(4, 3) - 0.5).astype("float32"), r.rand(12, 2, 4).astype("float32"), r.rand(12, 4).astype("float32")
init = lambda shape, dtype=None: tf.constant(K[:shape[0], :shape[1]])

class Step:
    def train_step(self, data):
        data = data[0] if isinstance(data, tuple) else data
        one, two = data[:, 0], data[:, 1]
        with tf.GradientTape() as tape:
            a, b = self(one, training=True), self(two, training=True)
            loss = self.compute_loss(y=tf.range(tf.shape(a)[0]) % 3, y_pred=a * b)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            metric.update_state(loss)
        return {m.name: m.result() for m in self.metrics}

class Pairs(Step, keras.Model):
    pass

class Own(Step, keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3, use_bias=False, kernel_initializer=init)
    def call(self, x):
        return self.dense(x if len(x.shape) == 2 else tf.reshape(x, [-1, 8]))  # Keras' own guess is the wrong one
    def test_step(self, data):
        return {"sum": tf.reduce_sum(self(data[:, 0]))}
    def predict_step(self, data):
        return self(data[:, 1])

def batches():
    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return 3
        def __getitem__(self, i):
            return A[4 * i:4 * i + 4]
    return A, tf.data.Dataset.from_tensor_slices(A).batch(4), Rows()

for data in batches():
    i = keras.Input((4,))
    for model in (Pairs(i, keras.layers.Dense(3, use_bias=False, kernel_initializer=init)(i)), Own()):
        model.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        losses = model.fit(data, epochs=2, batch_size=4, shuffle=False, verbose=0).history["loss"]
        np.testing.assert_allclose(losses, EXPECTED, rtol=1e-5)
        assert [w.shape for w in model.weights] == [(4, 3)]
model = Own()
model.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
np.testing.assert_allclose(model.evaluate(A, batch_size=4, verbose=0, return_dict=True)["sum"], -1.8266034, rtol=1e-5)
assert [w.shape for w in model.weights] == [(4, 3)]
np.testing.assert_allclose(model.predict(A, batch_size=4, verbose=0), A[:, 1] @ K, rtol=1e-5)
model = Own()
model.compile(keras.optimizers.SGD(0.5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
np.testing.assert_allclose(model.train_on_batch(A[:4]), 1.1034833, rtol=1e-5)
assert [w.shape for w in model.weights] == [(4, 3)]
""".replace("EXPECTED", "[1.0910214, 1.0482059]"))


def test_whole_numbers_are_convolved():
    """Windows of pictures of whole numbers, as vision transformers cut them. TensorFlow's sums and dtypes."""
    run("""
from keras import ops
x = tf.constant(np.arange(2 * 6 * 6 * 3).reshape(2, 6, 6, 3) % 7, tf.int32)
k = tf.constant(np.arange(2 * 2 * 3 * 4).reshape(2, 2, 3, 4) % 5, tf.int32)
for out, total, shape in ((ops.image.extract_patches(x, 2), 645, (2, 3, 3, 12)), (ops.conv(x, k), 13859, (2, 5, 5, 4)),
                          (ops.conv(x[0], k[0]), 4113, (6, 5, 4)), (tf.nn.conv2d(x, k, 1, "VALID"), 13859, (2, 5, 5, 4)),
                          (ops.conv_transpose(x, ops.transpose(k, (0, 1, 3, 2)), 1), 19991, (2, 7, 7, 4))):
    assert out.dtype == tf.int32 and tuple(out.shape) == shape and int(tf.reduce_sum(out)) == total, (out.dtype, out.shape)
whole = tf.nn.conv2d(x + 2**24, k * 0 + 1, 1, "VALID")
assert int(whole[0, 0, 0, 0]) == 12 * 2**24 + int(tf.reduce_sum(x[0, :2, :2]))
""")


def test_functions_of_older_versions_of_keras(tmp_path):
    """keras.backend's losses and decoders of sequences, and others that call tf.compat.v1. TensorFlow's sums."""
    (tmp_path / "older.py").write_text("""
import numpy as np
import tensorflow as tf
from keras.src.legacy import backend as K
r = np.random.RandomState(0)
y, p = np.array([[1, 2, 3, 0], [2, 2, 0, 0]]), r.rand(2, 9, 5).astype("float32")
p /= p.sum(-1, keepdims=True)
steps, lengths = np.array([[9], [7]]), np.array([[3], [2]])
x, k = tf.constant(r.rand(2, 6, 6, 3).astype("float32")), tf.constant(r.rand(3, 3, 3, 4).astype("float32"))

def check(f, total):
    for out in (f(), tf.function(f)()):
        np.testing.assert_allclose(np.sum(np.asarray(out), dtype="float64"), total, rtol=1e-4)

def gradient():
    q = tf.constant(p)
    with tf.GradientTape() as tape:
        tape.watch(q)
        loss = tf.reduce_sum(K.ctc_batch_cost(y, q, steps, lengths))
    return tape.gradient(loss, q)

check(lambda: K.ctc_batch_cost(y, p, steps, lengths), 17.136)
check(gradient, -25.265)
check(lambda: K.foldl(lambda a, b: a + b, np.arange(5.0)), 10)
check(lambda: K.map_fn(lambda v: v * 2, np.arange(4.0)), 12)
check(lambda: K.bias_add(x, x[0, 0, 0]), 190.733)
v = tf.Variable(1.0)
assert float(K.update_add(v, 2.0)) == 3 and float(K.update(v, 5.0)) == 5 and float(K.update_sub(v, 1.0)) == 4
try:
    tf.compat.v1.placeholder
except AttributeError as error:
    assert "placeholder" in str(error)
""")
    run("", "-m", "berth", "older.py", folder=tmp_path)
