"""Completes Tensor, Variable, DType and TensorShape, and makes tensors of values."""
import builtins
import functools
import operator

from berth import _core
from berth._core import DType, Tensor, TensorShape, Variable
from berth._lazy import Lazy as _Lazy

_np = _Lazy("numpy")

float16, float32, float64 = _core.float16, _core.float32, _core.float64
bfloat16, int8, int32, int64 = _core.bfloat16, _core.int8, _core.int32, _core.int64
int16, uint8, uint16 = _core.int16, _core.uint8, _core.uint16
uint32, uint64 = _core.uint32, _core.uint64
complex64, complex128 = _core.complex64, _core.complex128
string, bool = _core.string, _core.bool
half, double = float16, float64

_FOREIGN = ("int4", "uint4", "qint8", "qint16", "qint32", "quint8", "quint16",
            "float8_e4m3fn", "float8_e5m2", "variant", "resource")
_NUMPY = {"bool": "bool_"}


def _numpy_dtype(self):
    """NumPy's dtype of the same values."""
    if self.name == "bfloat16":
        import ml_dtypes
        return ml_dtypes.bfloat16
    if self.name == "string":
        return object
    return getattr(_np, _NUMPY.get(self.name, self.name))


DType.as_numpy_dtype = property(_numpy_dtype)
DType.__str__ = lambda self: f"<dtype: '{self.name}'>"
DType.__format__ = lambda self, spec: format(repr(self), spec)
DType.base_dtype = property(lambda self: self, doc="The dtype itself: there are no references.")
DType.as_datatype_enum = property(lambda self: next(n for n, d in _OTHER_NAMES.items() if n.__class__ is int and d == self),
                                  doc="Its number in TensorFlow's messages.")


def _limit(self, which):
    if self.is_floating:
        if self.name == "bfloat16":
            import ml_dtypes
            return getattr(ml_dtypes.finfo(self.as_numpy_dtype), which)
        info = _np.finfo(self.as_numpy_dtype)
    else:
        info = _np.iinfo(self.as_numpy_dtype)
    return getattr(info, which)


DType.min = property(lambda self: _limit(self, "min"), doc="The least value.")
DType.max = property(lambda self: _limit(self, "max"), doc="The greatest value.")


_DTYPES = (float32, float64, int32, int64, uint8, int8, int16, uint16, uint32, uint64, bool, bfloat16, float16,
           complex64, complex128, string)


# Names and numbers of dtypes that TensorFlow has beside those of NumPy.
_OTHER_NAMES = {"float": float32, "double": float64, "half": float16, builtins.object: string, "object": string, 1: float32, 2: float64,
                3: int32, 4: uint8, 5: int16, 6: int8, 7: string, 8: complex64, 9: int64, 10: bool, 14: bfloat16, 17: uint16,
                18: complex128, 19: float16, 22: uint32, 23: uint64}


def as_dtype(value):
    """Returns the DType of a name, a NumPy dtype, a DType or its number in TensorFlow's messages (types.proto)."""
    if isinstance(value, (str, int, type)) and not isinstance(value, builtins.bool) and value in _OTHER_NAMES:
        return _OTHER_NAMES[value]
    for known in _DTYPES:
        if known == value:
            return known
    if isinstance(value, _np.dtype) or isinstance(value, type) and issubclass(value, _np.generic):
        if _np.dtype(value).kind in "OSU":
            return string
    raise TypeError(f"{value!r} is no dtype that Berth has: it has {', '.join(d.name for d in _DTYPES)}")


DType.__reduce__ = lambda self: (as_dtype, (self.name,))


# Shapes behave as tuples of numbers, with None for what is not known.
def _as_list(self):
    """The sizes as a list, None for those that are not known."""
    return self._dims()


def _concatenate(self, other):
    """The axes of this shape, then those of another."""
    other = AnyShape(other)
    return other if other.rank is None else TensorShape(self._dims() + other._dims())


