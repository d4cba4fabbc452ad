"""tf.keras.Model and Sequential."""
import itertools

from berth import _core
from berth._core import OpError
from berth._function import call_converted
from berth._lazy import Lazy
from berth._placement import Report, contracts
from berth._structure import flatten, pack
from berth._tensor import TensorSpec, convert_to_tensor
from berth.data import Dataset
from berth.keras import callbacks as _callbacks
from berth.keras import layers as _layers
from berth.keras._own import metric_of, owner
from berth.keras.layers import Input, Layer

_saving = Lazy("berth.keras.saving")


# Layers that are first in a model and take whole numbers or text as they are.
_TAKE_INTEGERS = ("Embedding", "StringLookup", "IntegerLookup", "TextVectorization", "CategoryEncoding", "Hashing",
                  "HashedCrossing", "Discretization", "Lambda")


def _tensors(value):
    """Pairs (name or "", tensor) of what fit takes, or the engine's dataset."""
    if value is None:
        return []
    if isinstance(value, Dataset):
        return value.__berth__
    if hasattr(value, "__next__") or (hasattr(value, "__iter__") and hasattr(value, "dataset")):
        return _batches(value).__berth__
    if isinstance(value, dict):
        return [(k, _data(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)) and value and not isinstance(value[0], (int, float, str)) and (
            isinstance(value, tuple) or hasattr(value[0], "shape")):
        return [("", _data(v)) for v in value]
    return [("", _data(value))]


def _data(value):
    """A tensor of an array, frame or list; doubles become float32, as Keras has it."""
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    t = convert_to_tensor(value)
    return _core.ops.math.cast(t, _core.float32) if t.dtype == _core.float64 else t


def _batches(source):
    """A dataset over an iterable of batches: a generator, or a DataLoader of PyTorch."""
    first = next(iter(source)) if hasattr(source, "dataset") else None
    if first is None:
        first = next(source)
        source = itertools.chain([first], source)
    leaves, form = flatten(tuple(first) if isinstance(first, list) else first)
    tensors = [_data(v) for v in leaves]
    signature = pack(form, [TensorSpec([None] + t.shape.as_list()[1:], t.dtype) for t in tensors])

    def elements():
        for element in source:
            yield pack(form, [_data(v) for v in flatten(tuple(element) if isinstance(
                element, list) else element)[0]])
    return Dataset.from_generator(elements, output_signature=signature)


def _by_output(value):
    return ([(k, v) for k, v in value.items()] if isinstance(value, dict)
            else [("", v) for v in value])


def _as(tensor, dtype):
    same = tensor.dtype == dtype or _core.string in (tensor.dtype, dtype)
    return tensor if same else _core.ops.math.cast(tensor, dtype)


def _cast_elements(data, wanted):
    """The dataset with its inputs in these dtypes."""
    spec = data.element_spec
    first = spec[0] if isinstance(spec, tuple) else spec
    leaves, _ = flatten(first)
    if len(leaves) != len(wanted) or all(
            s.dtype == d or _core.string in (s.dtype, d) for s, d in zip(leaves, wanted)):
        return data

    def cast(*element):
        values, form = flatten(element[0])
        x = pack(form, [_as(v, d) for v, d in zip(values, wanted)])
        return (x, *element[1:]) if isinstance(spec, tuple) else x
    return data.map(cast)


def _metrics_of(given):
    if isinstance(given, (list, tuple)):
        return [_metrics_of(g) for g in given]
    return metric_of(given)


class Model(Layer):
    """Layers that train. Made of inputs and outputs, or derived from."""

    _kind = _core.Model

    def __init__(self, inputs=None, outputs=None, name=None, **kwargs):
        if inputs is None and "inputs" in kwargs:
            inputs = kwargs.pop("inputs")
        if inputs is None or type(self).call is not Layer.call:
            super().__init__(name=name, **kwargs)
            return
        leaves, results = flatten(inputs)[0], flatten(outputs)[0]
        object.__setattr__(self, "__berth__", _core.Model.functional(leaves, results, name or ""))
        self.__dict__["_declared"] = [v.dtype for v in leaves]
        self.__dict__["_kept"] = [k for v in results for k in getattr(v, "_kept", [])]

    def _is_own(self):
        return type(self).call is not Layer.call

    def _build_for(self, shape):
        """Makes the weights of a model for inputs of this shape, by calling it."""
        if shape and isinstance(shape[0], (list, tuple)):
            self([_core.ops.zeros([d or 1 for d in s], _core.float32) for s in shape])
        else:
            self(_core.ops.zeros([d or 1 for d in shape], _core.float32))

    # Values become what the inputs are declared as: pixels that are uint8, doubles.
    def _input_dtypes(self):
        if "_wanted" not in self.__dict__:
            self.__dict__["_wanted"] = None if self._is_own() else self._declared_dtypes()
        return self.__dict__["_wanted"]

    def _declared_dtypes(self):
        if "_declared" in self.__dict__:
            return self._declared
        try:
            return [self.__berth__.input().dtype]
        except OpError:  # a model that gets its inputs with the first call
            layers = self.layers
            whole = not layers or layers[0]._is_own() or _core.layer_type(layers[0].__berth__) in _TAKE_INTEGERS
            return None if whole else [_core.float32]

    def _inputs(self, x):
        """What fit and its kin are given, in the dtypes of the inputs."""
        wanted = self._input_dtypes()
        if wanted is None:
            return _tensors(x)
        if isinstance(x, Dataset):
            return _cast_elements(x, wanted).__berth__
        pairs = _tensors(x)
        if not isinstance(pairs, list) or len(pairs) != len(wanted):
            return pairs
        names = self.input_names if any(name for name, _ in pairs) else []
        return [(name, _as(t, wanted[names.index(name)] if name in names else wanted[i]))
                for i, (name, t) in enumerate(pairs)]

    def _cast_inputs(self, tensors):
        wanted = self._input_dtypes()
        if wanted is None or len(wanted) != len(tensors):
            return super()._cast_inputs(tensors)
        return [_as(t, d) for t, d in zip(tensors, wanted)]

    # What the engine asks of models of the user's.
    def _overrides(self, name):
        return getattr(type(self), name, None) is not getattr(Model, name, None)

    def _step_of_engine(self, name, x, y, weight):
        one = lambda v: v[0] if len(v) == 1 else v  # noqa: E731
        data = (one(x),) if not y else (one(x), one(y))
        if weight:
            data += (one(weight),)
        logs = call_converted(getattr(self, name), data)
        return {k: convert_to_tensor(v) for k, v in logs.items()}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return self.__berth__.compute_loss(
            flatten(x)[0] if x is not None else [], flatten(y)[0],
            flatten(sample_weight)[0] if sample_weight is not None else [], flatten(y_pred)[0])

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        self.__berth__.update_metrics(
            flatten(x)[0], flatten(y)[0],
            flatten(sample_weight)[0] if sample_weight is not None else [], flatten(y_pred)[0])
        return {m.name: m.result() for m in self.metrics if m.name != "loss"}

    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None,
                weighted_metrics=None, run_eagerly=False, steps_per_execution=1,
                jit_compile="auto", auto_scale_loss=True, *, slices=0, placement="", contract=None):
        """Sets what fit does. `slices` and `placement` are Berth's (docs/python.md)."""
        metrics, weighted_metrics = ({k: _metrics_of(v) for k, v in given.items()} if isinstance(given, dict)
                                     else _metrics_of(given) for given in (metrics, weighted_metrics))
        # The engine knows metrics of one's own by weak references; files ask for all of it.
        self.__dict__["_compiled_with"] = {
            "loss": loss, "loss_weights": loss_weights, "metrics": metrics, "weighted_metrics": weighted_metrics,
            "run_eagerly": bool(run_eagerly), "auto_scale_loss": auto_scale_loss}
        if isinstance(loss, (dict, list, tuple)):
            loss = _by_output(loss)
        self.__berth__.compile({
            "optimizer": optimizer, "loss": loss,
            "loss_weights": None if loss_weights is None else _by_output(loss_weights),
            "metrics": metrics if isinstance(metrics, dict) else list(metrics or []),
            "weighted_metrics": list(weighted_metrics or []),
            "run_eagerly": bool(run_eagerly), "auto_scale_loss": auto_scale_loss,
            "slices": slices, "placement": placement, "contracts": contracts(contract)})
        if type(self).metrics is Model.metrics:
            self.__dict__["_compiled"] = True

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
            validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
            sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
            validation_batch_size=None, validation_freq=1):
        """Trains; returns a History."""
        given = self._callbacks(callbacks)
        if isinstance(validation_data, Dataset):
            validation_data = validation_data.__berth__
        if validation_data is not None and isinstance(validation_data, (list, tuple)):
            v = list(validation_data) + [None]
            validation_data = (_tensors(v[0]), _tensors(v[1]), v[2])
        values = self.__berth__.fit(self._inputs(x), _tensors(y), {
            "epochs": epochs, "batch_size": batch_size or 32,
            "verbose": 1 if verbose == "auto" else int(verbose), "callbacks": given,
            "shuffle": bool(shuffle), "validation_split": validation_split,
            "validation_freq": validation_freq, "steps_per_epoch": steps_per_epoch or 0,
            "validation_steps": validation_steps or 0,
            "validation_batch_size": validation_batch_size or 0, "initial_epoch": initial_epoch,
            "sample_weight": sample_weight, "class_weight": dict(class_weight or {}),
            "validation_data": validation_data})
        self.__dict__["history"] = _callbacks.History(self, values)
        return self.history

    def _callbacks(self, callbacks):
        all = [callbacks] if isinstance(callbacks, _callbacks.Callback) else list(callbacks or [])
        for c in all:
            if isinstance(c, _callbacks.Callback):
                c.set_model(self)
        return all

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None,
                 steps=None, callbacks=None, return_dict=False):
        logs = self.__berth__.evaluate(self._inputs(x), _tensors(y), {
            "batch_size": batch_size or 32, "verbose": 0 if verbose == "auto" else int(verbose),
            "steps": steps or 0, "sample_weight": sample_weight,
            "callbacks": self._callbacks(callbacks)})
        if return_dict:
            return logs
        names = [n for n in self.metrics_names if n in logs]
        out = [logs[n] for n in names + [n for n in logs if n not in names]]
        return out[0] if len(out) == 1 else out

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Returns arrays."""
        out = self.__berth__.predict(self._inputs(x), {"batch_size": batch_size or 32,
                                                   "steps": steps or 0,
                                                   "callbacks": self._callbacks(callbacks)})
        arrays = [t.numpy() for t in out]
        return arrays[0] if len(arrays) == 1 else arrays

    def train_on_batch(self, x, y=None, **kwargs):
        return float(self.__berth__.train_on_batch(self._inputs(x), _tensors(y)))

    def test_on_batch(self, x, y=None, **kwargs):
        return float(self.__berth__.test_on_batch(self._inputs(x), _tensors(y)))

    def predict_on_batch(self, x):
        return self.predict(x, batch_size=len(x))

    optimizer = property(lambda self: self.__berth__.optimizer())
    metrics = property(lambda self: [owner(m) for m in self.__berth__.metrics()])
    metrics_names = property(lambda self: self.__berth__.metrics_names())
    input_names = property(lambda self: self.__berth__.input_names())
    output_names = property(lambda self: self.__berth__.output_names())

    @property
    def layers(self):
        known = {p.__berth__.key(): p for p in
                 self.__dict__.get("_parts", []) + self.__dict__.get("_kept", [])}
        hides = _core.layer_type(self.__berth__) == "Sequential"  # its input, as Keras does
        return [known.get(h.key()) or _wrapped(h) for h in self.__berth__.layers()
                if not (hides and _core.layer_type(h) == "InputLayer")]

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"there is no layer '{name}'; the model has "
                         f"{[layer.name for layer in self.layers]}")

    def reset_metrics(self):
        self.__berth__.reset_metrics()

    @property
    def stop_training(self):
        return self.__dict__.get("_stop", False)

    @stop_training.setter
    def stop_training(self, value):
        self.__dict__["_stop"] = value
        if value:
            self.__berth__.stop_training()

    def summary(self, print_fn=print, **kwargs):
        print_fn(self.__berth__.summary())

    def _repr_html_(self):
        from berth import _html
        return _html.text(self.__berth__.summary())

    def placement(self):
        """What of the training step ran where."""
        return Report(self.__berth__.placement(), self.__berth__.placement_json())

    def explain(self, op):
        """Why an op of the training step is where it is, and what would move it."""
        return Report(self.__berth__.explain(op))

    def plan_text(self, stage="plan"):
        """The training step as text: stage "trace", "optimize", "place" or "plan"."""
        return Report(self.__berth__.train_plan_text(stage))

    def save(self, filepath, overwrite=True, include_optimizer=True, **kwargs):
        """Writes the whole model; .keras and .h5 are Keras' formats, else safetensors."""
        _saving.save_model(self, filepath, overwrite, include_optimizer)

    def save_weights(self, filepath, overwrite=True, **kwargs):
        _saving.save_weights(self, filepath, overwrite)

    def load_weights(self, filepath, skip_mismatch=False, **kwargs):
        _saving.load_weights(self, filepath, skip_mismatch)

    def to_json(self, **kwargs):
        """The layers and how they are connected, as Keras writes it."""
        import json
        return json.dumps(_saving.serialize_keras_object(self), **kwargs)

    def _config_of_engine(self):
        return _saving.serialize_keras_object(self)["config"]

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes an equal model of what get_config() told, with weights of its own."""
        if "layers" not in config or cls.call is not Layer.call:
            return super().from_config(config)
        kind = "Functional" if "input_layers" in config else "Sequential"
        return _saving.deserialize_keras_object({"class_name": kind, "config": config}, custom_objects)

    def train_step(self, data):
        raise NotImplementedError("fit runs the engine's step unless a class overrides this")

    def test_step(self, data):
        raise NotImplementedError("evaluate runs the engine's step unless a class overrides this")


def _wrapped(handle):
    """The object of Python for a layer, or a model, of the engine."""
    inside = _core.layer_type(handle) in ("Model", "Sequential")
    return Model._of(_core.as_model(handle)) if inside else Layer._of(handle)


class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers=None, name=None):
        self.__dict__["_given"] = []
        self.__dict__["_name"] = name
        for layer in layers or []:
            self.add(layer)

    def _is_own(self):
        return False

    def add(self, layer):
        if isinstance(layer, _core.KerasTensor):
            layer = _layers.InputLayer(layer.shape[1:], dtype=layer.dtype)
        if not isinstance(layer, Layer):
            raise TypeError(f"Sequential takes layers, not {layer!r}")
        self.__dict__.pop("__berth__", None)
        self.__dict__.pop("_wanted", None)
        shape = layer.__dict__.get("_input_shape")
        if shape is not None and not self._given:
            self._given.append(_layers.InputLayer(list(shape)))
        self._given.append(layer)

    def pop(self):
        self.__dict__.pop("__berth__", None)
        self.__dict__.pop("_wanted", None)
        return self._given.pop()

    def __getattr__(self, name):
        if name == "__berth__":
            # Made at the first use: layers may be added until then.
            handle = _core.Model.sequential([g.__berth__ for g in self._given], self._name or "")
            self.__dict__["__berth__"] = handle
            return handle
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    @property
    def layers(self):
        return [g for g in self._given if not isinstance(g, _layers.InputLayer)]

    def build(self, input_shape=None):
        if input_shape is not None:
            self.__berth__.build([list(input_shape)])


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """Returns the model of a file that save() wrote, here or in Keras."""
    return _saving.load_model(filepath, custom_objects, compile, safe_mode)


def save_model(model, filepath, overwrite=True, **kwargs):
    """Writes a whole model, as model.save()."""
    _saving.save_model(model, filepath, overwrite, **kwargs)


def model_from_json(text, custom_objects=None):
    """Returns the model that to_json() described, here or in Keras, with weights of its own."""
    import json
    return _saving.deserialize_keras_object(json.loads(text), custom_objects)


def clone_model(model, input_tensors=None, clone_function=None):
    """Returns an equal model with weights of its own; clone_function(layer) makes its layers."""
    if input_tensors is not None:
        raise ValueError("clone_model: input_tensors is not there yet; call the clone on them")
    return _saving.clone(model, clone_function)


__all__ = ["Model", "Sequential", "Input", "load_model", "save_model",
           "model_from_json", "clone_model"]
