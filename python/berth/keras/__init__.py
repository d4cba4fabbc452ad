"""tf.keras: layers, models and their training, with Keras' names."""
import sys as _sys
import types as _types

from berth import _core
from berth._frames import exported
from berth._tensor import name_missing, unknown_name
from berth.keras import _own, _parts
from berth.keras import layers, callbacks, models
from berth.keras.models import Model, Sequential, Input
from berth.keras.layers import Layer

KerasTensor = _core.KerasTensor


def _module(name, values):
    made = _types.ModuleType(f"berth.keras.{name}")
    vars(made).update(values)
    _sys.modules[made.__name__] = made
    return name_missing(made)


losses = _module("losses", {**_parts.losses, "Loss": _own.Loss, "Reduction": _own.Reduction})
metrics = _module("metrics", {**_parts.metrics, "Metric": _own.Metric})
optimizers = _module("optimizers", _parts.optimizers)
optimizers.schedules = _module("optimizers.schedules", _parts.schedules)
optimizers.legacy = optimizers
initializers = _module("initializers", _parts.initializers)
regularizers = _module("regularizers", _parts.regularizers)
constraints = _module("constraints", _parts.constraints)
activations = _module("activations", _parts.activations)
applications = _module("applications", _parts.applications)
utils = _module("utils", _parts.utils)
utils.experimental = _module("utils.experimental", {"DatasetCreator": _own.DatasetCreator})
mixed_precision = _module("mixed_precision", {
    **exported({n: getattr(_core, n) for n in ("set_global_policy", "global_policy")}),
    "Policy": _core.DTypePolicy,
    "LossScaleOptimizer": _parts.optimizers["LossScaleOptimizer"]})
Loss, Metric, Optimizer = _own.Loss, _own.Metric, _core.Optimizer
from berth.keras import datasets  # noqa: E402

for _part in (layers, callbacks, models, datasets):
    name_missing(_part)


def __getattr__(name):
    if name == "saving":  # imported when it is used first
        import importlib
        return name_missing(importlib.import_module("berth.keras.saving"))
    raise AttributeError(unknown_name("berth.keras", name, globals()))