TensorShape.as_list = _as_list
TensorShape.dims = property(_as_list)
TensorShape.ndims = property(lambda self: self.rank, doc="The number of axes.")
TensorShape.__len__ = lambda self: self.rank
TensorShape.__iter__ = lambda self: iter(self._dims())
TensorShape.__hash__ = lambda self: hash(tuple(self._dims()))
TensorShape.__str__ = lambda self: str(tuple(self._dims()))
TensorShape.__repr__ = lambda self: f"TensorShape({self._dims()})"
TensorShape.__add__ = TensorShape.concatenate = _concatenate
TensorShape.__radd__ = lambda self, other: TensorShape(list(other) + self._dims())


def _merge_with(self, other):
    """The shape that both are compatible with; ValueError of none."""
    other = AnyShape(other)
    if other.rank is None:
        return self
    if not self.is_compatible_with(other):
        raise ValueError(f"Shapes {self} and {other} are not compatible")
    return TensorShape([b if a is None else a for a, b in zip(self._dims(), other._dims())])


TensorShape.merge_with = _merge_with
_fits = TensorShape.is_compatible_with


def _is_compatible_with(self, other):
    """True if a tensor may have both shapes."""
    return other is None or isinstance(other, _UnknownShape) or _fits(self, other)


TensorShape.is_compatible_with = _is_compatible_with


def _assert_is_compatible_with(self, other):
    """Raises a ValueError unless one shape could be both."""
    _merge_with(self, other)


TensorShape.assert_is_compatible_with = _assert_is_compatible_with


def _shape_item(self, at):
    dims = self._dims()
    return TensorShape(dims[at]) if isinstance(at, slice) else dims[at]


def _shape_equal(self, other):
    if isinstance(other, TensorShape):
        return other.rank is not None and self._dims() == other._dims()
    return self._dims() == list(other) if isinstance(other, (list, tuple)) else NotImplemented


TensorShape.__getitem__ = _shape_item
TensorShape.__eq__ = _shape_equal


def _whole(value):
    """A subscript, or a part of a slice, that is a whole number."""
    try:
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError("subscripts are whole numbers, slices of those, `...`, tf.newaxis, scalar tensors of int32 "
                        f"or int64, and masks, not {value!r}") from None


def _getitem(self, key):
    """x[0], x[1:3], x[:, 0], x[..., -1], x[None], x[mask], x[tensor]."""
    if self.dtype == string:
        from berth._strings import by_number
        return by_number(_getitem, convert_to_tensor(self), key)
    keys = tuple(key) if isinstance(key, (tuple, list)) else (key,)
    if key is True or key is False:
        raise TypeError(f"a mask has at least one axis: {key} is no subscript")
    if len(keys) == 1 and isinstance(keys[0], (Tensor, _np.ndarray)):
        at = convert_to_tensor(keys[0])
        if at.dtype == bool and len(at.shape) > 0:
            return _core.ops.boolean_mask(self, at)
        if len(at.shape) > 0:
            return _core.ops.gather(self, at)
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    parts, new_axes, axis, picked = [], [], 0, []
    for k in keys:
        if k is Ellipsis:
            skipped = len(self.shape) - used
            parts += [(None, None, 1)] * skipped
            axis += skipped
        elif k is None:
            new_axes.append(axis)
            axis += 1
        elif isinstance(k, slice):
            parts.append((_whole(k.start), _whole(k.stop), 1 if k.step is None else _whole(k.step)))
            axis += 1
        elif isinstance(k, (Tensor, Variable)) and _core.is_open(k):
            picked.append((len(new_axes), axis, k))
            parts.append((None, None, 1))
        else:
            parts.append(_check_index(self, len(parts), _whole(k)))
    out = self._getitem(parts) if parts else self
    for done, (news, at, k) in enumerate(picked):
        out = _core.ops.gather(out, _from_the_end(k, out.shape[at - news]), axis=at - news)
    for at in new_axes:
        out = _core.ops.expand_dims(out, at)
    return out


