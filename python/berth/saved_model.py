"""tf.saved_model: a folder with the traced functions of a module, or a Keras model.

The folder is Berth's own (functions.json and safetensors files), not TensorFlow's protocol buffers.
The functions of an object share its variables.
"""
import json
import os

from berth import _concrete, _remote
from berth._core import Variable
from berth._function import Function
from berth._gradient import note_read
from berth._module import Module, of_keras, variables_in
from berth._ops import fill
from berth._structure import flatten
from berth._tensor import TensorSpec, as_dtype, bfloat16, convert_to_tensor

_LIST, _MODEL, _VALUES = "functions.json", "model.safetensors", "variables.npz"
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"


def contains_saved_model(export_dir):
    """Whether a folder is one that save() wrote."""
    folder = _remote.plain(export_dir)
    if _remote.is_url(folder):
        return _LIST in _remote.listed(folder)
    return os.path.isfile(os.path.join(folder, _LIST))


def save(obj, export_dir, signatures=None, options=None):
    """Writes what `obj` computes: each trace of its tf.functions, and the model if it is one."""
    folder = _remote.plain(export_dir)
    if _remote.is_url(folder):
        with _remote.outgoing(folder, last=_LIST) as local:
            return save(obj, local, signatures, options)
    os.makedirs(folder, exist_ok=True)
    model = hasattr(obj, "save_weights")
    variables = [] if model else variables_in(obj)
    listed = {}
    signed = _signatures(obj, signatures, model)
    written = {}  # the entries of a function that has several names
    for name, function in _functions(obj, signed):
        if id(function) in written:
            listed[name] = listed[written[id(function)]]
            continue
        written[id(function)] = name
        traces = [function] if isinstance(function, _concrete.ConcreteFunction) else _traces(function)
        traces = [t for c in traces for t in (c.by_rank() if isinstance(c, _concrete.Untraced) else [c])]
        for i, concrete in enumerate(traces):
            file = f"{name}_{i}.safetensors"
            listed.setdefault(name, []).append({
                "file": file, "form": concrete.form(), "arguments": concrete._arguments(),
                "variables": _written(concrete, os.path.join(folder, file), variables)})
    if model:
        model = "model.keras" if of_keras(obj) else _MODEL
        obj.save(os.path.join(folder, model))
    if not listed and not model and not variables:
        raise ValueError("saved_model.save: no tf.function of the object has been called, and it has no variables and is "
                         "no model; call one, or give it an input_signature")
    if variables:
        import numpy
        numpy.savez(os.path.join(folder, _VALUES), **{
            path: v.numpy().astype("float32") if v.dtype == bfloat16 else v.numpy() for path, v in variables})
    with open(os.path.join(folder, _LIST), "w") as out:
        json.dump({"functions": listed, "model": model, "signatures": {
            name: _argument_names(function) for name, function in signed.items()}, "variables": [
            (path, v.dtype.name, v.trainable) for path, v in variables], "held": _held(
                obj, {id(v): path for path, v in variables}, frozenset())}, out)


def _held(value, paths, above):
    """How an object holds variables: the path of one, [kind, {name: part}] of what holds others, None of all else."""
    if id(value) in paths:
        return paths[id(value)]
    kind = next((k for k, t in (("list", list), ("tuple", tuple), ("dict", dict), ("module", Module)) if isinstance(value, t)), None)
    if kind is None or id(value) in above:
        return None
    items = vars(value).items() if kind == "module" else value.items() if kind == "dict" else enumerate(value)
    parts = {str(name): _held(v, paths, above | {id(value)}) for name, v in items}
    found = {name: part for name, part in parts.items() if part is not None}
    return [kind, parts if kind in ("list", "tuple") else found] if found else None


def _built(part, variables):
    """What _held() described, of loaded variables by path."""
    if not isinstance(part, list):
        return variables.get(part)
    kind, parts = part
    made = {name: _built(p, variables) for name, p in parts.items()}
    if kind == "module":
        module = Module()
        vars(module).update(made)
        return module
    return made if kind == "dict" else tuple(made.values()) if kind == "tuple" else list(made.values())


