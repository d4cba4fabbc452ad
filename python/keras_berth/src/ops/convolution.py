"""Convolutions, pools and patches of keras.ops.nn, over one, two or three axes."""
import math as _math

import berth as tf
from keras.src import backend
from keras.src.backend.common.backend_utils import (check_conv_input_channels, check_conv_transpose_input_channels,
                                                    compute_conv_transpose_output_shape,
                                                    compute_conv_transpose_padding_args_for_jax)
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, name_of

_n = tf.nn


def _each(value, rank):
    return [value] * rank if isinstance(value, int) else list(value)


def _channels_last(function):
    """A function of images with the channels last, for both formats."""
    def call(inputs, *args, data_format=None, **kwargs):
        inputs = convert_to_tensor(inputs)
        if backend.standardize_data_format(data_format) == "channels_last":
            return function(inputs, *args, **kwargs)
        rank = len(inputs.shape)
        out = function(tf.transpose(inputs, [0, *range(2, rank), 1]), *args, **kwargs)
        return tf.transpose(out, [0, rank - 1, *range(1, rank - 1)])
    return call


# Pools.
_POOLS = {"max": [_n.max_pool1d, _n.max_pool2d, _n.max_pool3d], "mean": [_n.avg_pool1d, _n.avg_pool2d, _n.avg_pool3d]}