def _from_the_end(at, length):
    """An index that a trace does not know: those below 0 count from the end."""
    return at if length is None else _core.ops.where(_core.ops.math.less(at, 0), at + length, at)


def _check_index(self, axis, at):
    if axis >= len(self.shape):
        raise IndexError(f"too many indices: the tensor has shape {self.shape}")
    length = self.shape[axis]
    if length is not None and not -length <= at < length:
        raise IndexError(f"index {at} is out of range: axis {axis} has {length} elements")
    return at


def _iterate(self):
    if not len(self.shape):
        raise TypeError("a scalar has no elements to iterate over")
    if self.shape[0] is None:
        raise TypeError("the first axis of this tensor is not known while the function is traced; "
                        "iterate over tf.range(n) in a tf.while_loop")
    if self.dtype == string:
        return (self[i] for i in range(self.shape[0]))
    return iter(_core.ops.unstack(self))


def _length(self):
    if not len(self.shape):
        raise TypeError("a scalar has no length")
    return self.shape[0]


def _text(self):
    if self.is_symbolic if isinstance(self, Tensor) else False:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name})"
    return f"tf.Tensor({_on_own_lines(str(self.numpy()))}, shape={self.shape}, dtype={self.dtype.name})"


def _repr(self):
    if self.is_symbolic:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}>"
    return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={_shown(self)}>"


def _shown(self):
    """The values as in TensorFlow, and the device where it is another than the first CPU."""
    values, device = self._array(), self.device.rsplit("device:", 1)[-1]
    text = _on_own_lines(repr(values)) if values.ndim else repr(values.item())
    return text if device == "CPU:0" else f"{text}, device={device}"


def _on_own_lines(text):
    return "\n" + text if "\n" in text else text


def _variable_repr(self):
    return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={_shown(self)}>"


def _as_array(self, dtype=None, copy=None):
    """NumPy's protocol: a read-only array over the memory of a tensor, or a copy."""
    shares = isinstance(self, Tensor) and not copy
    values = _core.view(self) if shares else self._array()
    converts = dtype is not None and values.dtype != dtype
    if copy is False and (converts or not shares):
        raise ValueError("only a tensor, with its own dtype, gives an array without a copy")
    return values.astype(dtype) if converts else values


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    told = max_version is not None and tuple(max_version) >= (1, 0)
    tensor = self if isinstance(self, Tensor) else self.read_value()
    wishes = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return _core.exported(tensor, told).__dlpack__(**{k: v for k, v in wishes.items() if v is not None})


def _set_shape(self, shape):
    """Checks a shape: what a trace does not know stays unknown."""
    if not AnyShape(shape).is_compatible_with(self.shape):
        raise ValueError(f"set_shape: the tensor has the shape {self.shape}, not {AnyShape(shape)}")


def _variable_getitem(self, key):
    """A part of the value, whose assign(), assign_add() and assign_sub() write to the variable."""
    out = _getitem(self.read_value(), key)
    for name in ("assign", "assign_add", "assign_sub"):
        setattr(out, name, functools.partial(_write_part, self, key, name))
    return out


def _write_part(variable, key, how, value, use_locking=False, name=None, read_value=True):
    """Sets the elements of a variable that a subscript says; those that come twice get the last value."""
    ops, whole = _core.ops, variable.read_value()
    count = whole.shape.num_elements()
    places = _getitem(ops.reshape(ops.range(0, count, 1), whole.shape), key)
    value = convert_to_tensor(value, None if hasattr(value, "dtype") else variable.dtype)
    if how != "assign":
        old = _getitem(whole, key)
        value = old + value if how == "assign_add" else old - value
    if variable.dtype == string:
        return _write_text(variable, _np.unravel_index(places.numpy(), whole.shape.as_list()), value)
    new = ops.tensor_scatter_nd_update(ops.reshape(whole, [count]), ops.reshape(places, [-1, 1]),
                                       ops.reshape(ops.broadcast_to(value, places.shape), [-1]))
    return variable.assign(ops.reshape(new, whole.shape))


