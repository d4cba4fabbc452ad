"""Makes tf.math, tf.nn and their neighbours out of the functions of the engine.

The engine's table (berth._core.ops) has one function for each declaration of the public headers;
here each becomes an attribute of the module that TensorFlow has it in.
"""
import sys
import types

from berth import _core

# Module of the engine -> module of Berth, beside what has a namesake.
_TOP = {"activations": "keras.activations"}
# Names that TensorFlow spells otherwise.
_RENAMED = {"logical_and": "logical_and"}


def _public(module):
    return {name: value for name, value in vars(module).items()
            if not name.startswith("_") and isinstance(value, types.BuiltinFunctionType)}


def _made(full, values, doc):
    module = types.ModuleType(full, doc)
    vars(module).update(values)

    from berth._tensor import name_missing
    name_missing(module)
    sys.modules[full] = module
    return module


def install(top):
    """Puts the functions of the engine into the package."""
    ops = _core.ops
    for name, value in _public(ops).items():
        top.setdefault(name, value)
    for name in ("math", "nn", "linalg", "bitwise", "image", "io", "signal", "strings"):
        source = getattr(ops, name, None)
        values = _public(source) if source is not None else {}
        top[name] = _made(f"berth.{name}", values, f"tf.{name}")
    # TensorFlow has these in two places.
    for name in ("matmul", "einsum", "tensordot", "transpose", "eye", "norm", "diag", "diag_part",
                 "trace", "cross", "band_part"):
        if name in top and not hasattr_quietly(top["linalg"], name):
            setattr(top["linalg"], name, top[name])
    for name in ("top_k", "embedding_lookup", "conv2d"):
        if name in top and not hasattr_quietly(top["nn"], name):
            setattr(top["nn"], name, top[name])
    for name in ("tanh", "sigmoid"):
        setattr(top["nn"], name, getattr(ops.math, name))
    for name in ("softmax", "log_softmax"):
        setattr(top["math"], name, getattr(ops.nn, name))
    top["math"].truediv = top["truediv"] = top["realdiv"] = ops.math.divide
    top["complex"] = ops.math.complex
    for name, value in _public(ops.math).items():
        if name in ("argmax", "argmin"):
            top.setdefault(name, value)


def later(module, sources):
    """Gives a module names of others, {module: "NAME NAME"}; a module is imported when a name of it is used first."""
    late = {name: source for source, names in sources.items() for name in names.split()}
    missing = module.__getattr__
    for name in late:
        vars(module).pop(name, None)  # the engine's own form

    def look_up(name):
        if name not in late:
            return missing(name)
        import importlib
        value = getattr(importlib.import_module(f"berth.{late[name]}"), name)
        setattr(module, name, value)
        return value

    module.__getattr__ = look_up
    module.__dir__ = lambda: sorted({*vars(module), *late})


def hasattr_quietly(module, name):
    return name in vars(module)
