"""Shapes that broadcast, bins, shuffled places."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import as_dtype, convert_to_tensor, float64, int32, int64

_m = _core.ops.math
_np = Lazy("numpy")

def broadcast_static_shape(shape_x, shape_y):
    """The shape that both become together, a TensorShape; lengths may be unknown."""
    x, y = (_core.TensorShape(s) for s in (shape_x, shape_y))
    rank = max(len(x), len(y))
    out = []
    for a, b in zip(*[[1] * (rank - len(s)) + s.as_list() for s in (x, y)]):
        if a is not None and b is not None and a != b and 1 not in (a, b):
            raise ValueError(f"broadcast_static_shape: the shapes are {x} and {y}; expected equal lengths, or 1")
        known = [n for n in (a, b) if n is not None and n != 1]
        out.append(known[0] if known else 1 if a == b == 1 else None)
    return _core.TensorShape(out)


def broadcast_dynamic_shape(shape_x, shape_y):
    """The shape that both become together, as a tensor; InvalidArgumentError of shapes that cannot."""
    x, y = convert_to_tensor(shape_x), convert_to_tensor(shape_y)
    try:
        both = _np.broadcast_shapes(*[tuple(v.numpy().tolist()) for v in (x, y)])
    except ValueError:
        raise _core.InvalidArgumentError(f"broadcast_dynamic_shape: the shapes are {x.numpy().tolist()} and "
                                         f"{y.numpy().tolist()}; expected equal lengths, or 1") from None
    return convert_to_tensor(_np.asarray(both, x.dtype.as_numpy_dtype))


def histogram_fixed_width_bins(values, value_range, nbins=100, dtype=int32, name=None):
    """Which of nbins equal parts of value_range each value is in; those outside are in the first or the last."""
    x = convert_to_tensor(values)
    if as_dtype(dtype) not in (int32, int64) or nbins < 1:
        raise ValueError(f"histogram_fixed_width_bins: dtype is {dtype!r}, nbins {nbins}; expected int32 or int64, and at "
                         "least 1")
    ends = convert_to_tensor(value_range, x.dtype)
    low, high = ends[0], ends[1]
    if not _core.is_open(ends) and not bool(_m.less(low, high)):
        raise _core.InvalidArgumentError(f"histogram_fixed_width_bins: value_range is {ends.numpy().tolist()}; expected the "
                                         "lower end first")
    if not x.dtype.is_floating:
        x, low, high = (_m.cast(v, float64) for v in (x, low, high))
    place = _m.floor((x - low) / (high - low) * float(nbins))
    return _m.cast(_m.minimum(_m.maximum(place, 0.0), float(nbins - 1)), dtype)


def index_shuffle(index, seed, max_index):
    """Where an index goes when 0, 1, ... max_index are shuffled by a seed [2], without the others; or several indices."""
    at = convert_to_tensor(index)
    places, most = at.numpy().astype("uint64"), int(max_index)
    if places.size and int(places.max()) > most or most < 0:
        raise _core.InvalidArgumentError(f"index_shuffle: index is {at.numpy().tolist()}, max_index {most}; expected 0 to "
                                         "max_index")
    keys = convert_to_tensor(seed).numpy().astype("int64").view("uint64").ravel()
    half = max((most.bit_length() + 1) // 2, 1)
    mask = _np.uint64((1 << half) - 1)

    def rounds(v):
        # A Feistel network: a permutation of all numbers of 2 * half bits.
        left, right = v >> _np.uint64(half), v & mask
        for i in range(8):
            mixed = right + keys[i % len(keys)] + _np.uint64(0x9e3779b97f4a7c15 * (i + 1) % 2**64)
            mixed *= _np.uint64(0xbf58476d1ce4e5b9)
            mixed ^= mixed >> _np.uint64(31)
            mixed *= _np.uint64(0x94d049bb133111eb)
            left, right = right, left ^ (mixed >> _np.uint64(29) & mask)
        return left << _np.uint64(half) | right
    with _np.errstate(over="ignore"):
        out = rounds(places)
        while (out > most).any():  # walks on until it is in range again
            out = _np.where(out > most, rounds(out), out)
    return convert_to_tensor(_np.asarray(out).astype(at.dtype.as_numpy_dtype))


def stateless_shuffle(value, seed, alg="auto_select", name=None):
    """The rows in a random order, the same for the same seed [2]."""
    if alg not in ("auto_select", "philox"):
        raise ValueError(f"stateless_shuffle: alg is {alg!r}; expected 'auto_select' or 'philox'")
    return _core.ops.random.stateless_shuffle(convert_to_tensor(value), seed)
