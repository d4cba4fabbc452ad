"""Factorisations, Fourier transforms, paths of labels and boxes: values by NumPy and closed forms."""
import numpy as np
import pytest

import berth as tf

RNG = np.random.default_rng(3)
M = RNG.normal(size=(2, 4, 4)).astype("float32")
TALL = RNG.normal(size=(2, 5, 3)).astype("float32")
SPD = M @ M.transpose(0, 2, 1) + np.eye(4, dtype="float32")
RHS = RNG.normal(size=(2, 5, 2)).astype("float32")
Z = (RNG.normal(size=(3, 7)) + 1j * RNG.normal(size=(3, 7))).astype("complex64")


def close(got, want, within=2e-4):
    np.testing.assert_allclose(got.numpy(), want, rtol=within, atol=within)


def test_svd():
    s, u, v = tf.linalg.svd(TALL)
    close(s, np.linalg.svd(TALL)[1])
    close(tf.matmul(u * s[:, None, :], v, transpose_b=True), TALL)
    close(tf.linalg.svd(TALL, compute_uv=False), np.linalg.svd(TALL)[1])
    assert tf.linalg.svd(TALL, full_matrices=True)[1].shape == [2, 5, 5]


def test_factorisations():
    q, r = tf.linalg.qr(TALL)
    close(tf.matmul(q, r), TALL)
    e, v = tf.linalg.eigh(SPD)
    close(e, np.linalg.eigvalsh(SPD))
    close(tf.linalg.eigvalsh(SPD), np.linalg.eigvalsh(SPD))
    close(tf.matmul(SPD, v), (v * e[:, None, :]).numpy(), 2e-3)
    e, v = tf.linalg.eig(M)
    assert e.dtype == tf.complex64
    np.testing.assert_allclose((M @ v.numpy()), v.numpy() * e.numpy()[:, None, :], atol=1e-4)
    want = np.linalg.eigvals(M)
    close(tf.sort(tf.math.real(tf.linalg.eigvals(M))), np.sort(want.real))
    lu, p = tf.linalg.lu(M)
    close(tf.linalg.lu_reconstruct(lu, p), M)
    close(tf.linalg.lu_solve(lu, p, RHS[:, :4]), np.linalg.solve(M, RHS[:, :4]), 2e-3)
    close(tf.linalg.lu_matrix_inverse(lu, p), np.linalg.inv(M), 2e-3)


def test_moments_do_not_stay_denormal():
    v, optimizer = tf.Variable([1.0]), tf.keras.optimizers.Adam(0.1)
    optimizer.apply_gradients([(tf.constant([0.0]), v)])
    moments = [m for m in optimizer.variables if m.shape == [1]]
    for m in moments:
        m.assign([1e-39])
    optimizer.apply_gradients([(tf.constant([0.0]), v)])
    assert len(moments) == 2 and all(m.numpy().tolist() == [0] for m in moments)


def test_what_is_made_of_them():
    sign, log = tf.linalg.slogdet(M)
    close(sign, np.linalg.slogdet(M)[0])
    close(log, np.linalg.slogdet(M)[1])
    close(tf.linalg.logdet(SPD), np.linalg.slogdet(SPD)[1])
    close(tf.linalg.pinv(TALL), np.linalg.pinv(TALL))
    assert tf.linalg.matrix_rank(np.ones((3, 2), "float32")).numpy() == 1
    for fast in (False, True):
        want = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(TALL, RHS)])
        close(tf.linalg.lstsq(TALL, RHS, fast=fast), want, 2e-3)
    close(tf.norm(TALL, ord=2, axis=[-2, -1]), np.linalg.norm(TALL, 2, (-2, -1)))
    close(tf.norm(TALL, ord="nuc", axis=[-2, -1]), np.linalg.norm(TALL, "nuc", (-2, -1)))
    z = Z[:2, :3]
    close(tf.linalg.adjoint(z), z.conj().T)


def test_gradient_of_a_factorisation():
    x = tf.constant(SPD)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.linalg.slogdet(x)[1])
    close(tape.gradient(y, x), np.linalg.inv(SPD).transpose(0, 2, 1), 2e-3)


