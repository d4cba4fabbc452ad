"""Functions of tf.experimental.numpy that programs ask for less often."""
import builtins as _b

import numpy as _np

import berth as _tf
from berth import _core
from berth._not_tensors import refuse_kinds as _refuse_kinds
from berth.experimental import numpy as _n

_m, _ops, _array = _core.ops.math, _core.ops, _n.array


def append(arr, values, axis=None):
    """The elements of both, one after the other: of all as a vector, or along an axis."""
    return _n.concatenate([_array(arr), _array(values)], axis)


def bitwise_not(x):
    """Each bit the other way."""
    x = _array(x)
    return _m.logical_not(x) if x.dtype == _tf.bool else _tf.bitwise.invert(x)


def compress(condition, a, axis=None):
    """The slices along an axis, or the elements, where the condition holds; it may be shorter than the axis."""
    a = _array(a)
    a, axis = (_n.ravel(a), 0) if axis is None else (a, axis)
    places = _np.flatnonzero(_array(condition).numpy())
    return _tf.gather(a, places, axis=axis % len(a.shape))


def diag_indices(n, ndim=2):
    """The places of the diagonal of an array with ndim axes of length n."""
    return (_ops.range(0, int(n), 1, _tf.int32),) * ndim


def diagflat(v, k=0):
    """The matrix whose diagonal k has the elements of v."""
    return _n.diag(_n.ravel(v), k)


def divmod(x1, x2):  # noqa: A001
    """floor_divide and mod at once: (quotient, remainder)."""
    return _n.floor_divide(x1, x2), _n.mod(x1, x2)


def flatten(a, order="C"):
    """The elements as a vector: rows first ("C", "A", "K"), or columns ("F")."""
    if order not in ("C", "A", "K", "F"):
        raise ValueError(f"flatten: order is {order!r}; expected 'C', 'F', 'A' or 'K'")
    a = _array(a)
    return _n.ravel(_n.transpose(a) if order == "F" else a)


def _whole(name, x1, x2):
    a, b = _n._together(x1, x2)
    if not a.dtype.is_integer:
        raise ValueError(f"{name}: the arguments are {a.dtype.name}; expected whole numbers")
    return [_m.abs(v) if not v.dtype.name.startswith("u") else v for v in (a, b)]


def gcd(x1, x2):
    """The greatest common divisor, by Euclid's rule."""
    a, b = _whole("gcd", x1, x2)
    a, b = a + _ops.zeros_like(b), b + _ops.zeros_like(a)
    steps = {1: 13, 2: 24, 4: 47, 8: 92}[a.dtype.size]  # of neighbours in Fibonacci's sequence, the worst case
    one = _ops.ones_like(a)
    for _ in _b.range(steps):
        some = _m.not_equal(b, _ops.zeros_like(b))
        if not _core.is_open(some) and not _b.bool(_m.reduce_any(some)):
            break
        a, b = _ops.where(some, b, a), _ops.where(some, _m.floormod(a, _ops.where(some, b, one)), b)
    return a


def lcm(x1, x2):
    """The least common multiple; 0 where one is 0."""
    a, b = _whole("lcm", x1, x2)
    shared = gcd(a, b)
    return a * _m.floordiv(b + _ops.zeros_like(a), _m.maximum(shared, _ops.ones_like(shared)))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """num numbers from start to stop, each the same multiple of the one before."""
    _refuse_kinds("geomspace", "a number", start=start, stop=stop)
    ends = [_array(v, _n._allowed(_tf.float64)) for v in (start, stop)]
    return _n._between(*ends, num, endpoint, dtype, axis, lambda first, last, part: first * _m.pow(last / first, part))


def iscomplex(x):
    """Whether each element has an imaginary part other than 0."""
    return _m.not_equal(_n.imag(x), _ops.zeros_like(_n.imag(x)))


def isreal(x):
    """Whether each element has no imaginary part, or one of 0."""
    return _m.logical_not(iscomplex(x))


