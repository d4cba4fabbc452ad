"""Functions whose engine's form lacks arguments of TensorFlow's, or has them in another order."""
from berth import _core
from berth._not_tensors import refuse_kinds
from berth._strings import _of_text_too
from berth._tensor import AnyShape, IndexedSlices, as_dtype, convert_to_tensor, int64, refuse, string, uint8

_ops = _core.ops
_unstacked = _of_text_too(_ops.unstack)


def boolean_mask(tensor, mask, axis):
    """tf.boolean_mask() of another axis than the first."""
    x, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    lengths = x.shape.as_list()
    axis = int(axis) + (len(lengths) if axis < 0 else 0)
    if lengths[axis:axis + len(mask.shape)] != mask.shape.as_list():
        raise ValueError(f"boolean_mask: the mask is {mask.shape}; expected the lengths of a tensor {x.shape} from axis {axis} on")
    x = _ops.reshape(x, [*lengths[:axis], -1, *lengths[axis + len(mask.shape):]])
    return _ops.gather(x, _ops.squeeze(_ops.where(_ops.reshape(mask, [-1])), [1]), axis=axis)


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """`depth` values for each of `indices`, on a new axis (the last): on_value, 1, at the index, off_value, 0, elsewhere.

    dtype: that of the values, float32 where they are not given either.
    """
    options = {} if axis is None else {"axis": axis}
    if on_value is None and off_value is None:
        return _ops.one_hot(indices, depth, **options, **{} if dtype is None else {"dtype": dtype})
    on, off = (None if v is None else convert_to_tensor(v, None if hasattr(v, "dtype") else dtype) for v in (on_value, off_value))
    dtype = as_dtype(dtype or (off if on is None else on).dtype)
    on, off = (convert_to_tensor(n, dtype) if v is None else v for n, v in ((1, on), (0, off)))
    if {on.dtype, off.dtype} != {dtype}:
        raise TypeError(f"one_hot: on_value is {on.dtype.name}, off_value {off.dtype.name}; expected {dtype.name}")
    return _of_text_too(_ops.where)(_ops.one_hot(indices, depth, dtype=_core.bool, **options), on, off)


def ensure_shape(x, shape, name=None):
    """x; InvalidArgumentError unless it has `shape`, of which None says nothing."""
    unknown = shape is None or isinstance(shape, AnyShape) and shape.rank is None
    return _of_text_too(_ops.identity)(x) if unknown else _of_text_too(_ops.ensure_shape)(x, shape)


def global_norm(t_list, name=None):
    """The root of the sum of all squares, []; None in the list counts nothing."""
    refuse_kinds("global_norm", "a list of tensors", t_list=t_list)
    return _ops.linalg.global_norm([t.values if isinstance(t, IndexedSlices) else t for t in t_list if t is not None])


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
    if None not in (strides, stride):
        raise TypeError("conv1d_transpose: strides and stride are one argument; give it once")
    step = strides if stride is None else stride
    step, dilations = (v if isinstance(v, int) else max(v) for v in (1 if step is None else step, dilations or 1))
    shape = [] if output_shape is None else [int(n) for n in output_shape]
    return _ops.nn.conv1d_transpose(input, filters, shape, padding, data_format=data_format or "NWC", dilations=dilations,
                                    stride=step, explicit_paddings=list(explicit_paddings))


def conv2d_transpose(input, filters, output_shape=None, strides=1, padding="SAME", data_format="NHWC", dilations=1, name=None,
                     explicit_paddings=()):
    """The transpose of conv2d(): input [n, h, w, i], filters [kh, kw, o, i] -> output_shape, which may be [n, oh, ow, o].

    Without output_shape h * stride for "SAME", (h - 1) * stride + max(the filter's extent, stride) for "VALID".
    """
    return _ops.nn.conv2d_transpose(input, filters, output_shape, strides, padding, data_format or "NHWC",
                                    1 if dilations is None else dilations, list(explicit_paddings))


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


def complex(real, imag, name=None):
    """real + i imag: of float32 complex64, of float64 complex128."""
    return _ops.math.complex(real, imag)


def truncatediv(x, y, name=None):
    """x / y rounded towards 0; of whole numbers, where a division by 0 is an error."""
    return _ops.math.truncatediv(x, y)


def truncatemod(x, y, name=None):
    """What truncatediv() leaves of x: x - truncatediv(x, y) y."""
    return _ops.math.truncatemod(x, y)