def test_fourier():
    x = RNG.normal(size=(3, 7)).astype("float32")
    close(tf.signal.fft(Z), np.fft.fft(Z))
    close(tf.signal.ifft(Z), np.fft.ifft(Z))
    close(tf.signal.fft2d(Z), np.fft.fft2(Z))
    close(tf.signal.ifft2d(Z), np.fft.ifft2(Z))
    close(tf.signal.rfft(x), np.fft.rfft(x))
    close(tf.signal.rfft(x, fft_length=[9]), np.fft.rfft(x, 9))
    close(tf.signal.irfft(Z), np.fft.irfft(Z))
    close(tf.signal.irfft(Z, [5]), np.fft.irfft(Z, 5))
    close(tf.signal.fftshift(x, axes=[1]), np.fft.fftshift(x, 1))
    close(tf.signal.kaiser_window(8, 4.0), np.kaiser(8, 4))
    close(tf.signal.hamming_window(8, periodic=False), np.hamming(8))


def test_stft():
    x = RNG.normal(size=(2, 50)).astype("float32")
    window = tf.signal.hann_window(16).numpy()
    want = np.stack([np.fft.rfft(x[:, i:i + 16] * window) for i in range(0, 35, 4)], 1)
    close(tf.signal.stft(x, 16, 4), want)
    plain = tf.signal.stft(x, 16, 4, window_fn=None)
    close(plain, np.stack([np.fft.rfft(x[:, i:i + 16]) for i in range(0, 35, 4)], 1))
    back = tf.signal.inverse_stft(tf.signal.stft(x, 16, 4), 16, 4,
                                  window_fn=tf.signal.inverse_stft_window_fn(4))
    close(back[:, 12:36], x[:, 12:36])
    close(tf.signal.frame(x, 10, 20, pad_end=True)[:, 2], x[:, 40:])


def test_windows_of_any_rank():
    x = RNG.normal(size=(1, 6, 2)).astype("float32")
    f = RNG.normal(size=(3, 2, 4)).astype("float32")
    want = np.stack([np.einsum("ki,kio->o", x[0, i:i + 3], f) for i in range(4)])[None]
    close(tf.nn.convolution(x, f), want)
    close(tf.nn.convolution(x, f, strides=None, padding="VALID"), want)
    close(tf.nn.pool(x, [2], "MAX", strides=[2]), np.maximum(x[:, ::2], x[:, 1::2]))
    filters = RNG.normal(size=(3, 4, 2)).astype("float32")
    assert tf.nn.conv_transpose(x, filters, [1, 12, 4], 2).shape == [1, 12, 4]
    image = np.arange(16, dtype="float32").reshape(1, 4, 4, 1)
    assert tf.nn.space_to_depth(image, 2).numpy()[0, 0, 0].tolist() == [0, 1, 4, 5]
    close(tf.nn.depth_to_space(tf.nn.space_to_depth(image, 2), 2), image)


def test_ctc():
    # Two steps of three equal classes; the blank is 0: a, a-, -a have label 1.
    logits = np.zeros((2, 1, 3), "float32")
    labels = np.array([[1]], "int32")
    close(tf.nn.ctc_loss(labels, logits, [1], [2]), [-np.log(3 / 9)])
    sparse = tf.sparse.SparseTensor([[0, 0]], [1], [1, 1])
    close(tf.nn.ctc_loss(sparse, logits, None, [2], blank_index=0), [-np.log(3 / 9)])
    steps = np.eye(3, dtype="float32")[[1, 1, 2, 1]][:, None] * 5
    (decoded,), score = tf.nn.ctc_greedy_decoder(steps, [4])
    assert decoded.values.numpy().tolist() == [1, 1] and score.numpy().tolist() == [[-20]]
    (best, _), p = tf.nn.ctc_beam_search_decoder(steps, [4], beam_width=9, top_paths=2)
    assert best.values.numpy().tolist() == [1, 1] and p.shape == [1, 2]


