"""tf.sets: sets that are the last axes of tensors, or of SparseTensors; computed on the host."""
from berth._core import InvalidArgumentError as _InvalidArgumentError
from berth._lazy import Lazy as _Lazy
from berth._tensor import convert_to_tensor as _tensor, int32 as _int32, string as _string

__all__ = ["difference", "intersection", "size", "union"]
_np = _Lazy("numpy")
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")


def _sets(function, value, validate):
    """({place: values}, the shape of the places, the dtype) of the sets in a tensor."""
    if not hasattr(value, "dense_shape"):
        value = _tensor(value)
        array = value._array()
        if not array.ndim:
            raise _InvalidArgumentError(f"tf.sets.{function}: a scalar is no set; expected an axis at least")
        found = {at: list(array[at]) for at in _np.ndindex(array.shape[:-1])}
        shape = array.shape[:-1]
    else:
        places, values = value.indices.numpy(), value.values._array()
        if validate and len(places) and (places != places[_np.lexsort(places.T[::-1])]).any():
            raise _InvalidArgumentError(f"tf.sets.{function}: the indices of a SparseTensor are in no order; tf.sparse.reorder() "
                                        "orders them")
        shape, found = tuple(value.dense_shape.numpy()[:-1].tolist()), {}
        for at, v in zip(places.tolist(), values):
            found.setdefault(tuple(at[:-1]), []).append(v)
    if value.dtype.name not in _DTYPES:
        raise TypeError(f"tf.sets.{function}: the values are {value.dtype.name}; expected one of {', '.join(_DTYPES)}")
    return found, shape, value.dtype


def _combined(function, a, b, validate, combine):
    from berth.sparse import SparseTensor
    (some, shape, dtype), (others, other_shape, other_dtype) = (_sets(function, v, validate) for v in (a, b))
    if dtype != other_dtype:
        raise TypeError(f"tf.sets.{function}: a is {dtype.name} and b is {other_dtype.name}; expected one dtype")
    if shape != other_shape:
        raise _InvalidArgumentError(f"tf.sets.{function}: the sets of a have the shape {list(shape)}, those of b "
                                    f"{list(other_shape)}; expected one shape")
    rows = {at: sorted(combine(set(some.get(at, ())), set(others.get(at, ())))) for at in _np.ndindex(shape)}
    places = [(*at, i) for at, row in rows.items() for i in range(len(row))]
    flat = [v for row in rows.values() for v in row]
    values = _np.empty(len(flat), object) if dtype == _string else _np.array(flat, dtype.as_numpy_dtype)
    values[:] = flat
    return SparseTensor(_np.array(places, "int64").reshape([-1, len(shape) + 1]), _tensor(values, dtype),
                        [*shape, max(map(len, rows.values()), default=0)])


def size(a, validate_indices=True):
    """The numbers of different values in the sets of a SparseTensor: int32, without its last axis."""
    if not hasattr(a, "dense_shape"):
        raise TypeError(f"tf.sets.size: expected a SparseTensor, not {a!r}; tf.sparse.from_dense() makes one")
    found, shape, _ = _sets("size", a, validate_indices)
    out = _np.zeros(shape, "int32")
    for at, values in found.items():
        out[at] = len(set(values))
    return _tensor(out, _int32)


def intersection(a, b, validate_indices=True):
    """What is in a set of a and in that of b: a SparseTensor."""
    return _combined("intersection", a, b, validate_indices, set.intersection)


def union(a, b, validate_indices=True):
    """What is in a set of a or in that of b: a SparseTensor."""
    return _combined("union", a, b, validate_indices, set.union)


def difference(a, b, aminusb=True, validate_indices=True):
    """What is in a set of a and not in that of b, with aminusb=False the other way round: a SparseTensor."""
    return _combined("difference", a, b, validate_indices, lambda x, y: x - y if aminusb else y - x)
