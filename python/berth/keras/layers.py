"""tf.keras.layers: a class for each layer of the engine, and Layer for those of one's own."""
import json
import operator
import re
import types

from berth import _core
from berth._classes import describe
from berth._core import Tensor, Variable
from berth._frames import hide_in
from berth._function import call_converted
from berth._host import owners
from berth._lazy import Lazy
from berth._structure import flatten, pack
from berth._tensor import as_dtype, convert_to_tensor, refuse

_engine = _core.ops.keras
inspect = Lazy("inspect")


def snake(name):
    """Dense -> dense, Conv2D -> conv2d, LayerNormalization -> layer_normalization."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


class Layer:
    """A function with weights. Derive from it: make weights in build(), compute in call().

    The object holds the engine's layer as __berth__.
    """

    _kind = _core.Layer

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        made.__dict__["_made_with"] = (args, kwargs)  # what get_config() tells
        return made

    def __init__(self, *, name=None, dtype=None, trainable=True, activity_regularizer=None,
                 **kwargs):
        if kwargs:
            raise TypeError(f"{type(self).__name__}: unknown arguments {sorted(kwargs)}")
        object.__setattr__(self, "__berth__",
                           self._kind(self, snake(type(self).__name__), name or ""))
        if not trainable:
            self.__berth__.trainable = False
        known = (self.__berth__.compute_dtype, self.dtype)
        refuse(type(self).__name__, activity_regularizer=activity_regularizer,
               dtype=None if dtype is None or getattr(dtype, "compute_dtype", dtype) in known else dtype)

    def __repr__(self):
        if "__berth__" not in self.__dict__:
            return f"<{type(self).__name__}, not initialised>"
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"

    @classmethod
    def _of(cls, handle):
        made = cls.__new__(cls)
        object.__setattr__(made, "__berth__", handle)
        return made

    def __setattr__(self, name, value):
        if isinstance(value, (Layer, list, tuple, dict, Variable)) and "__berth__" in self.__dict__:
            self._track(value)
        super().__setattr__(name, value)

    def _track(self, value):
        """Layers and variables that attributes hold, also in lists, are parts."""
        if isinstance(value, Variable):
            if self._is_own() and all(value is not w and value._serial() != w._serial()
                                      for w in self.__berth__.weights()):
                self.__berth__.track_variable(value)
        elif isinstance(value, Layer):
            if self._is_own():
                self.__berth__.track(value.__berth__)
                self.__dict__.setdefault("_parts", []).append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                self._track(item)
        elif isinstance(value, dict):
            for item in value.values():
                self._track(item)

    def _is_own(self):
        return type(self).call is not Layer.call

    def get_config(self):
        """The arguments that make an equal layer; override it where they are not plain values."""
        if not self._is_own():
            return self._config_of_engine()
        base = {"name": self.name, "trainable": self.trainable, "dtype": self.dtype}
        if type(self).get_config is not Layer.get_config or type(self).__init__ is Layer.__init__:
            return base
        signature = inspect.signature(type(self).__init__)
        args, kwargs = self._made_with
        bound = signature.bind(self, *args, **kwargs).arguments
        config = {k: v for k, v in list(bound.items())[1:] if k not in ("args", "kwargs")}
        config.update(bound.get("kwargs", {}))
        wrong = [k for k, v in config.items() if not _is_plain(v)]
        if wrong:
            raise ValueError(f"{type(self).__name__}: its arguments {wrong} are no plain values; override "
                             "get_config(), and from_config() if it needs more than cls(**config)")
        takes_name = "name" in signature.parameters or any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values())
        return {"name": self.name, **config} if takes_name else config

    def _config_of_engine(self):
        return json.loads(_core.layer_config(self.__berth__))["config"]

    @classmethod
    def from_config(cls, config):
        """Makes an equal layer of what get_config() told, with weights of its own."""
        if "_is_own" in cls.__dict__ and cls.__module__.startswith("berth."):
            return cls._of(_core.layer_from_config(json.dumps({"class_name": cls.__name__, "config": config})))
        return cls(**config)

    # What the engine calls.
    def _build_of_engine(self, shapes):
        self.__dict__["_built_for"] = [s.as_list() for s in shapes]
        self.build(shapes[0] if len(shapes) == 1 else shapes)

    def _call_of_engine(self, inputs, training):
        form = self.__dict__.get("_form")
        x = inputs[0] if len(inputs) == 1 and form is None else inputs
        if form is not None:
            x = pack(form, inputs)
        options = {"training": training} if self._takes("training") else {}
        options.update(self.__dict__.get("_named", {}))
        owners.append(self.__dict__.setdefault("_hosted", []))
        try:
            out, self.__dict__["_result"] = flatten(call_converted(self.call, x, **options))
        finally:
            owners.pop()
        return [convert_to_tensor(v) for v in out]

    def _takes(self, argument):
        parameters = inspect.signature(self.call).parameters
        return argument in parameters or any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())

    def _build_for(self, shape):
        """Makes the weights for inputs of this shape."""
        shapes = shape if shape and isinstance(shape[0], (list, tuple)) else [shape]
        self.__berth__.build([list(s) for s in shapes])

    def build(self, input_shape):
        """Makes the weights, with add_weight()."""

    def call(self, inputs):
        """What the layer computes of its inputs; a layer of one's own overrides it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method call(self, inputs)")

    def __call__(self, inputs, *others, training=None, mask=None, **kwargs):
        inputs, kwargs = self._together(inputs, others, kwargs)
        self.__dict__["_named"] = kwargs
        leaves, form = flatten(inputs)
        if any(isinstance(v, _core.KerasTensor) for v in leaves):
            return self._describe(leaves)
        if self._is_own() and not isinstance(inputs, (Tensor, Variable)) and isinstance(
                inputs, (list, tuple, dict)):
            self.__dict__["_form"] = form
        out = self.__berth__.call(self._cast_inputs([convert_to_tensor(v) for v in leaves]), training)
        result = self.__dict__.get("_result")
        if result is not None:
            return pack(result, out)
        return out[0] if len(out) == 1 else out

    def _together(self, inputs, others, kwargs):
        """Further inputs as a list: attention(query, value), attention(query, value=v, key=k)."""
        self.__dict__.pop("_met", None)
        if self._is_own():
            if others:
                names = [p for p in inspect.signature(self.call).parameters][1:]
                kwargs = {**dict(zip(names, others)), **kwargs}
            return inputs, kwargs
        others, places = list(others), {}
        for name in ("value", "key", "attention_mask", "initial_state"):
            given = kwargs.pop(name, None)
            if given is not None:
                places[name] = len(others)
                others += list(given) if isinstance(given, (list, tuple)) else [given]
        # Keras meets what has a name by the alphabet.
        named = [1 + places[name] for name in sorted(places)]
        self.__dict__["_met"] = [*range(1 + min(places.values())), *named] if named != sorted(named) else []
        if kwargs:
            raise TypeError(f"{type(self).__name__} is called with an argument that it lacks: "
                            f"{', '.join(sorted(kwargs))} (use_causal_mask is one of its constructor)")
        if others:
            inputs = [*(inputs if isinstance(inputs, (list, tuple)) else [inputs]), *others]
        return inputs, kwargs

    def _cast_inputs(self, tensors):
        return [self._cast(t) for t in tensors]

    def _cast(self, x):
        """Doubles become what the layer computes in, as Keras has it."""
        wide = x.dtype == _core.float64 and self.__berth__.compute_dtype != _core.float64
        return _core.ops.math.cast(x, self.__berth__.compute_dtype) if wide else x

    def _describe(self, leaves):
        out = self.__berth__.describe(leaves, self.__dict__.pop("_met", []))
        for v in out:
            v._kept = (self, tuple(x._kept for x in leaves if hasattr(x, "_kept")))
        form = self.__dict__.get("_result")
        return pack(form, out) if form is not None else out[0] if len(out) == 1 else out

    def add_weight(self, *args, **kwargs):
        """Makes a variable that is part of the layer; in build() or __init__()."""
        if args and isinstance(args[0], str):  # add_weight("kernel", shape=...), as in Keras 2
            args, kwargs = args[1:], {"name": args[0], **kwargs}
        return self._add_weight(*args, **kwargs)

    def _add_weight(self, shape=(), initializer="glorot_uniform", dtype=None, trainable=True,
                    regularizer=None, constraint=None, name="weight", **kwargs):
        made = self.__berth__.add_weight(name, list(shape), initializer or "glorot_uniform",
                                         trainable, regularizer, constraint)
        refuse("add_weight", dtype=None if dtype is None or made.dtype == dtype else dtype)
        return made

    def add_loss(self, loss):
        """Adds a scalar to the loss, from within call()."""
        self.__berth__.add_loss(loss)

    name = property(lambda self: self.__berth__.name, doc="The name that was given, or one of the class and a number.")
    path = property(lambda self: self.__berth__.path,
                    doc="The names of the model's parts down to this one, with slashes.")
    built = property(lambda self: self.__berth__.built, lambda self, v: None, doc="Whether the weights are made.")
    trainable = property(lambda self: self.__berth__.trainable,
                         lambda self, v: setattr(self.__berth__, "trainable", v),
                         doc="Whether the weights are trained; setting it holds for all parts.")
    weights = property(lambda self: self.__berth__.weights(), doc="The weights: trained ones first.")
    variables = weights
    trainable_variables = property(lambda self: self.__berth__.trainable_variables(),
                                   doc="The weights that are trained.")
    trainable_weights = trainable_variables
    non_trainable_variables = property(lambda self: self.__berth__.non_trainable_variables(),
                                       doc="The weights that are not trained.")
    non_trainable_weights = non_trainable_variables
    losses = property(lambda self: self.__berth__.losses(), doc="The scalars that regularizers and add_loss() give.")
    input = property(lambda self: self._one_or_all(self.__berth__.inputs()),
                     doc="The symbolic input of a layer that was called once.")
    output = property(lambda self: self._one_or_all(self.__berth__.outputs()),
                      doc="The symbolic output of a layer that was called once.")

    def _one_or_all(self, tensors):
        for v in tensors:
            v._kept = (self, ())
        return tensors[0] if len(tensors) == 1 else tensors

    @property
    def submodules(self):
        """The layers inside, and those inside of them."""
        inside = self.layers if hasattr(self, "layers") else self.__dict__.get("_parts", [])
        return tuple(found for part in inside for found in (part, *part.submodules))

    dtype_policy = property(lambda self: self.__berth__.dtype_policy,
                            doc="The policy of dtypes, such as mixed_float16.")
    compute_dtype = property(lambda self: self.__berth__.compute_dtype.name,
                             doc="The name of the dtype that the layer computes in.")
    dtype = property(lambda self: self.__berth__.dtype_policy.variable_dtype,
                     doc="The name of the dtype of the weights.")

    def count_params(self):
        """The number of numbers in the weights."""
        return self.__berth__.count_params()

    def get_weights(self):
        """The weights as arrays."""
        return self.__berth__.get_weights()

    def set_weights(self, weights):
        """Sets the weights, in the order of get_weights()."""
        weights, own = list(weights), self.weights
        if len(weights) == len(own):
            weights = [convert_to_tensor(w, v.dtype) for w, v in zip(weights, own)]
        self.__berth__.set_weights(weights)

    def compute_output_shape(self, input_shape):
        """The shape of the output for a shape of the input."""
        return self.__berth__.compute_output_shape(input_shape)

    def __getattr__(self, name):
        # kernel, bias, gamma: the weights by their last name.
        if not name.startswith("_") and "__berth__" in self.__dict__:
            found = [w for w in self.weights if w.name.rsplit("/", 1)[-1].split(":")[0] == name]
            if len(found) == 1:
                return found[0]
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _class_of(name, make):
    def signed(self, *args, input_shape=None, input_dim=None, trainable=True, **kwargs):
        if input_dim is not None and name.endswith("Embedding"):
            kwargs["input_dim"] = input_dim  # its own
        elif input_dim is not None:
            input_shape = (input_dim,)
        object.__setattr__(self, "__berth__", make(*args, **kwargs))
        if input_shape is not None:
            self.__dict__["_input_shape"] = tuple(input_shape)
        if not trainable:
            self.__berth__.trainable = False

    made = type(name, (Layer,), {"__init__": signed, "__module__": "berth.keras.layers",
                                 "_is_own": lambda self: False})
    describe(made, make.__doc__, make)
    return made


