"""tf.train.Example: named lists of numbers or bytes, in the bytes of protocol buffers."""
import struct

from berth._core import DataLossError


def _varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def _field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _read_varint(data, at):
    n = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DataLossError("tf.train: these bytes are no message, or end too early")
        n |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return n, at


def _fields(data):
    """(number, value) of a message: bytes, or a whole number."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                size, at = _read_varint(data, at)
            value, at = data[at:at + size], at + size
            if kind not in (1, 2, 5) or at > len(data):
                raise DataLossError("tf.train: these bytes are no message, or end too early")
        yield key >> 3, value


class _Message:
    """What all messages can."""

    def ParseFromString(self, serialized):
        """Becomes the message of these bytes; DataLossError of bytes that are none. Returns their number."""
        self.__init__()
        self._read(bytes(serialized))
        return len(serialized)

    @classmethod
    def FromString(cls, serialized):
        """The message of bytes that SerializeToString() gave."""
        made = cls()
        made.ParseFromString(serialized)
        return made

    def ByteSize(self):
        """How many bytes SerializeToString() gives."""
        return len(self.SerializeToString())

    def SerializePartialToString(self):
        """SerializeToString(): no field is required."""
        return self.SerializeToString()

    def IsInitialized(self):
        """True: no field is required."""
        return True

    def Clear(self):
        """Becomes the empty message."""
        self.__init__()

    def CopyFrom(self, other_msg):
        """Becomes equal to a message of its class."""
        self.Clear()
        self.MergeFrom(other_msg)

    def MergeFrom(self, other_msg):
        """Appends the values of another message's lists, and takes what it has by names."""
        if type(other_msg) is not type(self):
            raise TypeError(f"{other_msg!r} is no {type(self).__name__}")
        self.MergeFromString(other_msg.SerializeToString())

    def MergeFromString(self, serialized):
        """MergeFrom() of the message of these bytes. Returns their number."""
        self._read(bytes(serialized))
        return len(serialized)

    def __eq__(self, other):
        return type(other) is type(self) and other.SerializeToString() == self.SerializeToString()

    def __repr__(self):
        return "".join(line + "\n" for line in self._lines())

    def _lines(self):
        """The message as text of protocol buffers."""
        return []


class _List(_Message):
    def __init__(self, value=()):
        self.value = [self._checked(v) for v in value]

    def _lines(self):
        return [f"value: {self._shown(v)}" for v in self.value]

    _shown = staticmethod(repr)


class Int64List(_List):
    """value: whole numbers."""

    @staticmethod
    def _checked(v):
        return v.__index__()

    def SerializeToString(self):
        """The bytes of the message."""
        return _field(1, b"".join(map(_varint, self.value))) if self.value else b""

    def _read(self, data):
        for _, value in _fields(data):
            at = 0
            while not isinstance(value, int) and at < len(value):
                n, at = _read_varint(value, at)
                self.value.append(n - (1 << 64) if n >> 63 else n)
            if isinstance(value, int):
                self.value.append(value - (1 << 64) if value >> 63 else value)


class FloatList(_List):
    """value: numbers, kept as float32."""

    @staticmethod
    def _checked(v):
        return struct.unpack("<f", struct.pack("<f", float(v)))[0]

    def SerializeToString(self):
        """The bytes of the message."""
        return _field(1, struct.pack(f"<{len(self.value)}f", *self.value)) if self.value else b""

    def _read(self, data):
        for _, value in _fields(data):
            self.value.extend(struct.unpack(f"<{len(value) // 4}f", value))


class BytesList(_List):
    """value: bytes."""

    @staticmethod
    def _checked(v):
        if isinstance(v, str):
            raise TypeError(f"{v!r} is text; a BytesList takes bytes: text.encode()")
        return bytes(v.numpy() if hasattr(v, "numpy") else v)

    def SerializeToString(self):
        """The bytes of the message."""
        return b"".join(_field(1, v) for v in self.value)

    def _read(self, data):
        self.value.extend(value for _, value in _fields(data))

    _shown = staticmethod(lambda v: '"' + repr(v)[2:-1].replace('"', '\\"') + '"')


class Feature(_Message):
    """One of bytes_list, float_list and int64_list."""

    _KINDS = {"bytes_list": (1, BytesList), "float_list": (2, FloatList), "int64_list": (3, Int64List)}

    def __init__(self, bytes_list=None, float_list=None, int64_list=None):
        given = {"bytes_list": bytes_list, "float_list": float_list, "int64_list": int64_list}
        self._kind = next((k for k, v in given.items() if v is not None), None)
        for name, (_, kind) in self._KINDS.items():
            setattr(self, name, kind() if given[name] is None else given[name])

    def HasField(self, field_name):
        """Whether it is this list that is set."""
        if field_name not in self._KINDS:
            raise ValueError(f"a Feature has no {field_name!r}; it has {', '.join(self._KINDS)}")
        return self.WhichOneof() == field_name

    def WhichOneof(self, group="kind"):
        """The name of the list that is set, or None."""
        return self._kind or next((k for k in self._KINDS if getattr(self, k).value), None)

    def SerializeToString(self):
        """The bytes of the message."""
        kind = self.WhichOneof()
        return b"" if kind is None else _field(self._KINDS[kind][0], getattr(self, kind).SerializeToString())

    def _read(self, data):
        names = {number: name for name, (number, _) in self._KINDS.items()}
        for number, value in _fields(data):
            if number in names:
                self._kind = names[number]
                for name, (_, kind) in self._KINDS.items():
                    if name != self._kind:
                        setattr(self, name, kind())
                getattr(self, self._kind)._read(value)

    def _lines(self):
        kind = self.WhichOneof()
        return [] if kind is None else [f"{kind} {{", *("  " + s for s in getattr(self, kind)._lines()), "}"]


class _Parts(dict):
    """Messages by name; the one of a new name is made when it is asked for."""

    def __init__(self, kind, parts):
        super().__init__(parts or {})
        self._kind = kind

    def __missing__(self, name):
        return self.setdefault(name, self._kind())


class _ByName(_Message):
    """A message whose one field, `_field_name`, is a dictionary of messages, `_kind`, by name."""

    def _parts(self):
        return getattr(self, self._field_name)

    def SerializeToString(self):
        """The bytes of the message."""
        return b"".join(_field(1, _field(1, name.encode()) + _field(2, f.SerializeToString()))
                        for name, f in sorted(self._parts().items()))

    def _read(self, data):
        for _, entry in _fields(data):
            parts = dict(_fields(entry))
            self._parts()[parts.get(1, b"").decode()] = self._kind.FromString(parts.get(2, b""))

    def _lines(self):
        return [line for name, f in sorted(self._parts().items()) for line in [
            f"{self._field_name} {{", f'  key: "{name}"', "  value {", *("    " + s for s in f._lines()), "  }", "}"]]


class Features(_ByName):
    """feature: a dictionary of Features by name."""

    _field_name, _kind = "feature", Feature

    def __init__(self, feature=None):
        self.feature = _Parts(Feature, feature)


class Example(_Message):
    """features: named lists; what parse_single_example() takes apart and a TFRecordWriter writes."""

    def __init__(self, features=None):
        self.features = features or Features()

    def SerializeToString(self):
        """The bytes of the message."""
        return _field(1, self.features.SerializeToString()) if self.features.feature else b""

    def _read(self, data):
        for _, value in _fields(data):
            self.features._read(value)

    def _lines(self):
        return ["features {", *("  " + s for s in self.features._lines()), "}"]
