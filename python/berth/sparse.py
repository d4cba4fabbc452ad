"""tf.sparse: tensors as the places and values of what is not zero.

Computed by the ops of dense tensors: for feeding and small matrices, not for speed.
"""
from berth import _core
from berth._lazy import Lazy
from berth._not_tensors import NotATensor as _NotATensor
from berth._structure import Composite
from berth._tensor import TensorSpec, TypeSpec as _TypeSpec, convert_to_tensor, int64, string, say_missing as _say_missing

_ops = _core.ops
_np = Lazy("numpy")
_crosses = Lazy("berth._crosses")


def _make(parts):
    if isinstance(parts[0], TensorSpec):
        return SparseTensorSpec([None] * (parts[0].shape[1] or 0), parts[1].dtype)
    made = SparseTensor.__new__(SparseTensor)
    made.indices, made.values, made.dense_shape = parts
    return made


class SparseTensor(_NotATensor, Composite):
    """indices [n, rank], values [n], dense_shape [rank]."""

    __getattr__ = _say_missing

    __berth_advice__ = "tf.sparse.to_dense() makes one of it, and tf.sparse has functions for it, such as sparse_dense_matmul"

    def __init__(self, indices, values, dense_shape):
        self.indices = _ops.math.cast(convert_to_tensor(indices), int64)
        self.values = convert_to_tensor(values)
        self.dense_shape = _ops.math.cast(convert_to_tensor(dense_shape), int64)
        if len(self.indices.shape) != 2 or self.indices.shape[0] != self.values.shape[0] or \
                self.indices.shape[1] != self.dense_shape.shape[0]:
            raise ValueError(f"SparseTensor: indices {self.indices.shape}, values {self.values.shape} and "
                             f"dense_shape {self.dense_shape.shape} do not fit; expected [n, rank], [n], [rank]")

    def _parts(self):
        return (self.indices, self.values, self.dense_shape), _make, "sparse"

    @classmethod
    def from_value(cls, value):
        """The value itself."""
        return value

    dtype = property(lambda self: self.values.dtype, doc="The dtype of the values.")
    rank = property(lambda self: self.dense_shape.shape[0], doc="The number of axes, a tensor where it is not known.")

    def _slices(self):
        """Its rows as elements of a data set."""
        at, inner = self.indices.numpy(), self.dense_shape[1:]
        for row in range(int(self.dense_shape.numpy()[0])):
            mine = _np.flatnonzero(at[:, 0] == row)
            yield SparseTensor(at[mine, 1:], _picked(self.values, mine), inner)

    def _unstack(self):
        return list(self._slices())

    @classmethod
    def _stack(cls, rows):
        at = [_np.concatenate([_np.full([len(r.indices), 1], i), r.indices.numpy()], 1) for i, r in enumerate(rows)]
        from berth import concat
        shape = _np.max([r.dense_shape.numpy() for r in rows], 0)
        return cls(_np.concatenate(at), concat([r.values for r in rows], 0), [len(rows), *shape])

    @property
    def shape(self):
        """The shape of the dense tensor, as far as it is known."""
        if _core.is_open(self.dense_shape):
            return _core.TensorShape([None] * self.rank)
        return _core.TensorShape([int(d) for d in self.dense_shape.numpy()])

    def get_shape(self):
        """The shape of the dense tensor, as far as it is known."""
        return self.shape

    def set_shape(self, shape):
        """Checks that dense_shape has these sizes, None for any: ValueError."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"SparseTensor.set_shape: the tensor has the shape {self.shape}, not {shape}")

    def with_values(self, new_values):
        """Other values at the same places."""
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def __repr__(self):
        return (f"SparseTensor(indices={self.indices!s}, values={self.values!s}, "
                f"dense_shape={self.dense_shape!s})")

    def _beside(self, other):
        """What of a tensor stands at the places."""
        other = convert_to_tensor(other, None if hasattr(other, "dtype") else self.dtype)
        return other if not len(other.shape) else _ops.gather_nd(_ops.broadcast_to(other, self.shape), self.indices)

    def __mul__(self, other):
        return self.with_values(self.values * self._beside(other))

    def __truediv__(self, other):
        return self.with_values(self.values / self._beside(other))


class SparseTensorSpec(Composite, _TypeSpec):
    """Shape and dtype of a SparseTensor."""

    def __init__(self, shape=None, dtype=_core.float32):
        self.shape, self.dtype = TensorSpec(shape).shape, TensorSpec((), dtype).dtype

    rank = property(lambda self: self.shape.rank, doc="The number of axes.")
    value_type = SparseTensor

    @classmethod
    def from_value(cls, value):
        """The spec of a SparseTensor."""
        return cls(value.shape, value.dtype)

    def is_compatible_with(self, spec_or_value):
        """True of a SparseTensor, or of the spec of one, that has this dtype and may have this shape."""
        other = spec_or_value
        return isinstance(other, (SparseTensor, SparseTensorSpec)) and other.dtype == self.dtype and (
            other.shape.rank is None or self.shape.is_compatible_with(other.shape))

    def _parts(self):
        return (TensorSpec([None, self.rank], int64), TensorSpec([None], self.dtype), TensorSpec([self.rank], int64)), \
            _make, "sparse"

    def __eq__(self, other):
        return isinstance(other, SparseTensorSpec) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash(self.dtype)

    def __repr__(self):
        return f"SparseTensorSpec({self.shape!r}, tf.{self.dtype.name})"


def _picked(values, places):
    from berth import gather
    if values.dtype == string or len(places):
        return gather(values, places)
    return values[:0]


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """The tensor with zeros, or default_value, in between."""
    if _core.is_open(sp_input.dense_shape):
        from berth._function import NeedsValues
        raise NeedsValues("the shape of a SparseTensor follows from values")
    if validate_indices and not sp_input.indices.is_symbolic:
        steps = _np.diff(sp_input.indices.numpy(), axis=0)
        back = _np.take_along_axis(steps, (steps != 0).argmax(1)[:, None], 1)[:, 0] <= 0
        if back.any():
            raise _core.InvalidArgumentError(f"sparse.to_dense: indices[{back.argmax() + 1}] is out of order or repeated; expected "
                                             "them in row-major order, each once: tf.sparse.reorder(), or validate_indices=False")
    if sp_input.dtype == string:
        out = _np.full(sp_input.shape.as_list(), b"" if default_value is None else convert_to_tensor(
            default_value).numpy(), object)
        out[tuple(sp_input.indices.numpy().T)] = sp_input.values.numpy()
        return convert_to_tensor(out, string)
    dense = _ops.scatter_nd(sp_input.indices, sp_input.values, sp_input.shape)
    if default_value is None:
        return dense
    there = _ops.scatter_nd(sp_input.indices, _ops.ones(sp_input.values.shape, _core.int32), sp_input.shape)
    return _ops.where(there > 0, dense, _ops.fill(sp_input.shape, default_value, sp_input.dtype))


def _dense(x):
    return to_dense(x, validate_indices=False)


def from_dense(tensor, name=None):
    """What of a tensor is not zero."""
    array = _np.asarray(convert_to_tensor(tensor).numpy())
    at = _np.argwhere(array != (b"" if array.dtype.kind == "O" else 0))
    return SparseTensor(at.reshape(-1, array.ndim), array[tuple(at.T)], array.shape)


def reorder(sp_input, name=None):
    """Its entries in row-major order."""
    indices = sp_input.indices.numpy()
    order = _np.lexsort(indices.T[::-1])
    return SparseTensor(indices[order], _picked(sp_input.values, order), sp_input.dense_shape)


def reshape(sp_input, shape, name=None):
    """A SparseTensor with the same values in the order of rows and another shape."""
    flat = _np.ravel_multi_index(tuple(sp_input.indices.numpy().T), sp_input.shape.as_list())
    shape = [int(d) for d in shape]
    if -1 in shape:
        rest = -int(_np.prod(shape))
        shape[shape.index(-1)] = int(_np.prod(sp_input.shape.as_list())) // rest
    return SparseTensor(_np.stack(_np.unravel_index(flat, shape), 1), sp_input.values, shape)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """sp_a @ b of matrices, one of them sparse."""
    dense = _dense(sp_a) if isinstance(sp_a, SparseTensor) else convert_to_tensor(sp_a)
    other = _dense(b) if isinstance(b, SparseTensor) else convert_to_tensor(b)
    return _ops.matmul(dense, other, transpose_a=adjoint_a, transpose_b=adjoint_b)


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """The sum over axes of a SparseTensor, dense unless output_is_sparse."""
    out = _ops.math.reduce_sum(_dense(sp_input), axis, bool(keepdims))
    return from_dense(out) if output_is_sparse else out


def transpose(sp_input, perm=None, name=None):
    """A SparseTensor with its axes in another order, reversed by default."""
    perm = list(range(sp_input.rank))[::-1] if perm is None else list(perm)
    return reorder(SparseTensor(sp_input.indices.numpy()[:, perm], sp_input.values,
                                _np.asarray(sp_input.shape.as_list())[perm]))


def add(a, b, threshold=0):
    """The sum; sparse if both are."""
    total = (_dense(a) if isinstance(a, SparseTensor) else convert_to_tensor(a)) + (
        _dense(b) if isinstance(b, SparseTensor) else convert_to_tensor(b))
    if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
        return total
    at = _np.unique(_np.concatenate([a.indices.numpy(), b.indices.numpy()]), axis=0)
    values = _ops.gather_nd(total, at)
    kept = _np.abs(values.numpy()) >= threshold
    return SparseTensor(at, values, a.dense_shape) if kept.all() else SparseTensor(at[kept], _ops.boolean_mask(values, kept), a.dense_shape)


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """Ones on the diagonal, a SparseTensor [num_rows, num_columns]."""
    columns = num_rows if num_columns is None else num_columns
    n = min(num_rows, columns)
    return SparseTensor([[i, i] for i in range(n)], _ops.ones([n], dtype or _core.float32),
                        [num_rows, columns])


def is_sparse(value):
    """Whether it is a SparseTensor."""
    return isinstance(value, SparseTensor)


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    """SparseTensors one after the other along an axis; expand_nonconcat_dims: the others are as long as the longest."""
    rank = sp_inputs[0].rank
    axis = axis + rank if axis < 0 else axis
    shapes = _np.asarray([s.dense_shape.numpy() for s in sp_inputs])
    others = _np.delete(shapes, axis, 1)
    if (others != others[0]).any() and not expand_nonconcat_dims:
        raise _core.InvalidArgumentError(f"sparse.concat: the shapes {shapes.tolist()} differ beside axis {axis}")
    begins = _np.concatenate([[0], _np.cumsum(shapes[:, axis])])
    at = _np.concatenate([s.indices.numpy() + b * (_np.arange(rank) == axis) for s, b in zip(sp_inputs, begins)])
    shape = shapes.max(0)
    shape[axis] = begins[-1]
    import berth
    return reorder(SparseTensor(at, berth.concat([s.values for s in sp_inputs], 0), shape))


def slice(sp_input, start, size, name=None):
    """The block that begins at `start` and has `size`, as far as there is such."""
    start, size = (_np.asarray(convert_to_tensor(v).numpy()) for v in (start, size))
    at, whole = sp_input.indices.numpy(), sp_input.dense_shape.numpy()
    kept = _np.flatnonzero(((at >= start) & (at < start + size)).all(1))
    return SparseTensor((at[kept] - start).reshape(-1, len(start)), _picked(sp_input.values, kept),
                        _np.clip(_np.minimum(size, whole - start), 0, None))


def split(sp_input=None, num_split=None, axis=None, name=None):
    """num_split blocks along an axis; the first have one more where the length has a rest."""
    length, begin, out = int(sp_input.dense_shape.numpy()[axis]), 0, []
    for i in range(num_split):
        n = length // num_split + (i < length % num_split)
        at, size = [0] * sp_input.rank, sp_input.shape.as_list()
        at[axis], size[axis], begin = begin, n, begin + n
        out.append(slice(sp_input, at, size))
    return out


def map_values(op, *args, **kwargs):
    """op() of the values of SparseTensors with equal places, at those."""
    given = [v for v in (*args, *kwargs.values()) if isinstance(v, SparseTensor)]
    flat = lambda v: v.values if isinstance(v, SparseTensor) else v  # noqa: E731
    return given[0].with_values(op(*map(flat, args), **{k: flat(v) for k, v in kwargs.items()}))


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """The greatest of the values that are there; zeros between them do not count, and nothing gives 0."""
    at, shape = sp_input.indices.numpy(), sp_input.shape.as_list()
    axes = range(len(shape)) if axis is None else [a % len(shape) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    kept = [i for i in range(len(shape)) if i not in axes]
    sizes = [shape[i] for i in kept]
    count = int(_np.prod(sizes))
    ids = _np.ravel_multi_index(tuple(at[:, kept].T), sizes) if kept else _np.zeros(len(at), "int64")
    there = convert_to_tensor(_np.bincount(ids, minlength=count) > 0)
    out = _ops.math.unsorted_segment_max(sp_input.values, ids, count)
    out = _ops.where(there, out, _ops.zeros_like(out))
    out = _ops.reshape(out, [1 if i in axes else n for i, n in enumerate(shape)] if keepdims else sizes)
    return from_dense(out) if output_is_sparse else out


def retain(sp_input, to_retain):
    """The values where to_retain [n] holds."""
    kept = _np.flatnonzero(convert_to_tensor(to_retain).numpy())
    return SparseTensor(sp_input.indices.numpy()[kept], _picked(sp_input.values, kept), sp_input.dense_shape)


def expand_dims(sp_input, axis=None, name=None):
    """A SparseTensor with one more axis, of length 1, before `axis` (default: the last)."""
    axis = -1 if axis is None else axis
    axis = axis + sp_input.rank + 1 if axis < 0 else axis
    return SparseTensor(_np.insert(sp_input.indices.numpy(), axis, 0, 1), sp_input.values,
                        _np.insert(sp_input.dense_shape.numpy(), axis, 1))


def mask(a, mask_indices, name=None):
    """IndexedSlices without the rows of mask_indices."""
    from berth._tensor import IndexedSlices
    kept = _np.flatnonzero(~_np.isin(convert_to_tensor(a.indices).numpy(), convert_to_tensor(mask_indices).numpy()))
    return IndexedSlices(_picked(convert_to_tensor(a.values), kept), _picked(convert_to_tensor(a.indices), kept), a.dense_shape)


def reset_shape(sp_input, new_shape=None):
    """The same values in a larger shape, or the smallest that holds them."""
    shape = sp_input.indices.numpy().max(0) + 1 if new_shape is None else new_shape
    return SparseTensor(sp_input.indices, sp_input.values, shape)


def fill_empty_rows(sp_input, default_value, name=None):
    """(with default_value at column 0 of rows that have none, which rows had none)."""
    rows = int(sp_input.dense_shape.numpy()[0])
    empty = _np.setdiff1d(_np.arange(rows), sp_input.indices.numpy()[:, 0])
    import berth
    at = _np.concatenate([sp_input.indices.numpy(), _np.stack([empty, empty * 0], 1)])
    values = berth.concat([sp_input.values, berth.fill([len(empty)], convert_to_tensor(default_value, sp_input.dtype))], 0)
    return reorder(SparseTensor(at, values, sp_input.dense_shape)), convert_to_tensor(_np.isin(_np.arange(rows), empty))


def maximum(sp_a, sp_b, name=None):
    """The larger elements of two SparseTensors of one shape, as a SparseTensor."""
    return _of_both(_ops.math.maximum, sp_a, sp_b)


def minimum(sp_a, sp_b, name=None):
    """The smaller elements of two SparseTensors of one shape, as a SparseTensor."""
    return _of_both(_ops.math.minimum, sp_a, sp_b)


def _of_both(pick, a, b):
    """pick() of the elements at the places of either, zeros among them."""
    shape = a.shape.as_list()
    places = [_np.ravel_multi_index(tuple(v.indices.numpy().T), shape) for v in (a, b)]
    at = _np.stack(_np.unravel_index(_np.union1d(*places).astype("int64"), shape), 1)
    return SparseTensor(at, _ops.gather_nd(pick(_dense(a), _dense(b)), at), shape)


def softmax(sp_input, name=None):
    """Softmax along the last axis over the values that are there."""
    at, shape = sp_input.indices.numpy(), sp_input.shape.as_list()
    rows = _np.ravel_multi_index(tuple(at[:, :-1].T), shape[:-1])
    n = int(_np.prod(shape[:-1]))
    top = _ops.math.unsorted_segment_max(sp_input.values, rows, n)
    e = _ops.math.exp(sp_input.values - _ops.gather(top, rows))
    return sp_input.with_values(e / _ops.gather(_ops.math.unsorted_segment_sum(e, rows, n), rows))


def to_indicator(sp_input, vocab_size, name=None):
    """bool [..., vocab_size]: true at the values of each row."""
    at = sp_input.indices.numpy()[:, :-1]
    out = _np.zeros([*sp_input.shape.as_list()[:-1], int(vocab_size)], bool)
    out[(*at.T, sp_input.values.numpy())] = True
    return convert_to_tensor(out)


def _segments(name, data, indices, segment_ids, num_segments):
    data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids).numpy()
    rows = int(ids.max()) + 1 if num_segments is None else int(num_segments)
    return getattr(_ops.math, name)(_ops.gather(data, indices), ids, rows)


def segment_sum(data, indices, segment_ids, num_segments=None, sparse_gradient=False, name=None):
    """The sums of the rows `indices` of data that have the same segment id, [segments, ...]; 0 of a segment without rows."""
    return _segments("unsorted_segment_sum", data, indices, segment_ids, num_segments)


def segment_mean(data, indices, segment_ids, num_segments=None, sparse_gradient=False, name=None):
    """The means of the rows `indices` of data that have the same segment id, [segments, ...]."""
    return _segments("unsorted_segment_mean", data, indices, segment_ids, num_segments)


def segment_sqrt_n(data, indices, segment_ids, num_segments=None, sparse_gradient=False, name=None):
    """segment_sum() divided by the square root of how many rows a segment has, [segments, ...]."""
    data = convert_to_tensor(data)
    total = _segments("unsorted_segment_sum", data, indices, segment_ids, num_segments)
    count = _np.maximum(_np.bincount(convert_to_tensor(segment_ids).numpy(), minlength=total.shape[0]), 1)
    shape = [total.shape[0]] + [1] * (len(total.shape) - 1)
    return total / convert_to_tensor(_np.sqrt(count).reshape(shape), data.dtype)


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    """How often each number occurs, or the sums of weights, as a SparseTensor: of all values (axis=0) or of each row (-1)."""
    if axis not in (0, -1):
        raise ValueError(f"sparse.bincount: axis is {axis!r}; expected 0 or -1")
    if binary_output and weights is not None:
        raise ValueError("sparse.bincount: weights count nothing beside binary_output=True; leave one out")
    if isinstance(values, SparseTensor):
        at, given = values.indices.numpy()[:, 0], values.values.numpy()
        rows, taken = int(values.dense_shape.numpy()[0]), None if weights is None else weights.values.numpy()
    else:
        if hasattr(values, "value_rowids"):
            at, rows = values.value_rowids().numpy(), values._count()
            given, taken = values.values.numpy(), None if weights is None else weights.values.numpy()
        else:
            x = convert_to_tensor(values).numpy()
            rows, given = x.shape[0] if x.ndim > 1 else 1, x.ravel()
            at, taken = _np.repeat(_np.arange(rows), x.size // max(rows, 1)), None if weights is None else \
                convert_to_tensor(weights).numpy().ravel()
    at = at * 0 if axis == 0 else at
    kept = given >= 0 if maxlength is None else (given >= 0) & (given < maxlength)
    pairs = _np.stack([at, given], 1)[kept]
    found, inverse = _np.unique(pairs, axis=0, return_inverse=True)
    sums = _np.bincount(inverse.ravel(), None if taken is None else taken[kept], len(found))
    sums = _np.minimum(sums, 1) if binary_output else sums
    width = max(int(given.max(initial=-1)) + 1 if maxlength is None else int(maxlength), int(minlength or 0))
    dtype = convert_to_tensor(given if taken is None else taken).dtype
    out = convert_to_tensor(sums.astype(dtype.as_numpy_dtype))
    if axis == 0:
        return SparseTensor(found[:, 1:], out, [width])
    return SparseTensor(found, out, [rows, width])


from berth._sparse_ops import install as _install  # noqa: E402
_install(SparseTensor)


def cross(inputs, name=None, separator=None):
    """Every way to take one feature of each input [batch, features], dense or sparse, as texts with a separator between."""
    return _crosses.cross("sparse.cross", inputs, False, "_X_" if separator is None else separator)


def cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """cross() as numbers, of num_buckets or of 63 bits."""
    return _crosses.cross_hashed("sparse.cross_hashed", inputs, False, num_buckets, hash_key)


def sampled_addmm(indices, values, dense_shape, mat1, mat2, beta=1.0, alpha=1.0, output_type=_core.float32):
    """beta * values + alpha * (mat1 mat2) at indices alone: (indices, new values, dense_shape)."""
    return _crosses.sampled_addmm(indices, values, dense_shape, mat1, mat2, beta, alpha, output_type)
