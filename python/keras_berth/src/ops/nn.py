"""keras.ops.nn: activations, losses, moments and attention; convolutions and pools are taken in from convolution.py."""
import math as _math

import berth as tf
from keras.src import backend
from keras.src.backend.common.variables import standardize_dtype
from keras_berth.src.ops.arrays import split, swapaxes
from keras_berth.src.ops.convolution import (  # noqa: F401
    adaptive_average_pool, adaptive_max_pool, average_pool, conv, conv_transpose, depth_to_space, depthwise_conv, fold,
    max_pool, separable_conv, space_to_depth, unfold)
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, define, float_of_whole, name_of, number, result_type, same, unary
from keras_berth.src.ops.sparse import from_dense, keep_sparse

_m, _n = tf.math, tf.nn


def _like(value, x):
    return convert_to_tensor(value, name_of(x))


def _sparse_sigmoid(x):
    return tf.clip_by_value(x * 0.5 + 0.5, _like(0, x), _like(1, x))


def _sparse_plus(x):
    middle = _m.square(x + 1) * 0.25
    return tf.where(_m.less_equal(x, _like(-1, x)), tf.zeros_like(x), tf.where(_m.less(x, _like(1, x)), middle, x))


define(globals(), unary, {
    "relu": (number, _n.relu), "relu6": (float_of_whole, _n.relu6), "sigmoid": (float_of_whole, _n.sigmoid),
    "tanh": (float_of_whole, _n.tanh), "softplus": (float_of_whole, _n.softplus),
    "softsign": (float_of_whole, _n.softsign), "silu": (float_of_whole, _n.silu),
    "log_sigmoid": (float_of_whole, _n.log_sigmoid), "hard_sigmoid": (float_of_whole, _n.hard_sigmoid),
    "hard_silu": (float_of_whole, _n.hard_swish), "selu": (float_of_whole, _n.selu),
    "sparse_sigmoid": (float_of_whole, _sparse_sigmoid), "sparse_plus": (float_of_whole, _sparse_plus),
    "tanh_shrink": (float_of_whole, lambda x: x - _n.tanh(x)),
    "hard_tanh": (same, lambda x: tf.clip_by_value(x, _like(-1, x), _like(1, x))),
})


def _float(x):
    x = convert_to_tensor(x)
    return cast(x, float_of_whole(name_of(x)))


def leaky_relu(x, negative_slope=0.2):
    return _n.leaky_relu(_float(x), alpha=negative_slope)


def elu(x, alpha=1.0):
    x = _float(x)
    return _n.elu(x) if alpha == 1 else tf.where(_m.greater(x, tf.zeros_like(x)), x, _n.elu(x) * alpha)


def celu(x, alpha=1.0):
    x = _float(x)
    zero = tf.zeros_like(x)
    return _m.maximum(x, zero) + _m.expm1(_m.minimum(x, zero) / alpha) * alpha


def gelu(x, approximate=True):
    return _n.gelu(_float(x), approximate=bool(approximate))


