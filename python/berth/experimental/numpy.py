"""tf.experimental.numpy: NumPy's functions and its rules of dtypes, on tensors.

Arrays are tensors: devices, tapes and traced functions work as everywhere.
"""
import builtins as _b
import sys as _sys

import numpy as _np

import berth as _tf
from berth import _core
from berth._not_tensors import NotATensor as _NotATensor, refuse_kinds as _refuse_kinds
from berth._tensor import Tensor, Variable, convert_to_tensor as _convert, name_missing as _name_missing

ndarray = Tensor
newaxis, pi, e, inf, nan = None, _np.pi, _np.e, _np.inf, _np.nan
float16, float32, float64, complex64, complex128 = _np.float16, _np.float32, _np.float64, _np.complex64, _np.complex128
int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_ = (
    _np.int8, _np.int16, _np.int32, _np.int64, _np.uint8, _np.uint16, _np.uint32, _np.uint64, _np.bool_)
int_, float_, complex_, string_, unicode_ = _np.int64, _np.float64, _np.complex128, _np.bytes_, _np.str_
object_, inexact, iinfo, finfo = _np.object_, _np.inexact, _np.iinfo, _np.finfo
_m, _ops = _core.ops.math, _core.ops
_narrow = [False]  # prefer_float32


def _dtype(dtype):
    return None if dtype is None else _tf.as_dtype(_np.dtype(dtype) if not isinstance(dtype, _core.DType) else dtype)


def _allowed(dtype):
    """The dtype with 32 bits in place of 64, where those are preferred."""
    names = {"float64": "float32", "int64": "int32", "complex128": "complex64"} if _narrow[0] else {}
    return _tf.as_dtype(names.get(dtype.name, dtype.name))


def array(val, dtype=None, copy=True, ndmin=0):
    """A tensor of numbers, lists, arrays or tensors; numbers have NumPy's dtypes, int64 and float64."""
    if isinstance(val, _NotATensor) or _tensor_in(val) and not isinstance(val, (list, tuple)):
        out = _convert(val)
    elif isinstance(val, (list, tuple)) and _tensor_in(val):
        kind = _tf.as_dtype(result_type(*val))
        out = stack([array(v, kind) for v in val])
    else:
        made = _np.asarray(val)
        plain = not isinstance(val, (_np.ndarray, _np.generic))
        out = _convert(made)
        if plain and dtype is None:
            out = _tf.cast(out, _allowed(out.dtype)) if out.dtype != _tf.string else out
    if dtype is not None and out.dtype != _dtype(dtype):
        out = _tf.cast(out, _dtype(dtype))
    while len(out.shape) < ndmin:
        out = _tf.expand_dims(out, 0)
    return out


def _tensor_in(val):
    """Whether a value is or, a list, holds a tensor, a variable, or what stands for one (a variable of Keras)."""
    if isinstance(val, (list, tuple)):
        return _b.any(map(_tensor_in, val))
    return isinstance(val, (Tensor, Variable)) or hasattr(type(val), "__berth_tensor__")


def asarray(a, dtype=None):
    return array(a, dtype)


asanyarray = ascontiguousarray = asarray


def _kinds(value):
    """What np.result_type takes for a value: dtypes, and zeros of Python's types, which give way to dtypes."""
    if isinstance(value, (list, tuple)) and not _b.any(isinstance(v, (_b.str, _b.bytes)) for v in value):
        return [kind for v in value for kind in _kinds(v)]
    if isinstance(value, (_b.bool, _b.int, _b.float, _b.complex)) and not isinstance(value, _np.generic):
        return [type(value)(0)]
    if isinstance(value, (list, tuple)) or _tensor_in(value):
        value = _tf.as_dtype(array(value).dtype if isinstance(value, (list, tuple)) else value.dtype)
    if isinstance(value, (_np.ndarray, _np.generic)):
        return [value.dtype]
    return [_np.dtype(value.as_numpy_dtype if isinstance(value, _core.DType) else value)]


