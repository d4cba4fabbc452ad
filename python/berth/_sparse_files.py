"""SparseTensors as the bytes of their parts: tf.io.serialize_sparse() and its kin."""
import numpy as np
from berth import _core
from berth._tensor import as_dtype, convert_to_tensor, int64, string
from berth._tensor_proto import parsed, serialized


def _only_text(function, out_type):
    if as_dtype(out_type) != string:
        raise NotImplementedError(f"{function}: out_type={out_type!r} is not there; expected tf.string")


def _arrays(function, sp_input):
    if not hasattr(sp_input, "dense_shape") or not hasattr(sp_input, "indices"):
        raise TypeError(f"{function}: {sp_input!r} is no SparseTensor")
    return sp_input.indices.numpy(), sp_input.values._array(), sp_input.dense_shape.numpy()


def _texts(rows):
    array = np.empty(np.shape(rows), object)
    array[...] = rows
    return convert_to_tensor(array, string)


def serialize_sparse(sp_input, out_type=string, name=None):
    """The bytes of the indices, the values and the shape of a SparseTensor: text [3]."""
    _only_text("serialize_sparse", out_type)
    at, values, shape = _arrays("serialize_sparse", sp_input)
    return _texts([serialized(at, int64), serialized(values, sp_input.dtype), serialized(shape, int64)])


def serialize_many_sparse(sp_input, out_type=string, name=None):
    """serialize_sparse() of each row of a SparseTensor: text [n, 3]."""
    _only_text("serialize_many_sparse", out_type)
    at, values, shape = _arrays("serialize_many_sparse", sp_input)
    if len(shape) < 2:
        raise _core.InvalidArgumentError(f"serialize_many_sparse: the SparseTensor has shape {shape.tolist()}; expected two axes "
                                         "at least")
    out = []
    for row in range(int(shape[0])):
        mine = np.flatnonzero(at[:, 0] == row)
        out.append([serialized(at[mine, 1:], int64), serialized(values[mine], sp_input.dtype), serialized(shape[1:], int64)])
    return _texts(out) if out else convert_to_tensor(np.empty([0, 3], object), string)


def deserialize_many_sparse(serialized_sparse, dtype, rank=None, name=None):
    """The SparseTensor of the rows of serialize_many_sparse(), or of serialize_sparse() on top of each other.

    Where shapes of rows differ, the largest size of each axis counts. rank: the number of axes, which is checked.
    """
    from berth.sparse import SparseTensor
    dtype, rows = as_dtype(dtype), convert_to_tensor(serialized_sparse, string)._array()
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise _core.InvalidArgumentError(f"deserialize_many_sparse: the shape is {list(rows.shape)}; expected [n, 3]")
    parts = [[parsed(data, kind, "deserialize_many_sparse")._array() for data, kind in zip(row, (int64, dtype, int64))]
             for row in rows]
    axes = len(parts[0][2]) if parts else (rank or 1) - 1
    if any(len(shape) != axes for _, _, shape in parts) or rank not in (None, axes + 1):
        raise _core.InvalidArgumentError(f"deserialize_many_sparse: rows have {sorted({len(p[2]) for p in parts})} axes; "
                                         f"expected {axes if rank is None else rank - 1} each")
    at = [np.insert(indices.reshape([-1, axes]), 0, row, axis=1) for row, (indices, _, _) in enumerate(parts)]
    shape = np.max([p[2] for p in parts], 0) if parts else np.zeros(axes, "int64")
    values = np.concatenate([p[1] for p in parts]) if parts else np.zeros(0, dtype.as_numpy_dtype)
    return SparseTensor(np.concatenate(at) if parts else np.zeros([0, axes + 1], "int64"),
                        convert_to_tensor(values, dtype), [len(rows), *shape.tolist()])
