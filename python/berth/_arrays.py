"""tf.TensorArray: tensors by number, written one by one."""
from berth import _core
from berth._function import NeedsValues, inside_function
from berth._ops import fill, stack
from berth._strings import _of_text_too
from berth._structure import Composite
from berth._tensor import AnyShape as TensorShape, TensorSpec, TypeSpec, as_dtype, convert_to_tensor, float32, refuse, string

__all__ = ["TensorArray", "TensorArraySpec"]

_ops = _core.ops


class TensorArray(Composite):
    """Tensors of one dtype by number (tf.TensorArray): what loops write, to be stacked after them.

    size: how many there are; dynamic_size: more may be written; element_shape: their shape, where it
    is known; clear_after_read: what was read op by op may not be read again. In a traced function numbers
    that follow from values make the function run op by op. A traced function gets and gives the elements that were written.
    """

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,
                 handle=None, flow=None, infer_shape=True, element_shape=None,
                 colocate_with_first_write_call=True, name=None):
        refuse("TensorArray", handle=handle, flow=flow)
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._keeps = clear_after_read is False
        self._clears = not self._keeps and not inside_function()
        self._shape = None if element_shape is None else TensorShape(element_shape)
        self._infers = infer_shape
        self._all = [None] * (0 if size is None else int(size))
        self._written = None  # the shape of what was written last
        self.handle = self.flow = None

    def _parts(self):
        written = tuple(i for i, v in enumerate(self._all) if v is not None and v is not _READ)
        read = tuple(i for i, v in enumerate(self._all) if v is _READ)
        shape = None if self._shape is None else tuple(self._shape)
        how = self.dtype.name, len(self._all), self.dynamic_size, self._keeps, shape, self._infers, written, read
        return tuple(self._all[i] for i in written), lambda parts: _made(how, parts), ("array", *how)

    @property
    def element_shape(self):
        """The shape of the elements, as far as it is known."""
        known = next((t.shape for t in self._all if t is not None and t is not _READ), self._written)
        return self._shape if known is None or self._shape is not None else known

    def size(self, name=None):
        """How many elements there are, int32 []."""
        return convert_to_tensor(len(self._all), _core.int32)

    def write(self, index, value, name=None):
        """Sets element `index`, and returns the array; OutOfRangeError past the end of one of fixed size."""
        at = int(index)
        if at < 0 or (at >= len(self._all) and not self.dynamic_size):
            raise _core.OutOfRangeError(
                f"TensorArray.write: index {at} of {len(self._all)} elements; dynamic_size=True lets it grow")
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        if value.dtype != self.dtype:
            raise _core.InvalidArgumentError(f"TensorArray.write: the value is {value.dtype.name}, the array "
                                             f"{self.dtype.name}; tf.cast changes dtypes")
        shape = self._shape if self._shape is not None else self.element_shape if self._infers else None
        if shape is not None and not shape.is_compatible_with(value.shape):
            raise ValueError(f"TensorArray.write: the value has the shape {value.shape}, the others {shape}")
        self._all += [None] * (at + 1 - len(self._all))
        self._all[at] = value
        self._written = value.shape
        return self

    def read(self, index, name=None):
        """Element `index`; InvalidArgumentError of one that was read before, unless clear_after_read=False."""
        at = int(index)
        if not 0 <= at < len(self._all):
            raise _core.OutOfRangeError(f"TensorArray.read: index {at} of {len(self._all)} elements")
        if self._all[at] is _READ:
            raise _core.InvalidArgumentError(
                f"TensorArray: element {at} was read before; clear_after_read=False keeps what is read")
        value = self._element(at)
        if self._clears and not _core.traces_loop():
            self._all[at] = _READ
        return value

    def _element(self, at):
        value = self._all[at]
        if value is None or value is _READ:  # zeros, as in TensorFlow
            shape = self.element_shape
            if shape is None or not shape.is_fully_defined():
                raise _core.InvalidArgumentError(f"TensorArray: element {at} was not written")
            value = _zeros(shape, self.dtype)
            if self._all[at] is _READ:
                self._all[at] = value
        return value

    def _elements(self):
        return [self._element(i) for i in range(len(self._all))]

    def stack(self, name=None):
        """All elements as one tensor [size, ...]."""
        if not self._all:
            return _zeros([0, *(self._shape or [])], self.dtype)
        return stack(self._elements())

    def concat(self, name=None):
        """All elements one after the other along their first axis."""
        return _of_text_too(_ops.concat)(self._elements(), 0)

    def gather(self, indices, name=None):
        """The elements of these numbers as one tensor [n, ...]."""
        return stack([self._element(int(i)) for i in convert_to_tensor(indices).numpy()])

    def unstack(self, value, name=None):
        """Sets the elements to the rows of a tensor [n, ...], and returns the array."""
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        rows = _of_text_too(_ops.unstack)(value)
        return self.scatter(range(len(rows)), rows)

    def scatter(self, indices, value, name=None):
        """Sets element indices[i] to value[i] for all i, and returns the array."""
        rows = value if isinstance(value, list) else _of_text_too(_ops.unstack)(
            convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype))
        for i, row in zip(indices if isinstance(indices, range) else convert_to_tensor(indices).numpy(), rows):
            grows, self.dynamic_size = self.dynamic_size, self.dynamic_size or len(rows) > len(self._all) == 0
            self.write(int(i), row)
            self.dynamic_size = grows
        return self

    def split(self, value, lengths, name=None):
        """Sets element i to the next lengths[i] rows of value, and returns the array."""
        sizes = [int(n) for n in convert_to_tensor(lengths).numpy()]
        self._infers = self._infers and len(set(sizes)) < 2
        return self.scatter(range(len(sizes)), list(_of_text_too(_ops.split)(value, sizes, axis=0)))

    def identity(self):
        """The array itself."""
        return self

    def close(self, name=None):
        """Forgets the elements."""
        self._all = []

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        shape = "any shape" if self.element_shape is None else f"shape={self.element_shape}"
        return f"<TensorArray of {len(self._all)} elements, dtype={self.dtype.name}, {shape}>"

    def staged(self):
        """What a loop or a branch on tensors does with it in a trace."""
        raise NeedsValues("a TensorArray is written in a loop, or a branch, on tensors")


