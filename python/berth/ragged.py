"""tf.ragged: rows of different lengths, as values and the places where rows begin.

What moves rows computes places on the host, and then gathers values once: gradients and text follow.
"""
import builtins

from berth import _core
from berth._lazy import Lazy
from berth._not_tensors import NotATensor as _NotATensor
from berth._structure import Composite
from berth._tensor import (TensorSpec, TypeSpec as _TypeSpec, as_dtype, convert_to_tensor, int64, refuse,
                           say_missing as _say_missing, string)

_ops = _core.ops
_np = Lazy("numpy")
_crosses = Lazy("berth._crosses")


def _made(key):
    """Makes a RaggedTensor, or its spec, of values and splits."""
    def make(parts):
        if isinstance(parts[-1], TensorSpec):
            return RaggedTensorSpec._of(*parts)
        return RaggedTensor(*parts)
    return make, key


def _joined(parts, like):
    return _np.concatenate(parts) if parts else _np.zeros([0], like)


def _places(starts, stops):
    """The numbers from starts[i] to stops[i], one after the other."""
    return _joined([_np.arange(a, b) for a, b in zip(starts, stops)], "int64")


def _splits(lengths):
    return _np.concatenate([[0], _np.cumsum(_np.asarray(lengths, "int64"))]).astype("int64")


def _take(x, places):
    """The rows of a tensor, or a ragged one, at these places."""
    if not isinstance(x, RaggedTensor):
        from berth import gather
        if x.dtype == string or len(places):
            return gather(x, _np.asarray(places, "int64"))
        return _ops.zeros([0, *x.shape.as_list()[1:]], x.dtype)
    s = x._rows()
    starts, stops = s[:-1][places], s[1:][places]
    return RaggedTensor(_take(x.values, _places(starts, stops)), _splits(stops - starts))


