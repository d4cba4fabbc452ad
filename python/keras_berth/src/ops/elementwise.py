"""Functions of keras.ops.numpy that treat each element by itself."""
import math as _math

import berth as tf
from keras.src.backend import config
from keras.src.backend.common.variables import standardize_dtype
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import (binary, bitwise, cast, define, float_of_whole, floating, is_whole, name_of,
                                           number, operands, result_type, same, tensors, unary)

_m, _b = tf.math, tf.bitwise


def _as_bool(x):
    return cast(x, "bool")


def _widened(x):
    """Bools as numbers, which compare and order."""
    return cast(x, number(name_of(x)))


def _only_floats(otherwise):
    """Of whole numbers `otherwise` of the tensor, without a computation."""
    def rule(function):
        return lambda x: otherwise(x) if is_whole(name_of(x)) else function(x)
    return rule


_never = _only_floats(lambda x: tf.zeros_like(_as_bool(x)))
_always = _only_floats(lambda x: tf.ones_like(_as_bool(x)))
_itself = _only_floats(lambda x: x)


def _times(factor):
    return lambda x: x * convert_to_tensor(factor, name_of(x))


def _log_to(base):
    return lambda x: _times(1 / _math.log(base))(_m.log(x))


def _sinc(x):
    at = x * convert_to_tensor(_math.pi, name_of(x))
    zero = _m.equal(x, tf.zeros_like(x))
    safe = tf.where(zero, tf.ones_like(x), at)
    return tf.where(zero, tf.ones_like(x), _m.sin(safe) / safe)


def _cbrt(x):
    third = convert_to_tensor(1 / 3, name_of(x))
    return _m.sign(x) * _m.pow(_m.abs(x), third)


def _sign_bit(x):
    zero = tf.zeros_like(x)
    below = _m.less(x, zero)
    if name_of(x).startswith("uint") or is_whole(name_of(x)):
        return below
    return _m.logical_or(below, _m.logical_and(_m.equal(x, zero), _m.less(_m.reciprocal(x), zero)))


def _sign(x):
    return _m.minimum(x, tf.ones_like(x)) if name_of(x).startswith("uint") else _m.sign(x)


def _angle(x):
    if name_of(x).startswith("complex"):
        return _m.angle(x)
    turned = _m.atan2(tf.zeros_like(x), x)
    return tf.where(_m.is_nan(x), x, turned)


def _unary_of_whole(function, on_bool):
    return lambda x: on_bool(x) if name_of(x) == "bool" else function(x)


def _absolute(x):
    return x if name_of(x) == "bool" or name_of(x).startswith("uint") else _m.abs(x)


def _exp2(x):
    return _m.exp(_times(_math.log(2))(x))


def _trunc(x):
    return tf.where(_m.less(x, tf.zeros_like(x)), _m.ceil(x), _m.floor(x))


def _real_part(x):
    return _m.real(x) if name_of(x).startswith("complex") else x


def _imaginary_part(x):
    return _m.imag(x) if name_of(x).startswith("complex") else tf.zeros_like(x)


def _is_real(x):
    if name_of(x).startswith("complex"):
        return _m.equal(_m.imag(x), tf.zeros_like(_m.imag(x)))
    return tf.ones_like(_as_bool(x))


def _infinite(sign):
    return lambda x: _m.logical_and(_m.is_inf(x), _m.less(tf.zeros_like(x), x) if sign > 0
                                    else _m.less(x, tf.zeros_like(x)))


