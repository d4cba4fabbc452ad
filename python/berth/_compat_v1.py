"""tf.compat.v1: what libraries for version 2 use of it, in the order of arguments there; names of one form are berth's own.

There are no graphs or sessions: a placeholder_with_default() is its default, what initialises variables does nothing.
"""
import logging as _logging
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
    if x is None and y is None:
        return tf.where(condition)
    condition, x = tf.convert_to_tensor(condition), tf.convert_to_tensor(x)
    if len(condition.shape) == 1 and len(x.shape) > 1:  # each truth is of a row
        condition = tf.reshape(condition, [-1] + [1] * (len(x.shape) - 1))
    return tf.where(condition, x, y)


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



def _fused_batch_norm(x, scale, offset, mean=None, variance=None, epsilon=0.001, data_format="NHWC", is_training=True, name=None,
                      exponential_avg_factor=1.0):
    """(y, mean, variance)"""
    none = tf.zeros([0], scale.dtype)
    return tf.raw_ops.FusedBatchNormV3(
        x=x, scale=scale, offset=offset, mean=none if mean is None else mean, variance=none if variance is None else variance,
        epsilon=max(epsilon, 1.001e-5), exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training)[:3]


def placeholder_with_default(input, shape, name=None):
    return tf.identity(input)


def py_func(func, inp, Tout, stateful=True, name=None):
    return tf.numpy_function(func, inp, Tout, stateful)


def name_scope(name, default_name=None, values=None):
    return tf.name_scope(default_name if name is None else name)


def convert_to_tensor(value, dtype=None, name=None, preferred_dtype=None, dtype_hint=None):
    return tf.convert_to_tensor(value, dtype, preferred_dtype if dtype_hint is None else dtype_hint)


def constant(value, dtype=None, shape=None, name="Const", verify_shape=False):
    return tf.constant(value, dtype, shape)


def shape(input, name=None, out_type=tf.int32, optimize=True):
    return tf.shape(input, out_type)


def size(input, name=None, out_type=tf.int32):
    return tf.size(input, out_type)


def transpose(a, perm=None, name="transpose", conjugate=False):
    return tf.transpose(a, perm, conjugate)


def expand_dims(input, axis=None, name=None, dim=None):
    return tf.expand_dims(input, dim if axis is None else axis)


def squeeze(input, axis=None, name=None, squeeze_dims=None):
    return tf.squeeze(input, squeeze_dims if axis is None else axis)


def zeros_like(tensor, dtype=None, name=None, optimize=True):
    return tf.zeros_like(tensor, dtype)


def ones_like(tensor, dtype=None, name=None, optimize=True):
    return tf.ones_like(tensor, dtype)


def _reduced(name):
    def reduce(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None, keep_dims=None):
        keepdims = keep_dims if keepdims is None else keepdims
        return function(input_tensor, reduction_indices if axis is None else axis, bool(keepdims))
    function = getattr(tf.math, name)
    return reduce


for _name in "all any logsumexp max mean min prod sum".split():
    globals()[f"reduce_{_name}"] = _reduced(f"reduce_{_name}")


def _extreme(function):
    def find(input, axis=None, name=None, dimension=None, output_type=tf.int64):
        return function(input, dimension if axis is None else axis, output_type)
    return find


argmax, argmin = _extreme(tf.argmax), _extreme(tf.argmin)


def _asserts(name, operands):
    def check(*args, data=None, summarize=None, message=None, name=None, **kwargs):
        more = dict(zip(("data", "summarize", "message"), args[operands:]))
        given = {"message": more.get("message", message), "summarize": more.get("summarize", summarize)}
        return function(*args[:operands], **{k: v for k, v in given.items() if v is not None}, **kwargs)
    function = getattr(tf.debugging, name)
    return check


for _name in "equal greater greater_equal less less_equal none_equal rank rank_at_least".split():
    globals()[f"assert_{_name}"] = _asserts(f"assert_{_name}", 2)
for _name in "negative non_negative non_positive positive".split():
    globals()[f"assert_{_name}"] = _asserts(f"assert_{_name}", 1)


class Dimension:
    """A size of a shape of version 1; shapes have numbers and None."""

    def __init__(self, value):
        self.value = None if value is None else int(getattr(value, "value", value))

    def __int__(self):
        return self.value

    __index__ = __int__

    def __eq__(self, other):
        return self.value == getattr(other, "value", other)

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return f"Dimension({self.value})"


def _nothing():
    """Nothing: it is so from the start."""


