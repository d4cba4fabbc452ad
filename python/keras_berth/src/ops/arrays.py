"""Functions of keras.ops.numpy that make, move, pick and sort elements."""
import builtins
import math as _math

import berth as tf
from keras.src.backend.common.backend_utils import canonicalize_axes, canonicalize_axis
from keras.src.backend.common.variables import standardize_dtype
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, is_whole, name_of, number, result_type, tensors
from keras_berth.src.ops.sparse import SPARSE, from_dense, with_values

_m = tf.math


# Tensors out of nothing.
def _made(function):
    def call(shape, dtype=None):
        shape = [shape] if isinstance(shape, int) else [int(n) for n in shape]
        return function(shape, standardize_dtype(dtype))
    return call


def _made_like(function):
    def call(x, dtype=None):
        x = convert_to_tensor(x)
        return function(x) if dtype is None else function(cast(x, standardize_dtype(dtype)))
    return call


ones, zeros, empty = _made(tf.ones), _made(tf.zeros), _made(tf.zeros)
ones_like, zeros_like, empty_like = _made_like(tf.ones_like), _made_like(tf.zeros_like), _made_like(tf.zeros_like)


def full(shape, fill_value, dtype=None):
    shape = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    return tf.broadcast_to(convert_to_tensor(fill_value, standardize_dtype(dtype)), shape)


def full_like(x, fill_value, dtype=None):
    x = convert_to_tensor(x)
    return tf.broadcast_to(convert_to_tensor(fill_value, standardize_dtype(dtype) if dtype else name_of(x)), x.shape)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


def copy(x):
    return tf.identity(convert_to_tensor(x))


def eye(N, M=None, k=0, dtype=None):
    return cast(_between(N, M, lambda gap: _m.equal(gap, _whole(k))), standardize_dtype(dtype))


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    return cast(_between(N, M, lambda gap: _m.less_equal(gap, _whole(k))), standardize_dtype(dtype))


def _whole(k):
    return convert_to_tensor(int(k), "int32")


def _between(rows, columns, holds):
    """Where something holds of the column's number less the row's, bool [rows, columns]."""
    rows = int(rows)
    columns = rows if columns is None else int(columns)
    if rows < 0 or columns < 0:
        raise ValueError(f"Expected sizes of at least 0. Received: {rows}, {columns}")
    return holds(tf.expand_dims(tf.range(columns), 0) - tf.expand_dims(tf.range(rows), 1))


def tril(x, k=0):
    x = convert_to_tensor(x)
    return tf.where(_between(x.shape[-2], x.shape[-1], lambda gap: _m.less_equal(gap, _whole(k))), x, tf.zeros_like(x))


def triu(x, k=0):
    x = convert_to_tensor(x)
    keep = _between(x.shape[-2], x.shape[-1], lambda gap: _m.greater_equal(gap, _whole(k)))
    return tf.where(keep, x, tf.zeros_like(x))


def _type_or_dtype(x):
    return type(x) if isinstance(x, (int, float)) else name_of(convert_to_tensor(x))


def arange(start, stop=None, step=None, dtype=None):
    if dtype is None:
        dtype = result_type(*[_type_or_dtype(v) for v in (start, stop, step) if v is not None])
    dtype = standardize_dtype(dtype)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    whole = builtins.all(isinstance(v, int) or (not isinstance(v, float) and is_whole(name_of(convert_to_tensor(v))))
                         for v in (start, stop, step))
    wide = "int32" if whole else "float64" if dtype == "float64" else "float32"
    count = builtins.max(0, _math.ceil((float(stop) - float(start)) / float(step)))
    places = tf.range(0, count)
    if whole:
        return cast(places * convert_to_tensor(int(step), wide) + convert_to_tensor(int(start), wide), dtype)
    places = cast(places, wide)
    return cast(places * convert_to_tensor(float(step), wide) + convert_to_tensor(float(start), wide), dtype)


def _spread(start, stop, num, endpoint, axis, wide):
    """`num` places from start to stop along a new axis, and the gap between two."""
    if num < 0:
        raise ValueError(f"`num` must be a non-negative integer. Received: num={num}")
    start, stop = (cast(convert_to_tensor(v), wide) for v in (start, stop))
    start, stop = start + tf.zeros_like(stop), stop + tf.zeros_like(start)
    parts = num - 1 if endpoint else num
    gap = (stop - start) / convert_to_tensor(float(parts), wide) if parts > 0 else (stop - start) * float("nan")
    rank = len(start.shape)
    share = cast(tf.range(num), wide) / convert_to_tensor(float(builtins.max(parts, 1)), wide)
    share = tf.reshape(share, [num] + [1] * rank)
    out = tf.expand_dims(start, 0) * (1 - share) + tf.expand_dims(stop, 0) * share
    return (moveaxis(out, 0, axis) if rank else out), gap


