"""Keras' own files of weights: .weights.h5, and .h5 of Keras 2. They need the package h5py."""
import json
import math
import warnings

from berth import _core
from berth.keras.layers import Layer, snake

# Layers of the engine whose weights Keras keeps in parts: (attribute, how many; None: all).
_PARTS = {"LSTM": [("cell", None)], "GRU": [("cell", None)], "SimpleRNN": [("cell", None)],
          "MultiHeadAttention": [("query_dense", 2), ("key_dense", 2), ("value_dense", 2),
                                 ("output_dense", 2)]}
# Layers around others: the attributes that hold them.
_AROUND = {"RNN": ("cell",), "TimeDistributed": ("layer",), "Bidirectional": ("forward_layer", "backward_layer"),
           "StackedRNNCells": ("cells",)}
# Slots of an optimizer in Keras' order: a group is written variable by variable, then comes the next.
_SLOTS = (("average",), ("gradient_accumulator",),
          ("m", "v", "u", "row", "column", "velocity", "accumulator", "linear", "accumulated_gradient",
           "accumulated_delta"), ("v_hat",), ("momentum",), ("average_gradient",))


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


def groups(layer, path="", file=None):
    """Yields (group of the file, its variables, name of the layer) for a layer and its parts.

    `file`: what is read, since Berth's older files have other places.
    """
    kind = _core.layer_type(layer.__berth__)
    if layer._is_own():
        children = [(k, v) for k, v in sorted(vars(layer).items()) if not k.startswith("_")]
        inner = {w._serial() for _, v in children for part in _layers_in(v) for w in part.weights}
        own = [w for w in layer.weights if w._serial() not in inner]
        yield path, _sorted(own), layer.name
        seen = set()
        for attribute, value in children:
            yield from _children(value, _join(path, attribute), seen, file)
    elif hasattr(layer, "layers"):
        yield path, [], layer.name
        inside = _join(path, "layers")
        parts = layer.layers
        if file is not None and any(map(_is_input, parts)) and f"{inside}/input_layer" not in file:
            parts = as_reached(layer)
        for name, part in zip(unique(class_name(p) for p in parts), parts):
            yield from groups(part, f"{inside}/{name}", file)
    elif kind in _PARTS:
        yield path, [], layer.name
        left = _sorted(layer.weights)
        for attribute, count in _PARTS[kind]:
            part = attribute.removesuffix("_dense").replace("output", "attention_output")
            yield _join(path, attribute), left[:count], f"{snake(kind)}_cell" if part == "cell" else part
            left = [] if count is None else left[count:]
    elif kind in _AROUND:
        yield path, [], layer.name
        parts = [Layer._of(p) for p in _core.parts(layer.__berth__)]
        names = _AROUND[kind] if kind != "StackedRNNCells" else [f"cells/{n}" for n in unique(map(class_name, parts))]
        for name, part in zip(names, parts):
            yield from groups(part, _join(path, name), file)
    elif _core.parts(layer.__berth__):
        raise ValueError(f"{kind} \"{layer.name}\" has layers inside, whose places in Keras' files Berth "
                         "does not know; a name that ends in .safetensors can be written")
    else:
        yield path, _sorted(layer.weights), layer.name


def as_reached(model):
    """The layers as Berth's older files have them: without inputs, in the order of their first use."""
    parts = [p for p in model.layers if not _is_input(p)]
    place = {h.key(): i for i, h in enumerate(_core.as_reached(model.__berth__))}
    return sorted(parts, key=lambda p: place.get(p.__berth__.key(), 0))


def _weights_as_reached(layer):
    if layer._is_own() or not hasattr(layer, "layers"):
        return layer.weights
    return list({w._serial(): w for part in as_reached(layer) for w in _weights_as_reached(part)}.values())


def _is_input(layer):
    return _core.layer_type(layer.__berth__) == "InputLayer"


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


def _children(value, path, seen, file):
    if isinstance(value, Layer):
        if id(value) not in seen:
            seen.add(id(value))
            yield from groups(value, path, file)
        return
    found = _layers_in(value)
    for name, part in zip(unique(class_name(p) for p in found), found):
        yield from _children(part, _join(path, name), seen, file)


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
    made = group.create_dataset(key, data=getattr(variable, "_array", lambda: variable)())
    if variable.dtype.name == "bfloat16":
        made.attrs["dtype"] = "bfloat16"