class RaggedTensor(_NotATensor, Composite):
    """values, a tensor or another RaggedTensor, in rows row_splits[i] to row_splits[i + 1]."""

    __getattr__ = _say_missing

    __berth_advice__ = "its to_tensor() is one, with zeros at the ends of short rows, and its flat_values are one"

    def __init__(self, values, row_splits, uniform_row_length=None):
        self.values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        given = isinstance(row_splits, _core.Tensor) and row_splits.dtype == _core.int32
        self.row_splits = row_splits if given else _ops.math.cast(convert_to_tensor(row_splits), int64)
        self._uniform = uniform_row_length

    def _parts(self):
        return (self.values, self.row_splits), *_made("ragged")

    def _rows(self):
        if _core.is_open(self.row_splits):
            from berth._function import NeedsValues
            raise NeedsValues("the rows of a RaggedTensor follow from values")
        return self.row_splits.numpy()

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Rows values[row_splits[i]:row_splits[i + 1]]."""
        made = cls(values, row_splits)
        splits = made.row_splits.numpy().tolist() if validate else [0, len(made.values)]
        if splits != sorted(splits) or not splits or splits[0] != 0 or splits[-1] != len(made.values):
            raise _core.InvalidArgumentError(f"ragged: row_splits are {splits[:8]}; expected numbers that grow from 0 "
                                             f"to {len(made.values)}, the number of values")
        return made

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Rows of the given lengths, one after the other in values."""
        return cls.from_row_splits(values, _splits(convert_to_tensor(row_lengths).numpy()), name, validate)

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        """Rows by the number of the row, ascending, of each value."""
        ids = convert_to_tensor(value_rowids).numpy()
        rows = int(ids[-1]) + 1 if nrows is None and len(ids) else int(nrows or 0)
        if validate and ((_np.diff(ids) < 0).any() or (len(ids) and (ids[0] < 0 or ids[-1] >= rows))):
            raise _core.InvalidArgumentError(f"ragged: value_rowids are {ids[:8].tolist()}; expected numbers of rows below "
                                             f"{rows} that do not fall")
        return cls(values, _splits(_np.bincount(ids, minlength=rows)))

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Rows that begin at the given values."""
        values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        return cls.from_row_splits(values, _np.append(convert_to_tensor(row_starts).numpy(), len(values)), name, validate)

    @classmethod
    def from_row_limits(cls, values, row_limits, name=None, validate=True):
        """Rows that end before the given values."""
        return cls.from_row_splits(values, _np.append([0], convert_to_tensor(row_limits).numpy()), name, validate)

    @classmethod
    def from_uniform_row_length(cls, values, uniform_row_length, nrows=None, name=None, validate=True):
        """Rows of one length; nrows is needed where that is 0."""
        values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        n = int(uniform_row_length)
        rows = int(nrows or 0) if n == 0 else len(values) // n
        if validate and rows * n != len(values):
            raise _core.InvalidArgumentError(f"ragged: {len(values)} values are no rows of {n}")
        return cls(values, _np.arange(rows + 1) * n, n)

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        """A tensor with a ragged axis per list of splits, the outermost first."""
        for splits in reversed(nested_row_splits):
            flat_values = cls.from_row_splits(flat_values, splits, name, validate)
        return flat_values

    @classmethod
    def from_nested_row_lengths(cls, flat_values, nested_row_lengths, name=None, validate=True):
        """A tensor with a ragged axis per list of lengths, the outermost first."""
        for lengths in reversed(nested_row_lengths):
            flat_values = cls.from_row_lengths(flat_values, lengths, name, validate)
        return flat_values

    @classmethod
    def from_nested_value_rowids(cls, flat_values, nested_value_rowids, nested_nrows=None, name=None, validate=True):
        """Rows of rows, the outermost first, by the row of each value."""
        rows = nested_nrows or [None] * len(nested_value_rowids)
        for ids, n in reversed(list(zip(nested_value_rowids, rows))):
            flat_values = cls.from_value_rowids(flat_values, ids, n, validate=validate)
        return flat_values

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=int64):
        """The rows of a tensor, without what stands after `lengths`, or without the `padding` at their ends."""
        if row_splits_dtype != int64:
            return cls.from_tensor(tensor, lengths, padding, ragged_rank).with_row_splits_dtype(row_splits_dtype)
        t = convert_to_tensor(tensor)
        if isinstance(lengths, (list, tuple)) and lengths and _np.ndim(lengths[0]):  # of several axes
            outer = cls.from_tensor(t, lengths[0])
            return outer if len(lengths) == 1 else outer.with_values(cls.from_tensor(outer.values, lengths[1:]))
        if ragged_rank > 1:
            inner = cls.from_tensor(_ops.reshape(t, [-1, *t.shape.as_list()[2:]]), lengths, padding, ragged_rank - 1)
            return cls(inner, _np.arange(t.shape[0] + 1) * t.shape[1], t.shape[1])
        rows, columns = t.shape[0], t.shape[1]
        flat = _ops.reshape(t, [rows * columns, *t.shape.as_list()[2:]]) if t.dtype != string else convert_to_tensor(
            t.numpy().reshape(-1, *t.shape.as_list()[2:]))
        if padding is not None:
            differs = t.numpy() != convert_to_tensor(padding, t.dtype).numpy()
            differs = differs.reshape(rows, columns, -1).any(-1)
            lengths = _np.where(differs.any(1), columns - differs[:, ::-1].argmax(1), 0)
        if lengths is None:
            return cls(flat, [i * columns for i in builtins.range(rows + 1)])
        lengths = _np.clip(convert_to_tensor(lengths).numpy(), 0, columns)
        starts = _np.arange(rows) * columns
        return cls(_take(flat, _places(starts, starts + lengths)), _splits(lengths))

    @classmethod
    def from_sparse(cls, st_input, name=None, row_splits_dtype=int64):
        """Rows of a SparseTensor of rank 2 whose values stand at the beginning of their rows."""
        at = st_input.indices.numpy()
        made = cls.from_value_rowids(st_input.values, at[:, 0], st_input.shape[0])
        if (at[:, 1] != _places(_np.zeros(len(made)), _np.diff(made._rows()))).any():
            raise _core.InvalidArgumentError("from_sparse: a row has a gap before a value; expected values at its beginning")
        return made.with_row_splits_dtype(row_splits_dtype)

    dtype = property(lambda self: self.values.dtype, doc="The dtype of the values.")
    flat_values = property(lambda self: self.values.flat_values if isinstance(
        self.values, RaggedTensor) else self.values, doc="The innermost values, a tensor.")
    ragged_rank = property(lambda self: 1 + (self.values.ragged_rank if isinstance(
        self.values, RaggedTensor) else 0), doc="How many axes have rows of different lengths.")
    nested_row_splits = property(lambda self: (self.row_splits, *(
        self.values.nested_row_splits if isinstance(self.values, RaggedTensor) else ())),
                                 doc="The splits of each ragged axis, the outermost first.")

    @property
    def shape(self):
        """The shape, with None for ragged axes."""
        inner = self.values.shape.as_list()[1:]
        return _core.TensorShape([self._count(), self._uniform, *inner])

    def get_shape(self):
        """The shape, with None for ragged axes."""
        return self.shape

    def _count(self):
        rows = self.row_splits.shape[0]
        return None if rows is None else rows - 1

    __len__ = _count

    def __bool__(self):
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def nrows(self, out_type=None, name=None):
        """The number of rows, a scalar tensor: int64, or of the dtype of the splits."""
        rows = self._count()
        return convert_to_tensor(_ops.shape(self.row_splits)[0] - 1 if rows is None else rows, out_type or self.row_splits.dtype)

    @property
    def uniform_row_length(self):
        """The length of every row as a scalar tensor; None where it may differ."""
        return None if self._uniform is None else convert_to_tensor(self._uniform, self.row_splits.dtype)

    def row_lengths(self, axis=1, name=None):
        """How long the rows are, int64 [rows]; of axis 2 and more as rows of those."""
        if axis > 1:
            return self.with_values(self.values.row_lengths(axis - 1))
        return self.row_splits[1:] - self.row_splits[:-1]

    def nested_row_lengths(self, name=None):
        """The lengths of the rows of each ragged axis, the outermost first."""
        return tuple(s[1:] - s[:-1] for s in self.nested_row_splits)

    def row_starts(self, name=None):
        """Where each row begins in values."""
        return self.row_splits[:-1]

    def row_limits(self, name=None):
        """Where each row ends in values."""
        return self.row_splits[1:]

    def value_rowids(self, name=None):
        """The row of each value, int64."""
        s = self._rows()
        return convert_to_tensor(_np.repeat(_np.arange(len(s) - 1), _np.diff(s)))

    def nested_value_rowids(self, name=None):
        """The row of each value of each ragged axis, the outermost first."""
        inner = self.values.nested_value_rowids() if isinstance(self.values, RaggedTensor) else ()
        return (self.value_rowids(), *inner)

    def merge_dims(self, outer_axis, inner_axis):
        """The axes from outer_axis to inner_axis as one: the elements of their rows one after the other."""
        outer, inner = (a + len(self.shape) if a < 0 else a for a in (int(outer_axis), int(inner_axis)))
        if outer >= inner:
            return self
        if outer > 0:
            values = self.values
            if outer == 1 and isinstance(values, RaggedTensor):
                joined = RaggedTensor(values.values, _ops.gather(values.row_splits, self.row_splits), None)
                return joined if inner == 2 else joined.merge_dims(1, inner - 1)
            if isinstance(values, RaggedTensor):
                return self.with_values(values.merge_dims(outer - 1, inner - 1))
            sizes = values.shape.as_list()
            if outer > 1:
                return self.with_values(_ops.reshape(values, [*sizes[:outer - 1], -1, *sizes[inner:]]))
            count = int(_np.prod(sizes[1:inner]))
            return RaggedTensor(_ops.reshape(values, [-1, *sizes[inner:]]), self.row_splits * count)
        if isinstance(self.values, RaggedTensor):
            return self.values.merge_dims(0, inner - 1)
        sizes = self.values.shape.as_list()
        return _ops.reshape(self.values, [-1, *sizes[inner:]]) if inner > 1 else self.values

    def bounding_shape(self, axis=None, name=None, out_type=None):
        """The shape of the smallest tensor that holds it, int64 [rank]."""
        longest = int(max(_np.diff(self._rows()), default=0))
        inner = self.values.bounding_shape().numpy()[1:] if isinstance(self.values, RaggedTensor) else \
            self.values.shape.as_list()[1:]
        out = _np.asarray([self._count(), longest, *inner], "int64")
        return convert_to_tensor(out if axis is None else out[axis], out_type)

    def __getitem__(self, key):
        """A row, an element or a slice of rows; with further keys what of each row."""
        keys = key if isinstance(key, tuple) else (key,)
        first, rest = keys[0], keys[1:]
        if first is Ellipsis:
            return self if not rest else self[(slice(None),) * (len(self.shape) - len(rest)) + rest]
        if isinstance(first, slice):
            out = _take(self, _np.arange(self._count())[_plain(first)]) if first != slice(None) else self
            return out._of_rows(rest) if rest else out
        at = int(first)
        at = at + self._count() if at < 0 else at
        if not 0 <= at < self._count():
            raise IndexError(f"index {first} is out of range: there are {self._count()} rows")
        begin, end = (int(n) for n in self._rows()[at:at + 2])
        row = _take(self.values, _np.arange(begin, end))
        return row[rest if len(rest) > 1 else rest[0]] if rest else row

    def _of_rows(self, keys):
        """What `keys` say of each row."""
        first, rest = keys[0], keys[1:]
        s = self._rows()
        if isinstance(first, slice):
            parts = [_np.arange(a, b)[_plain(first)] for a, b in zip(s, s[1:])]
            out = RaggedTensor(_take(self.values, _joined(parts, "int64")), _splits([len(p) for p in parts]))
            if not rest:
                return out
            inner = out.values
            return out.with_values(inner._of_rows(rest) if isinstance(inner, RaggedTensor) else inner[(slice(None), *rest)])
        at = int(first)
        places = (s[1:] if at < 0 else s[:-1]) + at
        if (places < s[:-1]).any() or (places >= s[1:]).any():
            raise _core.InvalidArgumentError(f"index {at} is out of range: the rows have {_np.diff(s)[:8].tolist()} elements")
        out = _take(self.values, places)
        return out[(slice(None), *rest)] if rest else out

    def __iter__(self):
        if self.values.dtype == string and not isinstance(self.values, RaggedTensor):  # its bytes are on the host
            texts, s = self.values._array(), self._rows()
            return (convert_to_tensor(texts[a:b], string) for a, b in zip(s, s[1:]))
        return (self[i] for i in builtins.range(self._count()))

    def to_list(self):
        """Nested lists of Python."""
        return [_list_of(row) for row in self]

    def numpy(self):
        """An array; of rows of different lengths an array of arrays."""
        rows = [row.numpy() for row in self]
        if rows and len({r.shape for r in rows}) == 1:
            return _np.stack(rows)
        return _np.array([*rows, None], dtype=object)[:-1]

    def to_tensor(self, default_value=None, name=None, shape=None):
        """The tensor in which short rows are filled up with zeros or default_value; shape says sizes, None: as needed."""
        wanted = [None] * len(self.shape) if shape is None else list(shape)
        rows, s = self._count(), self._rows()
        if isinstance(self.values, RaggedTensor):
            flat = self.values.to_tensor(default_value, shape=[None, *wanted[2:]])
        else:
            flat = self.values
        rows = rows if wanted[0] is None else int(wanted[0])
        columns = int(max(_np.diff(s), default=0)) if wanted[1] is None else int(wanted[1])
        fill = ("" if self.dtype == string else 0) if default_value is None else default_value
        fill = convert_to_tensor(fill, None if hasattr(fill, "dtype") else self.dtype)
        from berth import concat, reshape
        inner = flat.shape.as_list()[1:]
        filled = convert_to_tensor(_np.broadcast_to(fill._array(), [1, *inner])) if self.dtype == string else \
            _ops.broadcast_to(fill, [1, *inner])
        at = _np.full([rows, columns], flat.shape[0])
        n, along = min(rows, self._count()), _np.arange(columns)
        at[:n] = _np.where(along < _np.diff(s)[:n, None], s[:n, None] + along, flat.shape[0])
        return reshape(_take(concat([flat, filled], 0), at.ravel()), [rows, columns, *inner])

    def to_sparse(self, name=None):
        """A SparseTensor with the values at the places that to_tensor() gives them."""
        from berth.sparse import SparseTensor
        places = _np.arange(self._count())[:, None]
        x = self
        while isinstance(x, RaggedTensor):
            s = x._rows()
            inner = _places(_np.zeros(len(s) - 1), _np.diff(s)).astype("int64")
            places = _np.concatenate([_np.repeat(places, _np.diff(s), 0), inner[:, None]], 1)
            x = x.values
        return SparseTensor(places, x, self.bounding_shape())

    def with_values(self, new_values):
        """The same rows of other values, of which there are as many."""
        return RaggedTensor(new_values, self.row_splits, self._uniform)

    def with_flat_values(self, new_values):
        """The same rows of other innermost values, of which there are as many."""
        inner = self.values
        return self.with_values(inner.with_flat_values(new_values) if isinstance(inner, RaggedTensor) else new_values)

    def with_row_splits_dtype(self, dtype):
        """The same rows with their places as int32 or int64."""
        if (dtype := as_dtype(dtype)) not in (_core.int32, int64):
            raise ValueError(f"with_row_splits_dtype: {dtype.name} is no dtype of places; expected int32 or int64")
        inner = self.values.with_row_splits_dtype(dtype) if isinstance(self.values, RaggedTensor) else self.values
        return RaggedTensor(inner, _ops.math.cast(self.row_splits, dtype), self._uniform)

    def consumers(self):
        """An empty list: a value does not know what reads it."""
        return []

    def _slices(self):
        """Its rows as elements of a data set."""
        return [Row(row) if not isinstance(row, RaggedTensor) else row for row in self]

    def __repr__(self):
        if any(_core.is_open(v) for v in (self.flat_values, self.row_splits)):
            return f"tf.RaggedTensor(values={self.values}, row_splits={self.row_splits})"
        with _np.printoptions(formatter={"all": _array_text}):
            return f"<tf.RaggedTensor {_array_text(self.numpy())}>"

    __str__ = __repr__
    __hash__ = None


class Row(Composite):
    """A row of a RaggedTensor as an element of a data set: batches of such are ragged."""

    def __init__(self, tensor):
        self.tensor = tensor

    def _parts(self):
        return (self.tensor,), lambda parts: RaggedTensorSpec(parts[0].shape, parts[0].dtype, 0) if isinstance(
            parts[0], TensorSpec) else parts[0], "row"

    @staticmethod
    def stacked(rows):
        """The rows as one ragged tensor."""
        return RaggedTensor(_concat(list(rows), 0), _splits([len(r) for r in rows]))


class RaggedTensorSpec(Composite, _TypeSpec):
    """Shape and dtype of a RaggedTensor: shape[1:ragged_rank + 1] of it may differ from row to row."""

    value_type = RaggedTensor

    def __init__(self, shape=None, dtype=_core.float32, ragged_rank=None, row_splits_dtype=int64, flat_values_spec=None):
        self.shape, self.dtype = TensorSpec(shape).shape, TensorSpec((), dtype).dtype
        rank = self.shape.rank
        if ragged_rank is None and rank is None:
            raise ValueError("RaggedTensorSpec: expected a shape or a ragged_rank")
        self.ragged_rank = rank - 1 if ragged_rank is None else int(ragged_rank)
        self.row_splits_dtype = as_dtype(row_splits_dtype)
        self.flat_values_spec = flat_values_spec or TensorSpec(None if rank is None else [None, *self.shape.as_list()[
            self.ragged_rank + 1:]], self.dtype)

    @classmethod
    def _of(cls, values, splits):
        n = splits.shape[0]
        inner = values.shape.as_list()[1:]
        return cls([n if n is None else n - 1, None, *inner], values.dtype, 1 + getattr(values, "ragged_rank", 0),
                   splits.dtype)

    @classmethod
    def from_value(cls, value):
        """The spec of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def _parts(self):
        if self.ragged_rank == 0:
            spec = TensorSpec(self.shape, self.dtype)
            return (spec,), Row(None)._parts()[1], "row"
        rows = self.shape[0] if self.shape.rank is not None else None
        splits = TensorSpec([None if rows is None else rows + 1], self.row_splits_dtype)
        inner = RaggedTensorSpec([None, *self.shape.as_list()[2:]], self.dtype, self.ragged_rank - 1, self.row_splits_dtype)
        return (self.flat_values_spec if self.ragged_rank == 1 else inner, splits), *_made("ragged")

    def is_compatible_with(self, value):
        """Whether a ragged tensor, or a spec, fits this one."""
        return value.dtype == self.dtype and value.ragged_rank == self.ragged_rank and \
            self.shape.is_compatible_with(value.shape)

    def __eq__(self, other):
        return isinstance(other, RaggedTensorSpec) and (self.shape, self.dtype, self.ragged_rank) == (
            other.shape, other.dtype, other.ragged_rank)

    def __hash__(self):
        return hash((self.dtype, self.ragged_rank))

    def __repr__(self):
        return (f"RaggedTensorSpec({self.shape!r}, tf.{self.dtype.name}, {self.ragged_rank}, "
                f"tf.{self.row_splits_dtype.name})")


