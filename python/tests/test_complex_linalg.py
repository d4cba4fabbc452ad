"""tf.linalg of complex matrices: what the results are, against NumPy, and numeric gradients."""
import numpy as np
import pytest

import berth as tf

L = tf.linalg


def numbers(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def hermitian(x):
    return x @ np.conj(np.swapaxes(x, -1, -2)) + 2 * np.eye(x.shape[-1])


def close(a, b, dtype):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1e-10 if dtype == "complex128" else 2e-4)


def turned(x):
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_results_are_those_of_numpy(dtype, batch):
    a, b = numbers(*batch, 4, 4).astype(dtype), numbers(*batch, 4, 2, seed=1).astype(dtype)
    close(L.inv(a), np.linalg.inv(a), dtype)
    close(L.inv(a, adjoint=True), np.linalg.inv(turned(a)), dtype)
    close(L.det(a), np.linalg.det(a), dtype)
    sign, log = L.slogdet(a)
    assert sign.dtype.name == log.dtype.name == dtype
    for got, want in zip((sign, log), np.linalg.slogdet(a)):
        close(got, want, dtype)
    close(L.solve(a, b), np.linalg.solve(a, b), dtype)
    close(L.solve(a, b, adjoint=True), np.linalg.solve(turned(a), b), dtype)
    low = np.tril(a) + 3 * np.eye(4, dtype=dtype)
    close(L.triangular_solve(low, b), np.linalg.solve(low, b), dtype)
    close(L.triangular_solve(low, b, adjoint=True), np.linalg.solve(turned(low), b), dtype)
    h = hermitian(a).astype(dtype)
    root = L.cholesky(h).numpy()
    close(root @ turned(root), h, dtype)
    assert (np.triu(root, 1) == 0).all()
    close(L.cholesky_solve(root, b), np.linalg.solve(h, b), dtype)
    close(L.logdet(h), np.linalg.slogdet(h)[1], dtype)
    close(L.pinv(b), np.linalg.pinv(b), dtype)
    assert (L.matrix_rank(b).numpy() == 2).all()
    close(L.lu_reconstruct(*L.lu(a)), a, dtype)
    close(L.lu_solve(*L.lu(a), b), np.linalg.solve(a, b), dtype)
    close(L.lstsq(b, numbers(*batch, 4, 1, seed=2).astype(dtype)), np.linalg.pinv(b) @ numbers(*batch, 4, 1, seed=2), dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5), (0, 3, 3), (2, 0, 0)])
