"""tf.random."""
from berth import _core as _core
from berth._core import set_seed
from berth._lazy import Names

_under = _core.ops.random
for _name in dir(_under):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_under, _name)


def split(seed, num=2, alg="auto_select"):
    """num seeds [num, 2] that follow from a seed [2], for the stateless functions."""
    from berth._tensor import convert_to_tensor
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
