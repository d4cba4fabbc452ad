"""tf.keras.Model and Sequential."""
import itertools

from berth import _core
from berth._core import OpError
from berth._frames import hide_in
from berth._function import call_converted, contracts
from berth._lazy import Lazy
from berth._placement import Explanation, Placement, Report, save_text
from berth._structure import LEAF, Composite, flatten, pack
from berth._tensor import TensorSpec, convert_to_tensor
from berth.data import Dataset
from berth.keras import callbacks as _callbacks
from berth.keras import layers as _layers
from berth.keras._own import DatasetCreator, metric_of, owner
from berth.keras.layers import Input, Layer

_saving = Lazy("berth.keras.saving")


# Layers that are first in a model and take whole numbers or text as they are.
_TAKE_INTEGERS = ("Embedding", "StringLookup", "IntegerLookup", "TextVectorization", "CategoryEncoding", "Hashing",
                  "HashedCrossing", "Discretization", "Lambda")


def _tensors(value):
    """Pairs (name or "", tensor) of what fit takes, or the engine's dataset."""
    if value is None:
        return []
    value = getattr(value, "__berth_whole__", value)
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


def _size(name, value, otherwise):
    """A batch's size: None alone stands for the default."""
    if value is not None and value < 1:
        raise ValueError(f"{name} is {value}; expected at least 1, or None for {otherwise or 'batch_size'}")
    return otherwise if value is None else int(value)


def _by_output(value):
    return ([(k, v) for k, v in value.items()] if isinstance(value, dict)
            else [("", v) for v in value])


def _as(tensor, dtype):
    same = tensor.dtype == dtype or _core.string in (tensor.dtype, dtype)
    return tensor if same else _core.ops.math.cast(tensor, dtype)


def _cast_elements(data, wanted):
    """The dataset with its inputs in these dtypes, and doubles of the rest as float32."""
    spec = data.element_spec
    first, *rest = spec if isinstance(spec, tuple) else (spec,)
    leaves = flatten(first)[0]
    wanted = wanted if len(leaves) == len(wanted) else [s.dtype for s in leaves]
    wanted = [*wanted, *(_core.float32 if s.dtype == _core.float64 else s.dtype for s in flatten(rest)[0])]
    if all(s.dtype == d or _core.string in (s.dtype, d) for s, d in zip(flatten(spec)[0], wanted)):
        return data

    def cast(*element):
        values, form = flatten(element)
        made = pack(form, [_as(v, d) for v, d in zip(values, wanted)])
        return made if isinstance(spec, tuple) else made[0]
    return data.map(cast)


def _metrics_of(given):
    if isinstance(given, (list, tuple)):
        return [_metrics_of(g) for g in given]
    return metric_of(given)


def _dense(value):
    """A SparseTensor as a tensor."""
    if not isinstance(value, Composite) or not hasattr(value, "dense_shape"):
        return value
    from berth.sparse import to_dense
    return to_dense(value)


