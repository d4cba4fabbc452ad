"""tf.random."""
from berth import _core as _core
from berth._core import set_seed

_under = _core.ops.random
for _name in dir(_under):
    if not _name.startswith("_"):
        globals()[_name] = getattr(_under, _name)
