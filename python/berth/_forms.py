"""Functions that take more in TensorFlow than the engine's own: arrays in place of numbers, an axis, a length."""
from berth import _core
from berth._tensor import convert_to_tensor, float32, int32

_ops = _core.ops


def linspace(start, stop, num, name=None, axis=0):
    """`num` evenly spaced numbers from start to stop, both included; of tensors, along a new axis."""
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, first.dtype) if not hasattr(stop, "dtype") else convert_to_tensor(stop)
    num = int(num)
    if not len(first.shape) and not len(last.shape):
        return _ops.linspace(start, stop, num) if first.dtype == float32 else _ops.linspace(start, stop, num, first.dtype)
    if num < 1:
        raise ValueError(f"tf.linspace: num is {num}; expected 1 or more")
    shape = (_ops.zeros_like(first) + _ops.zeros_like(last)).shape.as_list()
    at = axis % (len(shape) + 1)
    first, last = (_ops.expand_dims(_ops.broadcast_to(v, shape), at) for v in (first, last))
    dtype = first.dtype if first.dtype.is_floating else _core.float64
    turns = _ops.reshape(_ops.math.cast(_ops.range(0, num - 1, 1), dtype), [-1 if i == at else 1 for i in range(len(shape) + 1)])
    step = (_ops.math.cast(last, dtype) - _ops.math.cast(first, dtype)) / max(num - 1, 1)
    inner = _ops.math.cast(_ops.math.cast(first, dtype) + step * turns, first.dtype)
    return _ops.concat([inner, last], at) if num > 1 else first


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=int32, name=None, axis=None, binary_output=False):
    """How often each whole number from 0 occurs, or the sums of weights: of all values, or of each row (axis=-1).

    binary_output: 1 for numbers that occur, in place of how often.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"tf.math.bincount: axis is {axis!r}; expected None, 0 or -1")
    if binary_output and weights is not None:
        raise ValueError("tf.math.bincount: weights count nothing beside binary_output=True; leave one out")
    if not hasattr(arr, "with_values") and (axis in (None, 0) and not binary_output or (
            not binary_output and len(convert_to_tensor(arr).shape) < 2)):
        given = {"weights": weights, "minlength": minlength, "maxlength": maxlength}
        return _ops.math.bincount(arr, dtype=dtype, **{k: v for k, v in given.items() if v is not None})
    from berth import sparse
    out = sparse.to_dense(sparse.bincount(arr, weights, axis or 0, minlength, maxlength, binary_output))
    if not hasattr(arr, "with_values") and len(convert_to_tensor(arr).shape) < 2:
        out = _ops.reshape(out, [-1])
    return out if weights is not None else _ops.math.cast(out, dtype)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """The sum of tensors of one shape and dtype; ValueError if those are not `shape` and `tensor_dtype`."""
    inputs = [convert_to_tensor(v) for v in inputs] if isinstance(inputs, (list, tuple)) else []
    wrong = [v for v in inputs if shape is not None and not v.shape.is_compatible_with(shape)
             or tensor_dtype is not None and v.dtype != tensor_dtype]
    if wrong or not inputs:
        raise ValueError("tf.math.accumulate_n: expected tensors of one shape and dtype"
                         + (f", {shape} and {tensor_dtype}, not {wrong[0].shape} of {wrong[0].dtype.name}" if wrong else ""))
    return _ops.math.accumulate_n(inputs)


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """The bytes of texts as numbers; with fixed_length of its first bytes, with zeros where a text is shorter."""
    if fixed_length is not None:
        if fixed_length <= 0 or fixed_length % out_type.size:
            raise ValueError(f"tf.io.decode_raw: fixed_length is {fixed_length}; expected a multiple of the {out_type.size} bytes "
                             f"of {out_type.name}")
        import numpy
        texts = convert_to_tensor(input_bytes).numpy()
        cut = [t[:fixed_length].ljust(fixed_length, b"\0") for t in numpy.ravel(texts).tolist()]
        input_bytes = convert_to_tensor(numpy.asarray(cut, object).reshape(numpy.shape(texts)), _core.string)
    return _ops.io.decode_raw(input_bytes, out_type, little_endian)