for _name, _make in list(vars(_engine).items()):
    if (isinstance(_make, types.BuiltinFunctionType) and _name[0].isupper() and _name != "Input"
            and not hasattr(_engine.optimizers, _name)):
        globals()[_name] = _class_of(_name, _make)
for _short, _long in (("MaxPool1D", "MaxPooling1D"), ("MaxPool2D", "MaxPooling2D"),
                      ("MaxPool3D", "MaxPooling3D"), ("AvgPool1D", "AveragePooling1D"),
                      ("AvgPool2D", "AveragePooling2D"), ("AvgPool3D", "AveragePooling3D"),
                      ("GlobalAvgPool2D", "GlobalAveragePooling2D"),
                      ("GlobalMaxPool2D", "GlobalMaxPooling2D")):
    if _long in globals():
        globals()[_short] = globals()[_long]


class InputLayer(Layer):
    """What declares an input; `batch_shape` has the batch in front."""

    def __init__(self, shape=None, batch_size=None, dtype=None, batch_shape=None, name=None, input_shape=None,
                 sparse=False, **kwargs):
        refuse("Input", **kwargs)  # a SparseTensor becomes dense where the model takes it
        if shape is None and batch_shape is None and input_shape is None:
            raise ValueError("Input: there is no shape; expected shape=(...), without the batch, or batch_shape=(...)")
        if batch_shape is None:
            batch_shape = (batch_size, *(input_shape if shape is None else shape))
        config = {"batch_shape": [None if d is None else int(d) for d in batch_shape],
                  "dtype": _core.float32.name if dtype is None else as_dtype(dtype).name}
        if name is not None:
            config["name"] = name
        object.__setattr__(self, "__berth__", _core.layer_from_config(
            json.dumps({"class_name": "InputLayer", "config": config})))

    def _is_own(self):
        return False