def _array_text(value):
    """Arrays with commas, also within arrays; what is in them as it prints."""
    if not isinstance(value, _np.ndarray):
        return str(value)
    return _np.array2string(value, separator=", ") if value.size else repr(value.tolist())


def _plain(key):
    """A slice with whole numbers."""
    return slice(*(None if v is None else int(v) for v in (key.start, key.stop, key.step)))


def _list_of(row):
    return row.to_list() if isinstance(row, RaggedTensor) else row.numpy().tolist()


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=int64):
    """A RaggedTensor of nested lists, each list a row; ValueError of elements of several depths or kinds."""
    pylist = pylist.tolist() if hasattr(pylist, "tolist") else pylist
    depths = set(_depths(pylist))
    if len(depths - {None}) > 1:
        raise ValueError(f"ragged.constant: all scalars must stand in equally many lists, not in {sorted(depths - {None})}")
    depth = _depth(pylist)
    if ragged_rank is None:
        ragged_rank = depth - 1 - (0 if inner_shape is None else len(inner_shape))
    if depth < 2 or ragged_rank == 0:
        return convert_to_tensor(pylist, dtype)

    def made(rows, left):
        if left == 0:
            if rows:
                return convert_to_tensor(rows, dtype)
            return _ops.zeros([0, *(inner_shape or ())], dtype or _core.float32) if dtype != string else convert_to_tensor(
                _np.zeros([0], "S1"))
        return RaggedTensor(made([v for row in rows for v in row], left - 1), _splits([len(row) for row in rows]))
    try:
        return made(list(pylist), ragged_rank).with_row_splits_dtype(row_splits_dtype)
    except TypeError as error:
        raise ValueError(f"ragged.constant: {error}") from None