def _of_range(start, stop, dtype):
    dtype = standardize_dtype(dtype) if dtype else result_type(_type_or_dtype(start), _type_or_dtype(stop), float)
    return dtype, dtype if dtype in ("float64", "complex64") else "float32"


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    dtype, wide = _of_range(start, stop, dtype)
    out, gap = _spread(start, stop, num, endpoint, axis, wide)
    out = cast(_m.floor(out) if is_whole(dtype) else out, dtype)
    return (out, gap) if retstep else out


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    dtype, wide = _of_range(start, stop, dtype)
    out, _ = _spread(start, stop, num, endpoint, axis, wide)
    return cast(_m.pow(cast(convert_to_tensor(base), wide), out), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    dtype, wide = _of_range(start, stop, dtype)
    start, stop = (cast(convert_to_tensor(v), wide) for v in (start, stop))
    sign = _m.sign(start)
    out, _ = _spread(_m.log(start * sign), _m.log(stop * sign), num, endpoint, axis, wide)
    return cast(_m.exp(out) * tf.expand_dims(sign, axis), dtype)


# Shapes.
def ndim(x):
    return len(convert_to_tensor(x).shape)


def size(x):
    return convert_to_tensor(x).shape.num_elements()


def reshape(x, newshape):
    newshape = [newshape] if isinstance(newshape, int) else list(newshape)
    return tf.reshape(convert_to_tensor(x), newshape)


def ravel(x):
    return tf.reshape(convert_to_tensor(x), [-1])


def broadcast_to(x, shape):
    return tf.broadcast_to(convert_to_tensor(x), shape)


def transpose(x, axes=None):
    x = convert_to_tensor(x)
    return tf.transpose(x) if axes is None else tf.transpose(x, canonicalize_axes(axes, len(x.shape)))


def swapaxes(x, axis1, axis2):
    x = convert_to_tensor(x)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def moveaxis(x, source, destination):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    source, destination = canonicalize_axes(source, rank), canonicalize_axes(destination, rank)
    order = [i for i in range(rank) if i not in source]
    for to, at in sorted(zip(destination, source)):
        order.insert(to, at)
    return x if order == list(range(rank)) else tf.transpose(x, order)


def expand_dims(x, axis):
    x = convert_to_tensor(x)
    rank = len(x.shape) + (1 if isinstance(axis, int) else len(axis))
    for at in sorted(canonicalize_axes(axis, rank)):
        x = tf.expand_dims(x, at)
    return x


def squeeze(x, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        return tf.squeeze(x)
    axes = canonicalize_axes(axis, len(x.shape))
    for at in axes:
        if x.shape[at] not in (1, None):
            raise ValueError(f"Cannot squeeze axis={at}, because the dimension is not 1. Received: shape {x.shape}")
    return tf.squeeze(x, list(axes)) if axes else x


def flip(x, axis=None):
    x = convert_to_tensor(x)
    rank = len(x.shape)
    return tf.reverse(x, list(range(rank)) if axis is None else list(canonicalize_axes(axis, rank)))


def fliplr(x):
    return flip(x, 1)


def flipud(x):
    return flip(x, 0)


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if len(array.shape) < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={len(array.shape)}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    first, second = canonicalize_axes(axes, len(array.shape))
    if k % 4 == 0:
        return array
    if k % 4 == 2:
        return tf.reverse(array, [first, second])
    if k % 4 == 1:
        return swapaxes(tf.reverse(array, [second]), first, second)
    return tf.reverse(swapaxes(array, first, second), [second])


def roll(x, shift, axis=None):
    x = convert_to_tensor(x)
    shift = [int(n) for n in shift] if isinstance(shift, (list, tuple)) else int(shift)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), x.shape)
    axes = list(canonicalize_axes(axis, len(x.shape)))
    shifts = shift if isinstance(shift, list) else [shift] * len(axes)
    return tf.roll(x, shifts, axes * len(shifts) if len(axes) == 1 else axes)


