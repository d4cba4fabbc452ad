"""Functions of keras.ops.numpy over axes: sums, moments, extremes, quantiles, running sums, and their nan forms."""
import berth as tf
from keras.src.backend.common.backend_utils import canonicalize_axes, canonicalize_axis
from keras.src.backend.common.variables import standardize_dtype
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import (WIDER, cast, float_of_whole, floating, is_whole, name_of, number,
                                           result_type, tensors)

_m = tf.math
_INFINITY = float("inf")


def _axis(axis):
    return list(axis) if isinstance(axis, (tuple, list)) else axis


def _reduced(name, function, dtype_of, on_bool=None):
    """A reduction in the dtype that the argument's says."""
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        if on_bool and name_of(x) == "bool":
            return on_bool(x, _axis(axis), keepdims)
        return function(cast(x, dtype_of(name_of(x))), _axis(axis), keepdims)
    call.__name__ = call.__qualname__ = name
    return call


def _wider(dtype):
    return WIDER.get(dtype, dtype)


_max = _reduced("amax", tf.reduce_max, lambda dtype: dtype, tf.reduce_any)
_min = _reduced("amin", tf.reduce_min, lambda dtype: dtype, tf.reduce_all)
amax, amin = _max, _min
all = _reduced("all", tf.reduce_all, lambda _: "bool")
any = _reduced("any", tf.reduce_any, lambda _: "bool")
sum = _reduced("sum", tf.reduce_sum, _wider)


def _with_initial(reduced, pick, initial):
    if initial is None:
        return reduced
    if name_of(reduced) == "bool":
        return pick[1](reduced, convert_to_tensor(bool(initial)))
    return pick[0](reduced, convert_to_tensor(initial, name_of(reduced)))


def max(x, axis=None, keepdims=False, initial=None):
    return _with_initial(_max(x, axis, keepdims), (_m.maximum, _m.logical_or), initial)


def min(x, axis=None, keepdims=False, initial=None):
    return _with_initial(_min(x, axis, keepdims), (_m.minimum, _m.logical_and), initial)


def ptp(x, axis=None, keepdims=False):
    return _max(x, axis, keepdims) - _min(x, axis, keepdims)


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    wide = _wider(result_type(name_of(x)) if is_whole(name_of(x)) else name_of(x))
    out = tf.reduce_prod(cast(x, wide), _axis(axis), keepdims)
    return cast(out, dtype) if dtype else out


def _exact(dtype):
    """The dtype of sums that halves are added up in."""
    return result_type(dtype, "float32") if not dtype.startswith("complex") else dtype


def mean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = name_of(x)
    out = tf.reduce_mean(cast(x, dtype if dtype == "float64" else _exact(dtype)), _axis(axis), keepdims)
    return cast(out, "float32" if is_whole(dtype) else dtype)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = name_of(x)
    if dtype.startswith("complex"):
        gap = x - tf.reduce_mean(x, _axis(axis), True)
        return tf.reduce_mean(_m.square(_m.abs(gap)), _axis(axis), keepdims)
    return cast(_m.reduce_variance(cast(x, _exact(dtype)), _axis(axis), keepdims), floating(dtype))