def _optimizer(model):
    """The optimizer's state, when there is one."""
    if is_compiled(model) and model.optimizer.variables:
        kept, inner = _kept_by_keras(model.optimizer, model.trainable_variables)
        yield "optimizer", kept, ""
        if inner:
            yield "optimizer/inner_optimizer", kept[-inner:], ""


def _last(variable):
    return variable.name.rsplit("/", 1)[-1].split(":")[0]


def _config(optimizer):
    """That of the optimizer which updates: inside of a LossScaleOptimizer."""
    config = json.loads(_core.part_config(optimizer))["config"]
    return config["inner_optimizer"]["config"] if "inner_optimizer" in config else config


def _kept_by_keras(optimizer, trained, built=None):
    """(variables, how many are of an optimizer inside) in Keras' order, which computes powers of betas from the count.

    Before the first step, or with built=False, there are counts and rates alone.
    """
    own = {name: [v for v in optimizer.variables if _last(v) == name] for name in
           ("iterations", "learning_rate", "step_counter", "dynamic_scale", "u_product")}
    scaled = len(own["iterations"]) > 1
    if built is None:
        built = any(_core.optimizer_slots(optimizer, trained)) or any(map(int, own["iterations"]))
    outer = [own["iterations"][0], own["learning_rate"][0]] if scaled else []
    if scaled and built:
        outer += own["step_counter"] + own["dynamic_scale"]
    kept = own["iterations"][-1:] + ([] if optimizer.schedule() else own["learning_rate"][-1:])
    if built:
        optimizer.build(trained)  # a variable may have had no gradient yet
        slots = [{_last(s): s for s in of_one} for of_one in _core.optimizer_slots(optimizer, trained)]
        for group in _SLOTS:
            if group != ("momentum",) or _config(optimizer).get("momentum"):
                kept += [_like_keras(s[name], name, v) for s, v in zip(slots, trained) for name in group if name in s
                         and not (scaled and name in ("row", "column") and len(v.shape) < 2)]
        kept += [] if scaled else own["u_product"]  # of one inside, Keras keeps neither of these
    return outer + kept, len(kept) if scaled else 0


def _like_keras(slot, name, trained):
    """A slot; for the velocity of Adafactor's matrices, which the engine lacks and Keras computes in each step, zeros."""
    import numpy
    lacks = name == "velocity" and slot.shape != trained.shape
    return numpy.zeros(trained.shape.as_list(), "float32") if lacks else slot


def _count_on(optimizer):
    """What the engine keeps and Keras computes from the number of updates."""
    config = _config(optimizer)
    steps = int(optimizer.iterations)
    for v in optimizer.variables:
        name = _last(v)
        if name in ("beta_1_power", "beta_2_power"):
            v.assign(float(config[name[:6]]) ** steps)
        elif name in ("decay_power", "steps"):
            v.assign(0.96 ** steps if name == "decay_power" else float(steps))
        elif name == "u_product":
            v.assign(math.prod(float(config["beta_1"]) * (1 - 0.5 * 0.96 ** t) for t in range(1, steps + 1)))


def _read_optimizer(model, found, where, at, skip_mismatch=False):
    """Values in Keras' order; a state of another optimizer is left out with a warning, as Keras does."""
    optimizer = model.optimizer
    kept, _ = _kept_by_keras(optimizer, model.trainable_variables, built=False)
    if len(found) > len(kept):
        kept, _ = _kept_by_keras(optimizer, model.trainable_variables, built=True)
    if len(found) != len(kept):
        warnings.warn(f"{where}: \"{at}\" has {len(found)} values; the optimizer {optimizer.name} has {len(kept)}: "
                      "its state is not read, it begins anew; expected the optimizer that wrote the file, and the "
                      "same layers trainable", stacklevel=5)
        return
    _assign(kept, found, where, at, skip_mismatch)
    _count_on(optimizer)


