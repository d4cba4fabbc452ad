"""tf.ragged: rows of different lengths, as values and the places where rows begin."""
import builtins

from berth import _core
from berth._tensor import convert_to_tensor, int64, refuse, string

_ops = _core.ops


class RaggedTensor:
    """values, a tensor or another RaggedTensor, in rows row_splits[i] to row_splits[i + 1]."""

    def __init__(self, values, row_splits):
        self.values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        self.row_splits = _ops.math.cast(convert_to_tensor(row_splits), int64)

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        made = cls(values, row_splits)
        splits = made.row_splits.numpy().tolist() if validate else [0, len(made.values)]
        if splits != sorted(splits) or not splits or splits[0] != 0 or splits[-1] != len(made.values):
            raise _core.InvalidArgumentError(f"ragged: row_splits are {splits[:8]}; expected numbers that grow from 0 "
                                             f"to {len(made.values)}, the number of values")
        return made

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        import numpy
        lengths = convert_to_tensor(row_lengths).numpy()
        splits = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype("int64")
        return cls.from_row_splits(values, splits, name, validate)

    @classmethod
    def from_tensor(cls, tensor, name=None):
        t = convert_to_tensor(tensor)
        rows, columns = t.shape[0], t.shape[1]
        return cls(_ops.reshape(t, [rows * columns, *t.shape.as_list()[2:]]),
                   [i * columns for i in range(rows + 1)])

    dtype = property(lambda self: self.values.dtype)
    flat_values = property(lambda self: self.values.flat_values if isinstance(
        self.values, RaggedTensor) else self.values)
    ragged_rank = property(lambda self: 1 + (self.values.ragged_rank if isinstance(
        self.values, RaggedTensor) else 0))

    @property
    def shape(self):
        inner = self.values.shape.as_list()[1:]
        return _core.TensorShape([self.nrows(), None, *inner])

    get_shape = lambda self: self.shape  # noqa: E731

    def nrows(self, out_type=None, name=None):
        rows = self.row_splits.shape[0] - 1
        return rows if out_type is None else convert_to_tensor(rows, out_type)

    __len__ = nrows

    def row_lengths(self, axis=1, name=None):
        refuse("row_lengths", axis=None if axis == 1 else axis)
        return self.row_splits[1:] - self.row_splits[:-1]

    def __getitem__(self, key):
        """A row; a slice of rows; or (rows, what of each row)."""
        if isinstance(key, tuple):
            rows, inner = self[key[0]], key[1] if len(key) == 2 else key[1:]
            return rows[inner] if isinstance(key[0], int) else constant(
                [_list_of(row[inner]) for row in rows], self.dtype)
        if isinstance(key, slice):
            return constant([_list_of(self[i]) for i in builtins.range(self.nrows())[key]], self.dtype)
        at = key + self.nrows() if key < 0 else key
        if not 0 <= at < self.nrows():
            raise IndexError(f"index {key} is out of range: there are {self.nrows()} rows")
        begin, end = (int(n) for n in self.row_splits.numpy()[at:at + 2])
        if self.dtype == string and not isinstance(self.values, RaggedTensor):
            return convert_to_tensor(self.values.numpy()[begin:end])  # text is on the host
        return self.values[begin:end]

    def __iter__(self):
        return (self[i] for i in builtins.range(self.nrows()))

    def to_list(self):
        """Nested lists of Python."""
        return [_list_of(row) for row in self]

    def numpy(self):
        import numpy
        return numpy.array([numpy.asarray(row.numpy()) for row in self] + [None], dtype=object)[:-1]

    def to_tensor(self, default_value=None, name=None, shape=None):
        """The tensor in which short rows are filled up with zeros or default_value."""
        import numpy
        refuse("to_tensor", shape=shape)
        rows = [row.to_tensor(default_value) if isinstance(row, RaggedTensor) else row for row in self]
        arrays = [row.numpy() for row in rows]
        longest = [max((a.shape[i] for a in arrays), default=0) for i in builtins.range(arrays[0].ndim)] if arrays else [0]
        fill = (b"" if self.dtype.name == "string" else 0) if default_value is None else default_value
        out = numpy.full([len(arrays), *longest], fill, dtype=arrays[0].dtype if arrays else None)
        for i, a in enumerate(arrays):
            out[(i, *(slice(0, n) for n in a.shape))] = a
        return convert_to_tensor(out)

    def with_values(self, new_values):
        return RaggedTensor(new_values, self.row_splits)

    def __repr__(self):
        return f"<tf.RaggedTensor {self.to_list()}>"

    __str__ = __repr__


def _list_of(row):
    return row.to_list() if isinstance(row, RaggedTensor) else row.numpy().tolist()


def _elementwise(name):
    import operator

    def method(self, other):
        apply = getattr(operator, name)
        return self.with_values(apply(self.values, other.values if isinstance(other, RaggedTensor) else other))
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(RaggedTensor, f"__{_name}__", _elementwise(_name))


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=int64):
    """A RaggedTensor of nested lists, each list a row."""
    refuse("ragged.constant", inner_shape=inner_shape)
    depth = _depth(pylist)
    if depth < 2:
        return convert_to_tensor(pylist, dtype)

    def made(rows, left):
        if left == 1:
            return convert_to_tensor(rows, dtype) if rows else _ops.zeros([0], dtype or _core.float32)
        splits = [0]
        for row in rows:
            splits.append(splits[-1] + len(row))
        return RaggedTensor(made([v for row in rows for v in row], left - 1), splits)
    return made(list(pylist), depth if ragged_rank is None else ragged_rank + 1)


def _depth(value):
    if not isinstance(value, (list, tuple)):
        return 0
    return 1 + max((_depth(v) for v in value), default=0)


def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=int64):
    """Rows start, start + delta, ..."""
    import numpy
    starts, limits = ([0], starts) if limits is None else (starts, limits)
    a, b = numpy.broadcast_arrays(numpy.asarray(starts), numpy.asarray(limits))
    return constant([list(builtins.range(int(x), int(y), int(deltas))) for x, y in zip(a, b)], dtype)