def _write_text(variable, places, value):
    """Sets the texts at places, an array of indices for each axis."""
    texts = variable.numpy().copy() if len(variable.read_value().shape) else _np.array(variable.numpy(), object)
    texts[places] = value.numpy()
    return variable.assign(texts)


def _no_hash(self):
    raise TypeError("Tensor is unhashable, because == compares its values: tensor.ref() is a key")


def _get_shape(self):
    """The shape."""
    return self.shape


def _ref(self):
    """What may be a key of a dictionary, by identity; its deref() gives this back."""
    return _Reference(self)


def _initialized_value(self):
    """The value."""
    return self.read_value()


def _is_initialized(self):
    """True: variables are made with their values."""
    return True


for _class in (Tensor, Variable):
    _class.__getitem__ = _getitem
    _class.__iter__ = _iterate
    _class.__len__ = _length
    _class.__array__ = _as_array
    _class.__array_priority__ = 100
    _class.__str__ = _text
    _class.__index__ = lambda self: int(self._array().__index__())
    _class.__complex__ = lambda self: complex(self.numpy())
    _class.__round__ = lambda self: _core.ops.math.round(self)
    _class.__format__ = lambda self, spec: str(self) if not spec and _core.is_open(self) else format(self.numpy(), spec)
    _class.ndim = property(lambda self: len(self.shape), doc="The number of axes.")
    _class.get_shape = _get_shape
    _class.ref = _ref
    _class.__copy__ = lambda self: self
    _class.__dlpack__ = _dlpack
    _class.__dlpack_device__ = lambda self: (1, 0)
Variable.__getitem__ = _variable_getitem
Variable.__iter__ = lambda self: _iterate(self.read_value())
Variable.__len__ = lambda self: _length(self.read_value())
Tensor.__repr__ = _repr
Tensor.__hash__ = _no_hash
Tensor.__deepcopy__ = lambda self, memo: self
Tensor.__reduce__ = lambda self: (constant, (self._array(),))
Tensor.set_shape = _set_shape
Variable.__repr__ = Variable.__str__ = _variable_repr
Variable.initialized_value = _initialized_value
Variable.is_initialized = _is_initialized
Variable.constraint = None  # those of Keras are of its own variables
Variable.aggregation = property(lambda self: _enums().VariableAggregation(self._how[0]),
                                doc="How what replicas write to it is combined.")
Variable.synchronization = property(lambda self: _enums().VariableSynchronization(self._how[1]),
                                    doc="When the copies of replicas are made equal.")
Variable.__deepcopy__ = lambda self, memo: Variable(self.read_value(), trainable=self.trainable,
                                                    name=self.name, shape=self.shape)
Variable.__reduce__ = lambda self: (_variable_of, (self._array(), self.trainable, self.name, self.shape))


def _check_variable_shape(value, shape):
    """The sizes that a variable is to have, -1 for those that may change; True where all may, None where none may.

    Raises a ValueError where its value does not fit.
    """
    shape = AnyShape(shape)
    if not shape.is_compatible_with(value.shape):
        raise ValueError(f"tf.Variable: the initial value has the shape {value.shape}; expected one that fits {shape}")
    if shape.rank is None:
        return True
    return None if shape.is_fully_defined() else [-1 if d is None else d for d in shape.as_list()]


_core.set_variable_shape_hook(_check_variable_shape)


def _enums():
    from berth import distribute
    return distribute


def _variable_of(values, trainable, name, shape):
    return Variable(values, trainable=trainable, name=name, shape=shape)


