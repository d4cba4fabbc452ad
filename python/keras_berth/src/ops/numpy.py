"""keras.ops.numpy: products of arrays; the rest stands in the modules that are taken in here."""
import builtins

import berth as tf
from keras.src.backend import config
from keras.src.backend.common.backend_utils import canonicalize_axis, vectorize_impl
from keras_berth.src.ops.arrays import *  # noqa: F401,F403
from keras_berth.src.ops.arrays import diagonal, moveaxis, pad, ravel  # noqa: F401
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor, vectorized_map
from keras_berth.src.ops.elementwise import *  # noqa: F401,F403
from keras_berth.src.ops.promotion import cast, float_of_whole, floating, name_of, operands, result_type, tensors
from keras_berth.src.ops.reductions import *  # noqa: F401,F403
from keras_berth.src.ops.reductions import mean
from keras_berth.src.ops.sparse import keep_sparse

_m = tf.math


def _product_operands(xs):
    """Tensors of one dtype, and that of the product: bytes are multiplied as int32, bools as numbers."""
    xs = [convert_to_tensor(x) for x in xs]
    names = {name_of(x) for x in xs}
    dtype = "int32" if names == {"int8"} else result_type(*names)
    return [cast(x, "int32" if dtype == "bool" else dtype) for x in xs], dtype


def matmul(x1, x2):
    (x1, x2), dtype = _product_operands([x1, x2])
    if not len(x1.shape) or not len(x2.shape):
        raise ValueError(f"matmul: scalars have no product. Received: shapes {x1.shape} and {x2.shape}")
    row, column = len(x1.shape) == 1, len(x2.shape) == 1
    out = tf.matmul(tf.expand_dims(x1, 0) if row else x1, tf.expand_dims(x2, 1) if column else x2)
    if row or column:
        out = tf.squeeze(out, [-2, -1] if row and column else [-2] if row else [-1])
    return cast(out, dtype)


def einsum(subscripts, *operands, **kwargs):
    operands, dtype = _product_operands(operands)
    return cast(tf.einsum(subscripts.replace(" ", ""), *operands), dtype)


