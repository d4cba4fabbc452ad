"""Functions of matrices, and systems with few diagonals: tf.linalg.expm, sqrtm, logm, tridiagonal_solve."""
import collections

from berth import _core
from berth._diagonals import diag, diag_part
from berth._lazy import Lazy
from berth._tensor import complex128, convert_to_tensor, float64

_ops, _m, _l = _core.ops, _core.ops.math, _core.ops.linalg
_np = Lazy("numpy")
_CG = collections.namedtuple("cg_state", "i x r p gamma")


def normalize(tensor, ord="euclidean", axis=None, name=None):
    """A tensor over its norm, and the norm, whose axes have length 1: (tensor / norm, norm)."""
    x = convert_to_tensor(tensor)
    from berth import linalg
    norm = linalg.norm(x, ord, axis=axis, keepdims=True)
    return x / _m.cast(norm, x.dtype), norm


def _square(what, input, kinds="float32, float64, complex64, complex128"):
    x = convert_to_tensor(input)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise _core.InvalidArgumentError(f"{what}: the input is {x.shape}; expected square matrices [..., n, n]")
    if x.dtype.name not in kinds:
        raise TypeError(f"{what}: the input is {x.dtype.name}; expected one of {kinds}")
    return x


def _wide(x):
    return _m.cast(x, complex128 if x.dtype.is_complex else float64)


def _broadcast(a, b):
    """Matrices with the same batch."""
    shapes = [v.shape.as_list() for v in (a, b)]
    batch = list(_np.broadcast_shapes(*[tuple(s[:-2]) for s in shapes]))
    return [v if s[:-2] == batch else _ops.broadcast_to(v, batch + s[-2:]) for v, s in zip((a, b), shapes)]


def solve(a, b, adjoint=False):
    """x with a x = b; batches broadcast."""
    return _l.solve(*_broadcast(a, b), adjoint=adjoint)


def _solve_triangle(a, b, lower=True, adjoint=False):
    return _l.triangular_solve(*_broadcast(a, b), lower=lower, adjoint=adjoint)


def _eye_like(x):
    return _m.cast(_ops.eye(x.shape[-1]), x.dtype) + _ops.zeros_like(x)


def _norm(x):
    """The largest sum of magnitudes of a column, real: [..., 1, 1]."""
    return _ops.reshape(_m.reduce_max(_m.reduce_sum(_m.abs(x), -2), -1), [*x.shape.as_list()[:-2], 1, 1])


def expm(input, name=None):
    """The exponential of square matrices, [..., n, n]."""
    x = _square("expm", input)
    given, x = x.dtype, _wide(x)
    if not x.shape.num_elements():
        return _m.cast(x, given)
    # Scaled until the norm is small, an approximation by a fraction, then squared as often.
    norm = _ops.stop_gradient(_norm(x))
    halvings = _m.maximum(_m.ceil(_m.log(_m.maximum(norm, 1e-300) / 2.0) / float(_np.log(2.0))), 0.0)
    x = x * _m.cast(_m.pow(_ops.zeros_like(halvings) + 0.5, halvings), x.dtype)
    most = 24 if _core.is_open(halvings) else int(_m.reduce_max(halvings)) if _np.isfinite(_m.reduce_max(norm).numpy()) else 0
    q, c = 8, 1.0
    even = odd = None
    one = _eye_like(x)
    square, power = _ops.matmul(x, x), one
    for k in range(q + 1):
        if k % 2 == 0:
            even = power * c if even is None else even + power * c
        else:
            odd = power * c if odd is None else odd + power * c
            power = _ops.matmul(power, square)
        c *= (q - k) / ((2 * q - k) * (k + 1))
    odd = _ops.matmul(x, odd)
    out = solve(even - odd, even + odd)
    for i in range(most):
        out = _ops.where(_m.greater(halvings, float(i)), _ops.matmul(out, out), out)
    return _m.cast(out, given)


