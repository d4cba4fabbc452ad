"""Tensors as bytes of protocol buffers (TensorProto), which TensorFlow reads and writes as well."""
import struct

import numpy as np
from berth import _core
from berth._example import _field, _fields, _Message, _read_varint, _varint
from berth._tensor import _DTYPES, AnyShape as TensorShape, as_dtype, convert_to_tensor, string

# dtype: (its number in these files, the list of values, that list's number, what packs a value there; "v" is a varint)
_OF = {"float32": (1, "float_val", 5, "f"), "float64": (2, "double_val", 6, "d"), "int32": (3, "int_val", 7, "v"),
       "uint8": (4, "int_val", 7, "v"), "int16": (5, "int_val", 7, "v"), "int8": (6, "int_val", 7, "v"),
       "string": (7, "string_val", 8, None), "complex64": (8, "scomplex_val", 9, "f"), "int64": (9, "int64_val", 10, "v"),
       "bool": (10, "bool_val", 11, "v"), "bfloat16": (14, "half_val", 13, "v"), "uint16": (17, "int_val", 7, "v"),
       "complex128": (18, "dcomplex_val", 12, "d"), "float16": (19, "half_val", 13, "v"),
       "uint32": (22, "uint32_val", 16, "v"), "uint64": (23, "uint64_val", 17, "v")}
_BY_NUMBER = {row[0]: as_dtype(name) for name, row in _OF.items()}
_LISTS = {row[2]: (row[1], row[3]) for row in _OF.values()}


def _refused(what):
    raise _core.InvalidArgumentError(f"TensorProto: {what}")


class TensorProto(_Message):
    """dtype (a number), tensor_shape, and the values: the bytes tensor_content, or a list such as float_val."""

    def __init__(self, dtype=0, tensor_shape=None, tensor_content=b"", **lists):
        known = [name for name, _ in _LISTS.values()]
        for name in lists:
            if name not in known:
                raise ValueError(f"TensorProto has no field '{name}'; it has dtype, tensor_shape, tensor_content, "
                                 f"{', '.join(dict.fromkeys(known))}")
        self.dtype, self.tensor_shape, self.tensor_content = dtype, TensorShape(tensor_shape or []), tensor_content
        for name in known:
            setattr(self, name, list(lists.get(name, ())))

    def SerializeToString(self):
        """The bytes of the message."""
        shape = b"".join(_field(2, _varint(8) + _varint(n) if n else b"") for n in self.tensor_shape.as_list())
        out = (_varint(8) + _varint(self.dtype) if self.dtype else b"") + _field(2, shape)
        out += _field(4, self.tensor_content) if self.tensor_content else b""
        for number, (name, code) in sorted(_LISTS.items()):
            values = getattr(self, name)
            if code is None:
                out += b"".join(_field(number, v) for v in values)
            elif values:
                out += _field(number, b"".join(map(_varint, values)) if code == "v"
                              else struct.pack(f"<{len(values)}{code}", *values))
        return out

    def _read(self, data):
        dims = []
        for number, value in _fields(data):
            if number == 1:
                self.dtype = value
            elif number == 2:
                dims += [_size(dim) for n, dim in _fields(value) if n == 2]
            elif number == 4:
                self.tensor_content = value
            elif number in _LISTS:
                name, code = _LISTS[number]
                getattr(self, name).extend([value] if code is None or isinstance(value, int) else _unpacked(value, code))
        if any(n < 0 for n in dims):
            _refused(f"the shape is {dims}; expected sizes from 0")
        self.tensor_shape = TensorShape(dims)

    def _lines(self):
        out = [f"dtype: {_BY_NUMBER[self.dtype].name}" if self.dtype in _BY_NUMBER else f"dtype: {self.dtype}",
               f"tensor_shape: {self.tensor_shape.as_list()}"]
        out += [f"tensor_content: {self.tensor_content!r}"] if self.tensor_content else []
        return out + [f"{name}: {v!r}" for name, _ in _LISTS.values() for v in getattr(self, name)]


def _size(dim):
    n = dict(_fields(dim)).get(1, 0)
    return n - (1 << 64) if n >> 63 else n


def _unpacked(data, code):
    if code != "v":
        return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)
    out, at = [], 0
    while at < len(data):
        n, at = _read_varint(data, at)
        out.append(n - (1 << 64) if n >> 63 else n)
    return out


