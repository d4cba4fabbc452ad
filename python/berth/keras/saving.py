"""tf.keras.saving: models as files, and classes of one's own by name.

The ending says the format: .keras and .h5 are Keras' own (they need h5py), everything else Berth's
safetensors. Nothing in a file is executed unless safe_mode=False allows the code of a Lambda.
"""
import io
import json
import os
import sys
import time
import types
import zipfile

from berth import _core, _remote
from berth._structure import LEAF, pack
from berth._tensor import name_missing as _name_missing
from berth.keras import _hdf5
from berth.keras._own import MeanOf as _MeanOf
from berth.keras.layers import _OPERATORS, InputLayer, Lambda, Layer, is_operation, operands, operation
from berth.keras.models import Model, Sequential

_CONFIG, _METADATA, _WEIGHTS = "config.json", "metadata.json", "model.weights.h5"
_OWN = ".safetensors"
_OPERATIONS = "keras.src.ops.numpy"
_OF_INPUTS = ("NotEqual", "OnesLike", "ZerosLike")
_OF_MASKS = ("Any", "ExpandDims", "LogicalAnd", "LogicalOr", "Concatenate")  # of masks, more masks
_HOLE = object()  # where an operator takes a tensor of the model
_registered, _names = {}, {}


def register_keras_serializable(package="Custom", name=None):
    """Decorator: files find the class or function by "package>name"."""
    def register(made):
        full = f"{package}>{name or made.__name__}"
        _registered[full] = made
        _names[made] = full
        return made
    return register


def get_registered_name(obj):
    """"package>name" of a registered class or function, else its own name."""
    return _names.get(obj, getattr(obj, "__name__", obj))


def get_registered_object(name, custom_objects=None, module_objects=None):
    """The class or function that is registered by this name; None: there is none."""
    return {**_registered, **(custom_objects or {}), **(module_objects or {})}.get(name)


def get_custom_objects():
    """The dictionary of registered classes and functions; changes count."""
    return _registered


class CustomObjectScope:
    """Names that are known inside a with block."""

    def __init__(self, custom_objects):
        self._own = dict(custom_objects)

    def __enter__(self):
        self._before = dict(_registered)
        _registered.update(self._own)
        return self

    def __exit__(self, *_):
        _registered.clear()
        _registered.update(self._before)


custom_object_scope = CustomObjectScope


# ---------------------------------------------------------------- objects as JSON

def serialize_keras_object(obj):
    """The JSON of a layer, model, optimizer, loss or metric."""
    if isinstance(obj, Lambda):
        return _own_json(obj, {"name": obj.name, "function": _code_of(obj._function)})
    if isinstance(obj, Sequential) and any(_has_own(p) for p in obj._given):
        layers = [serialize_keras_object(p) for p in obj._given]
        return {"module": "keras", "class_name": "Sequential", "registered_name": None,
                "config": {"name": obj.name, "layers": layers}}
    if isinstance(obj, Layer):
        if obj._is_own():
            return _own_json(obj, obj.get_config())
        if isinstance(obj, Model):
            return _functional_json(obj)
        return _as_keras(json.loads(_core.layer_config(obj.__berth__)))
    if obj is None:
        return None
    return json.loads(_core.part_config(obj))


def _as_keras(config):
    """The words of which Keras' own reader is strict."""
    if isinstance(config, list):
        return [_as_keras(c) for c in config]
    if not isinstance(config, dict):
        return config
    if config.get("class_name") == "accuracy":  # which one, the shapes say
        return "accuracy"
    config = {k: _as_keras(v) for k, v in config.items()}
    if str(config.get("class_name")).startswith("SpatialDropout"):
        config["config"].pop("trainable", None)
    if str(config.get("class_name")).endswith("Attention"):  # built for several shapes
        config.pop("build_config", None)
    if config.get("class_name") == "Functional":
        config.update(module="keras.src.models.functional", registered_name="Functional")
    if config.get("class_name") == "SparseCategoricalCrossentropy" and not config["config"].get("label_smoothing"):
        config["config"].pop("label_smoothing", None)
    return config