define(globals(), unary, {
    "absolute": (same, _absolute), "abs": (same, _absolute), "fabs": (float_of_whole, _m.abs),
    "arccos": (floating, _m.acos), "arccosh": (floating, _m.acosh), "arcsin": (floating, _m.asin),
    "arcsinh": (floating, _m.asinh), "arctan": (floating, _m.atan), "arctanh": (floating, _m.atanh),
    "cos": (floating, _m.cos), "cosh": (floating, _m.cosh), "sin": (floating, _m.sin), "sinh": (floating, _m.sinh),
    "tan": (floating, _m.tan), "tanh": (floating, _m.tanh), "angle": (floating, _angle),
    "ceil": (floating, _m.ceil), "floor": (floating, _m.floor), "trunc": (same, _itself(_trunc)),
    "exp": (float_of_whole, _m.exp), "exp2": (float_of_whole, _exp2), "expm1": (float_of_whole, _m.expm1),
    "log": (floating, _m.log), "log10": (floating, _log_to(10)), "log1p": (floating, _m.log1p),
    "log2": (floating, _log_to(2)), "sqrt": (floating, _m.sqrt), "cbrt": (floating, _cbrt),
    "sinc": (floating, _sinc), "i0": (floating, lambda x: tf.math.bessel_i0(x)),
    "deg2rad": (floating, _times(_math.pi / 180)), "rad2deg": (floating, _times(180 / _math.pi)),
    "square": (number, _m.square), "negative": (same, _m.negative), "reciprocal": (floating, _m.reciprocal),
    "sign": (number, _sign), "signbit": (number, _sign_bit),
    "isfinite": (same, _always(_m.is_finite)), "isinf": (same, _never(_m.is_inf)), "isnan": (same, _never(_m.is_nan)),
    "isposinf": (same, _never(_infinite(1))), "isneginf": (same, _never(_infinite(-1))), "isreal": (same, _is_real),
    "conj": (same, _m.conj), "conjugate": (same, _m.conj), "real": (same, _real_part), "imag": (same, _imaginary_part),
    "bitwise_not": (same, _unary_of_whole(_b.invert, _m.logical_not)),
    "bitwise_invert": (same, _unary_of_whole(_b.invert, _m.logical_not)),
    "logical_not": (lambda _: "bool", _m.logical_not),
})


# Promotions of two arguments.
def _numbers(x1, x2):
    return tensors(x1, x2, dtype_of=number)


def _divided(x1, x2):
    return operands(x1, x2, also=(float,))


def _floats(x1, x2):
    return tensors(x1, x2, also=(float,))


def _compared(x1, x2):
    return map(_widened, operands(x1, x2))


def _bools(x1, x2):
    return _as_bool(convert_to_tensor(x1)), _as_bool(convert_to_tensor(x2))


def _by_bits(function):
    """Shifts of bools are shifts of int32."""
    return lambda x1, x2: function(_widened(x1), _widened(x2))


def _either(pick):
    """fmax and fmin: of a NaN and a number the number."""
    def function(x1, x2):
        if is_whole(name_of(x1)):
            return pick(x1, x2)
        return tf.where(_m.is_nan(x1), x2 + tf.zeros_like(x1), tf.where(_m.is_nan(x2), x1, pick(x1, x2)))
    return function


def _hypot(x1, x2):
    a, b = _m.abs(x1), _m.abs(x2)
    large, small = _m.maximum(a, b), _m.minimum(a, b)
    plain = _m.logical_and(_m.greater(large, tf.zeros_like(large)), _m.is_finite(large))
    safe = tf.where(plain, large, tf.ones_like(large))
    return tf.where(plain, safe * _m.sqrt(_m.square(small / safe) + tf.ones_like(safe)), large)


def _heaviside(x1, x2):
    zero = tf.zeros_like(x1)
    one = tf.ones_like(x1)
    return tf.where(_m.is_nan(x1), x1, tf.where(_m.equal(x1, zero), x2, tf.where(_m.less(x1, zero), zero, one)))


def _log_add(base):
    scale = _math.log(base)

    def function(x1, x2):
        top = _m.maximum(x1, x2)
        gap = -_m.abs(x1 - x2)
        if base != _math.e:
            gap = gap * convert_to_tensor(scale, name_of(x1))
        more = _m.log1p(_m.exp(gap))
        if base != _math.e:
            more = more * convert_to_tensor(1 / scale, name_of(x1))
        # Equal infinities have no difference.
        return tf.where(_m.equal(x1, x2), top + convert_to_tensor(_math.log(2) / scale, name_of(x1)), top + more)
    return function


def _floor_divide(x1, x2):
    return _m.floordiv(_widened(x1), _widened(x2))


def _power(x1, x2):
    return _m.pow(_widened(x1), _widened(x2))


