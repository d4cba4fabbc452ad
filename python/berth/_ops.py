"""Functions whose form in TensorFlow differs from the engine's."""
import builtins

from berth import _core
from berth._tensor import convert_to_tensor, float32, int32, int64, string

_ops = _core.ops

__all__ = ["reshape", "range", "unique", "unique_with_counts", "print", "group", "no_op", "shape",
           "pad", "squeeze", "argmax", "argmin", "reduce_mean", "histogram_fixed_width", "zeros", "ones",
           "clip_by_global_norm", "einsum", "fill", "rank", "size", "stack", "identity", "split", "gather"]

_builtin_range = builtins.range


def reshape(tensor, shape, name=None):
    return _ops.reshape(tensor, shape)


def shape(input, out_type=int32, name=None):
    input = convert_to_tensor(input)
    known = not getattr(input, "is_symbolic", True) and input.shape.as_list()
    return _ops.shape(input, out_type) if known is False else convert_to_tensor(known, out_type)


def zeros(shape, dtype=float32, name=None):
    return _ops.zeros(shape, dtype)


def ones(shape, dtype=float32, name=None):
    return _ops.ones(shape, dtype)


def einsum(equation, *inputs, **kwargs):
    return _ops.einsum(equation, inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (list, tuple)) else inputs,
                       **kwargs)


def fill(dims, value, dtype=None, name=None):
    value = convert_to_tensor(value, dtype)
    if value.dtype == string:
        import numpy
        return convert_to_tensor(numpy.broadcast_to(value._array(), [int(d) for d in dims]))
    return _ops.broadcast_to(value, dims)


def rank(input, name=None):
    return convert_to_tensor(len(convert_to_tensor(input).shape))


def size(input, out_type=int32, name=None):
    input = convert_to_tensor(input)
    known = input.shape.num_elements()
    return _ops.math.cast(_ops.size(input) if known is None else known, out_type)


def stack(values, axis=0, name=None):
    if isinstance(values, (list, tuple)) and any(
            isinstance(v, (str, bytes)) or getattr(v, "dtype", None) == string for v in values):
        import numpy
        return convert_to_tensor(numpy.stack([convert_to_tensor(v, string)._array() for v in values], axis))
    return _ops.stack(values, axis)


def identity(input, name=None):
    return _ops.identity(convert_to_tensor(input))


def range(start, limit=None, delta=1, dtype=None, name=None):
    if limit is None:
        start, limit = 0, start
    floating = any(isinstance(v, float) for v in (start, limit, delta))
    if floating or (dtype is not None and dtype == float32):
        return _ops.float_range(start, limit, delta, float32 if dtype is None else dtype)
    return _ops.range(start, limit, delta, int32 if dtype is None else dtype)


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    flat = [int(v) for pair in convert_to_tensor(paddings).numpy() for v in pair]
    return _ops.pad(tensor, flat, mode=mode, constant_values=constant_values)


def squeeze(input, axis=None, name=None):
    if axis is None:
        return _ops.squeeze(input)
    return _ops.squeeze(input, [axis] if isinstance(axis, int) else list(axis))


def argmax(input, axis=None, output_type=int64, name=None):
    out = _ops.math.argmax(input, 0 if axis is None else axis)
    return out if out.dtype == output_type else _ops.math.cast(out, output_type)


def argmin(input, axis=None, output_type=int64, name=None):
    out = _ops.math.argmin(input, 0 if axis is None else axis)
    return out if out.dtype == output_type else _ops.math.cast(out, output_type)


def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    x = input_tensor if isinstance(input_tensor, _core.Tensor) else convert_to_tensor(input_tensor)
    if not x.dtype.is_integer:
        return _ops.math.reduce_mean(x, axis, keepdims)
    # Whole numbers have a whole mean, as in TensorFlow; that of none is 0.
    total = _ops.math.reduce_sum(x, axis, keepdims)
    count = _ops.math.truncatediv(_ops.size(x), _ops.math.maximum(_ops.size(total), 1))
    return _ops.math.truncatediv(total, _ops.math.cast(_ops.math.maximum(count, 1), x.dtype))


def histogram_fixed_width(values, value_range, nbins=100, dtype=int32, name=None):
    low, high = (float(v) for v in value_range)
    return _ops.math.cast(_ops.histogram_fixed_width(values, low=low, high=high, nbins=int(nbins)), dtype)


def split(value, num_or_size_splits, axis=0, num=None, name=None):
    if isinstance(num_or_size_splits, int):
        return _ops.split(value, num=num_or_size_splits, axis=axis)
    return _ops.split(value, [int(n) for n in num_or_size_splits], axis=axis)


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    if isinstance(params, _core.Tensor) and params.dtype == string:
        # Text is on the host.
        import numpy
        at = convert_to_tensor(indices).numpy()
        return convert_to_tensor(numpy.take(params.numpy(), at, axis=axis or 0))
    axis = batch_dims if axis is None else axis
    if not batch_dims:
        return _ops.gather(params, indices, axis=axis)
    return _ops.gather(params, indices, axis=axis, batch_dims=batch_dims)


def unique(x, out_idx=int32, name=None):
    y, idx, _, _ = _ops.unique(x)
    return y, _ops.math.cast(idx, out_idx)


def unique_with_counts(x, out_idx=int32, name=None):
    y, idx, count, _ = _ops.unique_with_counts(x)
    return y, _ops.math.cast(idx, out_idx), _ops.math.cast(count, out_idx)


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    if use_norm is None:
        return _ops.clip_by_global_norm(list(t_list), float(clip_norm))
    factor = clip_norm / _ops.math.maximum(use_norm, clip_norm)
    return [None if t is None else t * factor for t in t_list], use_norm


def print(*inputs, output_stream=None, summarize=None, sep=" ", end="\n", name=None):
    builtins.print(*[v.numpy() if hasattr(v, "numpy") else v for v in inputs], sep=sep, end=end, file=output_stream)


def group(*inputs, **kwargs):
    return None


def no_op(name=None):
    return None