def _array_of(values, dtype, shape):
    """What make_tensor_proto() is given as an array, with its DType."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "SUO" or isinstance(values, (str, bytes)):
        tensor = convert_to_tensor(values)
    else:
        tensor = values if hasattr(values, "_array") else convert_to_tensor(values, dtype)
    if dtype is not None and tensor.dtype != as_dtype(dtype):
        raise TypeError(f"make_tensor_proto: the values are {tensor.dtype.name}, not {as_dtype(dtype).name}")
    array = np.asarray(tensor._array())
    return (array if shape is None else array.reshape(shape)), tensor.dtype


def make_tensor_proto(values, dtype=None, shape=None, verify_shape=False, allow_broadcast=False):
    """A TensorProto of a value: its SerializeToString() is what TensorFlow reads.

    shape: another shape of as many elements; with allow_broadcast one that the values are repeated to, while verify_shape asks
    for the very shape.
    """
    array, dtype = _array_of(values, dtype, None)
    if shape is not None:
        sizes = [int(n) for n in shape]
        if verify_shape and list(array.shape) != sizes:
            raise TypeError(f"make_tensor_proto: the values have shape {list(array.shape)}; expected {sizes}")
        if allow_broadcast and array.size != int(np.prod(sizes)):
            array = np.broadcast_to(array, sizes)
        elif array.size != int(np.prod(sizes)) and array.size != 1:
            raise ValueError(f"make_tensor_proto: {array.size} values do not make the shape {sizes}")
        else:
            array = np.broadcast_to(array.ravel(), [int(np.prod(sizes))]).reshape(sizes)
    return _proto(array, dtype, array.size == 1)


def _proto(array, dtype, as_list):
    number, name, _, code = _OF[dtype.name]
    made = TensorProto(number, list(array.shape))
    if dtype == string:
        made.string_val = [v if isinstance(v, bytes) else str(v).encode() for v in array.ravel().tolist()]
    elif not as_list:
        made.tensor_content = np.ascontiguousarray(array).tobytes()
    elif name == "half_val":
        made.half_val = array.ravel().view(np.uint16).tolist()
    elif dtype.is_complex:
        setattr(made, name, [part for v in array.ravel().tolist() for part in (v.real, v.imag)])
    else:
        setattr(made, name, [int(v) if code == "v" else v for v in array.ravel().tolist()])
    return made


def make_ndarray(tensor):
    """The array of a TensorProto; that of text has bytes as its elements."""
    if not isinstance(tensor, TensorProto):
        raise TypeError(f"make_ndarray(): 'tensor' must be a TensorProto, not a {type(tensor).__name__}; make_tensor_proto() "
                        "makes one")
    dtype = _BY_NUMBER.get(tensor.dtype)
    if dtype is None:
        raise TypeError(f"make_ndarray: the dtype has the number {tensor.dtype}, which Berth does not have; expected one of "
                        f"{', '.join(d.name for d in _DTYPES)}")
    shape, kind = tensor.tensor_shape.as_list(), dtype.as_numpy_dtype
    count = int(np.prod(shape, dtype="int64"))
    if tensor.tensor_content:
        if len(tensor.tensor_content) != count * np.dtype(kind).itemsize:
            _refused(f"{len(tensor.tensor_content)} bytes of values; expected {count * np.dtype(kind).itemsize}, those of "
                     f"{dtype.name} {shape}")
        return np.frombuffer(tensor.tensor_content, kind).reshape(shape).copy()
    name = _OF[dtype.name][1]
    values = list(getattr(tensor, name))
    if dtype.is_complex:
        values = [complex(*pair) for pair in zip(values[::2], values[1::2])]
    if len(values) > count:
        _refused(f"{len(values)} values; expected at most {count}, those of the shape {shape}")
    if count - len(values) > 1 << 31:
        _refused(f"the shape {shape} is too large")
    values += [values[-1] if values else b"" if dtype == string else 0] * (count - len(values))
    if dtype == string:
        array = np.empty(count, object)
        array[:] = values
        return array.reshape(shape)
    if name == "half_val":
        return np.array(values, np.uint16).view(kind).reshape(shape)
    return np.array(values).astype(kind).reshape(shape)


def serialize_tensor(tensor, name=None):
    """The bytes of a TensorProto, a scalar of text: a file of TensorFlow's, too."""
    tensor = convert_to_tensor(tensor)
    return convert_to_tensor(serialized(tensor._array(), tensor.dtype), string)


def serialized(array, dtype):
    return _proto(np.asarray(array), dtype, False).SerializeToString()


def parse_tensor(serialized, out_type, name=None):
    """The tensor that serialize_tensor() made bytes of; InvalidArgumentError of bytes that are none, and of another dtype."""
    return parsed(convert_to_tensor(serialized, string)._array().item(), as_dtype(out_type), "parse_tensor")


def parsed(data, dtype, function):
    try:
        proto = TensorProto.FromString(data)
    except (_core.DataLossError, struct.error, TypeError, AttributeError):
        raise _core.InvalidArgumentError(f"{function}: these {len(data)} bytes are no TensorProto; expected what "
                                         "tf.io.serialize_tensor() gives") from None
    found = _BY_NUMBER.get(proto.dtype)
    if found != dtype:
        raise _core.InvalidArgumentError(f"{function}: the bytes hold {found.name if found else proto.dtype}; out_type is "
                                         f"{dtype.name}")
    return convert_to_tensor(make_ndarray(proto), dtype)
