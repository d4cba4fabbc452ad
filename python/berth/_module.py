"""tf.Module, and the variables that objects hold."""
from berth import _core
from berth._core import Variable


def variables_in(value, seen=None, keras=False):
    """Pairs (path, Variable) of what lists, dictionaries and attributes hold, each variable once.

    keras: also those of layers and models of the package Keras, which a tf.Module's `variables` leave out.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    if isinstance(value, Variable):
        seen.add(id(value))
        return [("", value)]
    if isinstance(value, dict):
        parts = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(str(i), v) for i, v in enumerate(value)]
    elif isinstance(value, _core.Metric):
        parts = [(str(i), v) for i, v in enumerate(value.variables)]
    elif hasattr(value, "__berth__") and hasattr(value, "weights"):
        parts = [(w.name, w) for w in value.weights]
    elif keras and of_keras(value):
        layered = hasattr(value, "_flatten_layers")  # names of slots have names of layers, which are numbered
        parts = [(f"{i}/{v.name}" if layered else str(i), v._value) for i, v in enumerate(value.variables)]
        if layered:
            parts += [(f"layer_{i}/{name}", v) for i, layer in enumerate(value._flatten_layers())
                      for name, v in sorted(vars(layer).items()) if isinstance(v, Variable)]
    elif isinstance(value, Module) or (hasattr(value, "__dict__") and not callable(value)
                                       and type(value).__module__.split(".")[0] not in ("numpy", "builtins")):
        parts = sorted(vars(value).items())
    else:
        return []
    seen.add(id(value))
    return [(f"{name}/{path}" if path else name, v)
            for name, part in parts for path, v in variables_in(part, seen, keras)]


def of_keras(value):
    """Whether it is a layer, model, optimizer or metric of the package Keras on Berth, whose variables are made."""
    if not any(c.__module__.startswith("keras.") for c in type(value).__mro__):
        return False
    found = getattr(value, "variables", None)
    return bool(found) and isinstance(found, list) and all(isinstance(getattr(v, "_value", None), Variable) for v in found)


class Module:
    """Variables under one roof (tf.Module): attributes, also in lists and other modules."""

    def __init__(self, name=None):
        self._name = name or type(self).__name__.lower()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if "_awaited" in self.__dict__ and isinstance(value, (Variable, Module)):
            self._give(name, value)

    def await_checkpoint(self, path, prefix):
        """Variables that are yet to be made begin with what a checkpoint has under their names."""
        self.__dict__["_awaited"] = (path, prefix)
        for name, value in list(vars(self).items()):
            if isinstance(value, Module):
                self._give(name, value)

    def _give(self, name, value):
        path, prefix = self._awaited
        if isinstance(value, Module):
            value.await_checkpoint(path, f"{prefix}/{name}")
        elif f"{prefix}/{name}" in (n for n, _ in _core.list_variables(path)):
            value.assign(_core.load_variable(path, f"{prefix}/{name}"))

    name = property(lambda self: self.__dict__.get("_name") or type(self).__name__.lower())

    @property
    def variables(self):
        return tuple(v for _, v in variables_in(self))

    @property
    def trainable_variables(self):
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        found = []

        def walk(value):
            if isinstance(value, Module) and value is not self and value not in found:
                found.append(value)
            for part in (value.values() if isinstance(value, dict) else value if isinstance(
                    value, (list, tuple)) else vars(value).values() if isinstance(value, Module) else ()):
                walk(part)
        walk(self)
        return tuple(found)