def unstack(value, num=None, axis=0, name="unstack"):
    """The slices of a tensor along `axis`, which they lack: a list, of `num` if that is given."""
    out = _unstacked(value, axis)
    if num is not None and num != len(out):
        raise _core.InvalidArgumentError(f"unstack: num is {num}, but axis {axis} has length {len(out)}")
    return out


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """The places of the elements in sorted order along `axis`; equal ones stay in their order, stable or not."""
    return _ops.argsort(values, axis, direction)


def moments(x, axes, shift=None, keepdims=False, name=None):
    """Mean and variance over axes: (mean, variance), [x without them], or with keepdims axes of length 1.

    shift: without effect, as in TensorFlow; the variance is computed of differences from the mean.
    """
    return _ops.nn.moments(x, axes, keepdims)


def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None):
    """Matrices [..., m, n] times vectors [..., n]: [..., m]. *_is_sparse: hints, of which no result depends."""
    if adjoint_a:
        return _ops.linalg.matvec(_ops.math.conj(convert_to_tensor(a)), b, True)
    return _ops.linalg.matvec(a, b, transpose_a)


def matrix_transpose(a, name="matrix_transpose", conjugate=False):
    """Matrices with rows and columns exchanged; conjugate: of complex numbers the conjugates."""
    out = _of_text_too(_ops.linalg.matrix_transpose)(a)
    return _ops.math.conj(out) if conjugate and out.dtype.is_complex else out


def embedding_lookup(params, ids, max_norm=None, name=None):
    """Rows of params at ids: [shape of ids, row]; those whose norm is more than max_norm are scaled to it."""
    out = _ops.nn.embedding_lookup(params, ids)
    if max_norm is None:
        return out
    axes = list(range(len(convert_to_tensor(ids).shape), len(out.shape)))
    norm = _ops.linalg.norm(out, axis=axes[0] if len(axes) == 1 else axes, keepdims=True)
    limit = _ops.math.cast(convert_to_tensor(max_norm), out.dtype)
    return out * (limit / _ops.math.maximum(norm, limit))


def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", output_dtype=int64, include_batch_in_index=False,
                         name=None):
    """The maximum of windows of [batch, y, x, channel], and where it is: (y width + x) channels + channel.

    include_batch_in_index: with the batch as y's leading digit.
    """
    out, places = _ops.nn.max_pool_with_argmax(input, ksize, strides, padding, data_format=data_format)
    if include_batch_in_index:
        n, *row = convert_to_tensor(input).shape.as_list()
        first = _ops.range(0, n, 1, places.dtype) * (row[0] * row[1] * row[2])
        places = places + _ops.reshape(first, [n, 1, 1, 1])
    return out, places if places.dtype == output_dtype else _ops.math.cast(places, output_dtype)


def _case(name, change):
    def call(input, encoding="", name=None):
        if not encoding:
            return getattr(_ops.strings, call.__name__)(input)
        if encoding.lower() != "utf-8":
            raise ValueError(f"tf.strings.{call.__name__}: encoding is {encoding!r}; expected '' for ASCII or 'utf-8'")
        import numpy
        texts = convert_to_tensor(input)
        out = [change(v.decode()).encode() for v in texts.numpy().ravel()] if len(texts.shape) else change(texts.numpy().decode())
        return convert_to_tensor(numpy.array(out, object).reshape(texts.shape.as_list()) if len(texts.shape) else out)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Texts in {name} case: their ASCII letters, or with encoding='utf-8' all, which a traced function cannot."
    return call


lower, upper = _case("lower", str.lower), _case("upper", str.upper)


