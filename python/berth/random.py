"""tf.random."""
from berth import _core as _core
from berth._core import set_seed

_under = _core.ops.random
for _name in dir(_under):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_under, _name)


def __getattr__(name):
    if name in ("Generator", "get_global_generator", "set_global_generator"):
        from berth import _generator
        return getattr(_generator, name)
    if name.startswith("__"):
        raise AttributeError(name)
    from berth._tensor import unknown_name
    raise AttributeError(unknown_name("berth.random", name, globals()))
