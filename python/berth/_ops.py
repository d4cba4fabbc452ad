"""Functions whose form in TensorFlow differs from the engine's."""
import builtins
import collections
import sys

from berth import _core
from berth._lazy import Lazy
from berth._structure import flatten, pack
from berth._tensor import as_dtype, convert_to_tensor, float32, float64, int32, int64, string

_ops = _core.ops

__all__ = ["reshape", "broadcast_to", "boolean_mask", "range", "unique", "unique_with_counts", "print", "group", "no_op", "shape",
           "pad", "squeeze", "argmax", "argmin", "reduce_mean", "histogram_fixed_width", "zeros", "ones",
           "clip_by_global_norm", "einsum", "fill", "rank", "size", "stack", "identity", "split", "gather",
           "slice", "meshgrid", "gather_nd", "divide", "truediv", "transpose", "repeat", "timestamp", "zeros_like", "ones_like"]

_np = Lazy("numpy")
Unique = collections.namedtuple("Unique", "y idx")
UniqueWithCounts = collections.namedtuple("UniqueWithCounts", "y idx count")
_ragged_shape = Lazy("berth._ragged_shape")


def reshape(tensor, shape, name=None):
    """The elements of a tensor with another shape; one length may be -1."""
    if hasattr(shape, "row_partitions"):
        return _ragged_shape.reshape(tensor, shape)
    return _ops.reshape(tensor, shape)


def broadcast_to(input, shape, name=None):
    """A tensor repeated along axes of length 1, and new first ones, to have a shape."""
    if hasattr(shape, "row_partitions"):
        return _ragged_shape.broadcast_to(input, shape)
    return _ops.broadcast_to(input, shape)


def shape(input, out_type=int32, name=None):
    """The shape of a tensor, [rank]."""
    input = convert_to_tensor(input)
    known = not getattr(input, "is_symbolic", True) and input.shape.as_list()
    return _ops.shape(input, out_type) if known is False else convert_to_tensor(known, out_type)


def _empty_texts(shape):
    import numpy as np
    shape = shape.as_list() if hasattr(shape, "as_list") else np.asarray(shape).tolist()
    return convert_to_tensor(np.full(shape, b"", object), string)


def zeros(shape, dtype=float32, name=None):
    """Zeros of this shape and dtype."""
    if hasattr(shape, "row_partitions"):
        return _ragged_shape.filled(shape, lambda inner: _ops.zeros(inner, dtype))
    if dtype == string:
        return _empty_texts(shape)
    return _ops.zeros(shape, dtype)


def ones(shape, dtype=float32, name=None):
    """Ones of this shape and dtype."""
    if hasattr(shape, "row_partitions"):
        return _ragged_shape.filled(shape, lambda inner: _ops.ones(inner, dtype))
    return _ops.ones(shape, dtype)


def zeros_like(input, dtype=None, name=None, layout=None):
    """Zeros of the shape of a tensor, and of its dtype or another."""
    input = convert_to_tensor(input)
    if (input.dtype if dtype is None else dtype) == string:
        return _empty_texts(input.shape)
    out = _ops.zeros_like(input)
    return out if dtype is None or out.dtype == dtype else _ops.math.cast(out, dtype)


def ones_like(input, dtype=None, name=None, layout=None):
    """Ones of the shape of a tensor, and of its dtype or another."""
    out = _ops.ones_like(input)
    return out if dtype is None or out.dtype == dtype else _ops.math.cast(out, dtype)


def einsum(equation, *inputs, **kwargs):
    """The sum of products that an equation says, "ij,jk->ik", with Einstein's rule.

    optimize: "greedy", "optimal", "branch-2", "branch-all" or "auto"; the engine has an order of its own for all of them.
    """
    if kwargs.pop("optimize", "greedy") not in ("greedy", "optimal", "branch-2", "branch-all", "auto"):
        raise ValueError("einsum: optimize: expected 'greedy', 'optimal', 'branch-2', 'branch-all' or 'auto'")
    return _ops.einsum(equation, inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs,
                       **kwargs)


def fill(dims, value, dtype=None, name=None):
    """A tensor [dims] filled with one value."""
    if hasattr(dims, "row_partitions"):
        return _ragged_shape.filled(dims, lambda inner: fill(inner, value, dtype))
    value = convert_to_tensor(value, dtype)
    if value.dtype == string:
        import numpy
        return convert_to_tensor(numpy.broadcast_to(value._array(), [int(d) for d in dims]))
    return _ops.broadcast_to(value, dims)


def rank(input, name=None):
    """The number of dimensions, a scalar."""
    return convert_to_tensor(len(convert_to_tensor(input).shape))


