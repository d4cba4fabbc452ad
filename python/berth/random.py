"""tf.random."""
import functools as _functools
import os as _os

from berth import _core as _core
from berth._lazy import Names
from berth._strings import _of_text_too as _text_too

_under = _core.ops.random
for _name in dir(_under):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_under, _name)
shuffle = _text_too(shuffle)  # noqa: F821  of _under
_HALVES = {_core.float16: 10, _core.bfloat16: 7}  # bits of a fraction
_FORMS = {"normal": "shape mean stddev dtype seed", "uniform": "shape minval maxval dtype seed",
          "truncated_normal": "shape mean stddev dtype seed", "stateless_normal": "shape seed mean stddev dtype",
          "stateless_uniform": "shape seed minval maxval dtype", "stateless_truncated_normal": "shape seed mean stddev dtype",
          "gamma": "shape alpha beta dtype seed", "poisson": "shape lam dtype seed",
          "stateless_gamma": "shape seed alpha beta dtype", "stateless_poisson": "shape seed lam dtype"}


def _is_half(value):
    return isinstance(value, _core.Tensor) and value.dtype in _HALVES


def _also_of_halves(name, function):
    """The function, which draws numbers of 32 bits and rounds them where those of 16 are wanted."""
    names = _FORMS[name].split()
    at = names.index("dtype")

    @_functools.wraps(function)
    def draw(*args, **kwargs):
        dtype = kwargs["dtype"] if "dtype" in kwargs else args[at] if len(args) > at else None
        if dtype is None:
            dtype = next((v.dtype for v in (*args, *kwargs.values()) if _is_half(v)), None)
        elif dtype not in (_core.float16, _core.bfloat16):
            dtype = None
        if dtype is None:
            return function(*args, **kwargs)
        dtype = next(d for d in _HALVES if d == dtype)
        given = {k: _core.ops.math.cast(v, _core.float32) if _is_half(v) else v
                 for k, v in {**dict(zip(names, args)), **kwargs}.items() if k not in ("dtype", "name")}
        if not name.endswith("uniform"):
            return _core.ops.math.cast(function(**given, dtype=_core.float32), dtype)
        # Multiples of the last bit below 1: rounding would reach the upper limit.
        low, high = (_core.convert(given.pop(k, value), _core.float32) for k, value in (("minval", 0.0), ("maxval", 1.0)))
        steps = float(1 << _HALVES[dtype])
        share = _core.ops.math.floor(function(**given) * steps) / steps
        low, high, share = (_core.ops.math.cast(v, dtype) for v in (low, high, share))
        return share * (high - low) + low
    return draw


for _name in _FORMS:
    globals()[_name] = _also_of_halves(_name, globals()[_name])


def _all_whole(draw, dtype):
    """Each number of a whole dtype equally likely, by draw(minval, maxval) -> int64."""
    low = -2 ** 31 if dtype.min < 0 or dtype.size == 8 else 0
    if dtype.size < 4 or not dtype.is_integer:
        raise ValueError(f"all numbers of {dtype.name} cannot be drawn; expected int32, uint32, int64 or uint64")
    drawn = draw(low, low + 2 ** 32)
    if dtype.size == 4:
        return _core.ops.math.cast(drawn, dtype)
    drawn = drawn * 2 ** 32 + draw(0, 2 ** 32)
    return drawn if dtype == _core.int64 else _core.ops.bitcast(drawn, dtype)


_of_any_float = globals()["stateless_uniform"]


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=_core.float32, name=None, alg="auto_select"):
    """Uniform numbers in [minval, maxval) that follow from seed [2] alone; [shape].

    Whole numbers: maxval is needed; minval=None and maxval=None draw from all numbers of int32, uint32, int64 or uint64.
    alg: the engine has one algorithm, whatever this says.
    """
    if minval is not None:
        return _of_any_float(shape, seed, minval, dtype=dtype, **{} if maxval is None else {"maxval": maxval})
    from berth._tensor import as_dtype
    if maxval is not None or not as_dtype(dtype).is_integer:
        raise ValueError("stateless_uniform: minval is None; expected a number, or whole numbers and maxval=None")
    seeds = list(split(seed))  # of the upper and the lower half
    return _all_whole(lambda low, high: _under.stateless_uniform(shape, seeds.pop(), low, high, _core.int64), as_dtype(dtype))


def set_seed(seed):
    """Sets the seed of the process, a whole number, from which draws follow; None: from now on draws differ from run to run."""
    _core.set_seed(int.from_bytes(_os.urandom(4), "big") if seed is None else seed)


def stateless_parameterized_truncated_normal(shape, seed, means=0.0, stddevs=1.0, minvals=-2.0, maxvals=2.0, name=None):
    """Normal numbers [shape] within [minvals, maxvals] that follow from seed [2] alone; means and others broadcast to shape."""
    return _under.stateless_parameterized_truncated_normal(shape, seed, *(
        _core.convert(v, None) for v in (means, stddevs, minvals, maxvals)))


def split(seed, num=2, alg="auto_select"):
    """num seeds [num, 2] that follow from a seed [2], for the stateless functions."""
    from berth._tensor import convert_to_tensor
    seed = convert_to_tensor(seed)
    return _under.stateless_uniform([int(num), 2], seed, 0, 2**31 - 1, _core.int32 if seed.dtype == _core.int32 else seed.dtype)


def fold_in(seed, data, alg="auto_select"):
    """A seed [2] that follows from a seed and a whole number."""
    from berth._tensor import convert_to_tensor
    seed = convert_to_tensor(seed)
    first = _core.ops.math.cast(convert_to_tensor(data), seed.dtype)
    return split(_core.ops.stack([seed[0], seed[1] + first]), 1)[0]


_GENERATORS = ("Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator")


class _Experimental(Names):
    def __getattr__(self, name):
        return __getattr__(name) if name in _GENERATORS else super().__getattr__(name)


experimental = _Experimental("tf.random.experimental", stateless_split=split, stateless_fold_in=fold_in, _late={
    "_shapes_more": "index_shuffle stateless_shuffle"})


def __getattr__(name):
    if name in _GENERATORS:
        from berth import _generator
        return getattr(_generator, name)
    if name.startswith("__"):
        raise AttributeError(name)
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("berth.random", name, globals()))
