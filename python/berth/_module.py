"""tf.Module, and the variables that objects hold."""
from berth import _core
from berth._core import Variable


def variables_in(value, seen=None):
    """Pairs (path, Variable) of what lists, dictionaries and attributes hold, each variable once."""
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
    elif isinstance(value, Module) or (hasattr(value, "__dict__") and not callable(value)
                                       and type(value).__module__.split(".")[0] not in ("numpy", "builtins")):
        parts = sorted(vars(value).items())
    else:
        return []
    seen.add(id(value))
    return [(f"{name}/{path}" if path else name, v)
            for name, part in parts for path, v in variables_in(part, seen)]


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