def tile(x, repeats):
    x = convert_to_tensor(x)
    repeats = [repeats] if isinstance(repeats, int) else [int(n) for n in _numbers(repeats)]
    rank = builtins.max(len(x.shape), len(repeats))
    x = tf.reshape(x, [1] * (rank - len(x.shape)) + x.shape.as_list())
    return tf.tile(x, [1] * (rank - len(repeats)) + repeats)


def _numbers(values):
    """Whole numbers of a list, array or tensor."""
    return values if isinstance(values, (list, tuple)) else convert_to_tensor(values).numpy().tolist()


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if not isinstance(repeats, int):
        repeats = _numbers(repeats)
        repeats = repeats[0] if isinstance(repeats, (list, tuple)) and len(repeats) == 1 else repeats
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.repeat(x, repeats, axis=canonicalize_axis(axis, len(x.shape)))


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError("Argument `constant_values` can only be provided when `mode == 'constant'`. "
                         f"Received: mode={mode}")
    if isinstance(pad_width, int):
        pad_width = ((pad_width, pad_width),)
    pairs = [list(p) if isinstance(p, (tuple, list)) else p for p in _numbers(pad_width)]
    pairs = [pairs] if isinstance(pairs[0], int) else pairs
    pairs = [[int(v) for v in p] for p in (pairs * len(x.shape) if len(pairs) == 1 else pairs)]
    if mode == "constant":
        return tf.pad(x, pairs, constant_values=0 if constant_values is None else float(constant_values))
    return tf.pad(x, pairs, mode=mode.upper())


# Joins and parts.
def _joined(xs):
    xs = [convert_to_tensor(x) for x in xs]
    names = {name_of(x) for x in xs}
    return xs if len(names) == 1 else tensors(*xs)


def concatenate(xs, axis=0):
    return tf.concat(_joined(xs), axis)


def stack(x, axis=0):
    return tf.stack(_joined(x), axis)


def append(x1, x2, axis=None):
    x1, x2 = tensors(x1, x2)
    return tf.concat([ravel(x1), ravel(x2)], 0) if axis is None else tf.concat([x1, x2], axis)


def _at_least(x, rank):
    """With axes of 1 as NumPy's atleast_2d and atleast_3d put them."""
    shape = x.shape.as_list()
    if rank == 2 and len(shape) < 2:
        return tf.reshape(x, [1] * (2 - len(shape)) + shape)
    if rank == 3 and len(shape) < 3:
        return tf.reshape(x, [1] * (2 - len(shape)) + shape + [1] if len(shape) < 2 else shape + [1])
    return tf.reshape(x, [1]) if not shape else x


def vstack(xs):
    return tf.concat([_at_least(x, 2) for x in _joined(xs)], 0)


def hstack(xs):
    xs = [_at_least(x, 1) for x in _joined(xs)]
    return tf.concat(xs, 0 if len(xs[0].shape) == 1 else 1)


def dstack(xs):
    return tf.concat([_at_least(x, 3) for x in _joined(xs)], 2)


def _places(x, indices_or_sections, axis, even=True):
    """The sizes of the parts of an axis."""
    length = x.shape[axis]
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if even and length % count:
            raise ValueError(f"array split does not result in an equal division: {length} elements, {count} parts")
        return [length // count + (i < length % count) for i in range(count)]
    ends = [builtins.min(i + length if i < 0 else i, length) for i in _numbers(indices_or_sections)]
    return [builtins.max(b - a, 0) for a, b in zip([0, *ends], [*ends, length])]


def split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    axis = canonicalize_axis(axis, len(x.shape))
    return tf.split(x, _places(x, indices_or_sections, axis), axis=axis)


def array_split(x, indices_or_sections, axis=0):
    x = convert_to_tensor(x)
    axis = canonicalize_axis(axis, len(x.shape))
    return tf.split(x, _places(x, indices_or_sections, axis, even=False), axis=axis)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if len(x.shape) == 1 else 1)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def meshgrid(*x, indexing="xy"):
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be either 'xy' or 'ij', but found {indexing}")
    return list(tf.meshgrid(*[ravel(v) for v in x], indexing=indexing)) if x else []