def read_weights(model, source, where, skip_mismatch=False):
    """Reads what write_weights() or Keras wrote into the weights of an equally built model."""
    with h5py().File(source, "r") as file:
        for path, variables, name in groups(model, file=file):
            at = _join(path, "vars")
            found = file[at] if at in file else {}
            _assign(variables, found, where, at, skip_mismatch)
        now, then = ([w._serial() for _, all_of, _ in groups(model, file=f) for w in all_of] for f in (None, file))
        if now != then and is_compiled(model) and "optimizer/vars" in file:
            warnings.warn(f"{where}: an older version of Berth wrote it, with the optimizer's state in another order; the "
                          "optimizer begins anew", stacklevel=4)
        elif is_compiled(model) and "optimizer/vars" in file:
            _read_optimizer(model, file["optimizer/vars"], where, "optimizer/vars", skip_mismatch)


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
        if not hasattr(v, "assign"):
            continue
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
        file.attrs["keras_version"], file.attrs["backend"], file.attrs["layers"] = "3.15.1", "berth", "by depth"
        file.attrs["model_config"] = json.dumps(config)
        if training is not None:
            file.attrs["training_config"] = json.dumps(training)
        root = file.create_group("model_weights")
        _put_names(root, "layer_names", [p.name for p in model.layers])
        for layer in model.layers:
            group = root.create_group(layer.name)
            weights = _of_layer(layer)
            names = [_short(w, layer, i) for i, w in enumerate(weights)]
            names = [n if names.count(n) == 1 else f"{n}_{i}" for i, n in enumerate(names)]  # two cells may share one
            _put_names(group, "weight_names", names)
            for name, w in zip(names, weights):
                _put(group, name, w)
        root.create_group("top_level_model_weights").attrs["weight_names"] = []
        for _, variables, _ in [] if training is None else list(_optimizer(model))[:1]:
            group = file.create_group("optimizer_weights")
            names = [f"{i}_{_last(v) if hasattr(v, 'name') else 'velocity'}" for i, v in enumerate(variables)]
            _put_names(group, "weight_names", names)
            for name, v in zip(names, variables):
                _put(group, name, v)


def _of_layer(layer, old=False):
    """A layer's weights as .h5 has them: what is trained first."""
    return _sorted(_weights_as_reached(layer)) if old else layer.trainable_weights + layer.non_trainable_weights


_LIMIT = 64512  # bytes of an attribute, of which HDF5 holds no more than 64 KiB


def _put_names(group, key, names):
    """Names as an attribute; where they are too long, as key0, key1, ..., as Keras does."""
    names = [n.encode() for n in names]
    each = max(1, _LIMIT // max(map(len, names), default=1))
    parts = [names[i:i + each] for i in range(0, len(names), each)]
    for i, part in enumerate(parts or [[]]):
        group.attrs[f"{key}{i}" if len(parts) > 1 else key] = part


def _names(group, key):
    if key in group.attrs:
        parts = [group.attrs[key]]
    else:
        parts = [group.attrs[f"{key}{i}"] for i in range(len(group.attrs)) if f"{key}{i}" in group.attrs]
    return [n.decode() if isinstance(n, bytes) else n for part in parts for n in part]


def _text(value):
    return value.decode() if isinstance(value, bytes) else value


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
        names = _names(root, "layer_names")
        kept = [(root[n], _names(root[n], "weight_names")) for n in names]
        kept = [(group, weights) for group, weights in kept if weights]
        old = _text(file.attrs.get("backend")) == "berth" and "layers" not in file.attrs
        layers = [p for p in (as_reached(model) if old else model.layers) if p.weights]
        if len(kept) != len(layers):
            raise ValueError(f"\"{path}\" has weights of {len(kept)} layers, the model has "
                             f"{len(layers)}; expected an equally built model")
        for layer, (group, weights) in zip(layers, kept):
            found = {str(i): group[n] for i, n in enumerate(weights)}
            _assign(_of_layer(layer, old), found, path, group.name, skip_mismatch)


def read_optimizer_of_whole(model, path):
    """The optimizer's state of a .h5, if there is one."""
    with h5py().File(path, "r") as file:
        if "optimizer_weights" in file:
            group = file["optimizer_weights"]
            found = {str(i): group[n] for i, n in enumerate(_names(group, "weight_names"))}
            _read_optimizer(model, found, path, "optimizer_weights")


def is_whole(path):
    with h5py().File(path, "r") as file:
        return "model_weights" in file or any(k.startswith("layer_names") for k in file.attrs)