def _written(concrete, path, variables):
    """Writes a trace; returns for each of the file's variables the path of the object's, or None."""
    def like(own):
        return [i for i, (_, v) in enumerate(variables)
                if (v.name, v.dtype, v.shape.as_list()) == (own.name, own.dtype, own.shape.as_list())]
    concrete.save(path)
    found = [like(own) for own in _concrete.load(path).variables]
    if any(len(f) > 1 for f in found):  # equal names: a number in each tells them apart
        kept = [v.numpy() for _, v in variables]
        try:
            for i, (_, v) in enumerate(variables):
                group = like(v)
                if v.dtype.is_floating or v.dtype.is_integer:
                    v.assign(fill(v.shape, group.index(i), v.dtype))
            concrete.save(path)
            found = [[f[int(own.numpy().ravel()[0])]] if len(f) > 1 and own.shape.num_elements() else f[:1]
                     for f, own in zip(found, _concrete.load(path).variables)]
        finally:
            for (_, v), old in zip(variables, kept):
                v.assign(old)
        concrete.save(path)
    return [variables[f[0]][0] if f else None for f in found]


def _signatures(obj, given, model):
    """The functions to serve by their names; of what was not said the only one that has an input_signature and results."""
    if given is None and not model:
        signed = [f for _, f in _functions(obj, {}) if f.input_signature is not None and f.get_concrete_function().outputs]
        given = signed[0] if len(signed) == 1 else None
    found = {} if given is None else given if isinstance(given, dict) else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: given}
    for name, function in found.items():
        if not isinstance(function, _concrete.ConcreteFunction) and not _traces(function):
            raise ValueError(f"saved_model.save: the signature {name!r} is {function!r}, which has no trace; expected a "
                             "tf.function with an input_signature, or what get_concrete_function() returns")
    return found


def _argument_names(function):
    """How the arguments of a function are called, in order."""
    import inspect
    fn = function._function if isinstance(function, _concrete.ConcreteFunction) else function
    return list(inspect.signature(fn.python_function).parameters) if fn is not None else []


def _functions(obj, signatures):
    yield from signatures.items()
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
    folder = _remote.plain(export_dir)
    if _remote.is_url(folder):
        with _remote.incoming_folder(folder, _LIST) as local:
            return load(local, tags, options)
    with open(os.path.join(folder, _LIST)) as file:
        kept = json.load(file)
    model = None
    if kept["model"]:
        if kept["model"] == "model.keras":
            from keras.saving import load_model
        else:
            from berth.keras.models import load_model
        model = load_model(os.path.join(folder, _MODEL if kept["model"] is True else kept["model"]))
    shared = {}
    loaded = _Loaded(model, {name: _OneOf(name, [_trace_of(folder, f, shared) for f in files])
                             for name, files in kept["functions"].items()}, kept.get("signatures"))
    if kept.get("variables"):
        import numpy
        values = numpy.load(os.path.join(folder, _VALUES))
        made = {path: shared[path] if path in shared else Variable(
            convert_to_tensor(values[path], as_dtype(dtype)), trainable=trainable) for path, dtype, trainable in kept["variables"]}
        for name, part in (kept.get("held") or [None, {}])[1].items():
            vars(loaded).setdefault(name, _built(part, made))
        for path, v in made.items():  # of objects of other kinds, and of files of before
            *parts, name = path.split("/")
            holder = loaded
            for part in parts:
                holder = vars(holder).setdefault(part, Module()) if isinstance(holder, Module) else None
            if isinstance(holder, Module):
                vars(holder).setdefault(name, v)
    return loaded


def _trace_of(folder, entry, shared):
    """A trace, and pairs of the object's variables and its own, which are kept equal."""
    entry = entry if isinstance(entry, dict) else {"file": entry, "form": None, "variables": []}
    trace = _concrete.load(os.path.join(folder, entry["file"]), entry["form"])
    trace._take(entry.get("arguments"))
    trace._own = trace.variables
    trace.pairs = [(shared[path], own) for path, own in zip(entry["variables"], trace.variables)
                   if path is not None and shared.setdefault(path, own) is not own]
    return trace