def glu(x, axis=-1):
    x = _float(x)
    if x.shape[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={x.shape} with axis={axis}")
    value, gate = split(x, 2, axis)
    return value * _n.sigmoid(gate)


def squareplus(x, b=4):
    x = _float(x)
    return (x + _m.sqrt(_m.square(x) + _like(b, x))) / 2


def soft_shrink(x, threshold=0.5):
    x = _float(x)
    size = _like(threshold, x)
    return tf.where(_m.greater(x, size), x - size, tf.where(_m.less(x, -size), x + size, tf.zeros_like(x)))


def hard_shrink(x, threshold=0.5):
    x = _float(x)
    return tf.where(_m.greater(_m.abs(x), _like(threshold, x)), x, tf.zeros_like(x))


def threshold(x, threshold, default_value):
    x = convert_to_tensor(x)
    return tf.where(_m.greater(x, _like(threshold, x)), x, _like(default_value, x))


def _along(function, x, axis):
    """A softmax over one axis, or all elements."""
    x = _float(x)
    if axis is None:
        return tf.reshape(function(tf.reshape(x, [-1]), axis=-1), x.shape)
    return function(x, axis=axis)


def softmax(x, axis=-1):
    return _along(_n.softmax, x, axis)


def log_softmax(x, axis=-1):
    return _along(_n.log_softmax, x, axis)


def sparsemax(x, axis=-1):
    x = swapaxes(_float(x), axis, -1)
    ordered = tf.sort(x, axis=-1, direction="DESCENDING")
    total = _m.cumsum(ordered, -1)
    rank = cast(tf.range(1, x.shape[-1] + 1), name_of(x))
    support = _m.greater(ordered - (total - 1) / rank, tf.zeros_like(ordered))
    count = tf.reduce_sum(cast(support, name_of(x)), -1, True)
    # Keras 3.15 adds up all the sums in the support, where the paper has the last: models give here what they give there.
    kept = tf.reduce_sum(tf.where(support, total, tf.zeros_like(total)), -1, True)
    return swapaxes(_m.maximum(x - (kept - 1) / count, tf.zeros_like(x)), axis, -1)


# Codes of classes.
def _ids(x):
    """Numbers of classes; where ragged rows end, -1, which is none."""
    x = x.to_tensor(default_value=-1) if hasattr(x, "flat_values") else convert_to_tensor(x)
    return x if name_of(x) in ("int32", "int64") else cast(x, "int32")


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    x = _ids(x)
    axis = axis + len(x.shape) + 1 if axis < 0 else axis
    out = tf.one_hot(x, int(num_classes), axis=axis, dtype=standardize_dtype(dtype))
    return from_dense(out) if sparse else out


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    x, kind = _ids(x), standardize_dtype(dtype)
    if len(x.shape) == 2 and axis in (-1, 2) and x.shape.is_fully_defined():  # without the codes of each number
        rows, n = x.shape[0], int(num_classes)
        places = tf.cast(x, "int64") + tf.range(rows, dtype="int64")[:, None] * n
        places = tf.where((x >= 0) & (x < n), places, -tf.ones_like(places))
        found = tf.math.unsorted_segment_sum(tf.ones_like(x), places, rows * n)
        out = cast(tf.reshape(found > 0, [rows, n]), kind)
    else:
        codes = one_hot(x, num_classes, axis=axis, dtype="int32")
        out = cast(tf.reduce_max(codes, 1 if len(x.shape) > 1 else 0), kind)
    return from_dense(out) if sparse else out


# Losses.
def _pair(target, output, exactly=True):
    target, output = _float(target), _float(output)
    if exactly and tuple(target.shape) != tuple(output.shape):
        raise ValueError("Arguments `target` and `output` must have the same shape. Received: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")
    dtype = result_type(name_of(target), name_of(output))
    return cast(target, dtype), cast(output, dtype)


def _inside(x):
    """Probabilities that have a logarithm."""
    return tf.clip_by_value(x, _like(backend.epsilon(), x), _like(1 - backend.epsilon(), x))


def _log_probabilities(output, from_logits, axis):
    if from_logits:
        return _n.log_softmax(output, axis=axis)
    return _m.log(_inside(output / tf.reduce_sum(output, axis, True)))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = _pair(target, output)
    if len(target.shape) < 1:
        raise ValueError("Arguments `target` and `output` must be at least rank 1. Received: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")
    if from_logits and axis in (-1, len(output.shape) - 1):
        return _n.softmax_cross_entropy_with_logits(labels=target, logits=output)
    return -tf.reduce_sum(target * _log_probabilities(output, from_logits, axis), axis)


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = _ids(target), _float(output)
    if len(target.shape) == len(output.shape) and target.shape[-1] == 1:
        target = tf.squeeze(target, [-1])
    if len(output.shape) < 1:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={tuple(output.shape)}")
    if tuple(target.shape) != tuple(output.shape)[:-1]:
        raise ValueError("Arguments `target` and `output` must have the same shape up until the last dimension: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")
    last = axis in (-1, len(output.shape) - 1)
    if from_logits and last:
        return _n.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
    log_probabilities = _log_probabilities(output, from_logits, axis)
    code = one_hot(target, output.shape[axis], axis=axis, dtype=name_of(output))
    return -tf.reduce_sum(code * log_probabilities, axis)


def binary_crossentropy(target, output, from_logits=False):
    target, output = _pair(target, output)
    if from_logits:
        return _n.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    output = _inside(output)
    return -(target * _m.log(output) + (1 - target) * _m.log(1 - output))


def psnr(x1, x2, max_val):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if tuple(x1.shape) != tuple(x2.shape):
        raise ValueError(f"Input shapes {tuple(x1.shape)} and {tuple(x2.shape)} must match for PSNR calculation.")
    error = tf.reduce_mean(_m.square(_float(x1 - x2)))
    top = cast(convert_to_tensor(max_val), name_of(error))
    return (20 * _m.log(top) - 10 * _m.log(error)) / _math.log(10)


# Moments and norms.
def moments(x, axes, keepdims=False, synchronized=False):
    x = _float(x)
    dtype = name_of(x)
    axes = [axes] if isinstance(axes, int) else list(axes)
    wide = cast(x, result_type(dtype, "float32"))
    if synchronized:
        mean, variance = _over_replicas(wide, axes, keepdims)
    else:
        mean, variance = _n.moments(wide, axes, keepdims=keepdims)
    if dtype != name_of(wide):
        limit = 65504.0
        mean, variance = (cast(tf.clip_by_value(v, -limit, limit), dtype) for v in (mean, variance))
    return mean, variance


def _over_replicas(x, axes, keepdims):
    """The moments of what all replicas have."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return _n.moments(x, axes, keepdims=keepdims)
    count = cast(tf.ones([1], "float32") * _math.prod(x.shape[a] for a in axes), name_of(x))
    sums = [tf.reduce_sum(x, axes, True), tf.reduce_sum(_m.square(x), axes, True), count]
    total, squares, count = (context.all_reduce("SUM", v) for v in sums)
    mean = total / count
    variance = squares / count - _m.square(mean)
    return (mean, variance) if keepdims else (tf.squeeze(mean, axes), tf.squeeze(variance, axes))


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x = convert_to_tensor(x)
    shape = [1] * len(x.shape)
    shape[axis] = x.shape[axis]

    def shaped(v):
        return tf.reshape(cast(convert_to_tensor(v), name_of(x)), shape)
    inverse = _m.rsqrt(shaped(variance) + _like(epsilon, x))
    if scale is not None:
        inverse = inverse * shaped(scale)
    rest = -shaped(mean) * inverse
    return x * inverse + (rest if offset is None else rest + shaped(offset))


# Attention.
def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None,
                          attn_logits_soft_cap=None):
    query, key, value = map(convert_to_tensor, (query, key, value))
    if not len(query.shape) == len(key.shape) == len(value.shape) == 4:
        raise ValueError("`dot_product_attention` only supports 4D inputs. Received: "
                         f"query.shape={tuple(query.shape)}, key.shape={tuple(key.shape)}, "
                         f"value.shape={tuple(value.shape)}.")
    dtype = result_type(name_of(query), name_of(key), name_of(value))
    query, key, value = (swapaxes(cast(x, dtype), 1, 2) for x in (query, key, value))
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (tf.repeat(x, groups, axis=1) for x in (key, value))
    out = _n.scaled_dot_product_attention(query, key, value, **_masked(bias, mask, dtype), is_causal=bool(is_causal),
                                          **({} if scale is None else {"scale": float(scale)}))
    return swapaxes(out, 1, 2)


def _masked(bias, mask, dtype):
    """What is added to the scores: a large negative number where the mask is false."""
    if bias is not None:
        bias = cast(convert_to_tensor(bias), dtype)
    if mask is not None:
        mask = cast(convert_to_tensor(mask), "bool")
        # A row without any true element has equal shares, which infinities would not give.
        least = convert_to_tensor(-0.7 * float(tf.as_dtype(dtype).max), dtype)
        bias = tf.where(mask, tf.zeros([], dtype) if bias is None else bias, least)
    return {} if bias is None else {"mask": bias}


# Sequences.
def ctc_loss(target, output, target_length, output_length, mask_index=0):
    output = convert_to_tensor(output)
    output = cast(output, result_type(name_of(output), "float32"))
    return _n.ctc_loss(labels=convert_to_tensor(target, "int32"), logits=output,
                       label_length=convert_to_tensor(target_length, "int32"),
                       logit_length=convert_to_tensor(output_length, "int32"), logits_time_major=False,
                       blank_index=mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True,
               mask_index=0):
    inputs = convert_to_tensor(inputs)
    inputs = cast(inputs, result_type(name_of(inputs), "float32"))
    lengths = convert_to_tensor(sequence_lengths, "int32")
    classes = inputs.shape[-1]
    blank = classes - 1 if mask_index is None else mask_index
    by_time = tf.transpose(inputs, [1, 0, 2])
    if strategy == "greedy":
        labels, scores = _n.ctc_greedy_labels(by_time, lengths, merge_repeated=merge_repeated, blank_index=blank)
        return tf.expand_dims(cast(labels, "int32"), 0), scores
    if strategy != "beam_search":
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    # The decoder has the blank after the other classes.
    order = convert_to_tensor([c for c in range(classes) if c != blank] + [blank], "int32")
    labels, scores = _n.ctc_beam_search_labels(tf.gather(by_time, order, axis=2), lengths, beam_width=beam_width,
                                               top_paths=top_paths)
    labels = cast(labels, "int32")
    return tf.where(_m.greater_equal(labels, convert_to_tensor(blank, "int32")), labels + 1, labels), scores


keep_sparse(globals())
