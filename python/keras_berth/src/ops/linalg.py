"""keras.ops.linalg: decompositions, and what follows from them."""
import berth as tf
from keras.src.backend.common.backend_utils import canonicalize_axes
from keras_berth.src.ops.arrays import moveaxis
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, float_of_whole, floating, name_of, tensors

_m = tf.math


def _float(x):
    x = convert_to_tensor(x)
    return cast(x, float_of_whole(name_of(x)))


def cholesky(a, upper=False):
    try:
        out = tf.linalg.cholesky(_float(a))
    except tf.errors.InvalidArgumentError as error:
        raise ValueError("Cholesky decomposition failed. The input might not be a valid positive definite matrix. "
                         f"{error}") from error
    return tf.linalg.matrix_transpose(out) if upper else out


def cholesky_inverse(a, upper=False):
    a = _float(a)
    inverse = solve_triangular(a, tf.eye(a.shape[-1], dtype=name_of(a)), lower=not upper)
    return tf.matmul(inverse, inverse, transpose_a=not upper, transpose_b=upper)


def det(a):
    return tf.linalg.det(_float(a))


def eig(x):
    return tuple(tf.linalg.eig(_float(x)))


def eigh(x):
    return tuple(tf.linalg.eigh(_float(x)))


def inv(a):
    return tf.linalg.inv(_float(a))


def lu_factor(x):
    x = _float(x)
    m, n = x.shape[-2:]
    # Rows or columns of zeros that make the matrix square are not exchanged, and leave its factors as they are.
    square = tf.pad(x, [[0, 0]] * (len(x.shape) - 2) + [[0, max(n - m, 0)], [0, max(m - n, 0)]])
    factors, places = tf.linalg.lu(square)
    return factors[..., :m, :n], _swaps(places, min(m, n))


def _swaps(order, count):
    """The row that each row is exchanged with, one after the other, to bring rows into an order."""
    now = tf.broadcast_to(tf.range(order.shape[-1]), order.shape)
    out = []
    for i in range(count):
        wanted = order[..., i:i + 1]
        at = tf.argmax(cast(_m.equal(now, wanted), "int32"), -1, "int32")
        out.append(at)
        here, there = (tf.expand_dims(v, -1) for v in (now[..., i], at))
        now = tf.where(_m.equal(tf.range(order.shape[-1]), there), here, now)
        now = tf.where(_m.equal(tf.range(order.shape[-1]), convert_to_tensor(i, "int32")), wanted, now)
    return tf.stack(out, -1)


def qr(x, mode="reduced"):
    if mode not in ("reduced", "complete"):
        raise ValueError("`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
                         f"Received: mode={mode}")
    return tuple(tf.linalg.qr(_float(x), full_matrices=mode == "complete"))


def solve(a, b):
    a, b = tensors(a, b, dtype_of=float_of_whole)
    if len(b.shape) == len(a.shape) - 1:
        return tf.squeeze(tf.linalg.solve(a, tf.expand_dims(b, -1)), [-1])
    return tf.linalg.solve(a, b)


def solve_triangular(a, b, lower=False):
    a, b = tensors(a, b, dtype_of=float_of_whole)
    if len(b.shape) == len(a.shape) - 1:
        return tf.squeeze(tf.linalg.triangular_solve(a, tf.expand_dims(b, -1), lower=lower), [-1])
    return tf.linalg.triangular_solve(a, b, lower=lower)


