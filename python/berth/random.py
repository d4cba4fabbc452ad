"""tf.random."""
from berth import _core as _core
from berth._core import set_seed
from berth._lazy import Names

_under = _core.ops.random
for _name in dir(_under):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_under, _name)


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


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=_core.float32, name=None, alg="auto_select"):
    """Uniform numbers in [minval, maxval) that follow from seed [2] alone; [shape].

    Whole numbers: maxval is needed; minval=None and maxval=None draw from all numbers of int32, uint32, int64 or uint64.
    alg: the engine has one algorithm, whatever this says.
    """
    if minval is not None:
        return _under.stateless_uniform(shape, seed, minval, maxval, dtype)
    from berth._tensor import as_dtype
    if maxval is not None or not as_dtype(dtype).is_integer:
        raise ValueError("stateless_uniform: minval is None; expected a number, or whole numbers and maxval=None")
    seeds = list(split(seed))  # of the upper and the lower half
    return _all_whole(lambda low, high: _under.stateless_uniform(shape, seeds.pop(), low, high, _core.int64), as_dtype(dtype))


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