def test_boxes():
    boxes = np.array([[0, 0, 1, 1], [0, .1, 1, 1.1], [0, 2, 1, 3]], "float32")
    assert tf.image.non_max_suppression(boxes, [.5, .9, .3], 3).numpy().tolist() == [1, 2]
    kept, count = tf.image.non_max_suppression_padded(boxes, [.5, .9, .3], 3, pad_to_max_output_size=True)
    assert kept.shape == [3] and count.numpy() == 2
    image = np.arange(9, dtype="float32").reshape(1, 3, 3, 1)
    close(tf.image.crop_and_resize(image, [[0, 0, 1, 1]], [0], [3, 3]), image)
    assert tf.image.sobel_edges(image).shape == [1, 3, 3, 1, 2]
    moved = tf.image.projective_transform(image, [[1, 0, 1, 0, 1, 0, 0, 0]], [3, 3])
    close(moved[0, :, :, 0], [[1, 2, 0], [4, 5, 0], [7, 8, 0]])


def test_bytes_and_bessel():
    assert tf.bitcast(tf.constant(1.0), tf.int32).numpy() == 0x3F800000
    close(tf.math.special.bessel_i0e([1.0]), [0.46575961])
    close(tf.math.bessel_i0([0.5, 3.0]), np.i0([0.5, 3.0]))


@pytest.mark.parametrize("draw, mean", [
    (lambda s: tf.random.stateless_gamma([s], [1, 2], alpha=3.0, beta=2.0), 1.5),
    (lambda s: tf.random.gamma([s], 3.0, 2.0), 1.5),
    (lambda s: tf.random.stateless_poisson([s], [1, 2], lam=4.0), 4),
    (lambda s: tf.random.poisson([s], 4.0), 4),
    (lambda s: tf.random.stateless_binomial([s], [1, 2], counts=20, probs=0.3), 6),
    (lambda s: tf.random.stateless_parameterized_truncated_normal([s], [1, 2], 0.0, 1.0, -1.0, 1.0), 0),
])
def test_draws(draw, mean):
    x = draw(20000).numpy().astype("float64")
    assert abs(x.mean() - mean) < 5 * x.std() / np.sqrt(20000)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions_of_complex_numbers(dtype):
    """As NumPy's; gradients as TensorFlow 2.21's, which go through the conjugate of the derivative."""
    z = np.array([[.3 + .4j, -1.2 + .1j, 2 - 3j], [1e-9 + 1e-9j, -.5 - .25j, 4 + .01j]], dtype)
    x, tolerance = tf.constant(z), 1e-6 if dtype == "complex64" else 1e-14
    slopes = dict(sin=np.cos(z), cos=-np.sin(z), tan=1 + np.tan(z) ** 2, sinh=np.cosh(z), cosh=np.sinh(z), expm1=np.exp(z),
                  atan=1 / (1 + z ** 2), atanh=1 / (1 - z ** 2), reciprocal=-1 / z ** 2, asinh=1 / np.cosh(np.arcsinh(z)),
                  acosh=1 / np.sinh(np.arccosh(z)), asin=1 / np.sqrt(1 - z ** 2), acos=-1 / np.sqrt(1 - z ** 2))
    for name, slope in slopes.items():
        judge = getattr(np, name.replace("a", "arc", 1) if name[0] == "a" else name)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(tf.math, name)(x)
        np.testing.assert_allclose(y, judge(z), rtol=tolerance * 10, err_msg=name)
        np.testing.assert_allclose(tape.gradient(y, x), np.conj(slope), rtol=tolerance * 1e3, err_msg=name)
    np.testing.assert_allclose(tf.norm(x, axis=1), np.linalg.norm(z, axis=1), rtol=tolerance * 10)
    np.testing.assert_allclose(tf.linalg.normalize(x)[0], z / np.linalg.norm(z), rtol=tolerance * 10)
    assert tf.norm(x).dtype == dtype and tf.math.reduce_std(x).dtype == tf.math.reduce_variance(x).dtype == z.real.dtype
    np.testing.assert_allclose(tf.math.reduce_std(x, 0), z.std(0), rtol=tolerance * 10)
    np.testing.assert_allclose(tf.cumsum(x, 1), np.cumsum(z, 1), rtol=tolerance * 10)
    np.testing.assert_allclose(tf.add_n([x, x]), z + z, rtol=tolerance * 10)


def test_terms_of_regularization_are_summed():
    assert tf.nn.scale_regularization_loss(tf.constant([1.0, 2.0])).numpy() == 3
    assert tf.linalg.qr(tf.eye(3, dtype=tf.float16)).q.dtype == tf.float16