def _functional_json(model):
    """The engine's outline of a model; what its layers of one's own are is added."""
    made = _as_keras(json.loads(_core.outline(model.__berth__)))
    for ends, form in (("input_layers", "_ins"), ("output_layers", "_outs")):
        if form in model.__dict__:
            given = made["config"][ends]
            made["config"][ends] = pack(model.__dict__[form], [given] if _is_end(given) else given)
    parts = {p.name: p for p in model._layers_and_operators()}
    for entry in made["config"]["layers"]:
        part = parts.get(entry.get("name", entry["config"].get("name")))
        if part is not None and is_operation(part):
            _write_operation(entry, part)
        elif part is not None and _has_own(part):
            own = serialize_keras_object(part)
            entry.pop("build_config", None)
            entry.update(own, name=part.name, config={"name": part.name, **own["config"]})
            if "_ins" in part.__dict__:
                entry["build_config"] = {"input_shape": None}
    return made


def _is_end(value):
    """[layer, use, output]."""
    return isinstance(value, list) and len(value) == 3 and isinstance(value[0], str)


def _write_operation(entry, layer):
    """As Keras has an operator: its arguments are tensors of the model and constants."""
    entry.update(module=_OPERATIONS, class_name=layer.kind, registered_name=layer.kind, config={"name": layer.name})
    entry.pop("build_config", None)
    for node in entry["inbound_nodes"]:
        tensors = node["args"][0] if isinstance(node["args"][0], list) else node["args"]
        node["args"] = [_plain_key(a) for a in operands(layer, tensors)]


def _plain_key(key):
    """A subscript as JSON, and back."""
    if isinstance(key, tuple):
        return [_plain_key(k) for k in key]
    if isinstance(key, slice):
        return {"class_name": "__slice__", "config": {"start": key.start, "stop": key.stop, "step": key.step}}
    if key is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    return key


def _key_of(value):
    if isinstance(value, list):
        return tuple(_key_of(v) for v in value)
    if isinstance(value, dict) and value.get("class_name") == "__slice__":
        return slice(*(value["config"][k] for k in ("start", "stop", "step")))
    if isinstance(value, dict) and value.get("class_name") == "__ellipsis__":
        return Ellipsis
    return value


def _has_own(layer):
    """What the engine cannot tell whole: layers of one's own, structures of inputs and outputs."""
    return layer._is_own() or "_ins" in layer.__dict__ or (
        hasattr(layer, "layers") and any(_has_own(p) for p in layer.layers))


def _own_json(obj, config):
    made = {"module": type(obj).__module__, "class_name": type(obj).__name__, "config": config,
            "registered_name": get_registered_name(type(obj))}
    shapes = obj.__dict__.get("_built_for")
    if shapes:
        made["build_config"] = {"input_shape": shapes[0] if len(shapes) == 1 else shapes}
    return made


def _code_of(function):
    """The code of a Lambda, as Keras keeps it."""
    import base64
    import marshal
    code = base64.b64encode(marshal.dumps(function.__code__)).decode()
    return {"class_name": "__lambda__", "config": {"code": code, "defaults": function.__defaults__,
                                                   "closure": None}}


def deserialize_keras_object(config, custom_objects=None, safe_mode=True):
    """Makes what serialize_keras_object() described."""
    with CustomObjectScope(custom_objects or {}):
        return _made(config, safe_mode)


def _made(config, safe_mode):
    name, inner = config["class_name"], config.get("config", {})
    own = _registered.get(config.get("registered_name")) or _registered.get(name)
    if own is not None:
        made = own.from_config(inner) if hasattr(own, "from_config") else own(**inner)
        shape = (config.get("build_config") or {}).get("input_shape")
        if shape:
            made._build_for(shape)
        return made
    if name == "Lambda":
        return Lambda(_function_of(inner["function"], safe_mode), name=inner.get("name"))
    if name == "Sequential" and any(_is_own_json(c) for c in inner["layers"]):
        return Sequential([_made(c, safe_mode) for c in inner["layers"]], name=inner.get("name"))
    if name in ("Functional", "Model"):
        return _functional_of(config, safe_mode)
    if name == "Sequential":
        return Model._of(_core.model_from_json(json.dumps(config)))
    if str(config.get("module", "keras")).split(".")[0] not in ("keras", "builtins", "None"):
        raise ValueError(f"the class {name} of {config.get('module')} is not known here; register it by "
                         "@keras.saving.register_keras_serializable(), or give custom_objects")
    return (InputLayer if name == "InputLayer" else Layer)._of(_core.layer_from_config(json.dumps(config)))