def size(input, out_type=int32, name=None):
    """The number of elements, a scalar."""
    input = convert_to_tensor(input)
    known = input.shape.num_elements()
    return _ops.math.cast(_ops.size(input) if known is None else known, out_type)


def stack(values, axis=0, name=None):
    """Tensors of one shape [...] on top of each other: a new axis at `axis`."""
    if isinstance(values, (list, tuple)) and any(
            isinstance(v, (str, bytes)) or getattr(v, "dtype", None) == string for v in values):
        import numpy
        return convert_to_tensor(numpy.stack([convert_to_tensor(v, string)._array() for v in values], axis))
    if isinstance(values, (list, tuple)) and not values:
        return _ops.zeros([0])
    return _ops.stack(values, axis)


def identity(input, name=None):
    """The same values, on the device of the innermost scope."""
    return _ops.identity(convert_to_tensor(input))


def slice(input_, begin, size, name=None):
    """The block of `input_` that begins at `begin` and has `size`, -1 to the end; tensors may say both."""
    begin, size = (v.numpy().tolist() if hasattr(v, "numpy") and len(v.shape) == 1 and not _core.is_open(v) else v
                   for v in (begin, size))
    try:
        return _ops.slice(input_, begin, size)
    except _core.FailedPreconditionError:
        # The place follows from values, the size must not.
        wanted = [int(n) for n in size]
        out = convert_to_tensor(input_)
        for axis, n in enumerate(wanted):
            if n < 0 and _core.is_open(begin[axis]):
                raise
            if n < 0:
                n = out.shape[axis] - int(begin[axis])
            out = _ops.gather(out, _ops.range(0, n, 1, int32) + _ops.math.cast(begin[axis], int32), axis=axis)
        return out


def meshgrid(*args, indexing="xy", name=None):
    """Tensors of rank 1 as one axis each of a grid: a list of tensors of its shape; "xy" swaps the first two."""
    parts = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return _ops.meshgrid([convert_to_tensor(v) for v in parts], indexing)


def repeat(input, repeats, axis=None, name=None):
    """Each element of `input`, or along `axis` each slice, `repeats` times; a list or vector says it of each."""
    if isinstance(repeats, (_core.Tensor, _core.Variable)) and len(repeats.shape) == 1:
        repeats = repeats.numpy().tolist()
    if axis is None and isinstance(repeats, (list, tuple)):
        input, axis = _ops.reshape(input, [-1]), 0
    return _ops.repeat(input, repeats) if axis is None else _ops.repeat(input, repeats, axis)


def range(start, limit=None, delta=1, dtype=None, name=None):
    """start, start + delta, ... before limit; with one argument 0, 1, ... before it."""
    if limit is None:
        start, limit = 0, start
    start, limit, delta = (v if isinstance(v, (int, float, _core.Tensor, _core.Variable)) else convert_to_tensor(v)
                           for v in (start, limit, delta))
    given = [v.dtype for v in (start, limit, delta) if isinstance(v, (_core.Tensor, _core.Variable))]
    if dtype is None and given:
        dtype = next((d for d in given if d.is_floating), given[0])
    floating = any(isinstance(v, float) for v in (start, limit, delta))
    if floating or (dtype is not None and as_dtype(dtype).is_floating):
        return _ops.float_range(start, limit, delta, float32 if dtype is None else dtype)
    return _ops.range(start, limit, delta, int32 if dtype is None else dtype)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """A tensor with paddings[i] = (before, after) more along axis i: constant_values, or "REFLECT" or "SYMMETRIC" ones."""
    flat = [int(v) for pair in convert_to_tensor(paddings).numpy() for v in pair]
    if isinstance(constant_values, (str, bytes)) or getattr(constant_values, "dtype", None) == string:
        from berth._strings import by_number
        return by_number(lambda x, number: _ops.pad(x, flat, mode=mode, constant_values=int(number)),
                         convert_to_tensor(tensor), convert_to_tensor(constant_values))
    return _ops.pad(tensor, flat, mode=mode, constant_values=constant_values)


def squeeze(input, axis=None, name=None):
    """Without axes of length 1: those given, or all."""
    if axis is None:
        return _ops.squeeze(input)
    return _ops.squeeze(input, [axis] if isinstance(axis, int) else list(axis))


def _number_of(x):
    """Truths as 0 and 1."""
    x = convert_to_tensor(x)
    return _ops.math.cast(x, int32) if x.dtype == _core.bool else x