def _next_after(x1, x2):
    dtype = name_of(x1)
    exact = dtype if dtype == "float64" else "float32"
    return cast(_m.nextafter(cast(x1, exact), cast(x2, exact)), dtype)


define(globals(), binary, {
    "add": (operands, _m.add, _m.logical_or), "subtract": (operands, _m.subtract),
    "multiply": (operands, _m.multiply, _m.logical_and), "divide": (_divided, _m.divide),
    "true_divide": (_divided, _m.divide), "divide_no_nan": (_divided, _m.divide_no_nan),
    "floor_divide": (operands, _floor_divide), "power": (operands, _power),
    "mod": (_numbers, _m.floormod), "fmod": (_numbers, _m.truncatemod),
    "maximum": (operands, _m.maximum, _m.logical_or), "minimum": (operands, _m.minimum, _m.logical_and),
    "fmax": (operands, _either(_m.maximum), _m.logical_or), "fmin": (operands, _either(_m.minimum), _m.logical_and),
    "arctan2": (_floats, _m.atan2), "hypot": (_floats, _hypot), "heaviside": (_floats, _heaviside),
    "logaddexp": (_floats, _log_add(_math.e)), "logaddexp2": (_floats, _log_add(2)),
    "nextafter": (_floats, _next_after),
    "equal": (operands, _m.equal), "not_equal": (operands, _m.not_equal), "less": (_compared, _m.less),
    "less_equal": (_compared, _m.less_equal), "greater": (_compared, _m.greater),
    "greater_equal": (_compared, _m.greater_equal),
    "logical_and": (_bools, _m.logical_and), "logical_or": (_bools, _m.logical_or),
    "logical_xor": (_bools, _m.logical_xor),
})
define(globals(), bitwise, {
    "bitwise_and": (_b.bitwise_and, _m.logical_and), "bitwise_or": (_b.bitwise_or, _m.logical_or),
    "bitwise_xor": (_b.bitwise_xor, _m.logical_xor),
    "bitwise_left_shift": (_by_bits(_b.left_shift),), "left_shift": (_by_bits(_b.left_shift),),
    "bitwise_right_shift": (_by_bits(_b.right_shift),), "right_shift": (_by_bits(_b.right_shift),),
})


