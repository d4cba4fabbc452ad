"""Keras' own files of weights: .weights.h5, and .h5 of Keras 2. They need the package h5py."""
import json

from berth import _core
from berth.keras.layers import Layer, snake

# Layers of the engine whose weights Keras keeps in parts: (attribute, how many; None: all).
_PARTS = {"LSTM": [("cell", None)], "GRU": [("cell", None)], "SimpleRNN": [("cell", None)],
          "MultiHeadAttention": [("query_dense", 2), ("key_dense", 2), ("value_dense", 2),
                                 ("output_dense", 2)]}
_POWERS = ("beta_1_power", "beta_2_power")


def h5py():
    try:
        import h5py as module
    except ImportError:
        raise ImportError("Keras' files .keras and .h5 need the package h5py: pip install h5py. Without "
                          "it, names that end in .safetensors do.") from None
    return module


def unique(names):
    """dense, dense_1, dense_2: Keras counts the classes of a list."""
    seen = {}
    for name in names:
        count = seen.get(name, -1) + 1
        seen[name] = count
        yield f"{name}_{count}" if count else name


def _join(path, name):
    return f"{path}/{name}" if path else name


def groups(layer, path=""):
    """Yields (group of the file, its variables, name of the layer) for a layer and its parts."""
    kind = _core.layer_type(layer.__berth__)
    if layer._is_own():
        children = [(k, v) for k, v in sorted(vars(layer).items()) if not k.startswith("_")]
        inner = {w._serial() for _, v in children for part in _layers_in(v) for w in part.weights}
        own = [w for w in layer.weights if w._serial() not in inner]
        yield path, _sorted(own), layer.name
        seen = set()
        for attribute, value in children:
            yield from _children(value, _join(path, attribute), seen)
    elif hasattr(layer, "layers"):
        yield path, [], layer.name
        parts = [p for p in layer.layers if _core.layer_type(p.__berth__) != "InputLayer"]
        for name, part in zip(unique(class_name(p) for p in parts), parts):
            yield from groups(part, _join(_join(path, "layers"), name))
    elif kind in _PARTS:
        left = _sorted(layer.weights)
        for attribute, count in _PARTS[kind]:
            yield _join(path, attribute), left[:count], attribute
            left = [] if count is None else left[count:]
    elif _core.num_parts(layer.__berth__):
        raise ValueError(f"{kind} \"{layer.name}\" has layers inside, whose places in Keras' files Berth "
                         "does not know; a name that ends in .safetensors can be written")
    else:
        yield path, _sorted(layer.weights), layer.name


def _sorted(weights):
    """Keras' order: what is trained first."""
    return [w for w in weights if w.trainable] + [w for w in weights if not w.trainable]


def _layers_in(value):
    if isinstance(value, Layer):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for item in value for found in _layers_in(item)]
    return []


def _children(value, path, seen):
    if isinstance(value, Layer):
        if id(value) not in seen:
            seen.add(id(value))
            yield from groups(value, path)
        return
    found = _layers_in(value)
    for name, part in zip(unique(class_name(p) for p in found), found):
        yield from _children(part, _join(path, name), seen)


def class_name(layer):
    if layer._is_own():
        return snake(type(layer).__name__)
    kind = _core.layer_type(layer.__berth__)
    return "functional" if kind == "Model" else snake(kind)


def write_weights(model, target):
    """Writes a .weights.h5 of Keras 3 into a path or a binary file."""
    with h5py().File(target, "w") as file:
        for path, variables, name in [*groups(model), *_optimizer(model)]:
            group = file.require_group(path) if path else file
            kept = group.create_group("vars")
            if name:
                kept.attrs["name"] = name
            for i, v in enumerate(variables):
                _put(kept, str(i), v)


def is_compiled(model):
    return _core.is_compiled(model.__berth__)


def _put(group, key, variable):
    made = group.create_dataset(key, data=variable._array())
    if variable.dtype.name == "bfloat16":
        made.attrs["dtype"] = "bfloat16"


def _optimizer(model):
    """The optimizer's state, when there is one."""
    if is_compiled(model) and model.optimizer.variables:
        yield "optimizer", _kept_by_keras(model.optimizer), ""


def _last(variable):
    return variable.name.rsplit("/", 1)[-1].split(":")[0]


def _kept_by_keras(optimizer):
    """Keras' order: the count, the rate, slots. It computes powers of betas from the count."""
    count = [v for v in optimizer.variables if _last(v) == "iterations"]
    rate = [v for v in optimizer.variables if _last(v) == "learning_rate"]
    return count + rate + [v for v in optimizer.variables
                           if _last(v) not in ("iterations", "learning_rate", *_POWERS)]


def _set_powers(optimizer):
    config = json.loads(_core.part_config(optimizer))["config"]
    for v in optimizer.variables:
        if _last(v) in _POWERS:
            v.assign(float(config[_last(v)[:6]]) ** int(optimizer.iterations))


