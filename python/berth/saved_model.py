"""tf.saved_model: a folder with the traced functions of a module, or a Keras model.

The folder is Berth's own (functions.json and safetensors files), not TensorFlow's protocol buffers.
What is loaded is for use, not for training: each function has variables of its own, beside those of the object.
"""
import json
import os

from berth import _concrete
from berth._core import Variable
from berth._function import Function
from berth._module import Module, variables_in
from berth._tensor import as_dtype, bfloat16, convert_to_tensor

_LIST, _MODEL, _VALUES = "functions.json", "model.safetensors", "variables.npz"


def save(obj, export_dir, signatures=None, options=None):
    """Writes what `obj` computes: each trace of its tf.functions, and the model if it is one."""
    folder = str(export_dir)
    os.makedirs(folder, exist_ok=True)
    listed = {}
    for name, function in _functions(obj, signatures):
        traces = [function] if isinstance(function, _concrete.ConcreteFunction) else _traces(function)
        for i, concrete in enumerate(traces):
            file = f"{name}_{i}.safetensors"
            concrete.save(os.path.join(folder, file))
            listed.setdefault(name, []).append(file)
    model = hasattr(obj, "save_weights")
    if model:
        obj.save(os.path.join(folder, _MODEL))
    variables = [] if model else variables_in(obj)
    if not listed and not model and not variables:
        raise ValueError("saved_model.save: no tf.function of the object has been called, and it has no variables and is "
                         "no model; call one, or give it an input_signature")
    if variables:
        import numpy
        numpy.savez(os.path.join(folder, _VALUES), **{
            path: v.numpy().astype("float32") if v.dtype == bfloat16 else v.numpy() for path, v in variables})
    with open(os.path.join(folder, _LIST), "w") as out:
        json.dump({"functions": listed, "model": model, "variables": [
            (path, v.dtype.name, v.trainable) for path, v in variables]}, out)


def _functions(obj, signatures):
    if signatures is not None:
        given = signatures if isinstance(signatures, dict) else {"serving_default": signatures}
        yield from given.items()
    seen = set()
    for name in [*vars(obj), *(n for c in type(obj).__mro__ for n in vars(c))]:
        if name not in seen and name.isidentifier():
            seen.add(name)
            found = vars(obj)[name] if name in vars(obj) else next(
                vars(c)[name] for c in type(obj).__mro__ if name in vars(c))
            if isinstance(found, Function):
                yield name, found if name in vars(obj) else found.__get__(obj, type(obj))


def _traces(function):
    traces = function.concrete_functions()
    return traces if traces or function.input_signature is None else [function.get_concrete_function()]


class SaveOptions:
    """Accepted as TensorFlow does: files are the engine's own."""

    def __init__(self, namespace_whitelist=None, save_debug_info=False, function_aliases=None,
                 experimental_io_device=None, **kwargs):
        pass


class LoadOptions:
    """Accepted as TensorFlow does."""

    def __init__(self, allow_partial_checkpoint=False, experimental_io_device=None, **kwargs):
        pass


def load(export_dir, tags=None, options=None):
    """Returns an object with the functions, or the model, that save() wrote."""
    folder = str(export_dir)
    with open(os.path.join(folder, _LIST)) as file:
        kept = json.load(file)
    model = None
    if kept["model"]:
        from berth.keras.models import load_model
        model = load_model(os.path.join(folder, _MODEL))
    loaded = _Loaded(model, {name: _OneOf(name, [_concrete.load(os.path.join(folder, f)) for f in files])
                             for name, files in kept["functions"].items()})
    if kept.get("variables"):
        import numpy
        values = numpy.load(os.path.join(folder, _VALUES))
        for path, dtype, trainable in kept["variables"]:
            *parts, name = path.split("/")
            holder = loaded
            for part in parts:
                holder = vars(holder).setdefault(part, Module(part))
            if name not in vars(holder):
                setattr(holder, name, Variable(convert_to_tensor(values[path], as_dtype(dtype)), trainable=trainable))
    return loaded


class _OneOf:
    """The traces of a function; a call runs the one that its arguments fit."""

    def __init__(self, name, traces):
        self.__name__, self.concrete_functions = name, traces

    def __call__(self, *args, **kwargs):
        given = [convert_to_tensor(v) for v in (*args, *kwargs.values())]
        for f in self.concrete_functions:
            if len(f.inputs) == len(given) and all(
                    s.dtype == g.dtype and s.shape.is_compatible_with(g.shape)
                    for s, g in zip(f.inputs, given)):
                out = f(*given)
                return out[0] if len(out) == 1 else out
        raise ValueError(f"{self.__name__}: no saved trace takes "
                         f"{[(g.dtype.name, g.shape.as_list()) for g in given]}; it has "
                         f"{[f.function_type for f in self.concrete_functions]}")


class _Loaded:
    def __init__(self, model, functions):
        self._model, self._functions = model, functions
        vars(self).update({n: f for n, f in functions.items() if n != "__call__"})

    @property
    def signatures(self):
        return self._functions or {"serving_default": self._model}

    def __call__(self, *args, **kwargs):
        if "__call__" in self._functions:
            return self._functions["__call__"](*args, **kwargs)
        if self._model is None:
            raise TypeError(f"what was saved cannot be called; it has {sorted(self._functions)}")
        return self._model(*args, **kwargs)