class _Reference:
    """A key of dictionaries for a tensor or variable."""

    def __init__(self, value):
        self._value = value

    def deref(self):
        return self._value

    def __eq__(self, other):
        return isinstance(other, _Reference) and hash(self) == hash(other)

    def __lt__(self, other):
        return hash(self) < hash(other)

    def __hash__(self):
        try:
            return hash(self._value._id() if isinstance(self._value, Tensor) else self._value)
        except TypeError:  # of a class that inherits from tf.Variable and makes none
            return id(self._value)


def refuse(function, **arguments):
    """Raises for arguments of TensorFlow's that are not there yet: those given with another value than the default."""
    for name, given in arguments.items():
        if given is not None and given is not False:
            raise NotImplementedError(f"{function}: the argument {name}={given!r} is not there yet; leave it out")


_watching = []  # tapes of traces that ask for gradients by constants, too


def constant(value, dtype=None, shape=None, name=None):
    """Returns a tensor of a number, list or array (tf.constant)."""
    out = convert_to_tensor(value, dtype)
    if shape is not None:
        if out.shape.num_elements() == 1 and TensorShape(shape).num_elements() != 1:
            out = _core.ops.broadcast_to(_core.ops.reshape(out, []), shape)
        else:
            out = _core.ops.reshape(out, shape)
    for tape in _watching if out.dtype.is_floating or out.dtype.is_complex else ():
        tape.watch(out)
    return out


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """Returns `value` as a tensor (tf.convert_to_tensor)."""
    if dtype is None and dtype_hint is not None and not isinstance(value, (Tensor, Variable)):
        try:
            return _core.convert(value, dtype_hint)
        except (TypeError, ValueError):
            pass
    return _core.convert(value, dtype)


def is_tensor(value):
    """Whether it is a tensor, a variable, a RaggedTensor or a SparseTensor."""
    return isinstance(value, (Tensor, Variable)) or hasattr(value, "__berth_tensor__") or hasattr(value, "with_values")


class _UnknownShape(TensorShape):
    """TensorShape(None): neither sizes nor their number are known. The engine's part of it is never made: it takes none."""

    __init__ = lambda self, dims=None: None  # noqa: E731
    rank = ndims = dims = None
    is_fully_defined = lambda self: False  # noqa: E731
    is_compatible_with = lambda self, other: True  # noqa: E731
    num_elements = lambda self: None  # noqa: E731
    __str__ = lambda self: "<unknown>"  # noqa: E731
    __repr__ = lambda self: "TensorShape(None)"  # noqa: E731
    __eq__ = lambda self, other: isinstance(other, _UnknownShape)
    __hash__ = lambda self: 0

    def as_list(self):
        raise ValueError("the rank of this shape is not known")

    __iter__ = __len__ = _dims = as_list
    __bool__ = lambda self: False  # noqa: E731
    __add__ = __radd__ = concatenate = with_rank_at_least = with_rank_at_most = lambda self, other: self  # noqa: E731
    __getitem__ = lambda self, at: self if isinstance(at, slice) else None  # noqa: E731
    with_rank = lambda self, rank: TensorShape([None] * rank)  # noqa: E731
    merge_with = lambda self, other: AnyShape(other)  # noqa: E731
    most_specific_compatible_shape = lambda self, other: self  # noqa: E731
    is_subtype_of = lambda self, other: AnyShape(other).rank is None  # noqa: E731
    assert_is_compatible_with = assert_has_rank = assert_same_rank = lambda self, other: None  # noqa: E731

    def assert_is_fully_defined(self):
        raise ValueError(f"Shape {self} is not fully defined")


class _Shapes(type):
    """The class of tf.TensorShape, which makes shapes of the engine, or one whose rank is not known."""

    def __call__(cls, *args, **kwargs):
        dims = (*args, *kwargs.values())
        unknown = len(dims) == 1 and (dims[0] is None or isinstance(dims[0], _UnknownShape))
        return _UnknownShape() if unknown else TensorShape(*args, **kwargs)

    def __instancecheck__(cls, value):
        return isinstance(value, TensorShape)

    def __subclasscheck__(cls, other):
        return other is cls or issubclass(other, TensorShape)

    def __getattr__(cls, name):
        return getattr(TensorShape, name)


