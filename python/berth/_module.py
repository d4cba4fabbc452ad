"""tf.Module, and the variables that objects hold."""
import collections

from berth import _core
from berth._core import Variable


def of_keras(value):
    """True of a layer, model, optimizer, metric or variable of the package Keras."""
    return any(c.__module__.startswith("keras.src.") for c in type(value).__mro__)


# Lists that Keras keeps of what attributes hold as well.
_LISTS = {"_layers", "_metrics", "_trainable_variables", "_non_trainable_variables", "_seed_generators"}


def _held(value):
    """The tf.Variable of a variable, also of one of Keras'; None of others."""
    value = value if isinstance(value, Variable) else getattr(value, "_value", None)
    return value if isinstance(value, Variable) else None


def _by_attributes(top):
    """(path, Variable) of what an object of Keras holds, the shortest path of each, as TensorFlow names it in checkpoints."""
    variables = list(getattr(top, "variables", ()))
    wanted = {id(_held(v)) for v in variables if _held(v) is not None}
    if _held(top) is not None:
        return [("", _held(top))]
    found, seen, queue = {}, set(), collections.deque([("", top)])
    while queue:
        path, at = queue.popleft()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if (held := _held(at)) is not None:
            if at is held or id(held) in wanted:
                found.setdefault(id(held), (path, held))
            continue
        if isinstance(at, Module):
            found.update((id(v), (f"{path}/{inner}", v)) for inner, v in variables_in(at))
            continue
        if isinstance(at, dict):
            parts = at.items()
        elif isinstance(at, (list, tuple)):
            parts = enumerate(at)
        elif of_keras(at) and hasattr(at, "get_config"):
            parts = ((name, part) for name, part in vars(at).items() if name not in _LISTS)
        else:
            continue
        queue.extend((f"{path}/{name}".lstrip("/"), part) for name, part in parts
                     if isinstance(part, (dict, list, tuple, Variable, Module)) or of_keras(part))
    others = [(f"{i}/{v.name}", _held(v)) for i, v in enumerate(variables)
              if _held(v) is not None and id(_held(v)) not in found]
    return [*found.values(), *others]


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
        parts = _by_attributes(value)
    elif hasattr(value, "_checkpointed"):
        parts = value._checkpointed()
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

    @classmethod
    def with_name_scope(cls, method):
        """The method itself: names of variables are those of their attributes."""
        return method

    @property
    def name_scope(self):
        """A scope with the module's name, which names nothing here."""
        from berth import name_scope
        return name_scope(f"{self.name}/")

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