# Diagonals.
def diagonal(x, offset=0, axis1=0, axis2=1):
    x = moveaxis(convert_to_tensor(x), (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    if offset >= columns or -offset >= rows:
        return tf.zeros([*x.shape[:-2], 0], name_of(x))
    return tf.linalg.diag_part(x, k=offset)


def diag(x, k=0):
    x = convert_to_tensor(x)
    if len(x.shape) not in (1, 2):
        raise ValueError(f"`x` must be 1-d or 2-d. Received: x.shape={x.shape}")
    return tf.linalg.diag(x, k=k) if len(x.shape) == 1 else diagonal(x, k)


def diagflat(x, k=0):
    return tf.linalg.diag(ravel(x), k=k)


def trace(x, offset=0, axis1=0, axis2=1):
    from keras_berth.src.ops.reductions import sum
    return sum(diagonal(x, offset, axis1, axis2), -1)


# Picks.
def _from_the_end(indices, length):
    return tf.where(_m.less(indices, tf.zeros_like(indices)), indices + convert_to_tensor(length, name_of(indices)),
                    indices)


def _indices(x):
    x = convert_to_tensor(x)
    wide = "int64" if name_of(x) in ("int64", "uint32", "uint64") else "int32"
    return cast(x, wide)


def take(x, indices, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    axis = canonicalize_axis(axis, len(x.shape))
    return tf.gather(x, _from_the_end(_indices(indices), x.shape[axis]), axis=axis)


def take_along_axis(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _indices(indices)
    if axis is None:
        return take_along_axis(ravel(x), ravel(indices), 0)
    rank = len(x.shape)
    axis = canonicalize_axis(axis, rank)
    indices = _from_the_end(indices, x.shape[axis])
    # Axes of 1 stand for all.
    shape = [builtins.max(a, b) for a, b in zip(x.shape, indices.shape)]
    rows = [n for i, n in enumerate(shape) if i != axis]
    x = tf.broadcast_to(moveaxis(x, axis, -1), rows + [x.shape[axis]])
    indices = tf.broadcast_to(moveaxis(indices, axis, -1), rows + [indices.shape[axis]])
    return moveaxis(tf.gather(x, indices, axis=rank - 1, batch_dims=rank - 1), -1, axis)


def nonzero(x):
    x = convert_to_tensor(x)
    places = cast(tf.where(cast(x, "bool")), "int32")
    return tuple(tf.unstack(places, axis=1)) if len(x.shape) else (tf.zeros([0], "int32"),)


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    dtype = result_type(name_of(indices))
    rest = _from_the_end(cast(indices, "int32" if dtype != "int64" else dtype), _math.prod(shape))
    out = []
    for length in reversed(shape):
        length = convert_to_tensor(length, name_of(rest))
        out.append(cast(_m.floormod(rest, length), dtype))
        rest = _m.floordiv(rest, length)
    return tuple(reversed(out))


# Orders.
def _orderable(x):
    x = convert_to_tensor(x)
    return cast(x, number(name_of(x)))


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = ravel(x), -1
    return cast(tf.sort(_orderable(x), axis=axis), name_of(x)) if len(x.shape) else x


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None or not len(x.shape):
        x, axis = ravel(x), -1
    return cast(tf.argsort(_orderable(x), axis=axis), "int32")


def argpartition(x, kth, axis=-1):
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = tensors(sorted_sequence, values)
    if len(sorted_sequence.shape) != 1:
        raise ValueError("`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` "
                         f"to extend it to N-D sequences. Received: sorted_sequence.shape={sorted_sequence.shape}")
    wide = name_of(_orderable(values))
    wide = "float32" if wide in ("float16", "bfloat16") else wide
    out = tf.searchsorted(cast(sorted_sequence, wide), ravel(cast(values, wide)), side=side)
    return cast(tf.reshape(out, values.shape), "int32")


def digitize(x, bins):
    return searchsorted(bins, x, side="right")


def isin(x1, x2, assume_unique=False, invert=False):
    x1, x2 = tensors(x1, x2)
    found = tf.reduce_any(_m.equal(tf.expand_dims(x1, -1), ravel(x2)), -1)
    return _m.logical_not(found) if invert else found


# Counts.
def bincount(x, weights=None, minlength=0, sparse=False):
    dtype = "int32"
    if weights is not None:
        dtype = result_type(name_of(convert_to_tensor(x)), name_of(convert_to_tensor(weights)))
    elif isinstance(x, SPARSE):
        weights = with_values(x, tf.ones_like(x.values))  # what is not there counts nothing
    sparse = sparse or isinstance(x, SPARSE)
    x = convert_to_tensor(x)
    weights = None if weights is None else convert_to_tensor(weights)
    ids = cast(x, "int32")
    most = int(tf.reduce_max(ids)) + 1 if ids.shape.num_elements() else 0
    length = builtins.max(most, int(minlength))
    rows = x.shape[0] if len(x.shape) == 2 else 1
    ids = tf.reshape(ids, [rows, -1]) + tf.expand_dims(tf.range(rows) * _whole(length), 1)
    # Of whole numbers and of floats the sums are exact in these.
    wide = "int32" if is_whole(dtype) else dtype
    what = cast(tf.ones_like(x) if weights is None else weights, wide)
    out = cast(tf.math.unsorted_segment_sum(ravel(what), ravel(ids), rows * length), dtype)
    out = tf.reshape(out, [rows, length] if len(x.shape) == 2 else [length])
    return from_dense(out) if sparse else out


def histogram(x, bins=10, range=None):
    x = ravel(x)
    wide = name_of(x) if name_of(x) == "float64" else "float32"
    x = cast(x, wide)
    if isinstance(bins, int):
        low, high = (tf.reduce_min(x), tf.reduce_max(x)) if range is None else (
            convert_to_tensor(float(v), wide) for v in range)
        half = convert_to_tensor(0.5, wide)
        flat = _m.equal(low, high)
        low, high = tf.where(flat, low - half, low), tf.where(flat, high + half, high)
        edges = linspace(low, high, bins + 1, dtype=wide)
    else:
        edges = cast(convert_to_tensor(bins), wide)
    count = edges.shape[0] - 1
    at = cast(tf.searchsorted(edges, x, side="right"), "int32") - 1
    # The last bin holds its upper edge.
    at = tf.where(_m.equal(x, edges[-1]), tf.fill(x.shape.as_list(), count - 1), at)
    inside = _m.logical_and(_m.greater_equal(x, edges[0]), _m.less_equal(x, edges[-1]))
    at = tf.where(inside, at, tf.fill(x.shape.as_list(), count))
    hits = tf.math.unsorted_segment_sum(tf.ones_like(at), at, count + 1)
    return hits[:count], edges


def unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False, axis=None, size=None,
           fill_value=None):
    x = convert_to_tensor(x)
    shape = x.shape.as_list()
    if axis is None:
        rows = tf.reshape(x, [-1, 1])
    else:
        axis = canonicalize_axis(axis, len(shape))
        rows = tf.reshape(moveaxis(x, axis, 0), [shape[axis], _math.prod(shape[:axis] + shape[axis + 1:])])
    order, rows_in_order = _in_order(rows)
    begins = _m.not_equal(rows_in_order[1:], rows_in_order[:-1])
    begins = tf.concat([tf.ones([builtins.min(1, rows.shape[0])], "bool"), tf.reduce_any(begins, 1)], 0)
    group = _m.cumsum(cast(begins, "int32"), 0) - 1
    count = tf.reduce_sum(cast(begins, "int32"))
    length = int(count) if size is None else int(size)
    numbers = tf.range(length)
    first = cast(tf.searchsorted(group, numbers, side="left"), "int32")
    last = cast(tf.searchsorted(group, numbers, side="right"), "int32")
    there = _m.less(numbers, count)
    safe = tf.where(there, first, tf.zeros_like(first))
    filler = convert_to_tensor(0 if fill_value is None else fill_value, name_of(x))
    values = tf.where(tf.expand_dims(there, 1), tf.gather(rows_in_order, safe), filler)
    if axis is None:
        values = tf.reshape(values, [length])
    else:
        rest = shape[:axis] + shape[axis + 1:]
        values = moveaxis(tf.reshape(values, [length, *rest]), 0, axis)
    out = [values]
    if return_index:
        out.append(tf.where(there, tf.gather(order, safe), tf.ones_like(safe)))
    if return_inverse:
        inverse = tf.gather(group, cast(tf.argsort(order), "int32"))
        out.append(tf.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        out.append(last - first)
    return out[0] if len(out) == 1 else tuple(out)


def _in_order(rows):
    """The order of rows, by their first elements first, and the rows in it."""
    order = tf.range(rows.shape[0])
    for column in reversed(tf.unstack(_orderable(rows), axis=1)):
        order = tf.gather(order, cast(tf.argsort(tf.gather(column, order)), "int32"))
    return order, tf.gather(rows, order)