def std(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    return cast(_m.sqrt(var(cast(x, float_of_whole(name_of(x))), axis, keepdims)), float_of_whole(name_of(x)))


def count_nonzero(x, axis=None):
    return cast(_m.count_nonzero(convert_to_tensor(x), _axis(axis)), "int32")


def average(x, axis=None, weights=None):
    if weights is None:
        (x,) = tensors(x, also=(float,))
        return tf.reduce_mean(x, _axis(axis))
    x, weights = tensors(x, weights, also=(float,))
    if len(weights.shape) < len(x.shape) and isinstance(axis, int):
        at = canonicalize_axis(axis, len(x.shape))
        weights = tf.reshape(weights, [-1] + [1] * (len(x.shape) - 1 - at))
    weights = weights + tf.zeros_like(x)
    return tf.reduce_sum(x * weights, _axis(axis)) / tf.reduce_sum(weights, _axis(axis))


# Places of extremes.
def _place(name, function):
    def call(x, axis=None, keepdims=False):
        x = convert_to_tensor(x)
        rank = len(x.shape)
        if axis is None or rank == 0:
            out = function(cast(tf.reshape(x, [-1]), number(name_of(x))), 0)
            return cast(tf.reshape(out, [1] * rank) if keepdims else out, "int32")
        out = function(cast(x, number(name_of(x))), canonicalize_axis(axis, rank))
        return cast(tf.expand_dims(out, axis) if keepdims else out, "int32")
    call.__name__ = call.__qualname__ = name
    return call


argmax, argmin = _place("argmax", _m.argmax), _place("argmin", _m.argmin)


# Without the elements that are not a number.
def _filled(x, value):
    """`x` with `value` for NaN, and where it is one; None for dtypes that have none."""
    x = convert_to_tensor(x)
    if is_whole(name_of(x)):
        return x, None
    missing = _m.is_nan(x)
    return tf.where(missing, convert_to_tensor(value, name_of(x)), x), missing


def _nan_place(function, worst):
    def call(x, axis=None, keepdims=False):
        x, missing = _filled(x, worst)
        out = function(x, axis, keepdims)
        if missing is None:
            return out
        return tf.where(tf.reduce_all(missing, _axis(axis), keepdims), convert_to_tensor(-1, "int32"), out)
    return call


def _nan_extreme(function, worst):
    def call(x, axis=None, keepdims=False):
        x, missing = _filled(x, worst)
        out = function(x, axis, keepdims)
        if missing is None:
            return out
        nothing = tf.reduce_all(missing, _axis(axis), keepdims)
        return tf.where(nothing, convert_to_tensor(float("nan"), name_of(x)), out)
    return call


nanargmax, nanargmin = _nan_place(argmax, -_INFINITY), _nan_place(argmin, _INFINITY)
nanmax, nanmin = _nan_extreme(_max, -_INFINITY), _nan_extreme(_min, _INFINITY)


def nansum(x, axis=None, keepdims=False):
    return sum(_filled(x, 0)[0], axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(_filled(x, 1)[0], axis, keepdims)


def nanmean(x, axis=None, keepdims=False):
    x, missing = _filled(x, 0)
    if missing is None:
        return cast(mean(x, axis, keepdims), result_type(name_of(x), float))
    dtype = name_of(x)
    exact = cast(x, _exact(dtype))
    count = tf.reduce_sum(cast(_m.logical_not(missing), name_of(exact)), _axis(axis), keepdims)
    return cast(tf.reduce_sum(exact, _axis(axis), keepdims) / count, result_type(dtype, float))


def nanvar(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = result_type(name_of(x), float)
    exact = cast(x, _exact(name_of(x)))
    return cast(nanmean(_m.square(exact - nanmean(exact, axis, True)), axis, keepdims), dtype)


def nanstd(x, axis=None, keepdims=False):
    return _m.sqrt(nanvar(x, axis, keepdims))


# Running sums and products.
def _running(function, filler=None):
    def call(x, axis=None, dtype=None):
        x = convert_to_tensor(x)
        if filler is not None:
            x, _ = _filled(x, filler)
        wanted = number(result_type(standardize_dtype(dtype) if dtype else name_of(x)))
        x = cast(x, wanted)
        return function(tf.reshape(x, [-1]), 0) if axis is None else function(x, axis)
    return call


cumsum, cumprod = _running(_m.cumsum), _running(_m.cumprod)
nancumsum, nancumprod = _running(_m.cumsum, 0), _running(_m.cumprod, 1)


# Quantiles.
def _rows(x, axis):
    """`x` with the axes that are reduced as one last axis, and the shape of the rest with ones for those."""
    rank = len(x.shape)
    axes = list(range(rank)) if axis is None else sorted(canonicalize_axes(_axis(axis), rank))
    rest = [i for i in range(rank) if i not in axes]
    kept = [1 if i in axes else x.shape[i] for i in range(rank)]
    moved = tf.transpose(x, rest + axes) if axes != list(range(rank - len(axes), rank)) else x
    return tf.reshape(moved, [x.shape[i] for i in rest] + [-1]), kept


def _between(low, high, at, place, method):
    """The value at a place between two neighbours."""
    part = place - at
    if method == "linear":
        return low + (high - low) * part
    if method == "midpoint":
        half = convert_to_tensor(0.5, name_of(low))
        return tf.where(_m.equal(part, tf.zeros_like(part)), low, low * half + high * half)
    if method == "nearest":
        return tf.where(_m.equal(_m.round(place), at), low, high)
    if method not in ("lower", "higher"):
        raise ValueError(f"Unknown method for quantiles: {method}; expected linear, lower, higher, midpoint or nearest")
    return low if method == "lower" else high


def _quantiles(x, q, axis, method, keepdims, skip_nan):
    x = convert_to_tensor(x)
    dtype = floating(name_of(x))
    wide = _exact(dtype)
    rows, kept = _rows(cast(x, wide), axis)
    q = cast(convert_to_tensor(q), wide)
    flat = tf.reshape(q, [-1])
    missing = _m.is_nan(rows)
    length = tf.reduce_sum(cast(_m.logical_not(missing), wide) if skip_nan else tf.ones_like(rows), -1, True)
    ordered = tf.sort(tf.where(missing, convert_to_tensor(_INFINITY, wide), rows), axis=-1)
    place = flat * _m.maximum(length - 1, tf.zeros_like(length))
    at = _m.floor(place)
    low, high = (tf.gather(ordered, cast(i, "int32"), axis=-1, batch_dims=len(rows.shape) - 1)
                 for i in (at, _m.ceil(place)))
    # The difference of equal infinities is no number.
    out = tf.where(_m.equal(low, high), low, _between(low, high, at, place, method))
    count = tf.reduce_sum(cast(missing, wide), -1, True)
    gone = _m.equal(length, tf.zeros_like(length)) if skip_nan else _m.greater(count, tf.zeros_like(count))
    out = tf.where(gone, convert_to_tensor(float("nan"), wide), out)
    out = tf.transpose(out, [len(rows.shape) - 1, *range(len(rows.shape) - 1)])
    shape = kept if keepdims else rows.shape.as_list()[:-1]
    return cast(tf.reshape(out, q.shape.as_list() + list(shape)), dtype)


def quantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims, False)


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims, True)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, _hundredth(q), axis, method, keepdims, False)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, _hundredth(q), axis, method, keepdims, True)


def _hundredth(q):
    q = convert_to_tensor(q)
    return cast(q, float_of_whole(name_of(q))) / 100


def median(x, axis=None, keepdims=False):
    return _quantiles(x, 0.5, axis, "linear", keepdims, False)


def nanmedian(x, axis=None, keepdims=False):
    return _quantiles(x, 0.5, axis, "linear", keepdims, True)