@_channels_last
def _pooled(inputs, how, size, strides, padding):
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    rank = len(inputs.shape) - 2
    size = _each(size, rank)
    strides = size if strides is None else _each(strides, rank)
    if rank == 1:
        size, strides = size[0], strides[0]
    return _POOLS[how][rank - 1](inputs, size, strides, padding.upper())


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    inputs = convert_to_tensor(inputs)
    inputs = inputs if inputs.dtype.is_floating else cast(inputs, "float32")
    return _pooled(inputs, "max", pool_size, strides, padding, data_format=data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pooled(inputs, "mean", pool_size, strides, padding, data_format=data_format)


@_channels_last
def _adapted(inputs, output_size, pool):
    rank = len(inputs.shape) - 2
    if rank not in (1, 2, 3):
        raise ValueError("adaptive pools support only 1D/2D/3D inputs")
    return pool(inputs, _each(output_size, rank))


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adapted(inputs, output_size, _n.adaptive_average_pool, data_format=data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adapted(inputs, output_size, _n.adaptive_max_pool, data_format=data_format)


# Convolutions.
@_channels_last
def _convolved(inputs, kernel, strides, padding, dilations):
    rank = len(inputs.shape) - 2
    strides, dilations = _each(strides, rank), _each(dilations, rank)
    if rank == 1:
        return _n.conv1d(inputs, kernel, strides[0], padding.upper(), dilations=dilations[0])
    return (_n.conv2d if rank == 2 else _n.conv3d)(inputs, kernel, strides, padding.upper(), dilations=dilations)


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    kernel = convert_to_tensor(kernel)
    inputs = cast(convert_to_tensor(inputs), name_of(kernel))
    channels = inputs.shape[-1 if data_format == "channels_last" else 1]
    if channels % kernel.shape[-2]:
        raise ValueError("The number of input channels must be evenly divisible by kernel's in_channels. Received: "
                         f"input channels={channels}, kernel in_channels={kernel.shape[-2]}.")
    out = _convolved(inputs, kernel, strides, padding, dilation_rate, data_format=data_format)
    if out.shape.num_elements() == 0 and inputs.shape.num_elements() != 0:
        raise ValueError("The convolution operation resulted in an empty output. This can happen if the input is too "
                         "small for the given kernel size, strides, dilation rate, and padding mode. Please check the "
                         "input shape and convolution parameters.")
    return out


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    check_conv_input_channels(inputs, kernel, data_format)
    *size, channels, multiplier = kernel.shape
    kernel = tf.reshape(kernel, [*size, 1, channels * multiplier])
    return conv(inputs, kernel, strides, padding, data_format, dilation_rate)


def separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None,
                   dilation_rate=1):
    out = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(out, pointwise_kernel, 1, "valid", data_format, 1)


@_channels_last
def _gradient_of_image(inputs, kernel, strides, padding, size):
    """What a convolution's gradient for its image of `size` would be, by one op."""
    shape = [inputs.shape[0], *size, kernel.shape[-2]]
    if len(size) == 1:
        return _n.conv1d_transpose(inputs, kernel, shape, strides[0], padding.upper())
    return _n.conv2d_transpose(inputs, kernel, shape, strides, padding.upper())


def _is_gradient(inputs, kernel, strides, padding, size):
    """Whether a convolution maps an image of `size` to one as large as the argument."""
    for n, k, step, out in zip(inputs, kernel, strides, size):
        if -(-(out if padding == "same" else out - k + 1) // step) != n:
            return False
    return True


@_channels_last
def _transposed(inputs, kernel, strides, dilations, sides):
    """The convolution of an image with zeros between its pixels, and around it, with the kernel turned round."""
    rank = len(inputs.shape) - 2
    for axis, step in enumerate(strides, 1):
        if step > 1:
            inputs = _spread(inputs, axis, step)
    sides = [list(s) for s in sides]
    inputs = inputs[(slice(None), *(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(sides, inputs.shape[1:])))]
    inputs = tf.pad(inputs, [[0, 0], *([max(a, 0), max(b, 0)] for a, b in sides), [0, 0]])
    kernel = tf.transpose(tf.reverse(kernel, list(range(rank))), [*range(rank), rank + 1, rank])
    return _convolved(inputs, kernel, 1, "valid", dilations, data_format="channels_last")


def _spread(x, axis, step):
    """With step - 1 zeros between the elements of an axis."""
    shape = x.shape.as_list()
    pairs = [[0, 0]] * (axis + 1) + [[0, step - 1]] + [[0, 0]] * (len(shape) - axis - 1)
    x = tf.reshape(tf.pad(tf.expand_dims(x, axis + 1), pairs), shape[:axis] + [shape[axis] * step] + shape[axis + 1:])
    return x[(slice(None),) * axis + (slice(0, (shape[axis] - 1) * step + 1),)]


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    check_conv_transpose_input_channels(inputs, kernel, data_format)
    rank = len(inputs.shape) - 2
    sides = compute_conv_transpose_padding_args_for_jax(tuple(inputs.shape), tuple(kernel.shape), strides, padding,
                                                        output_padding, dilation_rate)
    strides, dilations = _each(strides, rank), _each(dilation_rate, rank)
    last = data_format == "channels_last"
    size = compute_conv_transpose_output_shape(tuple(inputs.shape), tuple(kernel.shape)[:-2], kernel.shape[-2], strides,
                                               padding, output_padding, data_format, dilations)
    size = size[1:-1] if last else size[2:]
    before = inputs.shape[1:-1] if last else inputs.shape[2:]
    if rank < 3 and set(dilations) == {1} and _is_gradient(before, kernel.shape, strides, padding, size):
        return _gradient_of_image(cast(inputs, name_of(kernel)), kernel, strides, padding, size,
                                  data_format=data_format)
    return _transposed(cast(inputs, name_of(kernel)), kernel, strides, dilations, sides, data_format=data_format)


# Patches.
def _patch_places(height, width, kernel, dilation, stride):
    """The places of the pixels of each patch in an image as a row: [kernel elements, patches]."""
    rows, columns = ([i * s for i in range((n - d * (k - 1) - 1) // s + 1)]
                     for n, k, d, s in zip((height, width), kernel, dilation, stride))
    inner = [[i * dilation[0], j * dilation[1]] for i in range(kernel[0]) for j in range(kernel[1])]
    inner = convert_to_tensor([i * width + j for i, j in inner], "int32")
    outer = tf.reshape(tf.expand_dims(convert_to_tensor(rows, "int32") * width, 1)
                       + tf.expand_dims(convert_to_tensor(columns, "int32"), 0), [-1])
    return tf.expand_dims(inner, 1) + tf.expand_dims(outer, 0)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    kernel, dilation, padding, stride = (_each(v, 2) for v in (kernel_size, dilation, padding, stride))
    x = tf.pad(convert_to_tensor(input), [[0, 0], [0, 0], [padding[0]] * 2, [padding[1]] * 2])
    n, c, height, width = x.shape
    places = _patch_places(height, width, kernel, dilation, stride)
    x = tf.gather(tf.reshape(x, [n, c, height * width]), places, axis=2)
    return tf.reshape(x, [n, c * _math.prod(kernel), places.shape[1]])


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    size, kernel, dilation, padding, stride = (_each(v, 2) for v in (output_size, kernel_size, dilation, padding,
                                                                     stride))
    x = convert_to_tensor(x)
    n, depth, patches = x.shape
    c = depth // _math.prod(kernel)
    height, width = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    places = tf.reshape(_patch_places(height, width, kernel, dilation, stride), [-1])
    pixels = tf.transpose(tf.reshape(x, [n * c, _math.prod(kernel) * patches]))
    out = tf.transpose(tf.math.unsorted_segment_sum(pixels, places, height * width))
    out = tf.reshape(out, [n, c, height, width])
    return out[:, :, padding[0]:height - padding[0], padding[1]:width - padding[1]]


@_channels_last
def _to_space(x, block, first):
    n, height, width, depth = x.shape
    x = tf.reshape(x, [n, height, width, *((depth // block ** 2, block, block) if first else
                                           (block, block, depth // block ** 2))])
    x = tf.transpose(x, [0, 1, 4, 2, 5, 3] if first else [0, 1, 3, 2, 4, 5])
    return tf.reshape(x, [n, height * block, width * block, depth // block ** 2])


@_channels_last
def _to_depth(x, block, first):
    n, height, width, depth = x.shape
    x = tf.reshape(x, [n, height // block, block, width // block, block, depth])
    x = tf.transpose(x, [0, 1, 3, 5, 2, 4] if first else [0, 1, 3, 2, 4, 5])
    return tf.reshape(x, [n, height // block, width // block, depth * block ** 2])


def depth_to_space(x, block_size, data_format="channels_last"):
    return _to_space(x, block_size, data_format == "channels_first", data_format=data_format)


def space_to_depth(x, block_size, data_format="channels_last"):
    return _to_depth(x, block_size, data_format == "channels_first", data_format=data_format)