def svd(x, full_matrices=True, compute_uv=True):
    out = tf.linalg.svd(_float(x), full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv:
        return out if tf.is_tensor(out) else tuple(out)[0]
    s, u, v = out
    return u, s, tf.linalg.matrix_transpose(v)


def _epsilon(dtype):
    import numpy
    return float(numpy.finfo(dtype).eps)


def _above(s, share):
    """Where singular values are above a share of the largest."""
    return _m.greater(s, convert_to_tensor(share, name_of(s)) * tf.reduce_max(s, -1, True))


def lstsq(a, b, rcond=None):
    a, b = tensors(a, b, dtype_of=float_of_whole)
    column = len(b.shape) == 1
    if rcond is None:
        rcond = _epsilon(name_of(a)) * max(a.shape[-2:])
    out = tf.matmul(pinv(a, rcond), tf.expand_dims(b, -1) if column else b)
    return tf.squeeze(out, [-1]) if column else out


def matrix_rank(x, tol=None):
    x = _at_least_matrix(x)
    s = svd(x, compute_uv=False)
    kept = _above(s, _epsilon(name_of(s)) * max(x.shape[-2:])) if tol is None else _m.greater(
        s, cast(convert_to_tensor(tol), name_of(s)))
    return tf.reduce_sum(cast(kept, "int32"), -1)


def pinv(x, rcond=None):
    x = _at_least_matrix(x)
    u, s, v = svd(x, full_matrices=False)
    kept = _above(s, 10 * _epsilon(name_of(s)) * max(x.shape[-2:]) if rcond is None else rcond)
    inverse = tf.where(kept, _m.reciprocal(tf.where(kept, s, tf.ones_like(s))), tf.zeros_like(s))
    return tf.matmul(tf.linalg.matrix_transpose(v) * tf.expand_dims(inverse, -2), u, transpose_b=True)


def _at_least_matrix(x):
    x = _float(x)
    if len(x.shape) < 2:
        raise ValueError(f"Expected input to have rank >= 2. Received input with shape {tuple(x.shape)}.")
    return x


# Norms.
def _of_vector(x, ord, axes, keepdims):
    size = _m.abs(x)
    if ord in (None, "euclidean", 2):
        return _m.sqrt(tf.reduce_sum(_m.square(size), axes, keepdims))
    if ord == float("inf"):
        return tf.reduce_max(size, axes, keepdims)
    if ord == float("-inf"):
        return tf.reduce_min(size, axes, keepdims)
    if ord == 0:
        return tf.reduce_sum(cast(_m.not_equal(size, tf.zeros_like(size)), name_of(size)), axes, keepdims)
    if ord == 1:
        return tf.reduce_sum(size, axes, keepdims)
    if not isinstance(ord, (int, float)):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    power = convert_to_tensor(float(ord), name_of(size))
    return _m.pow(tf.reduce_sum(_m.pow(size, power), axes, keepdims), _m.reciprocal(power))


def _of_matrix(x, ord, axes, keepdims):
    row, column = axes
    if ord in (None, "fro"):
        return _m.sqrt(tf.reduce_sum(_m.square(_m.abs(x)), list(axes), keepdims))
    if ord in (1, -1, float("inf"), float("-inf")):
        added, kept = (row, column) if ord in (1, -1) else (column, row)
        sums = tf.reduce_sum(_m.abs(x), [added], True)
        out = (tf.reduce_max if ord > 0 else tf.reduce_min)(sums, [kept], True)
    elif ord in (2, -2, "nuc"):
        s = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        out = {2: tf.reduce_max, -2: tf.reduce_min, "nuc": tf.reduce_sum}[ord](s, -1)
        for axis in sorted(axes):
            out = tf.expand_dims(out, axis)
    else:
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    return out if keepdims else tf.squeeze(out, list(axes))


def norm(x, ord=None, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    x = cast(x, floating(name_of(x)))
    rank = len(x.shape)
    if axis is None and ord is None:
        return _of_vector(x, None, list(range(rank)), keepdims)
    axes = list(range(rank)) if axis is None else list(canonicalize_axes(axis, rank))
    if len(axes) == 1:
        return _of_vector(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"Improper number of axes for norm: axis={axis}, shape={tuple(x.shape)}")
    return _of_matrix(x, ord, axes, keepdims)


def jvp(fun, primals, tangents, has_aux=False):
    """Forward mode by two reverse passes: the gradient is linear in what it is multiplied by."""
    from keras.src import tree
    primals = [convert_to_tensor(p) for p in primals]
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(primals)
            out = fun(*primals)
            out, aux = out if has_aux else (out, None)
        results = [convert_to_tensor(r) for r in tree.flatten(out)]
        weights = [tf.ones_like(r) for r in results]
        outer.watch(weights)
        slopes = inner.gradient(results, primals, output_gradients=weights, unconnected_gradients="zero")
    moved = outer.gradient(slopes, weights, output_gradients=[convert_to_tensor(t) for t in tangents],
                           unconnected_gradients="zero")
    moved = tree.pack_sequence_as(out, moved)
    return (out, moved, aux) if has_aux else (out, moved)