def _depth(value):
    if not isinstance(value, (list, tuple)):
        return 0
    return 1 + max((_depth(v) for v in value), default=0)


def _depths(value, depth=0):
    """How many lists each scalar stands in."""
    if not isinstance(value, (list, tuple)):
        return [depth]
    return [d for v in value for d in _depths(v, depth + 1)]


def range(starts, limits=None, deltas=1, dtype=None, name=None, row_splits_dtype=int64):
    """Rows start, start + delta, ..."""
    starts, limits = (0, starts) if limits is None else (starts, limits)
    of = lambda v: v if hasattr(v, "dtype") else convert_to_tensor(v).numpy()  # noqa: E731
    a, b, d = _np.broadcast_arrays(*(_np.asarray(of(v)) for v in (starts, limits, deltas)))
    rows = [_np.arange(*row) for row in zip(a.ravel(), b.ravel(), d.ravel())]
    made = RaggedTensor(convert_to_tensor(_joined(rows, a.dtype).astype(a.dtype), dtype), _splits([len(r) for r in rows]))
    return made.with_row_splits_dtype(row_splits_dtype)


def map_flat_values(op, *args, **kwargs):
    """op() of the values of RaggedTensors with equal rows, in those rows."""
    given = [v for v in (*args, *kwargs.values()) if isinstance(v, RaggedTensor)]
    if not given:
        return op(*args, **kwargs)
    if any(not _same_rows(given[0], v) for v in given[1:]):
        raise _core.InvalidArgumentError("map_flat_values: the RaggedTensors have rows of other lengths")
    flat = lambda v: v.flat_values if isinstance(v, RaggedTensor) else v  # noqa: E731
    return given[0].with_flat_values(op(*map(flat, args), **{k: flat(v) for k, v in kwargs.items()}))