def result_type(*arrays_and_dtypes):
    """The dtype of NumPy's promotion: numbers of Python, and lists of them, take that of arrays and tensors beside them."""
    kinds = _kinds(arrays_and_dtypes)
    given = {k for k in kinds if isinstance(k, _np.dtype)}
    out = _np.result_type(*given, *{type(k): k for k in kinds if not isinstance(k, _np.dtype)}.values())
    return out if out in given else _np.dtype(_allowed(_tf.as_dtype(out)).as_numpy_dtype)


promote_types = result_type


def _together(*values):
    """Tensors of one dtype."""
    kind = _tf.as_dtype(result_type(*values))
    return [array(v, kind) for v in values]


def _number(x):
    """A tensor whose values are numbers: truths are 0 and 1."""
    return _tf.cast(x, _tf.uint8) if x.dtype == _tf.bool else x


def _wide(x):
    """A tensor of whole numbers or truths as sums and products of them are: of 64 bits."""
    if not (x.dtype.is_integer or x.dtype == _tf.bool):
        return x
    return _tf.cast(x, _allowed(_tf.uint64 if x.dtype.is_unsigned else _tf.int64))


def _floating(x):
    x = array(x)
    return x if x.dtype.is_floating or x.dtype.is_complex else _tf.cast(x, _allowed(_tf.float64))


def _unary(name, function, floating=False):
    def call(x):
        return function(_floating(x) if floating else array(x))
    call.__name__, call.__doc__ = name, f"numpy.{name} of tensors."
    globals()[name] = call


def _binary(name, function, floating=False):
    def call(x1, x2):
        a, b = _together(x1, x2)
        return function(_floating(a), _floating(b)) if floating else function(a, b)
    call.__name__, call.__doc__ = name, f"numpy.{name} of tensors."
    globals()[name] = call


def _reduction(name, function, floating=False, promotes=False):
    def call(a, axis=None, dtype=None, keepdims=None):
        a = _floating(a) if floating else array(a)
        if dtype is not None:
            a = _tf.cast(a, _dtype(dtype))
        elif promotes:
            a = _wide(a)
        return function(a, axis, _b.bool(keepdims))
    call.__name__, call.__doc__ = name, f"numpy.{name} of tensors."
    globals()[name] = call


for _name in "exp expm1 log log1p sqrt sin cos tan sinh cosh tanh floor ceil rint".split():
    _unary(_name, getattr(_m, _name), True)
for _name, _other in (("arcsin", "asin"), ("arccos", "acos"), ("arctan", "atan"), ("arcsinh", "asinh"), ("arccosh", "acosh"),
                      ("arctanh", "atanh"), ("fix", None), ("exp2", None), ("log2", None), ("log10", None), ("cbrt", None)):
    if _other:
        _unary(_name, getattr(_m, _other), True)
_unary("exp2", lambda x: _m.pow(_ops.zeros_like(x) + 2, x), True)
_unary("log2", lambda x: _m.log(x) / _np.log(2.0).item(), True)
_unary("log10", lambda x: _m.log(x) / _np.log(10.0).item(), True)
_unary("cbrt", lambda x: _m.sign(x) * _m.pow(_m.abs(x), 1 / 3), True)
_unary("fix", lambda x: _tf.where(x < 0, _m.ceil(x), _m.floor(x)), True)
for _name in "abs negative sign square reciprocal".split():
    _unary(_name, getattr(_m, _name))
absolute = fabs = abs  # noqa: F821
_unary("positive", _tf.identity)
_unary("conj", lambda x: _m.conj(x) if x.dtype.is_complex else x)
conjugate = conj  # noqa: F821
_unary("real", lambda x: _m.real(x) if x.dtype.is_complex else x)
_unary("imag", lambda x: _m.imag(x) if x.dtype.is_complex else _ops.zeros_like(x))
for _name in ("isnan", "isinf", "isfinite"):
    _unary(_name, getattr(_m, "is_" + _name[2:]), True)