def iscomplexobj(x):
    """Whether the dtype is a complex one."""
    return _array(x).dtype.is_complex


def isrealobj(x):
    """Whether the dtype is a real one."""
    return not iscomplexobj(x)


def _is_infinite(x, sign):
    x = _array(x)
    return _m.equal(x, _ops.zeros_like(x) + sign * float("inf")) if x.dtype.is_floating else False


def isneginf(x):
    """Whether each element is minus infinity; False of dtypes that have none."""
    return _is_infinite(x, -1)


def isposinf(x):
    """Whether each element is infinity; False of dtypes that have none."""
    return _is_infinite(x, 1)


def issubdtype(arg1, arg2):
    """Whether a dtype is of a kind, as numpy.issubdtype says it."""
    kinds = [v.as_numpy_dtype if isinstance(v, _core.DType) else v for v in (arg1, arg2)]
    return _np.issubdtype(*kinds)


def ix_(*args):
    """Vectors of places as a grid: each along an axis of its own. Of bools the places of True."""
    out = []
    for i, v in enumerate(args):
        v = _array(v)
        if len(v.shape) != 1:
            raise ValueError(f"ix_: argument {i} is {v.shape}; expected one axis")
        v = _array(_np.flatnonzero(v.numpy())) if v.dtype == _tf.bool else v
        out.append(_tf.reshape(v, [-1 if a == i else 1 for a in _b.range(len(args))]))
    return out


def _two(x1, x2):
    return [_n._floating(v) for v in _n._together(x1, x2)]


def logaddexp2(x1, x2):
    """log2 of 2**x1 + 2**x2."""
    a, b = _two(x1, x2)
    high, low, log = _m.maximum(a, b), _m.minimum(a, b), _np.log(2.0).item()
    return high + _m.log1p(_m.exp((low - high) * log)) / log


def nextafter(x1, x2):
    """The number next to x1 on the side of x2."""
    return _m.nextafter(*_two(x1, x2))


def _numbers_alone(a, fill):
    a = _array(a)
    return a if not (a.dtype.is_floating or a.dtype.is_complex) else _ops.where(_m.is_nan(_m.abs(a)), _ops.zeros_like(a) + fill,
                                                                                a)


def nansum(a, axis=None, dtype=None, keepdims=False):
    """The sum of what is a number."""
    return _n.sum(_numbers_alone(a, 0), axis, dtype, keepdims)


def nanprod(a, axis=None, dtype=None, keepdims=False):
    """The product of what is a number."""
    return _n.prod(_numbers_alone(a, 1), axis, dtype, keepdims)


def nanmean(a, axis=None, dtype=None, keepdims=None):
    """The mean of what is a number; NaN of none."""
    a = _array(a)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        return _n.mean(a, axis, dtype, keepdims)
    total = nansum(a, axis, dtype, keepdims)
    count = _m.reduce_sum(_tf.cast(_m.logical_not(_m.is_nan(_m.abs(a))), total.dtype), axis, _b.bool(keepdims))
    return total / count


def polyval(p, x):
    """The polynomial with these coefficients, the highest first, at x."""
    p, x = _n._together(p, x)
    out = _ops.zeros_like(x)
    for c in _ops.unstack(p):
        out = out * x + c
    return out


def ptp(a, axis=None, keepdims=None):
    """The largest less the smallest."""
    return _n.max(a, axis, keepdims=keepdims) - _n.min(a, axis, keepdims=keepdims)


def signbit(x):
    """Whether each element is less than 0."""
    x = _array(x)
    return _ops.zeros_like(x) if x.dtype == _tf.bool else _m.less(x, _ops.zeros_like(x))


def sinc(x):
    """sin(pi x) / (pi x), 1 at 0."""
    x = _n._floating(x)
    is_zero = _m.equal(x, _ops.zeros_like(x))
    y = _ops.where(is_zero, _ops.ones_like(x), x) * _np.pi
    return _ops.where(is_zero, _ops.ones_like(x), _m.sin(y) / y)