def _same_rows(a, b):
    return a.ragged_rank == b.ragged_rank and all(
        x is y or (len(x) == len(y) and bool((x.numpy() == y.numpy()).all()))
        for x, y in zip(a.nested_row_splits, b.nested_row_splits))


def boolean_mask(data, mask, name=None):
    """The elements of rows where mask holds; rows of a tensor become ragged."""
    if not isinstance(mask, RaggedTensor):
        mask = convert_to_tensor(mask)
        if len(mask.shape) == 1:
            return _take(data if isinstance(data, RaggedTensor) else convert_to_tensor(data), _np.flatnonzero(mask.numpy()))
        mask = RaggedTensor.from_tensor(mask, ragged_rank=len(mask.shape) - 1)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank)
    if mask.ragged_rank > 1:
        return data.with_values(boolean_mask(data.values, mask.values))
    kept, s = mask.values.numpy(), data._rows()
    lengths = [int(kept[a:b].sum()) for a, b in zip(s, s[1:])]
    return RaggedTensor(_take(data.values, _np.flatnonzero(kept)), _splits(lengths))


def stack(values, axis=0, name=None):
    """Tensors, or RaggedTensors, on top of each other; axis 0 or 1."""
    parts = [v if isinstance(v, RaggedTensor) else convert_to_tensor(v) for v in values]
    if axis == 0:
        shapes = {tuple(v.shape) for v in parts if not isinstance(v, RaggedTensor)}
        others = [k for k, lengths in enumerate(zip(*shapes)) if k and len(set(lengths)) > 1]  # rows of other lengths
        if others:
            parts = [v if isinstance(v, RaggedTensor) else RaggedTensor.from_tensor(v, ragged_rank=others[-1]) for v in parts]
        rows = [len(v) if len(v.shape) else 1 for v in parts]
        return RaggedTensor(_concat([v if len(v.shape) else _ops.expand_dims(v, 0) for v in parts], 0), _splits(rows))
    return _concat([_expand_dims(v, axis) for v in parts], axis)


