"""Functions whose engine's form lacks arguments of TensorFlow's, or has them in another order."""
from berth import _core
from berth._tensor import as_dtype, convert_to_tensor, int64

_ops = _core.ops


def boolean_mask(tensor, mask, axis):
    """tf.boolean_mask() of another axis than the first."""
    x, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    lengths = x.shape.as_list()
    axis = int(axis) + (len(lengths) if axis < 0 else 0)
    if lengths[axis:axis + len(mask.shape)] != mask.shape.as_list():
        raise ValueError(f"boolean_mask: the mask is {mask.shape}; expected the lengths of a tensor {x.shape} from axis {axis} on")
    x = _ops.reshape(x, [*lengths[:axis], -1, *lengths[axis + len(mask.shape):]])
    return _ops.gather(x, _ops.squeeze(_ops.where(_ops.reshape(mask, [-1])), [1]), axis=axis)


def bias_add(value, bias, data_format=None, name=None):
    """value + bias, whose numbers are the channels': the last axis, or by "NC..." the second."""
    if data_format is None or not data_format.startswith("NC"):
        if data_format is not None and not data_format.startswith("N"):
            raise ValueError(f"bias_add: data_format is {data_format!r}; expected 'N...C' or 'NC...'")
        return _ops.nn.bias_add(value, bias)
    x, bias = convert_to_tensor(value), convert_to_tensor(bias)
    return x + _ops.reshape(bias, [-1] + [1] * (len(x.shape) - 2))


def conv1d_transpose(input, filters, output_shape=None, strides=None, padding="SAME", data_format="NWC", dilations=1, name=None,
                     stride=None, explicit_paddings=()):
    """The transpose of conv1d() for [batch, width, channels]; output_shape: that of the result. strides (or stride): a number."""
    step = strides if stride is None else stride
    step, dilations = (v if isinstance(v, int) else max(v) for v in (1 if step is None else step, dilations or 1))
    shape = [] if output_shape is None else [int(n) for n in output_shape]
    return _ops.nn.conv1d_transpose(input, filters, shape, padding, data_format=data_format or "NWC", dilations=dilations,
                                    stride=step, explicit_paddings=list(explicit_paddings))


def conv3d_transpose(input, filters, output_shape=None, strides=1, padding="SAME", data_format="NDHWC", dilations=1, name=None):
    """The transpose of conv3d(); output_shape: that of the result, which the other arguments give, too. strides: 1, 3 or 5 numbers."""
    from berth._numeric import conv_transpose
    x, kernel = convert_to_tensor(input), convert_to_tensor(filters)
    steps = [strides] * 3 if isinstance(strides, int) else list(strides)
    if output_shape is None:
        from berth._numeric import _each
        first = data_format.startswith("NC")
        return _ops.nn.conv3d_transpose(x, kernel, padding=padding, data_format=data_format, strides=_each(steps, 3, first),
                                        dilations=_each(dilations, 3, first))
    return conv_transpose(x, kernel, output_shape, steps, padding, data_format, dilations)


def silu(features, beta=1.0):
    """features * sigmoid(beta * features)."""
    if isinstance(beta, (int, float)) and beta == 1:
        return _ops.nn.silu(features)
    x = convert_to_tensor(features)
    return x * _ops.math.sigmoid(_ops.math.cast(convert_to_tensor(beta), x.dtype) * x)


swish = silu


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """The cross entropy of probabilities and logits of classes along an axis, which the result lacks."""
    labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
    rank = len(logits.shape)
    if axis in (-1, rank - 1):
        return _ops.nn.softmax_cross_entropy_with_logits(labels, logits)
    order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
    return _ops.nn.softmax_cross_entropy_with_logits(_ops.transpose(labels, order), _ops.transpose(logits, order))


def count_nonzero(input, axis=None, keepdims=None, dtype=int64, name=None):
    """How many elements are not 0, or not "", of all or along axes."""
    out = _ops.math.count_nonzero(input, axis, bool(keepdims))
    return out if out.dtype == as_dtype(dtype) else _ops.math.cast(out, as_dtype(dtype))