def argmax(input, axis=None, output_type=int64, name=None):
    """The place of the largest element along `axis`, the first of equal ones: [input without it]."""
    out = _ops.math.argmax(_number_of(input), 0 if axis is None else axis)
    return out if out.dtype == output_type else _ops.math.cast(out, output_type)


def argmin(input, axis=None, output_type=int64, name=None):
    """The place of the smallest element along `axis`, the first of equal ones: [input without it]."""
    out = _ops.math.argmin(_number_of(input), 0 if axis is None else axis)
    return out if out.dtype == output_type else _ops.math.cast(out, output_type)


def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    """The mean over axes, all by default: [input without them], or with keepdims axes of length 1."""
    x = input_tensor if isinstance(input_tensor, _core.Tensor) else convert_to_tensor(input_tensor)
    if not x.dtype.is_integer:
        return _ops.math.reduce_mean(x, axis, keepdims)
    # Whole numbers have a whole mean, as in TensorFlow; that of none is 0.
    total = _ops.math.reduce_sum(x, axis, keepdims)
    count = _ops.math.truncatediv(_ops.size(x), _ops.math.maximum(_ops.size(total), 1))
    wide = x.dtype if x.dtype.size == 8 else int64  # a narrow one may not hold the count
    mean = _ops.math.truncatediv(_ops.math.cast(total, wide), _ops.math.cast(_ops.math.maximum(count, 1), wide))
    return _ops.math.cast(mean, x.dtype)


def histogram_fixed_width(values, value_range, nbins=100, dtype=int32, name=None):
    """How many values are in each of nbins equal parts of value_range, [nbins]; those outside count at the ends."""
    low, high = (float(v) for v in value_range)
    return _ops.math.cast(_ops.histogram_fixed_width(values, low=low, high=high, nbins=int(nbins)), dtype)


def split(value, num_or_size_splits, axis=0, num=None, name=None):
    """Parts of a tensor along `axis`, so many equal ones or of these sizes; a list."""
    if isinstance(num_or_size_splits, int):
        return _ops.split(value, num=num_or_size_splits, axis=axis)
    return _ops.split(value, [int(n) for n in num_or_size_splits], axis=axis)


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """Slices of params at indices along `axis`: [params before axis, indices, params after axis]."""
    axis = batch_dims if axis is None else axis
    if isinstance(params, (list, tuple)):
        params = convert_to_tensor(params)
    if isinstance(params, _core.Tensor) and params.dtype == string:
        from berth._strings import by_number
        return by_number(_ops.gather, params, indices, axis=axis, batch_dims=batch_dims)
    if isinstance(indices, _core.Tensor) and indices.dtype.is_integer and indices.dtype.size < 4:
        indices = _ops.math.cast(indices, int32)
    if not batch_dims:
        return _ops.gather(params, indices, axis=axis)
    return _ops.gather(params, indices, axis=axis, batch_dims=batch_dims)


def boolean_mask(tensor, mask, axis=None, name=None):
    """What lies under the Trues of a mask over the axes from `axis` on, the first without one: [before, Trues, after]."""
    if not axis:
        return _ops.boolean_mask(tensor, mask)
    from berth._arguments import boolean_mask
    return boolean_mask(tensor, mask, axis)


