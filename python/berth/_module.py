"""tf.Module, and the variables that objects hold."""
import collections.abc
import functools
import re

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
    elif hasattr(value, "_saved_as"):
        parts = value._saved_as()
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

    _TF_MODULE_IGNORED_PROPERTIES = frozenset()

    def __init__(self, name=None):
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"{name!r} is not a valid module name; expected one like those of variables in Python")
        from berth import name_scope
        self._name = _snake(type(self).__name__) if name is None else name
        with name_scope(self._name) as scope:
            self._name_scope = name_scope(scope)

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
        """The method in the module's name scope: names of variables that it makes begin with that."""
        @functools.wraps(method)
        def inside(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)
        return inside

    @property
    def name_scope(self):
        """The scope with the module's name inside of those that were open when it was made."""
        from berth import name_scope
        return self.__dict__.get("_name_scope") or name_scope(f"{self.name}/")

    name = property(lambda self: self.__dict__.get("_name") or _snake(type(self).__name__),
                    doc="The name that was given, or that of the class in snake case.")

    def _flatten(self, recursive=True, predicate=None, attribute_traversal_key=None, with_path=False, expand_composites=False):
        """What attributes hold for which predicate(value) holds, each once; then what the modules among those hold."""
        return _flattened(self, recursive, predicate or (lambda _: True), attribute_traversal_key, with_path, set(), ())

    @property
    def variables(self):
        """The variables of the module in the order of the names of attributes, then those of each module that it holds."""
        return tuple(w for v in self._flatten(predicate=_has_variables) for _, w in variables_in(v, keras=False))

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
        """The modules that this one holds, then those that they hold."""
        return tuple(self._flatten(predicate=lambda v: isinstance(v, Module)))


def _has_variables(value):
    """True of a variable, and of layers and metrics of tf.keras without the package Keras."""
    return isinstance(value, (Variable, _core.Metric)) or hasattr(value, "_checkpointed") or (
        hasattr(value, "__berth__") and hasattr(value, "weights"))


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()  # where a word begins


def _leaves(value, path):
    """(path, value) of what an attribute holds in lists and dictionaries."""
    if isinstance(value, collections.abc.Mapping):
        try:
            parts = [(k, value[k]) for k in sorted(value)]
        except TypeError:
            parts = list(value.items())
    elif isinstance(value, (list, tuple)):
        parts = zip(getattr(value, "_fields", None) or range(len(value)), value)
    else:
        return [(path, value)]
    return [leaf for name, part in parts for leaf in _leaves(part, (*path, name))]


def _attribute_leaves(module, key, above):
    names = [n for n in sorted(vars(module), key=key) if n not in module._TF_MODULE_IGNORED_PROPERTIES]
    return [leaf for n in names for leaf in _leaves(vars(module)[n], (*above, n))]


def _flattened(module, recursive, predicate, key, with_path, seen, above):
    held = _attribute_leaves(module, key, above)
    if not with_path:  # each once, where it is met first
        held = [(path, leaf) for path, leaf in held if id(leaf) not in seen and not seen.add(id(leaf))]
    yield from ((path, leaf) if with_path else leaf for path, leaf in held if predicate(leaf))
    below = seen | {id(module)} if with_path else seen
    for path, leaf in held if recursive else ():
        if isinstance(leaf, Module) and not (with_path and id(leaf) in seen):
            yield from _flattened(leaf, recursive, predicate, key, with_path, below, path)