class Lambda(Layer):
    """A function as a layer."""

    def __init__(self, function, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.__dict__["_function"] = function

    def call(self, inputs):
        """function(inputs)."""
        return self._function(inputs)


_OPERATORS = {"Add": "add", "Subtract": "sub", "Multiply": "mul", "TrueDivide": "truediv", "Divide": "truediv",
              "Power": "pow", "Matmul": "matmul", "Negative": "neg", "GetItem": "getitem"}


class Operation(Layer):
    """An operator between values of a functional model and at most one constant, as a layer."""

    def __init__(self, kind, *constant, first=False, name=None):
        if kind not in _OPERATORS:
            raise ValueError(f"the operation {kind} between layers is not there yet; expected one of "
                             f"{', '.join(_OPERATORS)}, or a layer")
        object.__setattr__(self, "__berth__", self._kind(self, snake(kind), name or ""))
        self.__dict__.update(kind=kind, _constant=constant, _first=first)

    def call(self, inputs):
        """What the operation computes of its inputs."""
        apply = getattr(operator, _OPERATORS[self.kind])
        return apply(*operands(self, inputs if isinstance(inputs, list) else [inputs]))


def operation(kind, *constant, first=False, name=None, shapes=()):
    """The layer of an operator: the engine's where it has one, which its own files can hold."""
    if kind != "Add" or len(shapes) != 2 or shapes[0] != shapes[1]:
        return Operation(kind, *constant, first=first, name=name)
    made = Add(**({"name": name} if name else {}))  # noqa: F821
    made.__dict__.update(kind=kind, _constant=constant, _first=first)
    return made


def is_operation(layer):
    """Whether a layer of a functional model stands for an operator such as 2 * x."""
    return "kind" in layer.__dict__ and "_constant" in layer.__dict__


def operands(layer, tensors):
    """An operator's arguments, of the tensors among them."""
    return [*layer._constant, *tensors] if layer._first else [*tensors, *layer._constant]


def _give_operators():
    def make(kind, reverse):
        def method(self, other):
            if isinstance(other, _core.KerasTensor):
                return operation(kind, shapes=(self.shape, other.shape))([self, other])
            return Operation(kind, other, first=reverse)(self)
        return method

    for kind in ("Add", "Subtract", "Multiply", "TrueDivide", "Power", "Matmul"):
        setattr(_core.KerasTensor, f"__{_OPERATORS[kind]}__", make(kind, False))
        setattr(_core.KerasTensor, f"__r{_OPERATORS[kind]}__", make(kind, True))
    _core.KerasTensor.__neg__ = lambda self: Operation("Negative")(self)
    _core.KerasTensor.__getitem__ = lambda self, key: Operation("GetItem", key)(self)


_give_operators()


def wrap(handle):
    """The object of Python for a layer of the engine."""
    return Layer._of(handle)


def add(inputs):
    """The sum of inputs of one shape, tensors or values of a model."""
    return Add()(inputs)  # noqa: F821


def concatenate(inputs, axis=-1):
    """The inputs one after the other along `axis`."""
    return Concatenate(axis=axis)(inputs)  # noqa: F821


def multiply(inputs):
    """The product of inputs of one shape."""
    return Multiply()(inputs)  # noqa: F821


def subtract(inputs):
    """The first of two inputs minus the second."""
    return Subtract()(inputs)  # noqa: F821


def average(inputs):
    """The mean of inputs of one shape."""
    return Average()(inputs)  # noqa: F821


def maximum(inputs):
    """The largest of inputs of one shape, elementwise."""
    return Maximum()(inputs)  # noqa: F821


def Input(shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, **kwargs):
    """An input of a functional model (tf.keras.Input)."""
    layer = InputLayer(shape, batch_size, dtype, batch_shape, name, **kwargs)
    value = _core.described_input(layer.__berth__)
    value._kept = (layer, ())
    return value


hide_in(Layer, InputLayer, Lambda)
