"""Arguments of TensorFlow's that the engine's form of a function lacks; shapes and sums are TensorFlow's."""
import pickle

import numpy as np
import pytest

import berth as tf

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


def test_places_and_names_of_arguments_are_tensorflows():
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert len(tf.unstack(x, 2)) == 2 and len(tf.unstack(x, 3, 1)) == 3 and len(tf.unstack(["a", "b"], 2)) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="num is 3"):
        tf.unstack(x, num=3)
    assert tf.nn.moments(x, [0], None, True)[0].shape == (1, 3)
    assert tf.strings.reduce_join([["a", "b"], ["c", "d"]], 1, True, "-").numpy().tolist() == [[b"a-b"], [b"c-d"]]
    assert tf.argsort([3, 1, 2], -1, "ASCENDING", True).numpy().tolist() == [1, 2, 0]
    assert tf.complex(real=1.0, imag=2.0).numpy() == 1 + 2j and tf.truncatediv(x=7, y=2).numpy() == 3
    assert tf.scatter_nd([[1]], [1.0], [3], "").numpy().tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="bad_indices_policy"):
        tf.tensor_scatter_nd_add(x, [[9]], x[:1], "IGNORE")
    with pytest.raises(tf.errors.InvalidArgumentError, match="^lost"):
        tf.debugging.assert_none_equal(x, x, 3, "lost")
    assert tf.strings.lower("\u00c0B", encoding="utf-8").numpy().decode() == "\u00e0b"
    assert tf.strings.lower("\u00c0B").numpy() == "\u00c0b".encode()
    np.testing.assert_allclose(tf.nn.embedding_lookup(x, [0, 1], max_norm=2.0), [[0.5345225, 1.069045, 1.6035674],
                                                                               [0.91168463, 1.1396058, 1.3675269]], rtol=1e-5)
    np.testing.assert_allclose(tf.linalg.matvec(tf.constant([[1 + 1j, 2], [3, 4]]), tf.constant([1 + 0j, 1]), adjoint_a=True),
                               [4 - 1j, 6])
    assert tf.linalg.matrix_transpose(tf.constant([[1j]]), conjugate=True).numpy() == -1j
    pooled = tf.nn.max_pool_with_argmax(tf.reshape(tf.range(32.0), [2, 4, 4, 1]), 2, 2, "VALID", output_dtype=tf.int32,
                                        include_batch_in_index=True)[1]
    assert pooled.dtype == tf.int32 and pooled.numpy().ravel().tolist() == [5, 7, 13, 15, 21, 23, 29, 31]
    picture = tf.io.encode_png(tf.zeros([2, 2, 1], tf.uint8))
    assert tf.io.decode_png(picture, 1, tf.uint16).dtype == tf.uint16
    assert tf.io.encode_jpeg(tf.zeros([2, 2, 1], tf.uint8), "grayscale").numpy() == tf.io.encode_jpeg(
        tf.zeros([2, 2, 1], tf.uint8), quality=95).numpy()


def test_errors_have_what_tensorflows_have():
    e = tf.errors.NotFoundError(None, None, "gone")
    assert (e.message, str(e), e.error_code, e.op, e.node_def) == ("gone", "gone", tf.errors.NOT_FOUND, None, None)
    assert tf.errors.OpError(None, None, "m", 7).error_code == 7 and tf.errors.UnauthenticatedError(None, None, "m").error_code == 16
    assert tf.errors.DataLossError("cut").message == "cut" and tf.errors.AbortedError(None, None, message="m").message == "m"
    with pytest.raises(ValueError) as caught:
        tf.constant([1, 2]) + tf.constant([1, 2, 3])
    assert caught.value.message == str(caught.value) and caught.value.error_code == tf.errors.INVALID_ARGUMENT
    assert pickle.loads(pickle.dumps(e)).message == "gone"
