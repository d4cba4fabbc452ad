"""tf.experimental.DynamicRaggedShape and RowPartition: how long rows are, without their values."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, int64

_np = Lazy("numpy")
ragged = Lazy("berth.ragged")


class RowPartition:
    """Where rows begin and end, as row_splits int64 [rows + 1]."""

    def __init__(self, row_splits, uniform_row_length=None):
        self._splits, self._uniform = _np.asarray(row_splits, "int64"), uniform_row_length

    from_row_splits = classmethod(lambda cls, row_splits, **_: cls(convert_to_tensor(row_splits).numpy()))
    from_row_lengths = classmethod(lambda cls, row_lengths, **_: cls(ragged._splits(row_lengths)))
    from_uniform_row_length = classmethod(lambda cls, uniform_row_length, nvals=None, nrows=None, **_: cls(
        _np.arange((int(nvals) // int(uniform_row_length) if nrows is None else int(nrows)) + 1) * int(uniform_row_length),
        int(uniform_row_length)))
    from_value_rowids = classmethod(lambda cls, value_rowids, nrows=None, **_: cls(ragged.RaggedTensor.from_value_rowids(
        _np.zeros(len(value_rowids)), value_rowids, nrows)._rows()))
    dtype = int64
    uniform_row_length = property(lambda self: self._uniform)

    def nrows(self):
        return convert_to_tensor(len(self._splits) - 1, int64)

    def nvals(self):
        return convert_to_tensor(int(self._splits[-1]), int64)

    def row_splits(self):
        return convert_to_tensor(self._splits)

    def row_lengths(self):
        return convert_to_tensor(_np.diff(self._splits))

    def value_rowids(self):
        return ragged.row_splits_to_segment_ids(self._splits)

    def __repr__(self):
        return f"tf.RowPartition(row_splits={self._splits.tolist()})"


class DynamicRaggedShape:
    """The shape of a RaggedTensor: partitions of the rows, and the shape of the flat values."""

    def __init__(self, row_partitions, inner_shape, dtype=None, validate=False, static_inner_shape=None):
        self._parts = list(row_partitions)
        self._inner = [int(n) for n in convert_to_tensor(inner_shape).numpy()]

    @classmethod
    def from_tensor(cls, t, dtype=None):
        parts = [RowPartition(s.numpy()) for s in getattr(t, "nested_row_splits", ())]
        return cls(parts, getattr(t, "flat_values", t).shape.as_list())

    @classmethod
    def from_lengths(cls, lengths, num_row_partitions=None, dtype=None):
        """Of a number for an axis that is equal everywhere, and a tuple with the length of each row for another."""
        lengths = list(lengths)
        last = max((i for i, n in enumerate(lengths) if isinstance(n, (list, tuple))), default=0)
        parts, rows = [], lengths[0]
        for n in lengths[1:last + 1]:
            parts.append(RowPartition.from_row_lengths(n) if isinstance(n, (list, tuple)) else
                         RowPartition.from_uniform_row_length(n, nrows=rows))
            rows = int(parts[-1]._splits[-1])
        return cls(parts, [rows, *lengths[last + 1:]])

    row_partitions = property(lambda self: tuple(self._parts))
    num_row_partitions = property(lambda self: len(self._parts))
    inner_shape = property(lambda self: convert_to_tensor(_np.asarray(self._inner, "int64")))
    rank = property(lambda self: len(self._parts) + len(self._inner))
    dtype = int64

    def static_lengths(self, ragged_lengths=True):
        """[rows, the lengths of the rows of each axis ..., inner lengths ...]."""
        if not self._parts:
            return list(self._inner)
        out = [len(self._parts[0]._splits) - 1]
        for p in self._parts:
            out.append(p._uniform if p._uniform is not None else tuple(_np.diff(p._splits).tolist()) if ragged_lengths else None)
        return out + self._inner[1:]

    def is_uniform(self, axis):
        return not isinstance(self.static_lengths()[axis], tuple)

    def num_slices_in_dimension(self, axis):
        return convert_to_tensor(self._inner[0] if axis == len(self._parts) else len(self._parts[axis]._splits) - 1, int64)

    def __getitem__(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(self.rank)
            if start != 0 or step != 1:
                raise ValueError("DynamicRaggedShape: slices begin with the first axis")
            n = min(stop, self.rank)
            if n <= len(self._parts):
                parts = self._parts[:max(n - 1, 0)]
                rows = len(self._parts[n - 1]._splits) - 1 if n else 0
                return DynamicRaggedShape(parts, [rows] if n else [])
            return DynamicRaggedShape(self._parts, self._inner[:n - len(self._parts)])
        length = self.static_lengths()[key]
        if isinstance(length, tuple):
            raise ValueError(f"Index {key} is not uniform")
        return convert_to_tensor(length, int64)

    def _filled(self, flat):
        return ragged.RaggedTensor.from_nested_row_splits(flat, [p._splits for p in self._parts], validate=False)

    def __eq__(self, other):
        return isinstance(other, DynamicRaggedShape) and self.static_lengths() == other.static_lengths()

    __hash__ = None

    def __repr__(self):
        parts = "" if not self._parts else f" num_row_partitions={len(self._parts)}"
        return f"<DynamicRaggedShape lengths={self.static_lengths()}{parts}>"


def filled(shape, fn):
    """fn(inner_shape) in the rows of the shape."""
    return shape._filled(fn(shape._inner))


def reshape(tensor, shape):
    flat = tensor.flat_values if isinstance(tensor, ragged.RaggedTensor) else convert_to_tensor(tensor)
    import berth
    return shape._filled(berth.reshape(flat, shape._inner))


def broadcast_to(x, shape):
    """A tensor, or a ragged one with these rows, repeated to fill the shape."""
    rows = shape._filled(_core.ops.zeros(shape._inner, _core.int32))
    if not shape._parts:
        return _core.ops.broadcast_to(x, shape._inner)
    from berth._ragged_ops import _binary
    return _binary(lambda r, v: _core.ops.broadcast_to(v, r.shape), rows, x)