def gather_nd(params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    """Slices of params at places: indices [..., k] gives [..., params after k axes]; the first batch_dims axes are common."""
    if bad_indices_policy not in ("", "DEFAULT", "ERROR"):
        raise ValueError(f"tf.gather_nd: bad_indices_policy is {bad_indices_policy!r}; expected '' or 'ERROR': places outside "
                         "are errors")
    if batch_dims:
        indices = convert_to_tensor(indices)
        lengths = indices.shape.as_list()[:-1]
        rows = [_ops.broadcast_to(_ops.reshape(range(n, dtype=indices.dtype), [n] + [1] * (len(lengths) - i)), lengths + [1])
                for i, n in enumerate(lengths[:batch_dims])]
        indices = _ops.concat([*rows, indices], -1)
    return _ops.gather_nd(params, indices)


def transpose(a, perm=None, conjugate=False, name=None):
    """The axes in the order of `perm`, reversed without it; conjugate: of complex numbers the conjugates."""
    out = _ops.transpose(a) if perm is None else _ops.transpose(a, perm)
    return _ops.math.conj(out) if conjugate and out.dtype.is_complex else out


def divide(x, y, name=None):
    """x / y; of whole numbers float64, of such of 8 or 16 bits float32."""
    try:
        return _ops.math.divide(x, y)
    except _core.InvalidArgumentError as error:
        if not str(error).startswith("RealDiv: x is"):
            raise
    x = convert_to_tensor(x, getattr(y, "dtype", None))
    return x / convert_to_tensor(y, x.dtype)


truediv = divide


def unique(x, out_idx=int32, name=None):
    """The different values of x [n] in the order in which they come, and the place of each element among them."""
    return Unique(*unique_with_counts(x, out_idx)[:2])


def unique_with_counts(x, out_idx=int32, name=None):
    """The same as unique(), and how often each value occurs."""
    x = convert_to_tensor(x)
    if x.dtype == string:
        places, found, counts = {}, [], []
        for text in x.numpy().tolist():
            found.append(places.setdefault(text, len(places)))
            counts += [0] * (len(places) - len(counts))
            counts[found[-1]] += 1
        y, idx, count = (convert_to_tensor(v, d) for v, d in ((list(places), string), (found, int32), (counts, int32)))
    else:
        y, idx, count, _ = _ops.unique_with_counts(x)
    return UniqueWithCounts(y, _ops.math.cast(idx, out_idx), _ops.math.cast(count, out_idx))



def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """Tensors scaled so that their common norm is at most clip_norm, and that norm before: (list, scalar)."""
    if use_norm is None:
        clipped, norm = _ops.clip_by_global_norm([t for t in t_list if t is not None], float(clip_norm))
        parts = iter(clipped)
        return [None if t is None else next(parts) for t in t_list], norm
    factor = clip_norm / _ops.math.maximum(use_norm, clip_norm)
    return [None if t is None else t * factor for t in t_list], use_norm


def print(*inputs, output_stream=None, summarize=None, sep=" ", end="\n", name=None):
    """Prints values, of a traced function whenever it runs: to sys.stderr, or `output_stream`, a file or "file://PATH".

    Of long axes `summarize` elements of both ends are shown, 3 by default, -1: all.
    """
    from berth._host import call_host
    leaves, form = flatten(list(inputs), lambda v: isinstance(v, (_core.Tensor, _core.Variable)))

    def run(*values):
        shown = sep.join(_shown(v, 3 if summarize is None else summarize) for v in pack(form, values)) + end
        if isinstance(output_stream, str) and output_stream.startswith("file://"):
            with open(output_stream[len("file://"):], "a", encoding="utf-8") as file:
                file.write(shown)
            return []
        stream = {"stdout": sys.stdout, "stderr": sys.stderr}.get(output_stream, output_stream)
        (stream or sys.stderr).write(shown)
        return []

    if any(_core.is_open(v) for v in leaves) or (_core.traces_loop() and not leaves):
        call_host(run, [convert_to_tensor(v) for v in leaves], [])
    elif _core.traces_loop():
        call_host(lambda *_: run(*leaves), [], [])
    else:
        run(*leaves)


def _shown(value, most):
    """A value as tf.print writes it: "[1 2 3]", "0.5", "1"."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_shown_inside(v, most)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inner = [_shown_inside(v, most) for v in value]
        if hasattr(value, "_fields"):
            return f"{type(value).__name__}({', '.join(map('='.join, zip(value._fields, inner)))})"
        return f"[{', '.join(inner)}]" if isinstance(value, list) else f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    if not hasattr(value, "_array"):
        return str(value)
    array = value._array()
    if not array.shape:
        return _number(array[()])
    edge = max(array.shape) if most < 0 else most
    few = array.size and max(array.shape) <= 2 * edge
    return _np.array2string(array, edgeitems=edge, threshold=array.size if few else 0, separator=" ",
                            max_line_width=10**9, formatter={"all": _number}).replace("\n\n", "\n")


def _shown_inside(value, most):
    return repr(value) if isinstance(value, str) else _shown(value, most)


def _number(v):
    if isinstance(v, bytes):
        return '"' + v.decode("utf-8", "backslashreplace") + '"'
    if isinstance(v, (bool, _np.bool_)):
        return str(int(v))
    if not isinstance(v, (float, _np.floating)):
        return str(v)
    digits = 15 if isinstance(v, float) else 6  # as few as give the number back
    short = f"{v:.{digits}g}"
    return short if type(v)(short) == v or v != v else f"{v:.{17 if digits == 15 else 9}g}"


def timestamp(name=None):
    """The seconds since 1970, float64 []; in a traced function those of each run."""
    import time
    if not _core.traces_loop():
        return convert_to_tensor(time.time(), float64)
    from berth._host import call_host
    from berth._tensor import TensorSpec
    return call_host(lambda *_: [convert_to_tensor(time.time(), float64)], [], [TensorSpec([], float64)])[0]


def group(*inputs, **kwargs):
    """Accepted as in TensorFlow; ops of a traced function run in any case: None."""
    return None


def no_op(name=None):
    """Does nothing: None."""
    return None
