"""tf.sparse: tensors as the places and values of what is not zero.

Computed by the ops of dense tensors: for feeding and small matrices, not for speed.
"""
from berth import _core
from berth._tensor import convert_to_tensor, int64

_ops = _core.ops


class SparseTensor:
    """indices [n, rank], values [n], dense_shape [rank]."""

    def __init__(self, indices, values, dense_shape):
        self.indices = _ops.math.cast(convert_to_tensor(indices), int64)
        self.values = convert_to_tensor(values)
        self.dense_shape = _ops.math.cast(convert_to_tensor(dense_shape), int64)
        if len(self.indices.shape) != 2 or self.indices.shape[0] != self.values.shape[0] or \
                self.indices.shape[1] != self.dense_shape.shape[0]:
            raise ValueError(f"SparseTensor: indices {self.indices.shape}, values {self.values.shape} and "
                             f"dense_shape {self.dense_shape.shape} do not fit; expected [n, rank], [n], [rank]")

    dtype = property(lambda self: self.values.dtype)
    rank = property(lambda self: self.dense_shape.shape[0])

    @property
    def shape(self):
        return _core.TensorShape([int(d) for d in self.dense_shape.numpy()])

    get_shape = lambda self: self.shape  # noqa: E731

    def with_values(self, new_values):
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def __repr__(self):
        return (f"SparseTensor(indices={self.indices}, values={self.values}, "
                f"dense_shape={self.dense_shape})")

    def __mul__(self, other):
        at = _ops.gather_nd(_ops.broadcast_to(convert_to_tensor(other), self.shape), self.indices)
        return self.with_values(self.values * at)

    def __truediv__(self, other):
        at = _ops.gather_nd(_ops.broadcast_to(convert_to_tensor(other), self.shape), self.indices)
        return self.with_values(self.values / at)


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """The tensor with zeros, or default_value, in between."""
    dense = _ops.scatter_nd(sp_input.indices, sp_input.values, sp_input.shape)
    if default_value is None:
        return dense
    there = _ops.scatter_nd(sp_input.indices, _ops.ones(sp_input.values.shape, _core.int32), sp_input.shape)
    return _ops.where(there > 0, dense, _ops.fill(sp_input.shape, default_value, sp_input.dtype))


def from_dense(tensor, name=None):
    """What of a tensor is not zero."""
    import numpy
    array = convert_to_tensor(tensor).numpy()
    at = numpy.argwhere(array != 0)
    return SparseTensor(at.reshape(-1, array.ndim), array[tuple(at.T)], array.shape)


def reorder(sp_input, name=None):
    """Its entries in row-major order."""
    import numpy
    indices = sp_input.indices.numpy()
    order = numpy.lexsort(indices.T[::-1])
    return SparseTensor(indices[order], _ops.gather(sp_input.values, order), sp_input.dense_shape)


def reshape(sp_input, shape, name=None):
    """A SparseTensor with the same values in the order of rows and another shape."""
    import numpy
    flat = numpy.ravel_multi_index(tuple(sp_input.indices.numpy().T), sp_input.shape.as_list())
    shape = [int(d) for d in shape]
    if -1 in shape:
        rest = -int(numpy.prod(shape))
        shape[shape.index(-1)] = int(numpy.prod(sp_input.shape.as_list())) // rest
    return SparseTensor(numpy.stack(numpy.unravel_index(flat, shape), 1), sp_input.values, shape)


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """sp_a @ b of matrices, one of them sparse."""
    dense = to_dense(sp_a) if isinstance(sp_a, SparseTensor) else convert_to_tensor(sp_a)
    other = to_dense(b) if isinstance(b, SparseTensor) else convert_to_tensor(b)
    return _ops.matmul(dense, other, transpose_a=adjoint_a, transpose_b=adjoint_b)


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """The sum over axes of a SparseTensor, dense unless output_is_sparse."""
    out = _ops.math.reduce_sum(to_dense(sp_input), axis, bool(keepdims))
    return from_dense(out) if output_is_sparse else out


def transpose(sp_input, perm=None, name=None):
    """A SparseTensor with its axes in another order, reversed by default."""
    import numpy
    perm = list(range(sp_input.rank))[::-1] if perm is None else list(perm)
    return reorder(SparseTensor(sp_input.indices.numpy()[:, perm], sp_input.values,
                                numpy.asarray(sp_input.shape.as_list())[perm]))


def add(a, b, threshold=0):
    """The sum; sparse if both are."""
    total = (to_dense(a) if isinstance(a, SparseTensor) else convert_to_tensor(a)) + (
        to_dense(b) if isinstance(b, SparseTensor) else convert_to_tensor(b))
    both = isinstance(a, SparseTensor) and isinstance(b, SparseTensor)
    if both and threshold:
        total = _ops.where(_ops.math.abs(total) < threshold, _ops.zeros_like(total), total)
    return from_dense(total) if both else total


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """Ones on the diagonal, a SparseTensor [num_rows, num_columns]."""
    columns = num_rows if num_columns is None else num_columns
    n = min(num_rows, columns)
    return SparseTensor([[i, i] for i in range(n)], _ops.ones([n], dtype or _core.float32),
                        [num_rows, columns])


def is_sparse(value):
    """Whether it is a SparseTensor."""
    return isinstance(value, SparseTensor)