class _OneOf:
    """The traces of a function; a call runs the one that its arguments fit."""

    def __init__(self, name, traces):
        self.__name__, self.concrete_functions = name, traces

    structured_outputs = property(lambda self: self.concrete_functions[0].structured_outputs)

    def __call__(self, *args, **kwargs):
        for f in self.concrete_functions:
            given = f._fitting(args, kwargs)
            if given is not None:
                for ours, own in f.pairs:
                    own.assign(ours)
                note_read(v for v in f.variables if v.trainable)
                out = f(*given)
                for ours, own in f.pairs:
                    ours.assign(own)
                return (out[0] if len(out) == 1 else out or None) if isinstance(out, list) else out
        given = ", ".join(f"{n}={v!r}" if n else repr(v) for n, v in [*(("", v) for v in args), *kwargs.items()])
        raise ValueError(f"{self.__name__}: no saved trace takes ({given}); it has " + "; ".join(
            str(f.function_type) + "".join(f", {n}={place.value!r}" for n, place in f.places.items() if hasattr(place, "value"))
            for f in self.concrete_functions))


class _Signature:
    """A saved function as a signature: tensors, by position or name, to a dictionary of results."""

    def __init__(self, name, function, arguments):
        self.__name__, self._function, self._arguments = name, function, arguments
        self.concrete_functions = function.concrete_functions

    @property
    def inputs(self):
        """The specs of the arguments."""
        return self.concrete_functions[0].inputs

    @property
    def outputs(self):
        """The specs of the results."""
        return self.concrete_functions[0].outputs

    @property
    def structured_input_signature(self):
        """((), the specs of the arguments by name)."""
        return (), {n: TensorSpec(s.shape, s.dtype, n) for n, s in zip(self._arguments, self.inputs)}

    @property
    def structured_outputs(self):
        """The specs of the results by name."""
        return _by_name(self._function.structured_outputs)

    def __call__(self, *args, **kwargs):
        unknown = [n for n in kwargs if n not in self._arguments]
        if not self._arguments:
            return _by_name(self._function(*args, **kwargs))
        if unknown:
            raise TypeError(f"{self.__name__}: no argument is called {unknown[0]!r}; there are {self._arguments}")
        return _by_name(self._function(*args, *(kwargs[n] for n in self._arguments if n in kwargs)))

    def __repr__(self):
        return f"<signature {self.__name__}({', '.join(self._arguments)}) -> {self.structured_outputs}>"


def _by_name(out):
    if isinstance(out, dict):
        return out
    return {f"output_{i}": v for i, v in enumerate(out if isinstance(out, (list, tuple)) else [out])}


class _Serving:
    """The model as a signature: tensors to a dictionary of the outputs' names."""

    def __init__(self, model):
        self._model = model

    @property
    def _names(self):
        return getattr(self._model, "output_names", None) or [f"output_{i}" for i in range(len(self._model.outputs))]

    def __call__(self, *args, **kwargs):
        out = self._model(*args, *kwargs.values())
        return dict(zip(self._names, out if isinstance(out, (list, tuple)) else [out]))

    @property
    def structured_outputs(self):
        outputs = self._model.outputs
        return {n: TensorSpec(t.shape, t.dtype, n) for n, t in zip(self._names, outputs)}


class _Loaded(Module):
    def __init__(self, model, functions, signatures):
        vars(self).update({"_model": model, "_functions": functions})
        vars(self).update({n: f for n, f in functions.items() if n != "__call__"})
        named = signatures if isinstance(signatures, dict) else {}  # files of before have their names alone
        names = functions if signatures is None else signatures
        self.__dict__["signatures"] = {n: _Signature(n, functions[n], named.get(n, [])) for n in names} or (
            {} if model is None else {"serving_default": _Serving(model)})

    variables = property(lambda self: self._model.variables if self._model is not None else Module.variables.fget(self))
    trainable_variables = property(lambda self: self._model.trainable_variables if self._model is not None else
                                   Module.trainable_variables.fget(self))

    def __call__(self, *args, **kwargs):
        if "__call__" in self._functions:
            return self._functions["__call__"](*args, **kwargs)
        if self._model is None:
            raise TypeError(f"what was saved cannot be called; it has {sorted(self._functions)}")
        return self._model(*args, **kwargs)
