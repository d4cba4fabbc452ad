"""tf.compat.v1: the functions that Keras' functions of older versions (keras.backend) call, in the order of their arguments there."""
import types

import berth as tf

random_normal_initializer, random_uniform_initializer = tf.random_normal_initializer, tf.random_uniform_initializer


def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    return ref.assign(value)


def assign_add(ref, value, use_locking=None, name=None):
    return ref.assign_add(value)


def assign_sub(ref, value, use_locking=None, name=None):
    return ref.assign_sub(value)


def boolean_mask(tensor, mask, name=None, axis=None):
    return tf.boolean_mask(tensor, mask, axis=axis)


def cond(pred, true_fn=None, false_fn=None, strict=False, name=None):
    return tf.cond(pred, true_fn, false_fn)


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return tf.foldl(fn, elems, initializer)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    return tf.foldr(fn, elems, initializer)


def gather(params, indices, validate_indices=None, name=None, axis=None, batch_dims=0):
    return tf.gather(params, indices, axis=batch_dims if axis is None else axis, batch_dims=batch_dims)


def gather_nd(params, indices, name=None, batch_dims=0):
    return tf.gather_nd(params, indices, batch_dims=batch_dims)


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True, name=None,
           fn_output_signature=None):
    signature = dtype if fn_output_signature is None else fn_output_signature
    return tf.map_fn(fn, elems) if signature is None else tf.map_fn(fn, elems, fn_output_signature=signature)


def pad(tensor, paddings, mode="CONSTANT", name=None, constant_values=0):
    return tf.pad(tensor, paddings, mode, constant_values)


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    return tf.scan(fn, elems, initializer, reverse=reverse)


def where(condition, x=None, y=None, name=None):
    return tf.where(condition) if x is None and y is None else tf.where(condition, x, y)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               name=None, maximum_iterations=None):
    return tf.while_loop(cond, body, loop_vars, shape_invariants=shape_invariants, maximum_iterations=maximum_iterations)


def sparse_concat(axis, sp_inputs, name=None):
    return tf.sparse.concat(axis, sp_inputs)


def _in_top_k(predictions, targets, k, name=None):
    return tf.math.in_top_k(targets, predictions, k)


def _convolution(input, filter, padding, strides=None, dilation_rate=None, name=None, data_format=None):
    return tf.nn.convolution(input, filter, strides, padding, data_format, dilation_rate)


def _conv2d_transpose(value, filter, output_shape, strides, padding="SAME", data_format="NHWC", name=None):
    return tf.nn.conv2d_transpose(value, filter, output_shape, strides, padding, data_format)


def _avg_pool(value, ksize, strides, padding, data_format="NHWC", name=None):
    return tf.nn.avg_pool2d(value, ksize, strides, padding, data_format)


def _max_pool(value, ksize, strides, padding, data_format="NHWC", name=None):
    return tf.nn.max_pool2d(value, ksize, strides, padding, data_format)


def _ctc_loss(labels, inputs, sequence_length, time_major=True):
    """The loss of sparse labels, of which the blank is the last class; inputs are logits [time, batch, classes]."""
    rows = tf.cast(labels.indices[:, 0], tf.int32)
    lengths = tf.math.bincount(rows, minlength=int(labels.dense_shape[0]), maxlength=int(labels.dense_shape[0]))
    return tf.nn.ctc_loss(tf.cast(tf.sparse.to_dense(labels), tf.int32), inputs, lengths, sequence_length,
                          logits_time_major=time_major, blank_index=-1)


math = types.SimpleNamespace(in_top_k=_in_top_k)
nn = types.SimpleNamespace(convolution=_convolution, conv2d_transpose=_conv2d_transpose, avg_pool=_avg_pool, max_pool=_max_pool,
                           ctc_loss=_ctc_loss)