def stack_dynamic_partitions(data, partitions, num_partitions, name=None):
    """num_partitions rows: the parts of data whose number in `partitions` is 0, 1, ..."""
    from berth._more import dynamic_partition
    return stack(dynamic_partition(data, partitions, int(num_partitions)))


def segment_ids_to_row_splits(segment_ids, num_segments=None, out_type=None, name=None):
    """Where rows begin and end, int64 [rows + 1], by the row of each value, which never falls."""
    ids = convert_to_tensor(segment_ids).numpy()
    return convert_to_tensor(_splits(_np.bincount(ids, minlength=int(num_segments or 0))), out_type)


def row_splits_to_segment_ids(splits, name=None, out_type=None):
    """The row of each value, int64, by where rows begin and end [rows + 1]."""
    s = convert_to_tensor(splits).numpy()
    return convert_to_tensor(_np.repeat(_np.arange(len(s) - 1), _np.diff(s)), out_type)


from berth._ragged_ops import _concat, _expand_dims, install as _install  # noqa: E402
_install()


def cross(inputs, name=None):
    """Every way to take one feature of each input, ragged, dense or sparse, as texts with "_X_" between."""
    return _crosses.cross("ragged.cross", inputs, True)


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """cross() as numbers, of num_buckets or of 63 bits."""
    return _crosses.cross_hashed("ragged.cross_hashed", inputs, True, num_buckets, hash_key)