def substr(input, pos, len, unit="BYTE", name=None):
    """`len` bytes, or characters (unit="UTF8_CHAR"), from `pos` on, negative from the end; shorter at the end of a text.

    pos and len are numbers, or of the shape of the texts; InvalidArgumentError of a position outside.
    """
    if isinstance(pos, int) and isinstance(len, int):
        return _ops.strings.substr(input, pos, len, unit=unit)
    import numpy
    at, count = (convert_to_tensor(v).numpy() for v in (pos, len))
    if at.shape != count.shape:
        raise _core.InvalidArgumentError(f"substr: pos is {at.shape}, len {count.shape}; expected one shape")
    texts, at, count = numpy.broadcast_arrays(convert_to_tensor(input, string)._array(), at, count)
    parts = [_ops.strings.substr(text, int(i), int(n), unit=unit)._array().item()
             for text, i, n in zip(texts.ravel(), at.ravel(), count.ravel())]
    return convert_to_tensor(numpy.array(parts, object).reshape(texts.shape), string)


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """Texts along an axis, or all, in one, with separators; with keepdims axes of length 1 stay."""
    x = convert_to_tensor(inputs)
    rank, inputs_shape = len(x.shape), x.shape.as_list()
    axes = list(range(rank))[::-1] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]
    if any(not -rank <= a < rank for a in axes):
        raise _core.InvalidArgumentError(f"reduce_join: axis {axis} of {inputs_shape}; expected axes from {-rank} to {rank - 1}")
    axes = [a % rank for a in axes]
    for n, a in enumerate(axes):  # the first of them first
        x = _ops.strings.reduce_join(x, a - sum(b < a for b in axes[:n]), separator)
    return _of_text_too(_ops.reshape)(x, [1 if i in axes else n for i, n in enumerate(inputs_shape)]) if keepdims else x


def _placed(name, given, bad_indices_policy):
    if bad_indices_policy not in ("", "DEFAULT", "ERROR"):
        raise ValueError(f"tf.{name}: bad_indices_policy is {bad_indices_policy!r}; expected '' or 'ERROR': places outside are "
                         "errors")
    return _of_text_too(getattr(_ops, name))(*given)


def scatter_nd(indices, updates, shape, bad_indices_policy="", name=None):
    """Zeros of a shape to which updates [..., shape after axis k] are added at indices [..., k]."""
    return _placed("scatter_nd", (indices, updates, shape), bad_indices_policy)


def tensor_scatter_nd_update(tensor, indices, updates, bad_indices_policy="", name=None):
    """A tensor with updates in place of the elements at indices [..., k]."""
    return _placed("tensor_scatter_nd_update", (tensor, indices, updates), bad_indices_policy)


def tensor_scatter_nd_add(tensor, indices, updates, bad_indices_policy="", name=None):
    """A tensor with updates added at indices [..., k]."""
    return _placed("tensor_scatter_nd_add", (tensor, indices, updates), bad_indices_policy)


def tensor_scatter_nd_sub(tensor, indices, updates, bad_indices_policy="", name=None):
    """A tensor from which updates are taken at indices [..., k]."""
    return _placed("tensor_scatter_nd_sub", (tensor, indices, updates), bad_indices_policy)


def tensor_scatter_nd_max(tensor, indices, updates, bad_indices_policy="", name=None):
    """A tensor with the larger of element and update at indices [..., k]."""
    return _placed("tensor_scatter_nd_max", (tensor, indices, updates), bad_indices_policy)


def tensor_scatter_nd_min(tensor, indices, updates, bad_indices_policy="", name=None):
    """A tensor with the smaller of element and update at indices [..., k]."""
    return _placed("tensor_scatter_nd_min", (tensor, indices, updates), bad_indices_policy)


def decode_png(contents, channels=0, dtype=uint8, name=None, max_pixels=None):
    """The picture of a PNG file: [height, width, channels], uint8 or uint16; channels 0: those of the file."""
    more = {} if max_pixels is None else {"max_pixels": max_pixels}
    return _ops.io.decode_png(contents, channels, dtype=dtype, **more)


def encode_jpeg(image, format="", quality=95, progressive=False, optimize_size=False, chroma_downsampling=True,
                density_unit="in", x_density=300, y_density=300, xmp_metadata="", name=None):
    """A picture, uint8 [height, width, 1 or 3], as the bytes of a JPEG file. format: "", "grayscale" or "rgb"."""
    refuse("tf.io.encode_jpeg", density_unit=None if density_unit == "in" else density_unit,
           x_density=None if x_density == 300 else x_density, y_density=None if y_density == 300 else y_density,
           xmp_metadata=xmp_metadata or None)
    image = convert_to_tensor(image)
    wanted = {"": None, "grayscale": 1, "rgb": 3}
    if format not in wanted:
        raise ValueError(f"tf.io.encode_jpeg: format is {format!r}; expected '', 'grayscale' or 'rgb'")
    if wanted[format] not in (None, image.shape[-1]):
        raise ValueError(f"tf.io.encode_jpeg: format {format!r} has {wanted[format]} channels; the picture is {image.shape}")
    return _ops.io.encode_jpeg(image, quality, progressive, optimize_size, chroma_downsampling)