def clone(model, clone_function=None):
    """An equal model with weights of its own; clone_function(layer) makes each layer."""
    if not isinstance(model, Model):
        raise ValueError(f"clone_model: expected a model, got a {type(model).__name__}")
    config = serialize_keras_object(model)
    if clone_function is None:
        own = {get_registered_name(type(p)): type(p) for p in (model, *model.submodules) if p._is_own()}
        return deserialize_keras_object(config, own, safe_mode=False)
    parts = [p for p in model.layers if _core.layer_type(p.__berth__) != "InputLayer"]
    made = {p.name: clone_function(p) for p in parts}
    if isinstance(model, Sequential):
        return Sequential([made.get(p.name, p) for p in model._given], name=model.name)
    return _functional_of(config, False, made)


def _functional_of(config, safe_mode, given=None):
    """The engine makes the model; layers that it does not know are made here and handed to it."""
    inner, made, entries = config["config"], [], []
    for entry in _without_masks(inner["layers"]):
        name, nodes = entry.get("name", entry["config"].get("name")), entry["inbound_nodes"]
        if _is_operation(entry):
            layer, nodes = _operation_of(entry)
        elif given and name in given:
            layer = given[name]
        elif _is_own_json(entry):
            layer = _made(entry, safe_mode)
        else:
            entries.append(entry)
            continue
        entries.append({"class_name": f"made_{len(made)}", "name": name, "config": {"name": name},
                        "inbound_nodes": [_tensors_alone(n) for n in nodes],
                        **{k: entry[k] for k in ("module", "build_config") if k in entry and "_ins" in layer.__dict__}})
        made.append(layer)
    ends = {k: _flat_ends(inner[k]) for k in ("input_layers", "output_layers")}
    whole = {**config, "config": {**inner, "layers": entries, **{k: leaves for k, (leaves, _) in ends.items()}}}
    model = Model._of(_core.model_from_json(json.dumps(whole), [layer.__berth__ for layer in made]))
    model._take_ends(ends["input_layers"][1], ends["output_layers"][1], made)
    return model


def _flat_ends(value):
    """([layer, use, output] of each, structure), as flatten() has it."""
    ends = []

    def marked(v):
        if _is_end(v):
            ends.append(v)
            return LEAF
        return {k: marked(v[k]) for k in sorted(v)} if isinstance(v, dict) else [marked(x) for x in v]
    form = marked(value)
    return ends, form


def _is_operation(entry):
    """True for an operator between layers; a .h5 tells one from the layer of its name by config and arguments alone."""
    if "module" in entry or entry["class_name"] not in (*_OPERATORS, *_OF_INPUTS, *_OF_MASKS):
        return str(entry.get("module")).startswith(_OPERATIONS)
    if set(entry.get("config", {})) == {"name"}:
        return True
    args = next((n["args"] for n in entry.get("inbound_nodes", ()) if isinstance(n, dict)), [[]])
    apart = not isinstance(args[0], list) or [t["config"]["dtype"] for t in args[0][:1]] == ["bool"]
    return "trainable" not in entry["config"] and apart