class AnyShape(metaclass=_Shapes):
    """The sizes of the axes of a tensor, None for those that are not known; of None: nor is their number."""


AnyShape.__name__ = AnyShape.__qualname__ = "TensorShape"
AnyShape.__module__ = "berth"
TensorShape.__reduce__ = lambda self: (AnyShape, (None if self.rank is None else self._dims(),))


class TypeSpec:
    """What the specs of tensors, ragged ones, sparse ones and extension types are (tf.TypeSpec)."""


class TensorSpec(TypeSpec):
    """Shape and dtype of an argument (tf.TensorSpec); shape None: of any rank."""

    value_type = Tensor

    def __init__(self, shape=(), dtype=float32, name=None):
        self.shape = AnyShape(shape)
        self.dtype, self.name = as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The shape and dtype of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec, name=None):
        """The spec, with another name where one is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor):
        """True of a tensor, or of the spec of one, that has this dtype and may have this shape."""
        if not hasattr(spec_or_tensor, "dtype"):
            spec_or_tensor = convert_to_tensor(spec_or_tensor)
        return self.dtype == spec_or_tensor.dtype and self.shape.is_compatible_with(spec_or_tensor.shape)

    def __eq__(self, other):
        return (isinstance(other, TensorSpec) and self.shape == other.shape
                and self.dtype == other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype=tf.{self.dtype.name}, name={self.name!r})"


class IndexedSlices:
    """Values and the rows that they belong to (tf.IndexedSlices)."""

    def __init__(self, values, indices, dense_shape=None):
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    dtype = property(lambda self: self.values.dtype, doc="The dtype of the values.")
    device = property(lambda self: self.values.device, doc="Where the values are.")

    def __repr__(self):
        shape = "" if self.dense_shape is None else f", dense_shape={self.dense_shape}"
        return f"IndexedSlices(indices={self.indices}, values={self.values}{shape})"

    @property
    def shape(self):
        """That of the tensor that these are rows of; not known without dense_shape."""
        known = self.dense_shape is not None and not _core.is_open(self.dense_shape)
        return TensorShape(convert_to_tensor(self.dense_shape).numpy().tolist()) if known else AnyShape(None)


def unknown_name(module, name, known):
    """What an AttributeError says of a name that is not there: planned or not, and what is near it."""
    import difflib
    path = f"{module.replace('berth', 'tf', 1)}.{name}"
    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    return f"Berth has no {path}{_plans_for(path)}{hint} (docs/python-names.md lists what there is)"


def _plans_for(path):
    from berth._never import NEVER
    plain = path[3:] if path.startswith("tf.keras.") else path
    for start, why in NEVER:
        if plain == start or plain.startswith(start + "."):
            return f", and will not: {why}"
    if plain.rpartition(".")[2] in _FOREIGN:
        return ": a dtype of TensorFlow's that the engine has not"
    from berth._planned import NAMES
    forms = {plain, plain.replace("keras.", "tf.", 1)}  # tf.losses is tf.keras.losses
    return ", which is planned" if any(n in forms or n.startswith(plain + ".") for n in NAMES) else (
        ": a name that neither TensorFlow 2.21 nor Keras 3.15 has")


def say_missing(self, name):
    """The __getattr__ of classes whose AttributeErrors say what does the same, or is near."""
    if name.startswith("_"):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    from berth._missing_members import MissingMember
    raise MissingMember(self, name)


class NamesMissing(type):
    """The class of classes whose AttributeErrors of names that they lack say if those are planned."""

    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        raise AttributeError(unknown_name(f"{cls.__module__}.{cls.__name__}", name, vars(cls)))


def name_missing(module):
    """Makes the AttributeErrors of a module say more."""
    def missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(unknown_name(module.__name__, name, vars(module)))
    if "__getattr__" not in vars(module):
        module.__getattr__ = missing
    return module