def tensordot(x1, x2, axes=2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    return cast(tf.tensordot(x1, x2, axes), dtype)


def _product_operands_plain(x1, x2):
    """As for products, but of two int8 it is int8."""
    x1, x2 = tensors(x1, x2)
    dtype = name_of(x1)
    return [cast(x, "int32" if dtype == "bool" else dtype) for x in (x1, x2)], dtype


def dot(x1, x2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    if not len(x1.shape) or not len(x2.shape):
        return cast(x1 * x2, dtype)
    return cast(tf.tensordot(x1, x2, [[-1], [0 if len(x2.shape) == 1 else -2]]), dtype)


def inner(x1, x2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    if not len(x1.shape) or not len(x2.shape):
        return cast(x1 * x2, dtype)
    return cast(tf.tensordot(x1, x2, [[-1], [-1]]), dtype)


def vdot(x1, x2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    x1 = _m.conj(x1) if dtype.startswith("complex") else x1
    return cast(tf.reduce_sum(ravel(x1) * ravel(x2)), dtype)


def outer(x1, x2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    return cast(tf.expand_dims(ravel(x1), 1) * tf.expand_dims(ravel(x2), 0), dtype)


def kron(x1, x2):
    (x1, x2), dtype = _product_operands_plain(x1, x2)
    rank = builtins.max(len(x1.shape), len(x2.shape))
    a, b = ([1] * (rank - len(x.shape)) + x.shape.as_list() for x in (x1, x2))
    # Axis by axis the elements of one within those of the other.
    out = (tf.reshape(x1, [n for size in a for n in (size, 1)]) * tf.reshape(x2, [n for size in b for n in (1, size)]))
    return cast(tf.reshape(out, [m * n for m, n in zip(a, b)]), dtype)


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = tensors(x1, x2)
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError("`x1` and `x2` must have vectors of 2 or 3 elements. "
                         f"Received: shapes {x1.shape} and {x2.shape}")
    flat = a.shape[-1] == b.shape[-1] == 2
    a0, a1, *a2 = tf.unstack(a, axis=-1)
    b0, b1, *b2 = tf.unstack(b, axis=-1)
    up = a0 * b1 - a1 * b0
    if flat:
        return up
    a2, b2 = a2[0] if a2 else tf.zeros_like(a0), b2[0] if b2 else tf.zeros_like(b0)
    return moveaxis(tf.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, up], -1), -1, axisc)


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    if n < 0:
        raise ValueError(f"Order `n` must be non-negative. Received: n={n}")
    axis = canonicalize_axis(axis, len(a.shape))
    before = (slice(None),) * axis
    for _ in range(n):
        late, early = a[before + (slice(1, None),)], a[before + (slice(None, -1),)]
        a = _m.not_equal(late, early) if name_of(a) == "bool" else late - early
    return a


def trapezoid(y, x=None, dx=1.0, axis=-1):
    (y,) = tensors(y, also=(float,))
    axis = canonicalize_axis(axis, len(y.shape))
    before = (slice(None),) * axis
    pairs = (y[before + (slice(1, None),)] + y[before + (slice(None, -1),)]) / 2
    if x is None:
        return tf.reduce_sum(pairs * cast(convert_to_tensor(dx), name_of(y)), axis)
    x = cast(convert_to_tensor(x), name_of(y))
    if len(x.shape) == 1:
        gaps = tf.reshape(diff(x), [-1] + [1] * (len(y.shape) - 1 - axis))
    else:
        gaps = diff(x, axis=axis)
    return tf.reduce_sum(pairs * gaps, axis)


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    dtype = result_type(name_of(x))
    wide = result_type(name_of(x), config.floatx())
    count = x.shape[-1] if N is None else int(N)
    powers = tf.range(count) if increasing else tf.reverse(tf.range(count), [0])
    return cast(_m.pow(tf.expand_dims(cast(x, wide), -1), cast(powers, wide)), dtype)


def corrcoef(x):
    x = convert_to_tensor(x)
    dtype = name_of(x) if name_of(x) in ("float64", "bfloat16", "float16") else config.floatx()
    x = cast(x, dtype if dtype == "float64" else "float32")
    x = tf.expand_dims(x, 0) if len(x.shape) < 2 else x
    gap = x - mean(x, -1, True)
    covariance = tf.matmul(gap, gap, transpose_b=True)
    root = _m.sqrt(diagonal(covariance))
    out = covariance / tf.expand_dims(root, 1) / tf.expand_dims(root, 0)
    out = tf.clip_by_value(out, -1.0, 1.0)
    return cast(tf.reshape(out, []) if out.shape.num_elements() == 1 else out, dtype)


def correlate(x1, x2, mode="valid"):
    x1, x2 = operands(x1, x2)
    dtype = name_of(x1) if name_of(x1) in ("bfloat16", "float16", "float64") else "float32"
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    turned = x1.shape[0] < x2.shape[0]
    if turned:
        x1, x2 = x2, x1
    n = x2.shape[0]
    sides = {"valid": (0, 0), "same": (n // 2, n - 1 - n // 2), "full": (n - 1, n - 1)}
    if mode not in sides:
        raise ValueError(f"Unknown mode: {mode}; expected valid, same or full")
    left, right = sides[mode]
    if turned:
        left, right = right, left
    x1 = pad(x1, [[left, right]])
    out = tf.nn.conv1d(tf.reshape(x1, [1, -1, 1]), tf.reshape(x2, [-1, 1, 1]), 1, "VALID")
    out = tf.reshape(out, [-1])
    return tf.reverse(out, [0]) if turned else out


def slogdet(x):
    x = convert_to_tensor(x)
    return tuple(tf.linalg.slogdet(cast(x, float_of_whole(name_of(x)))))


def vectorize(pyfunc, *, excluded=None, signature=None):
    def mapped(function, in_axes):
        def call(*args):
            taken = [a for a, axis in zip(args, in_axes) if axis is not None]

            def one(parts):
                parts = iter(parts)
                return function(*[next(parts) if axis is not None else a for a, axis in zip(args, in_axes)])
            return vectorized_map(one, taken)
        return call
    return vectorize_impl(pyfunc, mapped, excluded=excluded, signature=signature)


keep_sparse(globals())