class Model(Layer):
    """Layers that train. Made of inputs and outputs, or derived from."""

    _kind = _core.Model

    def __init__(self, inputs=None, outputs=None, name=None, **kwargs):
        if inputs is None and "inputs" in kwargs:
            inputs = kwargs.pop("inputs")
        if inputs is None or type(self).call is not Layer.call:
            super().__init__(name=name, **kwargs)
            return
        (leaves, ins), (results, outs) = flatten(inputs), flatten(outputs)
        for value in (*leaves, *results):
            if not isinstance(value, _core.KerasTensor):
                raise TypeError(f"{type(self).__name__}(inputs, outputs) has a {type(value).__name__}; expected what "
                                "Input() and calls of layers return")
        object.__setattr__(self, "__berth__", _core.Model.functional(leaves, results, name or ""))
        self._take_ends(ins, outs, _layers_behind(results))

    def _take_ends(self, ins, outs, layers):
        """A functional model: its inputs and outputs as they are held together, the objects of its layers."""
        one = outs[0] if isinstance(outs, (list, tuple)) and len(outs) == 1 else outs
        self.__dict__.update(_ins=ins, _outs=outs, _kept=layers, _result=one)
        flat = [sorted(s) if isinstance(s, dict) and all(v is LEAF for v in s.values()) else [] for s in (ins, outs)]
        _core.name_ends(self.__berth__, *flat)  # as fit's dictionaries have them
        self.__dict__["_declared"] = [v.dtype for v in self.__berth__.inputs()]

    def _is_own(self):
        return type(self).call is not Layer.call

    def _is_given(self):
        """Whether layers or tensors that it was given say what the model computes."""
        return "_ins" in self.__dict__

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
        if isinstance(x, DatasetCreator):
            from berth.distribute import InputContext
            x = x(InputContext())
        x = _dense(getattr(x, "__berth_whole__", x))
        wanted = self._input_dtypes()
        if wanted is None:
            return _tensors(x)
        if isinstance(x, Dataset):
            return _cast_elements(x, wanted).__berth__
        pairs = _tensors(x)
        if not isinstance(pairs, list) or len(pairs) != len(wanted):
            return pairs
        if len(pairs) == 1:
            pairs = [(pairs[0][0], self._with_last_axis(pairs[0][1]))]
        names = self.input_names if any(name for name, _ in pairs) else []
        return [(name, _as(t, wanted[names.index(name)] if name in names else wanted[i]))
                for i, (name, t) in enumerate(pairs)]

    def _with_last_axis(self, t):
        """Values [n] as [n, 1] where the model's input is so."""
        try:
            shape = self.__berth__.input().shape.as_list()
        except OpError:
            return t
        return _core.ops.expand_dims(t, -1) if len(t.shape) == len(shape) - 1 and shape[-1] == 1 else t

    def __call__(self, inputs, *others, **kwargs):
        if isinstance(inputs, dict) and "_ins" in self.__dict__ and not isinstance(self._ins, dict):
            inputs = [inputs[name] for name in self.input_names]
        return super().__call__(_dense(inputs), *others, **kwargs)

    @property
    def input(self):
        """The symbolic input, or the list of them."""
        return self._ends("_ins", self.__berth__.inputs())

    @property
    def output(self):
        """The symbolic output, or the list of them."""
        return self._ends("_outs", self.__berth__.outputs())

    def _ends(self, form, tensors):
        whole = self._one_or_all(tensors)
        return pack(self.__dict__[form], tensors) if form in self.__dict__ else whole

    inputs = property(lambda self: self._ends("", self.__berth__.inputs()), doc="The symbolic inputs.")
    outputs = property(lambda self: self._ends("", self.__berth__.outputs()), doc="The symbolic outputs.")

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
        """The scalar loss of a batch, regularizers included."""
        return self.__berth__.compute_loss(
            flatten(x)[0] if x is not None else [], flatten(y)[0],
            flatten(sample_weight)[0] if sample_weight is not None else [], flatten(y_pred)[0])

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Updates the compiled metrics by a batch; a dictionary of their values."""
        self.__berth__.update_metrics(
            flatten(x)[0], flatten(y)[0],
            flatten(sample_weight)[0] if sample_weight is not None else [], flatten(y_pred)[0])
        return {m.name: m.result() for m in self.metrics if m.name != "loss"}

    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None,
                weighted_metrics=None, run_eagerly=False, steps_per_execution=1,
                jit_compile="auto", auto_scale_loss=True, *, slices=0, placement="", contract=None,
                gradient_norms=False):
        """Sets what fit does. `slices` and `placement` are Berth's (docs/python.md).

        gradient_norms: logs the norm of the gradient of each layer, "gradient_norm/dense".
        """
        for step in ("train_step", "test_step"):
            if not self._is_own() and self._is_given() and getattr(type(self), step) is not getattr(Model, step):
                raise NotImplementedError(
                    f"compile: {type(self).__name__} has a {step}() of its own, which fit of a Sequential or functional "
                    "model does not call; expected a class of keras.Model with call(), which calls the layers")
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
            "slices": slices, "placement": placement, "gradient_norms": bool(gradient_norms), "contracts": contracts(contract)})
        if type(self).metrics is Model.metrics:
            self.__dict__["_compiled"] = True

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
            validation_split=0.0, validation_data=None, shuffle=True, class_weight=None,
            sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None,
            validation_batch_size=None, validation_freq=1):
        """Trains; returns a History."""
        given = self._callbacks(callbacks)
        validation_data = getattr(validation_data, "__berth_whole__", validation_data)
        if isinstance(validation_data, (Dataset, DatasetCreator)):
            validation_data = self._inputs(validation_data)
        if validation_data is not None and isinstance(validation_data, (list, tuple)):
            v = list(validation_data) + [None]
            validation_data = (self._inputs(v[0]), _tensors(v[1]), v[2])
        data = self._created(x) if isinstance(x, DatasetCreator) else self._inputs(x)
        values = self.__berth__.fit(data, _tensors(y), {
            "epochs": epochs, "batch_size": _size("batch_size", batch_size, 32),
            "verbose": 1 if verbose == "auto" else int(verbose), "callbacks": given,
            "shuffle": bool(shuffle), "validation_split": validation_split,
            "validation_freq": validation_freq, "steps_per_epoch": steps_per_epoch or 0,
            "validation_steps": validation_steps or 0,
            "validation_batch_size": _size("validation_batch_size", validation_batch_size, 0),
            "initial_epoch": initial_epoch,
            "sample_weight": sample_weight, "class_weight": dict(class_weight or {}),
            "validation_data": validation_data})
        self.__dict__["history"] = _callbacks.History(self, values)
        return self.history

    def _created(self, creator):
        """What the engine calls for the data set of an input pipeline."""
        from berth.distribute import InputContext
        return lambda replicas, pipelines, number: self._inputs(creator(InputContext(pipelines, number, replicas)))

    def _callbacks(self, callbacks):
        all = [callbacks] if isinstance(callbacks, _callbacks.Callback) else list(callbacks or [])
        all = [c for one in all for c in (one if isinstance(one, _callbacks._Around) else [one])]
        for c in all:
            if isinstance(c, _callbacks.Callback):
                c.set_model(self)
        return all

    def fits(self, batch, memory=None):
        """Whether a training step on so many examples fits each device, and the largest batch that does: a FitsReport.

        memory: bytes of each device, or a text like "8GiB"; None: what its limit leaves. Nothing is trained.
        """
        from berth._placement import FitsReport, bytes_of
        return FitsReport(batch, *self.__berth__.fits(int(batch), bytes_of(memory)))

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None,
                 steps=None, callbacks=None, return_dict=False):
        """The loss and metrics of data, without training: a scalar, a list, or a dictionary."""
        logs = self.__berth__.evaluate(self._inputs(x), _tensors(y), {
            "batch_size": _size("batch_size", batch_size, 32), "verbose": 0 if verbose == "auto" else int(verbose),
            "steps": steps or 0, "sample_weight": sample_weight,
            "callbacks": self._callbacks(callbacks)})
        if return_dict:
            return logs
        names = [n for n in self.metrics_names if n in logs]
        out = [logs[n] for n in names + [n for n in logs if n not in names]]
        return out[0] if len(out) == 1 else out

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        """Returns arrays."""
        out = self.__berth__.predict(self._inputs(x), {"batch_size": _size("batch_size", batch_size, 32),
                                                   "steps": steps or 0,
                                                   "callbacks": self._callbacks(callbacks)})
        arrays = [t.numpy() for t in out]
        form = self.__dict__.get("_result")
        return pack(form, arrays) if form is not None else arrays[0] if len(arrays) == 1 else arrays

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        """Trains on one batch; the loss and metrics."""
        loss = self.__berth__.train_on_batch(self._inputs(x), _tensors(y), sample_weight, dict(class_weight or {}))
        return {**self.__berth__.metrics_result(), "loss": float(loss)} if return_dict else float(loss)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        """The loss and metrics of one batch."""
        loss = self.__berth__.test_on_batch(self._inputs(x), _tensors(y), sample_weight)
        return {**self.__berth__.metrics_result(), "loss": float(loss)} if return_dict else float(loss)

    def predict_on_batch(self, x):
        """The outputs for one batch, as arrays."""
        return self.predict(x, batch_size=len(x))

    optimizer = property(lambda self: self.__berth__.optimizer(), doc="The compiled optimizer, or None.")
    metrics = property(lambda self: [owner(m) for m in self.__berth__.metrics()],
                       doc="The metrics: of the loss first, then those compiled.")
    metrics_names = property(lambda self: self.__berth__.metrics_names(), doc="The names of what evaluate() returns.")
    input_names = property(lambda self: self.__berth__.input_names(), doc="The names of the inputs.")
    output_names = property(lambda self: self.__berth__.output_names(), doc="The names of the outputs.")

    @property
    def layers(self):
        """The layers, the farthest from the outputs first; operators are none."""
        outside = ("InputLayer",) if _core.layer_type(self.__berth__) == "Sequential" else ()
        return [p for p in self._layers_and_operators() if not _layers.is_operation(p)
                and _core.layer_type(p.__berth__) not in outside]

    def _layers_and_operators(self):
        known = {p.__berth__.key(): p for p in
                 self.__dict__.get("_parts", []) + self.__dict__.get("_kept", [])}
        return [known.get(h.key()) or wrapped(h) for h in self.__berth__.layers()]

    def get_layer(self, name=None, index=None):
        """The layer of a name, or of a number."""
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"there is no layer '{name}'; the model has "
                         f"{[layer.name for layer in self.layers]}")

    def reset_metrics(self):
        """Sets the metrics to zero."""
        self.__berth__.reset_metrics()

    @property
    def stop_training(self):
        """Set to True by a callback: fit() ends after this batch."""
        return self.__dict__.get("_stop", False)

    @stop_training.setter
    def stop_training(self, value):
        self.__dict__["_stop"] = value
        if value:
            self.__berth__.stop_training()

    def summary(self, line_length=None, positions=None, print_fn=None, expand_nested=False, show_trainable=False,
                layer_range=None):
        """Prints layers, shapes and numbers of weights."""
        (print_fn or print)(self.__berth__.summary())

    def _repr_html_(self):
        from berth import _html
        return _html.text(self.__berth__.summary())

    def placement(self):
        """What of the training step ran where."""
        return Placement("", self.__berth__.placement())

    def explain(self, op):
        """Why an op of the training step is where it is, and what would move it."""
        return Explanation("", self.__berth__.explain(op))

    def plan_text(self, stage="plan"):
        """The training step as text: stage "trace", "optimize", "place" or "plan".

        Before the first step only the first two: a step on 32 examples, which is traced, not run.
        """
        return Report(self.__berth__.train_plan_text(stage))

    def save_graph(self, path, stage="optimize"):
        """Writes plan_text(stage) to a file, for `berth plan` and `berth place`."""
        save_text(path, self.plan_text(stage))

    def save(self, filepath, overwrite=True, include_optimizer=True):
        """Writes the whole model; .keras and .h5 are Keras' formats, else safetensors."""
        _saving.save_model(self, filepath, overwrite, include_optimizer)

    def save_weights(self, filepath, overwrite=True):
        """Writes the weights to a file; its ending says the format."""
        _saving.save_weights(self, filepath, overwrite)

    def load_weights(self, filepath, skip_mismatch=False):
        """Reads weights that save_weights() or save() wrote."""
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
        """What fit() does with a batch: a dictionary of values; a model of one's own overrides it."""
        raise NotImplementedError("fit runs the engine's step unless a class overrides this")

    def test_step(self, data):
        """What evaluate() does with a batch: a dictionary of values; a model of one's own overrides it."""
        raise NotImplementedError("evaluate runs the engine's step unless a class overrides this")