enable_eager_execution = enable_v2_behavior = enable_v2_tensorshape = enable_resource_variables = enable_control_flow_v2 = _nothing
enable_tensor_equality = _nothing
global_variables_initializer = local_variables_initializer = tables_initializer = _nothing


def _true():
    """True: there is no other way."""
    return True


executing_eagerly_outside_functions = control_flow_v2_enabled = resource_variables_enabled = _true
executing_eagerly, device, set_random_seed, cast = tf.executing_eagerly, tf.device, tf.random.set_seed, tf.cast
to_float, to_double, to_int32, to_int64 = (
    (lambda x, name=None, _dtype=dtype: tf.cast(x, _dtype)) for dtype in (tf.float32, tf.float64, tf.int32, tf.int64))
# The messages that scripts for version 2 fill in, and what Keras calls.
ConfigProto = GPUOptions = types.SimpleNamespace


def SummaryMetadata():
    return types.SimpleNamespace(plugin_data=types.SimpleNamespace())


class _Names(types.SimpleNamespace):
    """Names with another form in version 1, and of those of tf's module those that have the same."""

    def __init__(self, path, same, **names):
        super().__init__(**names)
        self._path, self._same = path, same.split()

    def __getattr__(self, name):
        if name in self.__dict__.get("_same", ()):
            return getattr(getattr(tf, self._path), name)
        raise AttributeError(f"Berth has no tf.compat.v1.{self.__dict__.get('_path')}.{name}: version 1, of which "
                             "tf.compat.v1 has a few functions alone")


math = _Names("math", " ".join(n for n in dir(tf.math) if n[0] != "_" and n not in (
    "argmax argmin bincount confusion_matrix count_nonzero scalar_mul reduce_euclidean_norm reduce_std reduce_variance "
    "log_softmax softmax").split()), in_top_k=_in_top_k, **{f"reduce_{n}": globals()[f"reduce_{n}"] for n in (
        "all any logsumexp max mean min prod sum".split())}, argmax=argmax, argmin=argmin)
nn = _Names("nn", "atrous_conv2d bias_add elu relu relu6 selu sigmoid tanh softplus softsign silu swish l2_loss l2_normalize "
            "local_response_normalization lrn top_k log_poisson_loss batch_normalization normalize_moments zero_fraction",
            convolution=_convolution, conv2d_transpose=_conv2d_transpose, avg_pool=_avg_pool, max_pool=_max_pool,
            ctc_loss=_ctc_loss, fused_batch_norm=_fused_batch_norm, leaky_relu=lambda features, alpha=0.2, name=None: tf.nn.leaky_relu(features, alpha))
random = _Names("random", "all_candidate_sampler categorical gamma normal shuffle truncated_normal uniform stateless_uniform "
                "stateless_normal stateless_truncated_normal", set_random_seed=set_random_seed)
initializers = _Names("initializers", "", variables=lambda var_list, name="init": None,
                      global_variables=global_variables_initializer, local_variables=local_variables_initializer,
                      tables_initializer=tables_initializer)
_log = _logging.getLogger("tensorflow")
logging = types.SimpleNamespace(
    DEBUG=10, INFO=20, WARN=30, ERROR=40, FATAL=50, debug=_log.debug, info=_log.info, warn=_log.warning, warning=_log.warning,
    error=_log.error, fatal=_log.fatal, log=_log.log, set_verbosity=_log.setLevel, get_verbosity=_log.getEffectiveLevel,
    vlog=lambda level, msg, *args, **kwargs: None)
# Names of both versions whose form differs, and which are not above.
_OTHER_FORMS = """DeviceSpec Variable VariableAggregation batch_to_space case constant_initializer gradients hessians norm
ones_initializer reverse_sequence scalar_mul space_to_batch tuple variable_creator_scope zeros_initializer keras Module
losses metrics optimizers function version compat data summary image io train strings saved_model test estimator""".split()
# Modules and functions of both that have the same forms.
_MATHS = """angle ceil conj digamma erf erfc imag is_finite is_inf is_nan lgamma log log1p log_sigmoid polygamma real rint rsqrt
xdivy zeta igamma igammac invert_permutation segment_max segment_mean segment_min segment_prod segment_sum
unsorted_segment_max unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sum""".split()


def __getattr__(name):
    if name in _MATHS:
        return getattr(tf.math, name)
    if name.startswith("_") or name in _OTHER_FORMS or not hasattr(tf, name):
        raise AttributeError(f"Berth has no tf.compat.v1.{name}: version 1, of which tf.compat.v1 has a few functions alone")
    return getattr(tf, name)