def test_factors_give_the_matrix_back(dtype, shape):
    x = numbers(*shape).astype(dtype)
    for full in (False, True):
        q, r = (v.numpy() for v in L.qr(x, full_matrices=full))
        close(q @ r, x, dtype)
        close(turned(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])), dtype)
        s, u, v = (t.numpy() for t in L.svd(x, full_matrices=full))
        assert s.dtype.name == {"complex64": "float32", "complex128": "float64"}[dtype]
        p = s.shape[-1]
        close((u[..., :p] * s[..., None, :]) @ turned(v[..., :p]), x, dtype)
        close(turned(v) @ v, np.broadcast_to(np.eye(v.shape[-1]), (*shape[:-2], v.shape[-1], v.shape[-1])), dtype)
        close(L.svd(x, compute_uv=False), s, dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_eigenvalues(dtype):
    x = numbers(3, 4, 4).astype(dtype)
    h = hermitian(x).astype(dtype)
    e, v = (t.numpy() for t in L.eigh(np.tril(h)))  # the upper part is not read
    assert e.dtype.name == dtype
    close(v * e[:, None, :] @ turned(v), h, dtype)
    close(L.eigvalsh(h), np.linalg.eigvalsh(h), dtype)
    e, v = (t.numpy() for t in L.eig(x))
    close(x @ v, v * e[:, None, :], dtype)
    close(np.sort_complex(L.eigvals(x)[0]), np.sort_complex(np.linalg.eigvals(x[0])), dtype)
    values = L.eigh_tridiagonal(np.arange(3).astype(dtype), np.array([1j, 2]).astype(dtype))
    assert not values.dtype.is_complex
    full = np.diag([0, 1, 2]).astype(complex) + np.diag([1j, 2], -1) + np.diag([-1j, 2], 1)
    close(values, np.linalg.eigvalsh(full), dtype)


def test_numbers_that_are_not_finite_give_nan():
    x = tf.constant([[1, complex(0, np.inf)], [0, 1]], tf.complex128)
    for value in (L.svd(x, compute_uv=False), L.eigvalsh(L.adjoint(x)), L.eigvals(x)):
        assert np.isnan(value.numpy()).any()


b = numbers(3, 2, seed=5)
FUNCTIONS = {
    "inv": L.inv, "inv_adjoint": lambda x: L.inv(x, adjoint=True), "det": L.det, "logdet": lambda x: L.logdet(definite(x)),
    "slogdet": lambda x: L.slogdet(x)[1], "sign": lambda x: L.slogdet(x)[0],
    "solve": lambda x: L.solve(x, b), "solve_adjoint": lambda x: L.solve(x, b, adjoint=True),
    "triangle": lambda x: L.triangular_solve(x, b), "triangle_adjoint": lambda x: L.triangular_solve(x, b, lower=False, adjoint=True),
    "cholesky": lambda x: L.cholesky(definite(x)), "cholesky_solve": lambda x: L.cholesky_solve(L.cholesky(definite(x)), b),
    "q": lambda x: L.qr(x)[0], "r": lambda x: L.qr(x)[1], "q_tall": lambda x: L.qr(x[:, :2])[0], "r_wide": lambda x: L.qr(x[:2])[1],
    "s": lambda x: L.svd(x)[0], "s_alone": lambda x: L.svd(x, compute_uv=False), "u": lambda x: tf.abs(L.svd(x)[1]),
    "uv": lambda x: tf.matmul(L.svd(x)[1], L.svd(x)[2], adjoint_b=True), "v_wide": lambda x: tf.abs(L.svd(x[:2])[2]),
    "v_full": lambda x: tf.abs(L.svd(x[:2], full_matrices=True)[2]), "u_tall": lambda x: tf.abs(L.svd(x[:, :2])[1]),
    "eigh": lambda x: L.eigvalsh(x + L.adjoint(x)), "eigh_v": lambda x: tf.abs(L.eigh(x + L.adjoint(x))[1]),
    "eig": L.eigvals, "eig_v": lambda x: tf.abs(L.eig(x)[1]), "lu": lambda x: L.lu(x)[0], "lu_solve": lambda x: L.lu_solve(*L.lu(x), b),
    "lstsq": lambda x: L.lstsq(x[:, :2], b), "lstsq_wide": lambda x: L.lstsq(x[:2], b[:2], l2_regularizer=0.1),
    "pinv": lambda x: L.pinv(x[:2]), "expm": L.expm, "sqrtm": L.sqrtm, "logm": L.logm,
    "tridiagonal": lambda x: L.tridiagonal_solve(x, b, diagonals_format="matrix"),
    "banded": lambda x: L.banded_triangular_solve(x, b), "banded_adjoint": lambda x: L.banded_triangular_solve(x, b, adjoint=True),
    "norm2": lambda x: L.norm(x, 2, axis=[0, 1]), "norm3": lambda x: L.norm(x, 3), "unit": tf.math.l2_normalize,
    "operator": lambda x: L.LinearOperatorFullMatrix(definite(x), is_self_adjoint=True, is_positive_definite=True).solve(b)}


def definite(x):
    return tf.matmul(x, x, adjoint_b=True) + 2 * tf.eye(3, dtype=tf.complex128)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_slopes(name):
    """The gradient of Re sum(w f(x)), by both parts of each number."""
    x, f = numbers(3, 3, seed=3), FUNCTIONS[name]
    w = numbers(*f(tf.constant(x)).shape, seed=4)

    def loss(v):
        return tf.reduce_sum(tf.math.real(tf.cast(f(v), tf.complex128) * w))
    given = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(given)
        value = loss(given)
    slopes = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        for part in (1, 1j):
            step = np.zeros_like(x)
            step[at] = 1e-6 * part
            slopes[at] += part * float(loss(tf.constant(x + step)) - loss(tf.constant(x - step))) / 2e-6
    np.testing.assert_allclose(tape.gradient(value, given), slopes, atol=1e-6)


def test_functions_trace_and_what_is_wrong_is_named():
    x = tf.constant(numbers(2, 3, 3))
    np.testing.assert_allclose(tf.function(lambda v: L.solve(v, L.inv(v)))(x), L.solve(x, L.inv(x)), atol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="matrix 0 of the batch is not positive definite"):
        L.cholesky(-x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="matrix 1 of the batch is singular"):
        L.inv(tf.stack([x[0], tf.zeros_like(x[0])]))