def _layers_behind(tensors):
    """The objects of the layers that led to tensors; a walk, since what led to a value led to many others."""
    found, seen, left = [], set(), [v._kept for v in tensors if hasattr(v, "_kept")]
    while left:
        use = left.pop()
        if id(use) not in seen:
            seen.add(id(use))
            found += [use[0], *use[0].__dict__.get("_kept", [])]
            left += use[1]
    return found


def wrapped(handle):
    """The object of Python for a layer, or a model, of the engine."""
    inside = _core.layer_type(handle) in ("Model", "Sequential")
    return Model._of(_core.as_model(handle)) if inside else Layer._of(handle)


class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers=None, name=None):
        self.__dict__["_given"] = []
        self.__dict__["_name"] = name
        for layer in layers or []:
            self._append(layer)
        self._build_at_input()

    def _is_own(self):
        return False

    def _is_given(self):
        return True

    def add(self, layer):
        """Adds a layer at the end."""
        self._append(layer)
        self._build_at_input()

    def _build_at_input(self):
        if len(self._given) > 1 and isinstance(self._given[0], _layers.InputLayer):
            self.__berth__

    def _append(self, layer):
        if isinstance(layer, _core.KerasTensor):
            name = layer._kept[0].name if hasattr(layer, "_kept") else None
            layer = _layers.InputLayer(batch_shape=layer.shape.as_list(), dtype=layer.dtype, name=name)
        if not isinstance(layer, Layer):
            of_package = any(c.__module__.startswith("keras.") for c in type(layer).__mro__)
            raise TypeError(f"Sequential takes layers{' of berth.keras' if of_package else ''}, not {layer!r}" + (
                ", which is of the package keras: use keras.Sequential" if of_package else ""))
        self.__dict__.pop("__berth__", None)
        self.__dict__.pop("_wanted", None)
        shape = layer.__dict__.get("_input_shape")
        if shape is not None and not self._given:
            self._given.append(_layers.InputLayer(list(shape)))
        self._given.append(layer)

    def pop(self):
        """Takes the last layer away."""
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
        """The layers, without the Input."""
        return [g for g in self._given if not isinstance(g, _layers.InputLayer)]

    def build(self, input_shape=None):
        """Makes the weights for a shape of inputs."""
        if input_shape is not None:
            self.__berth__.build([list(input_shape)])


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """Returns the model of a file that save() wrote, here or in Keras."""
    return _saving.load_model(filepath, custom_objects, compile, safe_mode)


hide_in(Model, Sequential)


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
