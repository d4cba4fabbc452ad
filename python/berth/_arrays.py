"""tf.TensorArray: tensors by number, written one by one."""
from berth import _core
from berth._function import NeedsValues, inside_function
from berth._tensor import TensorShape, as_dtype, convert_to_tensor, refuse

__all__ = ["TensorArray"]

_ops = _core.ops


class TensorArray:
    """Tensors of one dtype by number (tf.TensorArray): what loops write, to be stacked after them.

    size: how many there are; dynamic_size: more may be written; element_shape: their shape, where it
    is known; clear_after_read: what was read op by op may not be read again. In a traced function numbers
    that follow from values make the function run op by op.
    """

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,
                 handle=None, flow=None, infer_shape=True, element_shape=None,
                 colocate_with_first_write_call=True, name=None):
        refuse("TensorArray", handle=handle, flow=flow)
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._clears = clear_after_read is not False and not inside_function()
        self._shape = None if element_shape is None else TensorShape(element_shape)
        self._infers = infer_shape
        self._all = [None] * (0 if size is None else int(size))
        self.handle = self.flow = None

    @property
    def element_shape(self):
        """The shape of the elements, as far as it is known."""
        known = next((t.shape for t in self._all if t is not None and t is not _READ), None)
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
        return self

    def read(self, index, name=None):
        """Element `index`; InvalidArgumentError of one that was read before, unless clear_after_read=False."""
        at = int(index)
        if not 0 <= at < len(self._all):
            raise _core.OutOfRangeError(f"TensorArray.read: index {at} of {len(self._all)} elements")
        value = self._element(at)
        if self._clears and not _core.traces_loop():
            self._all[at] = _READ
        return value

    def _element(self, at):
        value = self._all[at]
        if value is _READ:
            raise _core.InvalidArgumentError(
                f"TensorArray: element {at} was read before; clear_after_read=False keeps what is read")
        if value is None:
            shape = self.element_shape
            if shape is None or not shape.is_fully_defined():
                raise _core.InvalidArgumentError(f"TensorArray: element {at} was not written")
            value = _ops.zeros(shape, self.dtype)
        return value

    def _elements(self):
        return [self._element(i) for i in range(len(self._all))]

    def stack(self, name=None):
        """All elements as one tensor [size, ...]."""
        if not self._all:
            return _ops.zeros([0, *(self._shape or [])], self.dtype)
        return _ops.stack(self._elements())

    def concat(self, name=None):
        """All elements one after the other along their first axis."""
        return _ops.concat(self._elements(), 0)

    def gather(self, indices, name=None):
        """The elements of these numbers as one tensor [n, ...]."""
        return _ops.stack([self._element(int(i)) for i in convert_to_tensor(indices).numpy()])

    def unstack(self, value, name=None):
        """Sets the elements to the rows of a tensor [n, ...], and returns the array."""
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        rows = _ops.unstack(value)
        return self.scatter(range(len(rows)), rows)

    def scatter(self, indices, value, name=None):
        """Sets element indices[i] to value[i] for all i, and returns the array."""
        rows = value if isinstance(value, list) else _ops.unstack(
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
        return self.scatter(range(len(sizes)), list(_ops.split(value, sizes, axis=0)))

    def identity(self):
        """The array itself."""
        return self

    def close(self, name=None):
        """Forgets the elements."""
        self._all = []

    def __deepcopy__(self, memo):
        return self

    def staged(self):
        """What a loop or a branch on tensors does with it in a trace."""
        raise NeedsValues("a TensorArray is written in a loop, or a branch, on tensors")


_READ = object()
