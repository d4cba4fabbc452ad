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