def read_weights(model, source, where, skip_mismatch=False):
    """Reads what write_weights() or Keras wrote into the weights of an equally built model."""
    with h5py().File(source, "r") as file:
        for path, variables, name in groups(model):
            at = _join(path, "vars")
            found = file[at] if at in file else {}
            _assign(variables, found, where, at, skip_mismatch)
        if is_compiled(model) and "optimizer/vars" in file:
            kept = file["optimizer/vars"]
            optimizer = model.optimizer
            if len(kept) > len(_kept_by_keras(optimizer)):
                optimizer.build(model.trainable_variables)
            _assign(_kept_by_keras(optimizer), kept, where, "optimizer/vars", skip_mismatch)
            _set_powers(optimizer)


def _warn_skipped(where, what, why):
    import warnings
    warnings.warn(f"load_weights: {what} keeps its values, since in {where} {why} (skip_mismatch)", stacklevel=6)


def _assign(variables, found, where, at, skip_mismatch):
    values = [found[str(i)] for i in range(len(found))] if len(found) == len(variables) else None
    if values is None:
        if skip_mismatch:
            _warn_skipped(where, at, f"the file has {len(found)} values, the layer {len(variables)}")
            return
        raise ValueError(f"{where}: \"{at}\" has {len(found)} values; the layer has {len(variables)}: "
                         f"{[v.name for v in variables]}; expected an equally built model, or "
                         "skip_mismatch=True")
    for v, value in zip(variables, values):
        if list(value.shape) != v.shape.as_list():
            if skip_mismatch:
                _warn_skipped(where, f"{at}/{v.name}", f"the file has the shape {list(value.shape)}, the model "
                              f"{v.shape.as_list()}")
                continue
            raise ValueError(f"{where}: \"{at}\" has a value of shape {list(value.shape)} for "
                             f"\"{v.name}\" of shape {v.shape.as_list()}; expected an equally built "
                             "model, or skip_mismatch=True")
        _set(v, value)


def _set(variable, value):
    import numpy
    array = numpy.asarray(value)
    if variable.dtype.name == "bfloat16" and array.dtype.kind == "V":
        array = array.view(variable.dtype.as_numpy_dtype)
    variable.assign(array.astype(variable.dtype.as_numpy_dtype))


# ---------------------------------------------------------------- .h5: the format of Keras 2

def write_whole(model, path, config, training):
    """Writes a .h5: the model's JSON as an attribute, weights by the names of layers."""
    with h5py().File(path, "w") as file:
        file.attrs["keras_version"], file.attrs["backend"] = "3.15.1", "berth"
        file.attrs["model_config"] = json.dumps(config)
        if training is not None:
            file.attrs["training_config"] = json.dumps(training)
        root = file.create_group("model_weights")
        layers = [p for p in model.layers if _core.layer_type(p.__berth__) != "InputLayer"]
        root.attrs["layer_names"] = [p.name.encode() for p in layers]
        for layer in layers:
            group = root.create_group(layer.name)
            weights = _sorted(layer.weights)
            names = [_short(w, layer, i) for i, w in enumerate(weights)]
            group.attrs["weight_names"] = [n.encode() for n in names]
            for name, w in zip(names, weights):
                _put(group, name, w)
        root.create_group("top_level_model_weights").attrs["weight_names"] = []


def _short(weight, layer, number):
    name = weight.name.split(":")[0]
    return name if "/" in name else f"{layer.name}/{name}_{number}" if number else f"{layer.name}/{name}"


def read_whole(path):
    """Returns (model's JSON, compile()'s or None) of a .h5."""
    with h5py().File(path, "r") as file:
        text = file.attrs.get("model_config")
        if text is None:
            raise ValueError(f"load_model: \"{path}\" holds weights alone; make the model, then "
                             "model.load_weights()")
        training = file.attrs.get("training_config")
        return json.loads(text), None if training is None else json.loads(training)


def read_by_layer(model, path, skip_mismatch=False):
    """Weights of a .h5, layer by layer in order; those of load_weights("x.h5"), too."""
    with h5py().File(path, "r") as file:
        root = file["model_weights"] if "model_weights" in file else file
        names = [n.decode() if isinstance(n, bytes) else n for n in root.attrs["layer_names"]]
        kept = [root[n] for n in names]
        kept = [g for g in kept if len(g.attrs["weight_names"])]
        layers = [p for p in model.layers if p.weights]
        if len(kept) != len(layers):
            raise ValueError(f"\"{path}\" has weights of {len(kept)} layers, the model has "
                             f"{len(layers)}; expected an equally built model")
        for layer, group in zip(layers, kept):
            found = {str(i): group[n] for i, n in enumerate(group.attrs["weight_names"])}
            _assign(_sorted(layer.weights), found, path, group.name, skip_mismatch)


def is_whole(path):
    with h5py().File(path, "r") as file:
        return "layer_names" in file.attrs or "model_weights" in file