def ldexp(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if not is_whole(name_of(x2)) or name_of(x2) == "bool":
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={name_of(x2)}")
    dtype = result_type(name_of(x1), name_of(x2), float)
    return cast(x1, dtype) * _exp2(cast(x2, dtype))


def _euclid(a, b):
    """The greatest common divisor, by division until nothing is left."""
    def more(a, b):
        return tf.reduce_any(_m.not_equal(b, tf.zeros_like(b)))

    def step(a, b):
        zero = _m.equal(b, tf.zeros_like(b))
        rest = _m.floormod(a, tf.where(zero, tf.ones_like(b), b))
        return tf.where(zero, a, b), tf.where(zero, b, rest)
    return tf.while_loop(more, step, (a, b))[0]


def gcd(x1, x2):
    x1, x2 = tensors(x1, x2)
    if name_of(x1) == "bool":
        return _m.logical_or(x1, x2)
    a, b = _absolute(x1), _absolute(x2)
    return _euclid(a + tf.zeros_like(b), b + tf.zeros_like(a))


def lcm(x1, x2):
    x1, x2 = tensors(x1, x2)
    if name_of(x1) == "bool":
        return _m.logical_and(x1, x2)
    common = gcd(x1, x2)
    zero = _m.equal(common, tf.zeros_like(common))
    return _m.floordiv(_absolute(x1), tf.where(zero, tf.ones_like(common), common)) * _absolute(x2)


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    dtype = number(name_of(x))
    wide = result_type(dtype, *[type(v) if isinstance(v, (int, float)) else name_of(convert_to_tensor(v))
                                for v in (x_min, x_max)])
    low, high = (cast(convert_to_tensor(v, wide if isinstance(v, (int, float)) else None), wide)
                 for v in (x_min, x_max))
    return cast(_m.minimum(_m.maximum(cast(x, wide), low), high), dtype)


def round(x, decimals=0):
    x = convert_to_tensor(x)
    dtype = name_of(x)
    if is_whole(dtype) and decimals >= 0:
        return cast(x, number(dtype)) if dtype == "bool" else x
    wide = float_of_whole(dtype)
    if decimals == 0:
        return _m.round(cast(x, wide))
    factor = convert_to_tensor(10.0 ** _math.fabs(decimals), wide)
    x = cast(x, wide)
    return cast(_m.round(x * factor) / factor if decimals > 0 else _m.round(x / factor) * factor, dtype)


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    if is_whole(name_of(x)):
        return x

    def limit(value, default):
        return convert_to_tensor(float(default) if value is None else value, name_of(x))
    limits = tf.as_dtype(name_of(x))
    x = tf.where(_m.is_nan(x), limit(nan, 0), x)
    x = tf.where(isposinf(x), limit(posinf, limits.max), x)  # noqa: F821
    return tf.where(isneginf(x), limit(neginf, limits.min), x)  # noqa: F821


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    x1, x2 = tensors(x1, x2, dtype_of=float_of_whole)
    dtype = name_of(x1)
    near = _m.less_equal(_m.abs(x1 - x2), convert_to_tensor(atol, dtype)
                         + convert_to_tensor(rtol, dtype) * _m.abs(x2))
    near = _m.logical_or(_m.equal(x1, x2), _m.logical_and(near, _m.logical_and(_m.is_finite(x1), _m.is_finite(x2))))
    return _m.logical_or(near, _m.logical_and(_m.is_nan(x1), _m.is_nan(x2))) if equal_nan else near


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def where(condition, x1=None, x2=None):
    condition = _as_bool(convert_to_tensor(condition))
    if x1 is None or x2 is None:
        from keras_berth.src.ops.arrays import nonzero
        return nonzero(condition)
    x1, x2 = operands(x1, x2)
    return tf.where(condition, x1, x2)


def select(condlist, choicelist, default=0):
    *choices, default = operands(*choicelist, default)
    out = default
    for condition, choice in reversed(list(zip(condlist, choices))):
        out = tf.where(_as_bool(convert_to_tensor(condition)), choice, out)
    return out


def view(x, dtype=None):
    """The bytes as another dtype; where that has another size, the last axis has, too."""
    x = convert_to_tensor(x)
    dtype = tf.as_dtype(name_of(x) if dtype is None else standardize_dtype(dtype))
    if dtype.size == x.dtype.size:
        return tf.bitcast(x, dtype)
    *batch, last = x.shape.as_list() or [1]
    count = last * x.dtype.size // dtype.size
    if not len(x.shape) or count * dtype.size != last * x.dtype.size:
        raise ValueError(f"view: an array of shape {tuple(x.shape)} and dtype {name_of(x)} has no view as {dtype.name}")
    if dtype.size > x.dtype.size:
        x = tf.reshape(x, [*batch, count, dtype.size // x.dtype.size])
    return tf.reshape(tf.bitcast(x, dtype), [*batch, count])


def bartlett(x):
    return _window(x, lambda n, m: 1 - _m.abs(2 * n / m - 1))


def hanning(x):
    return _window(x, lambda n, m: 0.5 - 0.5 * _m.cos(2 * _math.pi * n / m))


def hamming(x):
    return _window(x, lambda n, m: 0.54 - 0.46 * _m.cos(2 * _math.pi * n / m))


def blackman(x):
    return _window(x, lambda n, m: 0.42 - 0.5 * _m.cos(2 * _math.pi * n / m) + 0.08 * _m.cos(4 * _math.pi * n / m))


def kaiser(x, beta):
    beta = cast(convert_to_tensor(beta), config.floatx())

    def shape(n, m):
        root = _m.sqrt(_m.maximum(1 - _m.square(2 * n / m - 1), tf.zeros_like(n)))
        return tf.math.bessel_i0(beta * root) / tf.math.bessel_i0(beta)
    return _window(x, shape)


def _window(length, shape):
    """A window of a length that is known when the function is traced."""
    length = int(convert_to_tensor(length))
    if length <= 1:
        return tf.ones((max(length, 0),), config.floatx())
    return shape(tf.range(0, length, dtype=config.floatx()), float(length - 1))
