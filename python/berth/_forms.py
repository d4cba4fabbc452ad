"""Functions that take more in TensorFlow than the engine's own: arrays in place of numbers, an axis, a length."""
from berth import _core
from berth._tensor import convert_to_tensor, float32, float64, int32

_ops = _core.ops


def linspace(start, stop, num, name=None, axis=0):
    """`num` evenly spaced numbers from start to stop, both included; of tensors, along a new axis."""
    first = convert_to_tensor(start)
    last = convert_to_tensor(stop, first.dtype) if not hasattr(stop, "dtype") else convert_to_tensor(stop)
    num = int(num)
    if num < 0:
        raise ValueError(f"tf.linspace: num is {num}; expected 0 or more")
    if first.dtype.is_integer:
        first, last = _ops.math.cast(first, float64), _ops.math.cast(last, float64)
    if isinstance(start, (int, float)) and isinstance(stop, (int, float)):
        return _ops.linspace(first, last, num, first.dtype) if num else _ops.zeros([0], first.dtype)
    shape = (_ops.zeros_like(first) + _ops.zeros_like(last)).shape.as_list()
    at = axis % (len(shape) + 1)
    first, last = (_ops.expand_dims(_ops.broadcast_to(v, shape), at) for v in (first, last))
    dtype = first.dtype if first.dtype.is_floating else _core.float64
    turns = _ops.reshape(_ops.math.cast(_ops.range(0, num - 1, 1), dtype), [-1 if i == at else 1 for i in range(len(shape) + 1)])
    step = (_ops.math.cast(last, dtype) - _ops.math.cast(first, dtype)) / max(num - 1, 1)
    inner = _ops.math.cast(_ops.math.cast(first, dtype) + step * turns, first.dtype)
    return _ops.concat([inner, last], at) if num > 1 else first if num else _ops.reshape(_ops.zeros([0], first.dtype), [
        0 if i == at else n for i, n in enumerate(first.shape)])


def _all_values(x):
    return x.flat_values if hasattr(x, "flat_values") else x.values if hasattr(x, "with_values") else convert_to_tensor(x)


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=int32, name=None, axis=None, binary_output=False):
    """How often each whole number from 0 occurs, or the sums of weights: of all values, or of each row (axis=-1).

    binary_output: 1 for numbers that occur, in place of how often.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"tf.math.bincount: axis is {axis!r}; expected None, 0 or -1")
    if binary_output and weights is not None:
        raise ValueError("tf.math.bincount: weights count nothing beside binary_output=True; leave one out")
    flat = _all_values(_ops.zeros([0], int32) if isinstance(arr, (list, tuple)) and not arr else arr)
    in_one_row = not hasattr(arr, "with_values") and len(flat.shape) < 2
    if not binary_output and (in_one_row or axis != -1):
        given = {"weights": None if weights is None else _all_values(weights), "minlength": minlength, "maxlength": maxlength}
        return _ops.math.bincount(flat, dtype=dtype, **{k: v for k, v in given.items() if v is not None})
    from berth import sparse
    out = sparse.to_dense(sparse.bincount(arr, weights, axis or 0, minlength, maxlength, binary_output))
    if in_one_row:
        out = _ops.reshape(out, [-1])
    return out if weights is not None else _ops.math.cast(out, dtype)


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """The sum of tensors of one shape and dtype; ValueError if those are not `shape` and `tensor_dtype`."""
    if not isinstance(inputs, (list, tuple)):
        return _ops.math.accumulate_n(inputs)  # what it says of them
    inputs = [convert_to_tensor(v) for v in inputs]
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


def sequence_mask(lengths, maxlen=None, dtype=_core.bool, name=None):
    """True, or 1 of a dtype, below each length: [..., maxlen]; without maxlen as many as the largest length."""
    maxlen = None if maxlen is None else int(maxlen)
    out = _ops.sequence_mask(convert_to_tensor(lengths), maxlen)
    return out if dtype == _core.bool else _ops.math.cast(out, dtype)


def _explicit(what, padding):
    """The engine's arguments for a padding: its name, or four pairs of numbers, in the order of data_format."""
    if not isinstance(padding, (list, tuple)):
        return {"padding": padding}
    pairs = [[int(n) for n in pair] for pair in padding]
    if len(pairs) != 4 or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise ValueError(f"tf.nn.{what}: padding is {padding!r}; expected 'SAME', 'VALID' or a pair of numbers for each of four axes")
    return {"padding": "EXPLICIT", "explicit_paddings": [n for pair in pairs for n in pair]}


