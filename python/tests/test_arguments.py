"""Arguments of TensorFlow's that the engine's form of a function lacks; shapes and sums are TensorFlow's."""
import berth as tf
import numpy as np
import pytest

R = np.random.RandomState(0)


def a(*shape):
    return tf.constant(R.rand(*shape).astype("float32"))


X, P = a(2, 3, 4), a(2, 5, 5, 3)
K1, V = a(3, 5, 4), a(1, 3, 3, 3, 2)
K3 = a(2, 2, 2, 4, 2)


@pytest.mark.parametrize("call, shape, total", [
    (lambda: tf.boolean_mask(X, [True, False, True], axis=1), (2, 2, 4), 9.751),
    (lambda: tf.boolean_mask(X, X[0] > 0.5, axis=1), (2, 9), 11.809),
    (lambda: tf.boolean_mask(X, X > 0.5), (17,), 12.766),
    (lambda: tf.nn.bias_add(tf.transpose(P, [0, 3, 1, 2]), [1.0, 2.0, 3.0], "NCHW"), (2, 3, 5, 5), 373.149),
    (lambda: tf.nn.bias_add(P, [1.0, 2.0, 3.0], data_format="NHWC"), (2, 5, 5, 3), 373.149),
    (lambda: tf.nn.conv1d_transpose(X, K1, [2, 3, 5], 1), (2, 3, 5), 81.807),
    (lambda: tf.nn.conv1d_transpose(X, K1, [2, 6, 5], 2, "SAME"), (2, 6, 5), 91.042),
    (lambda: tf.nn.conv1d_transpose(X, K1, [2, 7, 5], strides=2, padding="VALID"), (2, 7, 5), 105.057),
    (lambda: tf.nn.conv1d_transpose(X, K1, tf.constant([2, 6, 5]), [2]), (2, 6, 5), 91.042),
    (lambda: tf.nn.conv3d_transpose(V, K3, [1, 3, 3, 3, 4], 1), (1, 3, 3, 3, 4), 217.339),
    (lambda: tf.nn.conv3d_transpose(V, K3, [1, 6, 6, 6, 4], [1, 2, 2, 2, 1], "SAME"), (1, 6, 6, 6, 4), 390.112),
    (lambda: tf.nn.conv3d_transpose(V, K3, [1, 4, 4, 4, 4], [1, 1, 1], padding="VALID"), (1, 4, 4, 4, 4), 390.112),
    (lambda: tf.nn.silu(X, 2.0), (2, 3, 4), 11.794), (lambda: tf.nn.swish(X, beta=0.5), (2, 3, 4), 8.646),
    (lambda: tf.nn.silu(X), (2, 3, 4), 9.87),
    (lambda: tf.nn.softmax_cross_entropy_with_logits(X, X * 2, axis=1), (2, 4), 14.657),
    (lambda: tf.math.count_nonzero(X > 0.5, axis=1, dtype=tf.int32), (2, 4), 17),
])
def test_arguments_of_tensorflow(call, shape, total):
    for out in (call(), tf.function(call)()):
        assert tuple(out.shape) == shape
        np.testing.assert_allclose(np.sum(out.numpy().astype("float64")), total, atol=2e-3)


def test_a_mask_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="from axis 1 on"):
        tf.boolean_mask(X, [True, False], axis=1)
