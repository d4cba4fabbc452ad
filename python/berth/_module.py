"""tf.Module, and the variables that objects hold."""
from berth import _core
from berth._core import Variable


def of_keras(value):
    """True of a layer, model, optimizer, metric or variable of the package Keras."""
    return any(c.__module__.startswith("keras.src.") for c in type(value).__mro__)


def variables_in(value, seen=None, keras=True):
    """Pairs (path, Variable) of what lists, dictionaries and attributes hold, each variable once.

    keras: also those of the package Keras, which a tf.Module's `variables` leave out, as in TensorFlow.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return []
    if isinstance(value, Variable):
        seen.add(id(value))
        return [("", value)]
    if of_keras(value):
        if not keras:
            return []
        held = getattr(value, "_value", None)
        # Names of slots have names of layers in them, which are numbered.
        parts = [("", held)] if isinstance(held, Variable) else [
            (str(i) if hasattr(value, "apply_gradients") else f"{i}/{v.name}", v)
            for i, v in enumerate(getattr(value, "variables", ()))]
        if hasattr(value, "_flatten_layers"):
            parts += [(f"layer_{i}/{name}", v) for i, layer in enumerate(value._flatten_layers())
                      for name, v in sorted(vars(layer).items()) if isinstance(v, Variable)]
    elif isinstance(value, dict):
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
    return [("/".join(filter(None, (name, path))), v)
            for name, part in parts for path, v in variables_in(part, seen, keras)]


class Module:
    """Variables under one roof (tf.Module): attributes, also in lists and other modules."""

    def __init__(self, name=None):
        self._name = name or type(self).__name__.lower()

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if "_awaited" in self.__dict__ and isinstance(value, (Variable, Module)):
            self._give(name, value)

    def await_values(self, values, prefix=""):
        """Variables that are yet to be made begin with the values, a dictionary, that have their names."""
        self.__dict__["_awaited"] = (values, prefix)
        for name, value in list(vars(self).items()):
            if isinstance(value, Module):
                self._give(name, value)

    def _give(self, name, value):
        values, prefix = self._awaited
        if isinstance(value, Module):
            value.await_values(values, f"{prefix}{name}/")
        elif prefix + name in values:
            value.assign(values.pop(prefix + name))

    name = property(lambda self: self.__dict__.get("_name") or type(self).__name__.lower(),
                    doc="The name that was given, or that of the class in snake case.")

    @property
    def variables(self):
        """The variables of the module and of what it holds, in the order of the names of attributes."""
        return tuple(v for _, v in variables_in(self, keras=False))

    @property
    def trainable_variables(self):
        """Those of variables that are trained."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        """Those of variables that are not trained."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        """The modules that this one holds, and those that they hold."""
        found = []

        def walk(value):
            if isinstance(value, Module) and value is not self and value not in found:
                found.append(value)
            for part in (value.values() if isinstance(value, dict) else value if isinstance(
                    value, (list, tuple)) else vars(value).values() if isinstance(value, Module) else ()):
                walk(part)
        walk(self)
        return tuple(found)