def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    """The convolution of [n, h, w, in] by filters [h, w, in, out]: [n, oh, ow, out]. padding: a name, or four pairs."""
    given = {} if dilations is None else {"dilations": dilations}
    return _ops.nn.conv2d(input, filters, strides, data_format=data_format, **_explicit("conv2d", padding), **given)


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    """The convolution of each channel by filters of its own [h, w, in, multiplier]. padding: a name, or four pairs."""
    given = {} if dilations is None else {"dilations": dilations}
    return _ops.nn.depthwise_conv2d(input, filter, strides, data_format=data_format or "NHWC",
                                    **_explicit("depthwise_conv2d", padding), **given)


_EXACT = (_core.int8, _core.uint8, _core.int16, _core.uint16, _core.int32, _core.uint32)  # in float64


def max_pool2d(input, ksize, strides, padding, data_format="NHWC", name=None):
    """The maximum of windows of [n, h, w, c]. padding: a name, or four pairs: of what counts less than any number."""
    x = convert_to_tensor(input)
    dtype = x.dtype
    if dtype in _EXACT:
        x = _ops.math.cast(x, _core.float64)
    if isinstance(padding, (list, tuple)):
        pairs = _explicit("max_pool2d", padding)["explicit_paddings"]
        from berth._ops import pad
        x = pad(x, [pairs[i:i + 2] for i in (0, 2, 4, 6)], "CONSTANT", float("-inf"))
        padding = "VALID"
    out = _ops.nn.max_pool2d(x, ksize, strides, padding, data_format=data_format or "NHWC")
    return _ops.math.cast(out, dtype) if dtype in _EXACT else out


def sign(x, name=None):
    """-1, 0 or 1; of complex numbers x / |x|, and 0 of 0."""
    x = convert_to_tensor(x)
    if not x.dtype.is_complex:
        return _ops.math.sign(x)
    size = _ops.math.cast(_ops.math.abs(x), x.dtype)
    nothing = _ops.math.equal(x, _ops.zeros_like(x))
    return _ops.where(nothing, x, x / _ops.where(nothing, _ops.ones_like(x), size))


def divide_no_nan(x, y, name=None):
    """x / y, and 0 where y is 0; of whole numbers float64, of such of 8 or 16 bits float32."""
    x = convert_to_tensor(x, getattr(y, "dtype", None))
    y = convert_to_tensor(y, x.dtype)
    if x.dtype.is_integer:
        x, y = (_ops.math.cast(v, float64 if x.dtype.size > 2 else float32) for v in (x, y))
    return _ops.math.divide_no_nan(x, y)


def relu6(features, name=None):
    """Numbers cut off at 0 and 6."""
    x = convert_to_tensor(features)
    return _ops.clip_by_value(x, 0, 6) if x.dtype.is_integer else _ops.nn.relu6(x)


def leaky_relu(features, alpha=0.2, name=None):
    """features, and alpha * features where they are negative; of whole numbers float32."""
    x = convert_to_tensor(features)
    return _ops.nn.leaky_relu(_ops.math.cast(x, float32) if x.dtype.is_integer else x, alpha)


class constant_initializer:
    """Makes tensors of one number, or of the values of an array (tf.constant_initializer)."""

    def __new__(cls, value=0):
        if isinstance(value, (bool, int, float)):
            from berth.keras import initializers
            return initializers.Constant(value)
        return super().__new__(cls)

    def __init__(self, value=0):
        self.value = convert_to_tensor(value)

    def __call__(self, shape, dtype=None, **kwargs):
        """The values [shape]; TypeError unless they are as many, or one."""
        values, count = self.value, _core.TensorShape(shape).num_elements()
        if values.shape.num_elements() not in (1, count):
            raise TypeError(f"constant_initializer: {values.shape.num_elements()} values for the shape {shape}, which has {count}")
        values = _ops.reshape(values, [-1] if values.shape.num_elements() == count else [1] * len(_core.TensorShape(shape)))
        values = _ops.reshape(values, shape) if values.shape.num_elements() == count else _ops.broadcast_to(values, shape)
        return values if dtype is None else _ops.math.cast(values, dtype)

    def get_config(self):
        """{"value": the values as lists}."""
        return {"value": self.value.numpy().tolist()}

    @classmethod
    def from_config(cls, config):
        """The initializer of a get_config()."""
        return cls(**config)