_READ = object()


def _zeros(shape, dtype):
    return fill(shape, "") if dtype == string else _ops.zeros(shape, dtype)


def _made(how, parts):
    """The array, or the spec of one, of elements or of their specs."""
    dtype, size, dynamic, keeps, shape, infers, written, read = how
    if any(isinstance(p, TensorSpec) for p in parts):
        return TensorArraySpec(shape, dtype, dynamic, infers)
    out = TensorArray(dtype, size, dynamic, not keeps, infer_shape=infers, element_shape=shape)
    for i, value in [*zip(written, parts), *((i, _READ) for i in read)]:
        out._all[i] = value
    return out


class TensorArraySpec(TypeSpec):
    """What a TensorArray holds (tf.TensorArraySpec): the shape of its elements, None: any, their dtype, and whether it grows."""

    value_type = TensorArray

    def __init__(self, element_shape=None, dtype=float32, dynamic_size=False, infer_shape=True):
        self._spec = TensorSpec(element_shape, dtype)
        self._how = bool(dynamic_size), bool(infer_shape)

    @classmethod
    def from_value(cls, value):
        """The spec of a TensorArray."""
        return cls(value._shape, value.dtype, value.dynamic_size, value._infers)

    def is_compatible_with(self, spec_or_value):
        """True of an array, or the spec of one, that has this dtype, grows alike and may have elements of this shape."""
        other = spec_or_value
        other = TensorArraySpec.from_value(other) if isinstance(other, TensorArray) else other
        if not isinstance(other, TensorArraySpec) or (self._spec.dtype, *self._how) != (other._spec.dtype, *other._how):
            return False
        shapes = self._spec.shape, other._spec.shape
        return any(s.rank is None for s in shapes) or shapes[0].is_compatible_with(shapes[1])

    def __eq__(self, other):
        return isinstance(other, TensorArraySpec) and (self._spec, self._how) == (other._spec, other._how)

    def __hash__(self):
        return hash((self._spec, self._how))

    def __repr__(self):
        return f"TensorArraySpec({self._spec.shape!r}, tf.{self._spec.dtype.name}, {self._how[0]}, {self._how[1]})"