def _root(x, steps=22):
    """The principal root of matrices, by a product form of Newton's iteration with its scale."""
    one, n = _eye_like(x), x.shape[-1]
    m = y = x
    for step in range(steps):
        inverse = solve(m, one)
        if step < 12:  # the scale brings distant eigenvalues together
            grown = _m.reduce_sum(_m.square(_m.abs(m)), [-2, -1], True)
            shrunk = _m.reduce_sum(_m.square(_m.abs(inverse)), [-2, -1], True)
            scale = _m.cast(_ops.stop_gradient(_m.pow(shrunk / grown, 0.125)), x.dtype)
        else:
            scale = _m.cast(_ops.ones([1] * len(x.shape)), x.dtype)
        s2 = scale * scale
        y = 0.5 * scale * _ops.matmul(y, one + inverse / s2)
        m = 0.5 * (one + 0.5 * (s2 * m + inverse / s2))
    return y


def sqrtm(input, name=None):
    """The principal square root of square, invertible matrices without negative eigenvalues."""
    x = _square("sqrtm", input)
    return _m.cast(_root(_wide(x)), x.dtype) if x.shape.num_elements() else x


matrix_square_root = sqrtm


def logm(input, name=None):
    """The principal logarithm of square, invertible, complex matrices without negative eigenvalues."""
    x = _square("logm", input, "complex64, complex128")
    if not x.shape.num_elements():
        return x
    y, roots = _wide(x), 6
    for _ in range(roots):
        y = _root(y)
    # log(1 + z) = the integral of z / (1 + t z) for t from 0 to 1
    one = _eye_like(y)
    z, out = y - one, None
    for place, weight in zip(*_np.polynomial.legendre.leggauss(10)):
        part = solve(one + z * ((place + 1) / 2), z) * (weight / 2)
        out = part if out is None else out + part
    return _m.cast(out * float(2 ** roots), x.dtype)


# Few diagonals.

def _compact(what, diagonals, form):
    """[..., 3, n]: the diagonal above, the main one, that below, as in TensorFlow's "compact"."""
    if form == "matrix":
        x = convert_to_tensor(diagonals)
        return diag_part(x, k=(-1, 1), align="LEFT_RIGHT")
    if form == "sequence":
        above, main, below = (convert_to_tensor(d) for d in diagonals)
        n = main.shape[-1]
        pads = [0, 0] * (len(main.shape) - 1)
        above = _ops.pad(above, [*pads, 0, 1]) if above.shape[-1] == n - 1 else above
        below = _ops.pad(below, [*pads, 1, 0]) if below.shape[-1] == n - 1 else below
        return _ops.stack([above, main, below], -2)
    if form != "compact":
        raise ValueError(f"{what}: diagonals_format is {form!r}; expected 'compact', 'sequence' or 'matrix'")
    x = convert_to_tensor(diagonals)
    if len(x.shape) < 2 or x.shape[-2] != 3:
        raise ValueError(f"{what}: the diagonals are {x.shape}; expected [..., 3, n]")
    return x


def _dense(compact):
    n = compact.shape[-1]
    if n == 1:
        return compact[..., 1:2, :]
    return diag(compact, k=(-1, 1), align="LEFT_RIGHT")


def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None,
                      partial_pivoting=True, perturb_singular=False):
    """x with A x = rhs for matrices that have three diagonals; with transpose_rhs rhs is [..., k, n].

    A is solved as a full matrix, with pivots in any case.
    """
    if perturb_singular:
        raise NotImplementedError("tridiagonal_solve: the argument perturb_singular=True is not there yet; leave it out")
    d = _compact("tridiagonal_solve", diagonals, diagonals_format)
    b = convert_to_tensor(rhs, d.dtype)
    vector = len(b.shape) == len(d.shape) - 1
    if vector:
        b = _ops.expand_dims(b, -1)
    elif transpose_rhs:
        b = _l.matrix_transpose(b)
    if conjugate_rhs and b.dtype.is_complex:
        b = _m.conj(b)
    if b.shape[-2] != d.shape[-1]:
        raise ValueError(f"tridiagonal_solve: the diagonals are {d.shape}, rhs is {rhs.shape}; expected {d.shape[-1]} rows")
    x = solve(_dense(d), b)
    return _ops.squeeze(x, [len(x.shape) - 1]) if vector else x


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    """Matrices that have three diagonals times rhs [..., n, k]."""
    d, b = _compact("tridiagonal_matmul", diagonals, diagonals_format), convert_to_tensor(rhs)
    pads = [0, 0] * (len(b.shape) - 2)
    above, main, below = (_ops.expand_dims(d[..., i, :], -1) for i in range(3))
    up, down = _ops.pad(b[..., 1:, :], [*pads, 0, 1, 0, 0]), _ops.pad(b[..., :-1, :], [*pads, 1, 0, 0, 0])
    keep = _np.arange(d.shape[-1])[:, None]
    above = _ops.where(convert_to_tensor(keep < d.shape[-1] - 1), above, _ops.zeros_like(above))
    below = _ops.where(convert_to_tensor(keep > 0), below, _ops.zeros_like(below))
    return above * up + main * b + below * down


def banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None):
    """x with A x = rhs, A triangular with the diagonals bands [..., count, n], the main one first (lower) or last."""
    x, b = convert_to_tensor(bands), convert_to_tensor(rhs)
    count, n = x.shape[-2:]
    band = (-(count - 1), 0) if lower else (0, count - 1)
    a = diag(x if count > 1 else x[..., 0, :], k=band if count > 1 else 0, align="RIGHT_RIGHT" if lower else "LEFT_LEFT")
    return _solve_triangle(a, b, lower, adjoint)


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    """Eigenvalues, real and in order, of the Hermitian matrix with diagonal alpha [n] and beta [n - 1] above it.

    select: "a", all; "i", those numbered from select_range[0] to [1]; "v", those in (select_range[0], select_range[1]].
    Without eigvals_only (eigenvalues, eigenvectors). They are exact to the dtype, whatever tol is.
    """
    a, b = convert_to_tensor(alpha), convert_to_tensor(beta)
    if select not in ("a", "i", "v") or (select != "a" and select_range is None):
        raise ValueError(f"eigh_tridiagonal: select is {select!r}, select_range {select_range}; expected 'a', or 'i' or 'v' "
                         "with a range")
    below = diag(b, k=-1)
    full = _l.eigh(_l.diag(a) + below + (_l.adjoint(below)))
    values, vectors = _m.real(full[0]), full[1]
    if select != "a":
        found = values.numpy()
        low, high = (float(v) for v in select_range)
        if select == "i" and not 0 <= low <= high < len(found):
            raise ValueError(f"eigh_tridiagonal: select_range is {select_range}; expected places from 0 to {len(found) - 1}")
        keep = _np.arange(int(low), int(high) + 1) if select == "i" else _np.flatnonzero((found > low) & (found <= high))
        values, vectors = _ops.gather(values, keep), _ops.gather(vectors, keep, axis=1)
    return values if eigvals_only else (values, vectors)


def conjugate_gradient(operator, rhs, preconditioner=None, x=None, tol=1e-05, max_iter=20, name="conjugate_gradient"):
    """Solves A x = rhs [..., n] for an operator that is self-adjoint and positive: (i, x, r, p, gamma), the state at the end."""
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("conjugate_gradient: the operator is not known to be self-adjoint and positive definite; say so when "
                         "it is made")
    b = convert_to_tensor(rhs)
    least = tol * _m.sqrt(_m.reduce_sum(_m.square(_m.abs(b)), -1, True))

    def dot(u, v):
        return _m.reduce_sum(_m.conj(u) * v if u.dtype.is_complex else u * v, -1, True)

    def better(r):
        return r if preconditioner is None else preconditioner.matvec(r)
    if x is None:
        x, r = _ops.zeros_like(b), b
    else:
        x = convert_to_tensor(x, b.dtype)
        r = b - operator.matvec(x)
    z = better(r)
    p, gamma, i = z, dot(r, z), convert_to_tensor(0)
    for _ in range(int(max_iter)):
        going = _m.reduce_any(_m.greater(_m.sqrt(_m.reduce_sum(_m.square(_m.abs(r)), -1, True)), least))
        if not _core.is_open(going) and not bool(going):
            break
        ap = operator.matvec(p)
        alpha = _m.divide_no_nan(gamma, dot(p, ap))
        new_r = r - alpha * ap
        z = better(new_r)
        new_gamma = dot(new_r, z)
        state = i + 1, x + alpha * p, new_r, z + _m.divide_no_nan(new_gamma, gamma) * p, new_gamma
        i, x, r, p, gamma = (_ops.where(going, new, old) for new, old in zip(state, (i, x, r, p, gamma)))
    return _CG(i, x, r, p, _ops.squeeze(gamma, [len(gamma.shape) - 1]))