def _without_masks(entries):
    """The layers without what Keras keeps of the masks of Embedding and Masking, which the engine finds itself."""
    operations = {e["name"]: e for e in entries if _is_operation(e)}
    makers, seen = set(), set()  # (tensor, what is masked in it); masks of these
    for e in entries:
        masks = e["class_name"] == "Masking" or e["config"].get("mask_zero") is True
        makers |= {(str(_tensors_in(n)), e["config"].get("mask_value", 0)) for n in e["inbound_nodes"] if masks}

    def is_found(value):
        e = operations.get(value[0])
        kind, args = e and e["class_name"], e and e["inbound_nodes"][value[1]]["args"]
        found = kind in _OF_INPUTS[1:] or (
            kind == "NotEqual" and (str(_tensors_in(args[0])), args[1]) in makers) or (
            kind in _OF_MASKS and all(map(is_found, _tensors_in(args))))
        if found:
            seen.add(value[0])
        return found

    def left(node):
        if not isinstance(node, dict):
            return node
        masks = {k for k, v in node["kwargs"].items() if k.endswith("mask") and _has_tensor(v)
                 and all(map(is_found, _tensors_in(v)))}
        return {**node, "kwargs": {k: v for k, v in node["kwargs"].items() if k not in masks}}

    entries = [{**e, "inbound_nodes": [left(n) for n in e["inbound_nodes"]]} for e in entries]
    while True:  # an operation that is used by nothing else
        used = {t[0] for e in entries for t in _tensors_in(e["inbound_nodes"])}
        kept = [e for e in entries if e.get("name") not in seen or e["name"] in used]
        if len(kept) == len(entries):
            return kept
        entries = kept


def _tensors_in(value):
    """The tensors of the model in an argument: [layer, use, output] each."""
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        return [value["config"]["keras_history"]]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [t for v in inside for t in _tensors_in(v)]


def _tensors_alone(node):
    """A call without its options, such as training=None."""
    if not isinstance(node, dict):
        return node  # of Keras 2: the engine says so
    kwargs = {k: v for k, v in node.get("kwargs", {}).items() if _has_tensor(v)}
    return {**node, "kwargs": kwargs}


def _has_tensor(value):
    if isinstance(value, list):
        return any(_has_tensor(v) for v in value)
    return isinstance(value, dict) and value.get("class_name") == "__keras_tensor__"


def _operation_of(entry):
    node = entry["inbound_nodes"][0]
    args = [_HOLE if _has_tensor(a) else _key_of(a) for a in node["args"]]
    constants = [a for a in args if a is not _HOLE]
    tensors = [a for a in node["args"] if _has_tensor(a)]
    layer = operation(entry["class_name"], *constants, first=args[0] is not _HOLE, name=entry["config"].get("name"),
                      shapes=[t["config"]["shape"] for t in tensors])
    return layer, [{"args": tensors if len(tensors) == 1 else [tensors], "kwargs": {}}]


def _is_own_json(config):
    name = config["class_name"]
    return (name in ("Lambda", "Functional") or name in _registered or config.get("registered_name") in _registered
            or (name == "Sequential" and any(_is_own_json(c) for c in config["config"]["layers"]))
            or _is_operation(config)
            or str(config.get("module", "keras")).split(".")[0] != "keras")


def _function_of(config, safe_mode):
    if safe_mode:
        raise ValueError("the file holds the code of a Lambda, which would be executed; "
                         "load_model(path, safe_mode=False) does so, if you trust the file")
    import base64
    import marshal
    import types
    import berth
    code = marshal.loads(base64.b64decode(config["config"]["code"]))
    defaults = config["config"].get("defaults")
    return types.FunctionType(code, {"tf": berth, "keras": berth.keras, "__builtins__": __builtins__},
                              "lambda", tuple(defaults) if defaults else None)


# ---------------------------------------------------------------- what compile() was given

def _is_own_part(value):
    """True for a loss or metric of one's own, or a structure with one."""
    if isinstance(value, (list, tuple)):
        return any(_is_own_part(v) for v in value)
    if isinstance(value, dict):
        return any(_is_own_part(v) for v in value.values())
    return value is not None and not isinstance(value, (str, _core.Loss, _core.Metric, types.BuiltinFunctionType))


