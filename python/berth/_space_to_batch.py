"""Blocks of space as batches, and what tf.nn makes of windows: dilations, fractional pools, gradients of convolutions."""
import collections

from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, int32

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")


def _numbers(value):
    return _np.asarray(value if isinstance(value, (list, tuple, int)) else convert_to_tensor(value).numpy()).astype(int)


def _blocks(what, input, block_shape, pads, name):
    x, block = convert_to_tensor(input), _np.atleast_1d(_numbers(block_shape))
    pads = _numbers(pads).reshape(-1, 2)
    if (block < 1).any() or len(pads) != len(block) or len(x.shape) < len(block) + 1 or (pads < 0).any():
        raise _core.InvalidArgumentError(f"{what}: block_shape is {block.tolist()}, {name} {pads.tolist()} of an input "
                                         f"{x.shape}; expected blocks of at least 1, and [before, after], not negative, for each")
    return x, block.tolist(), pads.tolist()


def space_to_batch(input, block_shape, paddings, name=None):
    """The axes after the first padded and cut into blocks, the places in which go to the batch: [batch * blocks, ...]."""
    x, block, pads = _blocks("space_to_batch", input, block_shape, paddings, "paddings")
    k, rest = len(block), len(x.shape) - len(block) - 1
    x = _ops.pad(x, [0, 0, *[p for pair in pads for p in pair], *[0, 0] * rest])
    n, *space = x.shape.as_list()[:k + 1]
    if any(s % b for s, b in zip(space, block)):
        raise _core.InvalidArgumentError(f"space_to_batch: the padded axes are {space}; expected multiples of {block}")
    tail = x.shape.as_list()[k + 1:]
    cut = _ops.reshape(x, [n, *[v for s, b in zip(space, block) for v in (s // b, b)], *tail])
    order = [2 * i + 2 for i in range(k)] + [0] + [2 * i + 1 for i in range(k)] + list(range(2 * k + 1, 2 * k + 1 + rest))
    return _ops.reshape(_ops.transpose(cut, order), [n * int(_np.prod(block)), *[s // b for s, b in zip(space, block)], *tail])


space_to_batch_nd = space_to_batch


def batch_to_space(input, block_shape, crops, name=None):
    """What space_to_batch() undoes: places of blocks from the batch into space, from which crops are cut."""
    x, block, crops = _blocks("batch_to_space", input, block_shape, crops, "crops")
    k, rest = len(block), len(x.shape) - len(block) - 1
    n, *space = x.shape.as_list()[:k + 1]
    tail, count = x.shape.as_list()[k + 1:], int(_np.prod(block))
    if n % count:
        raise _core.InvalidArgumentError(f"batch_to_space: the batch is {n}; expected a multiple of the product of {block}")
    x = _ops.reshape(x, [*block, n // count, *space, *tail])
    order = [k] + [v for i in range(k) for v in (k + 1 + i, i)] + list(range(2 * k + 1, 2 * k + 1 + rest))
    x = _ops.reshape(_ops.transpose(x, order), [n // count, *[s * b for s, b in zip(space, block)], *tail])
    sizes = [s * b - c[0] - c[1] for s, b, c in zip(space, block, crops)]
    if min(sizes, default=0) < 0:
        raise _core.InvalidArgumentError(f"batch_to_space: crops are {crops}; expected less than the axes")
    return _ops.slice(x, [0, *[c[0] for c in crops], *[0] * rest], [n // count, *sizes, *tail])


def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    """(paddings, crops) [blocks, 2] that make an input a multiple of blocks, with base_paddings at least."""
    size, block = _numbers(input_shape), _numbers(block_shape)
    base = _np.zeros([len(block), 2], int) if base_paddings is None else _numbers(base_paddings)
    more = -(size + base.sum(1)) % block
    pads = _np.stack([base[:, 0], base[:, 1] + more], 1)
    return tuple(convert_to_tensor(v.astype("int32")) for v in (pads, _np.stack([_np.zeros_like(more), more], 1)))


def with_space_to_batch(input, dilation_rate, padding, op, filter_shape=None, spatial_dims=None, data_format=None):
    """op(input, number of axes, padding) with a dilation: on space_to_batch() of the input, and back."""
    x, rate = convert_to_tensor(input), _np.atleast_1d(_numbers(dilation_rate)).tolist()
    first = 2 if data_format is not None and data_format.startswith("NC") else 1
    dims = list(spatial_dims) if spatial_dims is not None else list(range(first, first + len(rate)))
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"with_space_to_batch: padding is {padding!r}; expected 'SAME' or 'VALID'")
    if all(r == 1 for r in rate):
        return op(x, len(rate), padding)
    base = _np.zeros([len(rate), 2], int)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("with_space_to_batch: filter_shape is None; expected the filters' shape with padding='SAME'")
        extra = (_numbers(filter_shape)[:len(rate)] - 1) * rate
        base = _np.stack([extra // 2, extra - extra // 2], 1)
    pads, crops = required_space_to_batch_paddings([x.shape[d] for d in dims], rate, base)
    spread = [[1] * max(dims), [[0, 0]] * max(dims), [[0, 0]] * max(dims)]
    for d, *values in zip(dims, rate, pads.numpy().tolist(), crops.numpy().tolist()):
        for row, value in zip(spread, values):
            row[d - 1] = value
    return batch_to_space(op(space_to_batch(x, spread[0], spread[1]), len(rate), "VALID"), spread[0], spread[2])


def atrous_conv2d(value, filters, rate, padding, name=None):
    """conv2d() whose filters have gaps: every rate-th pixel counts."""
    return _ops.nn.conv2d(value, filters, 1, padding, "NHWC", int(rate))


def _derivative(fn, shape, dtype, dy):
    """The gradient of a linear function, weighted with dy."""
    from berth._gradient import GradientTape
    at = _ops.zeros(shape, dtype)
    with GradientTape() as tape:
        tape.watch(at)
        y = fn(at)
    if y.shape.as_list() != dy.shape.as_list():
        raise _core.InvalidArgumentError(f"the gradient of the output is {dy.shape}; expected {y.shape}, the output's shape")
    return tape.gradient(y, at, output_gradients=dy)


def atrous_conv2d_transpose(value, filters, output_shape, rate, padding, name=None):
    """The gradient of atrous_conv2d() by its input: filters [height, width, output channels, input channels]."""
    value = convert_to_tensor(value)
    return _derivative(lambda x: atrous_conv2d(x, filters, rate, padding), _numbers(output_shape).tolist(), value.dtype, value)


def _depthwise(x, filter, strides, padding, data_format, dilations):
    steps, rates = (v if isinstance(v, int) else list(v) for v in (strides, dilations))
    space = slice(2, 4) if data_format == "NCHW" else slice(1, 3)
    rates = rates[space] if not isinstance(rates, int) and len(rates) == 4 else rates
    given = {"padding": padding} if isinstance(padding, str) else {
        "padding": "EXPLICIT", "explicit_paddings": [p for pair in padding for p in pair]}
    return _ops.nn.depthwise_conv2d(x, filter, steps, data_format=data_format, dilations=rates, **given)


def depthwise_conv2d_backprop_input(input_sizes, filter, out_backprop, strides, padding, data_format="NHWC",
                                    dilations=[1, 1, 1, 1], name=None):
    """The gradient of depthwise_conv2d() by its input [input_sizes], given that of its output."""
    dy, filter = convert_to_tensor(out_backprop), convert_to_tensor(filter)
    return _derivative(lambda x: _depthwise(x, filter, strides, padding, data_format, dilations),
                       _numbers(input_sizes).tolist(), dy.dtype, dy)


def depthwise_conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding, data_format="NHWC",
                                     dilations=[1, 1, 1, 1], name=None):
    """The gradient of depthwise_conv2d() by its filter [filter_sizes], given that of its output."""
    dy, x = convert_to_tensor(out_backprop), convert_to_tensor(input)
    return _derivative(lambda f: _depthwise(x, f, strides, padding, data_format, dilations),
                       _numbers(filter_sizes).tolist(), dy.dtype, dy)


def _windows(what, lengths, sizes, strides, rates, padding):
    """For each axis: how much is padded at both ends, the offsets in a window, and (step, end) of its slices."""
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"{what}: padding is {padding!r}; expected 'SAME' or 'VALID'")
    out = []
    for length, size, step, rate in zip(lengths, sizes, strides, rates):
        span = (size - 1) * rate + 1
        count = -(-length // step) if padding == "SAME" else (length - span) // step + 1
        more = max((count - 1) * step + span - length, 0) if padding == "SAME" else 0
        out.append(((more // 2, more - more // 2), [i * rate for i in range(size)], (step, (count - 1) * step + 1)))
    return out


def dilation2d(input, filters, strides, padding, data_format, dilations, name=None):
    """The maximum over windows of input plus filters [height, width, channels]: a morphological dilation."""
    if data_format != "NHWC":
        raise ValueError(f"dilation2d: data_format is {data_format!r}; expected 'NHWC'")
    x, filters = convert_to_tensor(input), convert_to_tensor(filters)
    down, right = _windows("dilation2d", x.shape[1:3], filters.shape[:2], _numbers(strides)[1:3], _numbers(dilations)[1:3],
                           padding)
    if padding == "SAME":
        x = _ops.pad(x, [0, 0, *map(int, down[0]), *map(int, right[0]), 0, 0], constant_values=x.dtype.min)
    parts = [x[:, int(i):int(i + down[2][1]):int(down[2][0]), int(j):int(j + right[2][1]):int(right[2][0]), :] + filters[r, c]
             for r, i in enumerate(down[1]) for c, j in enumerate(right[1])]
    return _m.reduce_max(_ops.stack(parts), 0)


def erosion2d(value, filters, strides, padding, data_format, dilations, name=None):
    """The minimum over windows of value less filters, turned by half: a morphological erosion."""
    return -dilation2d(-convert_to_tensor(value), _ops.reverse(convert_to_tensor(filters), [0, 1]), strides, padding, data_format,
                       dilations)


def extract_volume_patches(input, ksizes, strides, padding, name=None):
    """The windows of [n, planes, rows, columns, channels]; each is one long last axis. ksizes, strides: [1, p, r, c, 1]."""
    x = convert_to_tensor(input)
    axes = _windows("extract_volume_patches", x.shape[1:4], [int(k) for k in ksizes[1:4]], [int(s) for s in strides[1:4]],
                    [1, 1, 1], padding)
    if any(sum(a[0]) for a in axes):
        x = _ops.pad(x, [0, 0, *[v for a in axes for v in a[0]], 0, 0])
    (steps, ends), (a, b, c) = zip(*[a[2] for a in axes]), [a[1] for a in axes]
    return _ops.concat([x[:, i:i + ends[0]:steps[0], j:j + ends[1]:steps[1], k:k + ends[2]:steps[2], :]
                        for i in a for j in b for k in c], 4)


# Fractional pools.

def _borders(length, ratio, pseudo_random, rng):
    """Where the windows of an axis begin, and its end: [windows + 1]."""
    count = int(length / ratio)
    small = length // count
    if pseudo_random:  # the places of one number, moved by a random share of a step
        step = length / count
        share = rng.random() * min((small + 2) / step - 1, (length + 1 - small) / step - (count - 1))
        inner = [int(_np.ceil(step * (share + i))) - 1 for i in range(1, count)]
        return _np.asarray([0, *inner, length])
    steps = _np.full(count, small)
    steps[:length - small * count] += 1
    return _np.concatenate([[0], _np.cumsum(rng.permutation(steps))])


def _fractional(kind):
    name, made = f"fractional_{kind}_pool", f"Fractional{kind.title()}Pool"
    result = collections.namedtuple(made, "output row_pooling_sequence col_pooling_sequence")

    def call(value, pooling_ratio, pseudo_random=False, overlapping=False, seed=0, name=None):
        x = convert_to_tensor(value)
        ratio = [float(r) for r in _np.atleast_1d(pooling_ratio)]
        ratio = [1.0, ratio[0], ratio[0], 1.0] if len(ratio) == 1 else [1.0, *ratio, 1.0] if len(ratio) == 2 else ratio
        if len(x.shape) != 4 or min(ratio) < 1 or ratio[0] != 1 or ratio[3] != 1:
            raise ValueError(f"{call.__name__}: pooling_ratio is {pooling_ratio} of a value {x.shape}; expected [n, height, "
                             "width, channels], and at least 1 for height and width, 1 for the others")
        rng = _np.random.default_rng(int(seed) or int(_ops.random.uniform([], 0, 2**31 - 1, int32)))
        ends = [_borders(x.shape[a], ratio[a], pseudo_random, rng) for a in (1, 2)]
        return result(_pooled(x, ends, kind, overlapping), *[convert_to_tensor(e.astype("int64")) for e in ends])

    call.__name__ = name
    call.__doc__ = (f"The {'largest' if kind == 'max' else 'mean'} of windows whose sizes are drawn, so that axes shrink by "
                    "pooling_ratio: (output, where rows of windows begin, where columns do).")
    return call


def _pooled(x, ends, kind, overlapping):
    for axis, cut in zip((1, 2), ends):
        starts, stops = cut[:-1], _np.minimum(cut[1:] + overlapping, cut[-1])
        at = starts[:, None] + _np.arange((stops - starts).max())
        inside = at < stops[:, None]
        parts = _ops.gather(x, convert_to_tensor(_np.minimum(at, stops[:, None] - 1).astype("int32")), axis=axis)
        if kind == "max":
            x = _m.reduce_max(parts, axis + 1)
            continue
        share = (inside / inside.sum(1, keepdims=True)).reshape([*at.shape, *[1] * (3 - axis)])
        x = _m.reduce_sum(parts * convert_to_tensor(share.astype(x.dtype.as_numpy_dtype)), axis + 1)
    return x


fractional_max_pool, fractional_avg_pool = _fractional("max"), _fractional("avg")