_unary("logical_not", lambda x: _m.logical_not(_tf.cast(x, _tf.bool)))
_unary("deg2rad", lambda x: x * (_np.pi / 180), True)
_unary("rad2deg", lambda x: x * (180 / _np.pi), True)
radians, degrees = deg2rad, rad2deg  # noqa: F821
_binary("subtract", _m.subtract)
for _name in "add multiply maximum minimum".split():
    _binary(_name, lambda a, b, f=getattr(_m, _name): _tf.cast(f(_number(a), _number(b)), a.dtype))
_binary("power", lambda a, b: _m.pow(a, b))
_binary("float_power", _m.pow, True)
_binary("divide", lambda a, b: _tf.cast(a, _tf.float32) / _tf.cast(b, _tf.float32) if a.dtype.is_integer and a.dtype.size < 4
        else _floating(a) / _floating(b))
true_divide = divide  # noqa: F821
_binary("floor_divide", lambda a, b: a // b)
_binary("mod", lambda a, b: a % b)
remainder = mod  # noqa: F821
_binary("arctan2", _m.atan2, True)
_binary("hypot", lambda a, b: _m.sqrt(a * a + b * b), True)
_binary("logaddexp", lambda a, b: _m.maximum(a, b) + _m.log1p(_m.exp(-_m.abs(a - b))), True)
_binary("heaviside", lambda a, b: _tf.where(a < 0, _ops.zeros_like(a), _tf.where(a > 0, _ops.ones_like(a), b)))
for _name in "equal not_equal greater greater_equal less less_equal".split():
    _binary(_name, lambda a, b, f=getattr(_m, _name): f(_number(a), _number(b)))
for _name in "and or xor".split():
    _binary("logical_" + _name, lambda a, b, f=getattr(_m, "logical_" + _name): f(_tf.cast(a, _tf.bool), _tf.cast(b, _tf.bool)))
    _binary("bitwise_" + _name, lambda a, b, n=_name: getattr(_tf.bitwise, "bitwise_" + n)(a, b) if a.dtype != _tf.bool else
            getattr(_m, "logical_" + n)(a, b))
_binary("matmul", lambda a, b: _tf.tensordot(a, b, 1) if _b.min(len(a.shape), len(b.shape)) == 1 else _tf.matmul(a, b))
_binary("dot", lambda a, b: a * b if not len(a.shape) or not len(b.shape) else _tf.tensordot(
    a, b, [[-1], [_b.max(len(b.shape) - 2, 0)]]))
_binary("inner", lambda a, b: a * b if not len(a.shape) or not len(b.shape) else _tf.tensordot(a, b, [[-1], [-1]]))
_binary("outer", lambda a, b: _tf.reshape(a, [-1, 1]) * _tf.reshape(b, [1, -1]))
_binary("vdot", lambda a, b: _m.reduce_sum(_tf.reshape(a, [-1]) * _tf.reshape(b, [-1])))
_binary("kron", lambda a, b: _kron(a, b))
for _name, _other in (("sum", "reduce_sum"), ("prod", "reduce_prod")):
    _reduction(_name, getattr(_m, _other), promotes=True)
for _name, _other in (("max", "reduce_max"), ("min", "reduce_min")):
    _reduction(_name, lambda a, axis, keep, f=getattr(_m, _other): _tf.cast(f(_number(a), axis, keep), a.dtype))
amax, amin = max, min  # noqa: F821
_reduction("mean", _m.reduce_mean, True)
_reduction("all", lambda a, axis, keep: _m.reduce_all(_tf.cast(a, _tf.bool), axis, keep))
_reduction("any", lambda a, axis, keep: _m.reduce_any(_tf.cast(a, _tf.bool), axis, keep))
_reduction("_var", _m.reduce_variance, True)


def var(a, axis=None, dtype=None, ddof=0, keepdims=None):
    """numpy.var of tensors."""
    a = _floating(a)
    n = a.shape.num_elements() if axis is None else _np.prod([a.shape[i] for i in _np.atleast_1d(axis)])
    return _var(a, axis, dtype, keepdims) * (n / _b.max(n - ddof, 0))  # noqa: F821


def std(a, axis=None, keepdims=None):
    return _m.sqrt(var(a, axis, keepdims=keepdims))


def angle(z, deg=False):
    """The angle of complex numbers, in radians or degrees."""
    out = _m.angle(_floating(z))
    return rad2deg(out) if deg else out  # noqa: F821


def _kron(a, b):
    """Each element of a times the whole of b."""
    rank = _b.max(len(a.shape), len(b.shape))
    a, b = (_tf.reshape(v, [1] * (rank - len(v.shape)) + v.shape.as_list()) for v in (a, b))
    apart = [[n for pair in zip(*((v.shape.as_list(), [1] * rank)[::step])) for n in pair] for v, step in ((a, 1), (b, -1))]
    product = _tf.reshape(a, apart[0]) * _tf.reshape(b, apart[1])
    return _tf.reshape(product, [n * m for n, m in zip(a.shape.as_list(), b.shape.as_list())])


def average(a, axis=None, weights=None, returned=False):
    a = _floating(a)
    w = _ops.ones_like(a) if weights is None else array(weights, a.dtype)
    if len(w.shape) < len(a.shape):
        w = _tf.reshape(w, [-1 if i == axis % len(a.shape) else 1 for i in _b.range(len(a.shape))]) + _ops.zeros_like(a)
    total = sum(w, axis)  # noqa: F821
    out = sum(a * w, axis) / total  # noqa: F821
    return (out, total) if returned else out


def argmax(a, axis=None):
    a = _number(array(a))
    return _tf.argmax(_tf.reshape(a, [-1]) if axis is None else a, axis or 0)


def argmin(a, axis=None):
    a = _number(array(a))
    return _tf.argmin(_tf.reshape(a, [-1]) if axis is None else a, axis or 0)


def cumsum(a, axis=None, dtype=None):
    a = array(a, dtype)
    a = _tf.cast(a, _allowed(_tf.int64)) if dtype is None and (a.dtype.is_integer or a.dtype == _tf.bool) else a
    return _m.cumsum(_tf.reshape(a, [-1]) if axis is None else a, axis or 0)


def cumprod(a, axis=None, dtype=None):
    a = array(a, dtype)
    a = _tf.cast(a, _allowed(_tf.int64)) if dtype is None and (a.dtype.is_integer or a.dtype == _tf.bool) else a
    return _m.cumprod(_tf.reshape(a, [-1]) if axis is None else a, axis or 0)


# Creation.

def _made(shape, value, dtype):
    shape = [shape] if not isinstance(shape, (list, tuple, Tensor, _core.TensorShape)) else shape
    return _tf.cast(_tf.fill(list(shape), _convert(value)), _dtype(dtype) or _allowed(_tf.float64))


def zeros(shape, dtype=None):
    return _made(shape, 0, dtype)


def ones(shape, dtype=None):
    return _made(shape, 1, dtype)


def full(shape, fill_value, dtype=None):
    value = array(fill_value, dtype)
    return broadcast_to(value, [shape] if isinstance(shape, _b.int) else shape)


empty = zeros


def zeros_like(a, dtype=None):
    return _tf.zeros_like(array(a), _dtype(dtype))


def ones_like(a, dtype=None):
    return _tf.ones_like(array(a), _dtype(dtype))


def full_like(a, fill_value, dtype=None):
    a = array(a)
    return full(a.shape, fill_value, dtype or a.dtype)


empty_like = zeros_like


def eye(N, M=None, k=0, dtype=None):
    return array(_np.eye(N, M, k), dtype or _allowed(_tf.float64))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def arange(start, stop=None, step=1, dtype=None):
    _refuse_kinds("arange", "a number", start=start, stop=stop)
    return array(_np.arange(*([start] if stop is None else [start, stop, step])), dtype)


def _between(start, stop, num, endpoint, dtype, axis, weigh):
    """weigh(start, stop, part) for num parts from 0 to 1 at equal steps, along a new axis; gradients go through."""
    kind = _tf.as_dtype(result_type(start, stop, 0.0))
    start, stop = array(start, kind), array(stop, kind)
    rank = _b.max(len(start.shape), len(stop.shape))
    part = array(_np.linspace(0.0, 1.0, _b.int(num), endpoint).reshape([-1] + [1] * rank), kind)
    out = moveaxis(weigh(start, stop, part), 0, axis)
    return out if dtype is None else _tf.cast(out, _dtype(dtype))


def _straight(start, stop, part):
    return _m.add(_m.multiply(start, 1 - part), _m.multiply(stop, part))


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    _refuse_kinds("linspace", "a number", start=start, stop=stop)
    out = _between(start, stop, num, endpoint, dtype, axis, _straight)
    return (out, subtract(stop, start) / (num - _b.bool(endpoint))) if retstep else out  # noqa: F821


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    _refuse_kinds("logspace", "a number", start=start, stop=stop)
    return _between(start, stop, num, endpoint, dtype, axis, lambda *ends: _m.pow(array(base, ends[2].dtype), _straight(*ends)))


def tri(N, M=None, k=0, dtype=None):
    return array(_np.tri(N, M, k), dtype or _allowed(_tf.float64))


def diag(v, k=0):
    v = array(v)
    rows = _np.arange(v.shape.num_elements()).reshape(v.shape)
    if len(v.shape) == 2:
        return _tf.gather(_tf.reshape(v, [-1]), _np.diag(rows, k))
    n = v.shape[0] + _b.abs(k)
    return _tf.reshape(_tf.scatter_nd((_np.diag(rows + 1, k).ravel().nonzero()[0])[:, None], v, [n * n]), [n, n])


def diagonal(a, offset=0, axis1=0, axis2=1):
    a = array(a)
    return _picked(a, _np.diagonal(_numbers(a), offset, axis1, axis2))


def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
    return _m.reduce_sum(array(diagonal(a, offset, axis1, axis2), dtype), -1)


def tril(m, k=0):
    m = array(m)
    return _tf.where(_np.tri(*m.shape.as_list()[-2:], k=k, dtype=bool), m, _ops.zeros_like(m))


def triu(m, k=0):
    m = array(m)
    return _tf.where(_np.tri(*m.shape.as_list()[-2:], k=k - 1, dtype=bool), _ops.zeros_like(m), m)


def vander(x, N=None, increasing=False):
    x = array(x)
    n = x.shape[0] if N is None else N
    powers = _np.arange(n) if increasing else _np.arange(n)[::-1]
    return _m.pow(_tf.expand_dims(x, 1), array(powers, x.dtype))


# Shapes: places are computed by NumPy, then gathered.

def _numbers(a):
    return _np.arange(a.shape.num_elements()).reshape(a.shape.as_list())


def _picked(a, places):
    return _tf.reshape(_tf.gather(_tf.reshape(a, [-1]), places.ravel()), places.shape)


def _moved(name):
    def call(a, *args, **kwargs):
        a = array(a)
        return _picked(a, getattr(_np, name)(_numbers(a), *args, **kwargs))
    call.__name__, call.__doc__ = name, f"numpy.{name} of tensors."
    globals()[name] = call


for _name in "flip fliplr flipud rot90 roll repeat tile take_along_axis".split():
    _moved(_name)


def take(a, indices, axis=None, out=None, mode="clip"):
    """The elements, or rows along an axis, at indices, of which those outside mean the nearest, or by mode="wrap" start again."""
    if out is not None or mode not in ("clip", "wrap"):
        raise ValueError(f"take: mode is {mode!r}, out {out!r}; expected mode 'clip' or 'wrap' and no out")
    a, indices = array(a), array(indices)
    a, axis = (_tf.reshape(a, [-1]), 0) if axis is None else (a, axis)
    size = _tf.cast(_tf.shape(a)[axis], indices.dtype)
    at = _tf.math.floormod(indices, size) if mode == "wrap" else _m.maximum(_m.minimum(indices, size - 1), _ops.zeros_like(indices))
    return _tf.gather(a, at, axis=axis)


def reshape(a, newshape, order="C"):
    a = array(a)
    shape = [newshape] if isinstance(newshape, _b.int) else [_b.int(n) for n in newshape]
    if order == "F":
        return transpose(_tf.reshape(transpose(a), shape[::-1]))
    return _tf.reshape(a, shape)


def ravel(a):
    return _tf.reshape(array(a), [-1])


def transpose(a, axes=None):
    a = array(a)
    return _tf.transpose(a, list(_b.range(len(a.shape)))[::-1] if axes is None else list(axes))


def swapaxes(a, axis1, axis2):
    order = list(_b.range(len(array(a).shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return transpose(a, order)


def moveaxis(a, source, destination):
    a = array(a)
    n = len(a.shape)
    src, dst = ([i % n for i in _np.atleast_1d(v)] for v in (source, destination))
    order = [i for i in _b.range(n) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return transpose(a, order)


def expand_dims(a, axis):
    return _tf.expand_dims(array(a), axis)


def squeeze(a, axis=None):
    return _tf.squeeze(array(a), axis)


def broadcast_to(array, shape):  # noqa: A002
    return _tf.broadcast_to(asarray(array), list(shape))


def broadcast_arrays(*args):
    shape = _np.broadcast_shapes(*[tuple(array(a).shape) for a in args])
    return [broadcast_to(a, shape) for a in args]


def concatenate(arys, axis=0):
    _refuse_kinds("concatenate", "a list of tensors", arys=arys)
    parts = _together(*arys)
    return _tf.concat(parts if axis is not None else [ravel(p) for p in parts], axis or 0)


def stack(arrays, axis=0):
    _refuse_kinds("stack", "a list of tensors", arrays=arrays)
    return _tf.stack(_together(*arrays), axis)


def vstack(tup):
    _refuse_kinds("vstack", "a list of tensors", tup=tup)
    return concatenate([atleast_2d(v) for v in tup], 0)


def hstack(tup):
    _refuse_kinds("hstack", "a list of tensors", tup=tup)
    parts = [atleast_1d(v) for v in tup]
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1)


def dstack(tup):
    _refuse_kinds("dstack", "a list of tensors", tup=tup)
    return concatenate([atleast_3d(v) for v in tup], 2)


def atleast_1d(*arys):
    out = [a if len(a.shape) else _tf.reshape(a, [1]) for a in map(array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys):
    out = [a if len(a.shape) > 1 else _tf.reshape(a, [1, -1]) for a in map(array, arys)]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys):
    out = [_picked(a, _np.atleast_3d(_numbers(a))) for a in map(array, arys)]
    return out[0] if len(out) == 1 else out


def split(ary, indices_or_sections, axis=0):
    a = array(ary)
    return [_picked(a, part) for part in _np.split(_numbers(a), indices_or_sections, axis)]


def hsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0 if len(array(ary).shape) == 1 else 1)


def vsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 0)


def dsplit(ary, indices_or_sections):
    return split(ary, indices_or_sections, 2)


def pad(array, pad_width, mode="constant", **kwargs):  # noqa: A002
    a = asarray(array)
    widths = _np.broadcast_to(pad_width, [len(a.shape), 2])
    return _tf.pad(a, widths, mode.upper(), **kwargs)


def where(condition, x=None, y=None):
    condition = _tf.cast(array(condition), _tf.bool)
    return nonzero(condition) if x is None and y is None else _tf.where(condition, *_together(x, y))


def nonzero(a):
    return [array(v) for v in _np.nonzero(array(a).numpy())]


def select(condlist, choicelist, default=0):
    _refuse_kinds("select", "a list of tensors", condlist=condlist, choicelist=choicelist)
    out = default
    for c, v in reversed(list(zip(condlist, choicelist))):
        out = where(c, v, out)
    return out


def clip(a, a_min=None, a_max=None):
    a = array(a)
    a = a if a_min is None else maximum(a, a_min)  # noqa: F821
    return a if a_max is None else minimum(a, a_max)  # noqa: F821


def around(a, decimals=0):
    a = array(a)
    return _m.round(_floating(a) * 10.0**decimals) / 10.0**decimals if a.dtype.is_floating or decimals < 0 else a


round = around


def sort(a, axis=-1):
    a = array(a)
    return _tf.sort(ravel(a) if axis is None else a, -1 if axis is None else axis)


def argsort(a, axis=-1):
    a = array(a)
    return _tf.cast(_tf.argsort(ravel(a) if axis is None else a, -1 if axis is None else axis), _tf.int64)


def diff(a, n=1, axis=-1):
    a = array(a)
    for _ in _b.range(n):
        s = _numbers(a)
        length = s.shape[axis]
        a = _picked(a, _np.take(s, _np.arange(1, length), axis)) - _picked(a, _np.take(s, _np.arange(length - 1), axis))
    return a


def meshgrid(*xi, indexing="xy"):
    return list(_tf.meshgrid(*(_tf.reshape(array(x), [-1]) for x in xi), indexing=indexing))


def bincount(x, weights=None, minlength=0):
    return array(_np.bincount(array(x).numpy(), None if weights is None else array(weights).numpy(), minlength))


def count_nonzero(a, axis=None):
    return sum(not_equal(a, 0), axis)  # noqa: F821


def einsum(subscripts, *operands):
    return _tf.einsum(subscripts, *_together(*operands))


def tensordot(a, b, axes=2):
    return _tf.tensordot(*_together(a, b), axes)


def cross(a, b):
    return _tf.linalg.cross(*_together(a, b))


def copy(a):
    return _tf.identity(array(a))


def ndim(a):
    return len(array(a).shape)


def shape(a):
    return tuple(array(a).shape)


def size(x, axis=None):
    s = array(x).shape
    return s.num_elements() if axis is None else s[axis]


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    a, b = map(_floating, _together(a, b))
    close = _m.abs(a - b) <= atol + rtol * _m.abs(b)
    close = _m.logical_or(close, _m.equal(a, b))
    return _m.logical_or(close, _m.logical_and(_m.is_nan(a), _m.is_nan(b))) if equal_nan else close


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    return _m.reduce_all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2):
    a1, a2 = _together(a1, a2)
    return _m.reduce_all(_m.equal(a1, a2)) if tuple(a1.shape) == tuple(a2.shape) else _convert(False)


def isscalar(num):
    return not ndim(num)


class random:
    """tf.experimental.numpy.random."""

    @staticmethod
    def seed(s):
        """Sets the seed of what is drawn from now on."""
        _tf.random.set_seed(_b.int(s))

    @staticmethod
    def randn(*args):
        """Draws of the standard normal distribution, of the given sizes."""
        return _tf.random.normal(list(args), dtype=_allowed(_tf.float64))

    @staticmethod
    def standard_normal(size=None):
        """Draws of the standard normal distribution, of a shape."""
        return random.randn(*([] if size is None else _np.atleast_1d(size).tolist()))

    @staticmethod
    def rand(*size):
        """Draws from [0, 1), of the given sizes."""
        return _tf.random.uniform(list(size), dtype=_allowed(_tf.float64))

    @staticmethod
    def random(size=None):
        """Draws from [0, 1), of a shape."""
        return random.rand(*([] if size is None else _np.atleast_1d(size).tolist()))

    @staticmethod
    def uniform(low=0.0, high=1.0, size=None):
        """Draws from [low, high), of a shape."""
        return low + (high - low) * random.random(size)

    @staticmethod
    def normal(loc=0.0, scale=1.0, size=None):
        """Draws of the normal distribution, of a shape."""
        return loc + scale * random.standard_normal(size)

    @staticmethod
    def randint(low, high=None, size=None, dtype=_np.int64):
        """Whole numbers from [low, high), or [0, low), of a shape."""
        low, high = (0, low) if high is None else (low, high)
        shape = [] if size is None else _np.atleast_1d(size).tolist()
        return _tf.cast(_tf.random.uniform(shape, low, high, _tf.int64), _dtype(dtype))

    @staticmethod
    def poisson(lam=1.0, size=None):
        """Draws of the Poisson distribution, of a shape."""
        return array(_np.random.poisson(lam, size))


# What experimental_enable_numpy_behavior() gives tensors.

_METHODS = {
    "T": property(transpose), "reshape": lambda a, *s, **k: reshape(a, s[0] if len(s) == 1 else s, **k),
    "astype": lambda a, dtype: array(a, dtype), "ravel": ravel, "transpose": lambda a, *axes: transpose(
        a, None if not axes else axes[0] if isinstance(axes[0], (list, tuple)) else axes),
    "clip": clip, "size": property(lambda a: a.shape.num_elements()), "data": property(lambda a: a),
    **{n: globals()[n] for n in ("max", "mean", "min")},
}
_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide",
              "mod": "mod", "pow": "power", "matmul": "matmul", "lt": "less", "le": "less_equal", "gt": "greater",
              "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}


def _indexed(self, key, plain=Tensor.__getitem__):
    """NumPy's subscripts, with lists, masks and several arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    if not _b.any(isinstance(k, (list, tuple, _np.ndarray)) or (isinstance(k, (Tensor, Variable)) and len(k.shape))
                  for k in keys):
        return plain(self, key)
    given = tuple(k.numpy() if isinstance(k, (Tensor, Variable)) else list(k) if isinstance(k, tuple) else k for k in keys)
    return _picked(self, _np.asarray(_numbers(self)[given]))


def _refuse_assignment(self, key, value):
    raise TypeError("tensors do not change: x[i] = value is not there; tf.tensor_scatter_nd_update makes a new one")


def experimental_enable_numpy_behavior(prefer_float32=False, dtype_conversion_mode="legacy"):
    """Gives tensors NumPy's methods, subscripts and promotion of dtypes, from now on."""
    _narrow[0] = _b.bool(prefer_float32)
    if Tensor.__getitem__ is _indexed:
        return
    for name, value in _METHODS.items():
        setattr(Tensor, name, value)
    Tensor.__getitem__, Tensor.__setitem__ = _indexed, _refuse_assignment
    for name, function in _OPERATORS.items():
        f = globals()[function]
        for full, swapped in ((f"__{name}__", False), (f"__r{name}__", True)):
            if hasattr(Tensor, full):
                setattr(Tensor, full, _promoting(getattr(Tensor, full), f, swapped))


def _promoting(plain, function, swapped):
    def operator(self, other):
        kind = getattr(other, "dtype", None)
        of_more = (_b.float, _b.complex) if not (self.dtype.is_floating or self.dtype.is_complex) else (
            () if self.dtype.is_complex else _b.complex)
        if _b.isinstance(other, of_more) or kind is not None and kind != self.dtype and not hasattr(other, "_parts"):
            return function(other, self) if swapped else function(self, other)
        return plain(self, other)
    return operator


from berth.experimental._numpy_more import *  # noqa: E402,F401,F403  made of what is above

for _name, _function in list(globals().items()):
    if not _name.startswith("_") and getattr(_function, "__module__", "") == __name__ and not _function.__doc__:
        _function.__doc__ = "NumPy's function of this name on tensors; it is traced and differentiated as others of tf."

_name_missing(_sys.modules[__name__])