def _part_json(value):
    if isinstance(value, (list, tuple)):
        return [_part_json(v) for v in value]
    if isinstance(value, dict):
        return {k: _part_json(v) for k, v in value.items()}
    if isinstance(value, _MeanOf):
        value = value.function
    if isinstance(value, types.BuiltinFunctionType):
        return value.__name__
    if isinstance(value, types.FunctionType):
        return {"module": value.__module__, "class_name": "function", "config": value.__name__,
                "registered_name": get_registered_name(value)}
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (_core.Loss, _core.Metric)):
        return _as_keras(json.loads(_core.part_config(value)))
    return _own_json(value, value.get_config())


def _own_part_of(value):
    """The loss, metric or function of one's own that a file names."""
    name, inner = value["class_name"], value.get("config", {})
    function = name == "function"
    own = _registered.get(value.get("registered_name")) or _registered.get(inner if function else name)
    if own is None:
        raise ValueError(f"the {'function ' + inner if function else 'class ' + name} of {value.get('module')} is not "
                         "known here; register it by @keras.saving.register_keras_serializable(), or give "
                         "custom_objects, or load with compile=False")
    if function:
        return own
    return own.from_config(inner) if hasattr(own, "from_config") else own(**inner)


def _compiled(model):
    if not _hdf5.is_compiled(model):
        return None
    given = model.__dict__.get("_compiled_with", {})
    if any(_is_own_part(given.get(k)) for k in ("loss", "metrics", "weighted_metrics")):
        return {"optimizer": _as_keras(json.loads(_core.part_config(model.optimizer))),
                **{k: _part_json(v) if k in ("loss", "metrics", "weighted_metrics") else v for k, v in given.items()}}
    kept = _as_keras(json.loads(_core.compile_config(model.__berth__)))

    def of_outputs(one, many):
        return kept.get(one) if not kept.get(many) else kept[many]
    return {"optimizer": kept["optimizer"], "loss": of_outputs("loss", "losses"),
            "loss_weights": kept["loss_weights"] or None, "metrics": of_outputs("metrics", "metrics_by_output"),
            "weighted_metrics": of_outputs("weighted_metrics", "weighted_metrics_by_output") or None,
            "run_eagerly": kept["run_eagerly"], "auto_scale_loss": kept["auto_scale_loss"]}


def _compile(model, kept):
    def of(make, value):
        if isinstance(value, dict) and "class_name" in value:
            theirs = str(value.get("module", "keras")).split(".")[0] in ("keras", "builtins")
            known = theirs and value["class_name"] != "function" and value.get("registered_name") not in _registered
            return make(json.dumps(value)) if known else _own_part_of(value)
        if isinstance(value, dict):
            return {k: of(make, v) for k, v in value.items()}
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            value = value[0]  # .h5 has a list for each output
        return [of(make, v) for v in value] if isinstance(value, list) else value
    model.compile(optimizer=of(_core.optimizer_from_config, kept["optimizer"]),
                  loss=of(_core.loss_from_config, kept.get("loss")),
                  loss_weights=kept.get("loss_weights"),
                  metrics=of(_core.metric_from_config, kept.get("metrics")),
                  weighted_metrics=of(_core.metric_from_config, kept.get("weighted_metrics")))


# ---------------------------------------------------------------- files

def is_keras_file(path):
    """Whether the ending of a file is one of Keras' own: .keras, .h5, .hdf5."""
    return str(path).endswith((".keras", ".h5", ".hdf5"))


def _prepare(path, overwrite):
    if os.path.exists(path) and not overwrite:
        raise FileExistsError(f"\"{path}\" exists; expected a new name, or overwrite=True")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return path + ".part"


def _upload(path, overwrite):
    """A block with a path here, of which the file goes to the URL."""
    from berth import _gfile
    path = path if is_keras_file(path) or path.endswith(_OWN) else path + _OWN  # as the engine has it
    if not overwrite and _gfile.exists(path):
        raise FileExistsError(f"\"{path}\" exists; expected a new name, or overwrite=True")
    return _remote.outgoing(path)


def _download(path):
    """A block with a copy of what the URL names."""
    from berth import _gfile
    ends = is_keras_file(path) or path.endswith(_OWN) or _gfile.exists(path)
    return _remote.incoming(path if ends else path + _OWN)


def save_model(model, filepath, overwrite=True, include_optimizer=True):
    """Writes a model: the ending of `filepath`, a path or a URL, says the format."""
    path = _remote.plain(filepath)
    if _remote.is_url(path):
        with _upload(path, overwrite) as local:
            return save_model(model, local, True, include_optimizer)
    if not is_keras_file(path):
        model.__berth__.save(path, overwrite, include_optimizer)
        return
    _hdf5.h5py()
    config = serialize_keras_object(model)
    training = _compiled(model) if include_optimizer else None
    part = _prepare(path, overwrite)
    if path.endswith(".keras"):
        if training is not None:
            config["compile_config"] = training
        weights = io.BytesIO()
        _hdf5.write_weights(model, weights)
        about = {"keras_version": "3.15.1", "date_saved": time.strftime("%Y-%m-%d@%H:%M:%S")}
        with zipfile.ZipFile(part, "w") as archive:
            archive.writestr(_METADATA, json.dumps(about))
            archive.writestr(_CONFIG, json.dumps(config))
            archive.writestr(_WEIGHTS, weights.getvalue())
    else:
        if training is not None:  # the words of Keras 2
            training["optimizer_config"] = training.pop("optimizer")
        _hdf5.write_whole(model, part, config, training)
    os.replace(part, path)


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """Returns the model of a file that save() wrote, here or in Keras."""
    path = _remote.plain(filepath)
    if _remote.is_url(path):
        with _download(path) as local:
            return load_model(local, custom_objects, compile, safe_mode)
    if not is_keras_file(path):
        return Model._of(_core.load_model(path, bool(compile)))
    if not os.path.isfile(path):
        raise ValueError(f"load_model: there is no file \"{path}\"")
    if path.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            config = json.loads(archive.read(_CONFIG))
            weights = io.BytesIO(archive.read(_WEIGHTS))
        training = config.pop("compile_config", None)
        model = deserialize_keras_object(config, custom_objects, safe_mode)
        if compile and training:
            with CustomObjectScope(custom_objects or {}):
                _compile(model, training)
        _hdf5.read_weights(model, weights, path)
        return model
    config, training = _hdf5.read_whole(path)
    model = deserialize_keras_object(config, custom_objects, safe_mode)
    _hdf5.read_by_layer(model, path)
    if compile and training and "optimizer_config" in training:
        with CustomObjectScope(custom_objects or {}):
            _compile(model, {**training, "optimizer": training["optimizer_config"]})
        _hdf5.read_optimizer_of_whole(model, path)
    return model


def save_weights(model, filepath, overwrite=True):
    """Writes the weights of a model, in the format that the ending says."""
    path = _remote.plain(filepath)
    if _remote.is_url(path):
        with _upload(path, overwrite) as local:
            return save_weights(model, local)
    if not is_keras_file(path):
        model.__berth__.save_weights(path, overwrite)
        return
    part = _prepare(path, overwrite)
    _hdf5.write_weights(model, part)
    os.replace(part, path)


def load_weights(model, filepath, skip_mismatch=False):
    """Reads the weights of a model; with skip_mismatch only those that fit."""
    path = _remote.plain(filepath)
    if _remote.is_url(path):
        with _download(path) as local:
            return load_weights(model, local, skip_mismatch)
    if not is_keras_file(path):
        model.__berth__.load_weights(path, skip_mismatch)
    elif path.endswith(".keras"):
        with zipfile.ZipFile(path) as archive:
            _hdf5.read_weights(model, io.BytesIO(archive.read(_WEIGHTS)), path, skip_mismatch)
    elif _hdf5.is_whole(path):
        _hdf5.read_by_layer(model, path, skip_mismatch)
    else:
        _hdf5.read_weights(model, path, path, skip_mismatch)


from berth.keras._normalization import Normalization as _Normalization  # noqa: E402
register_keras_serializable("berth")(_Normalization)  # files of Keras hold the engine's own layer
_name_missing(sys.modules[__name__])
