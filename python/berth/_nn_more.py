"""Functions of tf.nn that are made of a few ops."""
import collections

from berth import _core
from berth._lazy import Lazy
from berth._tensor import as_dtype, convert_to_tensor, float32, int32, refuse

_ops, _m, _nn = _core.ops, _core.ops.math, _core.ops.nn
_np = Lazy("numpy")
ApproxTopK = collections.namedtuple("ApproxTopK", "values indices")


def _axes(x, axes):
    return [int(a) % max(len(x.shape), 1) for a in _np.atleast_1d(axes)]


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """x less the mean, over the root of the variance, times scale and plus offset, each of which may be None."""
    x = convert_to_tensor(x)
    factor = _m.rsqrt(convert_to_tensor(variance) + variance_epsilon)
    if scale is not None:
        factor = factor * scale
    shift = -mean * factor if offset is None else offset - mean * factor
    return x * _m.cast(factor, x.dtype) + _m.cast(shift, x.dtype)


def batch_norm_with_global_normalization(input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization,
                                         name=None):
    """batch_normalization() under its older name; gamma counts if scale_after_normalization."""
    return batch_normalization(input, mean, variance, beta, gamma if scale_after_normalization else None, variance_epsilon)


def lrn(input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None):
    """Each value over (bias + alpha * the sum of the squares of its neighbours in depth) ** beta."""
    return _nn.local_response_normalization(input, depth_radius, bias, alpha, beta)


def crelu(features, axis=-1, name=None):
    """relu of the features and of their negatives, one after the other along `axis`."""
    x = convert_to_tensor(features)
    return _nn.relu(_ops.concat([x, -x], axis))


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    """The mean and the variance over axes, in which elements count by their weights: (mean, variance)."""
    x = convert_to_tensor(x)
    given = x.dtype
    w = convert_to_tensor(frequency_weights)
    if given.size == 2:
        x = _m.cast(x, float32)
    w = _m.cast(w, x.dtype) + _ops.zeros_like(x)
    axes = _axes(x, axes)
    total = _m.reduce_sum(w, axes, True)
    mean = _m.reduce_sum(w * x, axes, True) / total
    variance = _m.reduce_sum(w * _m.squared_difference(x, mean), axes, True) / total
    return tuple(_m.cast(v if keepdims else _ops.squeeze(v, axes), given) for v in (mean, variance))


def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """What the mean and the variance follow from: (count, sum, sum of squares, shift), the sums of x - shift."""
    x = convert_to_tensor(x)
    axes = _axes(x, axes)
    count = _m.cast(_m.reduce_prod(_ops.gather(_ops.shape(x), convert_to_tensor(axes, int32))), x.dtype)
    if shift is not None:
        shift = convert_to_tensor(shift, x.dtype)
        x, squares = x - shift, _m.squared_difference(x, shift)
    else:
        squares = _m.square(x)
    return count, _m.reduce_sum(x, axes, keepdims), _m.reduce_sum(squares, axes, keepdims), shift


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """(mean, variance) of what sufficient_statistics() gives."""
    share = _m.reciprocal(convert_to_tensor(counts))
    moved = convert_to_tensor(mean_ss) * share
    mean = moved if shift is None else moved + shift
    return mean, convert_to_tensor(variance_ss) * share - _m.square(moved)


def collapse_repeated(labels, seq_length, name=None):
    """Rows of labels without those equal to the one before, 0 at the end, as long as the longest; and their lengths."""
    x, lengths = convert_to_tensor(labels).numpy(), convert_to_tensor(seq_length).numpy()
    inside = _np.arange(x.shape[1]) < lengths[:, None]
    keep = inside & _np.concatenate([_np.ones_like(x[:, :1], bool), x[:, 1:] != x[:, :-1]], 1)
    counts = keep.sum(1)
    out = _np.zeros([len(x), counts.max() if counts.size else 0], x.dtype)
    out[_np.arange(out.shape[1]) < counts[:, None]] = x[keep]
    return convert_to_tensor(out), convert_to_tensor(counts.astype(lengths.dtype))


def ctc_unique_labels(labels, name=None):
    """The different labels of each row in the order in which they come, 0 at the end, and the place of each: (rows, places)."""
    x = convert_to_tensor(labels)
    rows, places = _np.zeros(x.shape.as_list(), "int64"), _np.zeros(x.shape.as_list(), "int32")
    for row, place, found in zip(rows, places, x.numpy()):
        known = {}
        place[:] = [known.setdefault(v, len(known)) for v in found.tolist()]
        row[:len(known)] = list(known)
    return convert_to_tensor(rows), convert_to_tensor(places)


def isotonic_regression(inputs, decreasing=True, axis=-1):
    """The nearest values that never rise (or never fall) along `axis`, and the number of each one's step: (values, int32).

    The steps are found on the host; the values are means, which have gradients.
    """
    x = convert_to_tensor(inputs)
    if not x.dtype.is_floating:
        x = _m.cast(x, float32)
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    moved = _ops.transpose(x, order)
    rows = moved.numpy().astype("float64").reshape(-1, moved.shape[-1]) * (1 if decreasing else -1)
    steps = _np.stack([_steps(row) for row in rows]).astype("int32") if rows.size else _np.zeros(rows.shape, "int32")
    n = rows.shape[1]
    at = convert_to_tensor((steps + n * _np.arange(len(rows))[:, None]).ravel().astype("int32"))
    means = _m.unsorted_segment_mean(_ops.reshape(moved, [-1]), at, rows.size)
    values = _ops.reshape(_ops.gather(means, at), moved.shape)
    return _ops.transpose(values, order), _ops.transpose(convert_to_tensor(steps.reshape(moved.shape.as_list())), order)


def _steps(row):
    """The number of the step that each element of a row is on, if steps may only go down: neighbours that rise are joined."""
    sums, counts = [], []
    for value in row:
        sums.append(value)
        counts.append(1)
        while len(sums) > 1 and sums[-2] * counts[-1] <= sums[-1] * counts[-2]:
            value, count = sums.pop(), counts.pop()
            sums[-1] += value
            counts[-1] += count
    return _np.repeat(_np.arange(len(counts)), counts)


def _approximate(largest, name):
    def call(operand, k, reduction_dimension=-1, recall_target=0.95, reduction_input_size_override=-1,
             aggregate_to_topk=True, name=None):
        if not 0 < recall_target <= 1:
            raise ValueError(f"{call.__name__}: recall_target is {recall_target}; expected more than 0 and at most 1")
        refuse(call.__name__, aggregate_to_topk=None if aggregate_to_topk else "False",
               reduction_input_size_override=None if reduction_input_size_override == -1 else reduction_input_size_override)
        x = convert_to_tensor(operand)
        order = list(range(len(x.shape)))
        order[reduction_dimension], order[-1] = order[-1], order[reduction_dimension]
        moved = _ops.transpose(x, order)
        values, places = _m.top_k(moved if largest else -moved, int(k), True)
        return ApproxTopK(_ops.transpose(values if largest else -values, order), _ops.transpose(places, order))
    call.__name__ = name
    call.__doc__ = (f"The k {'largest' if largest else 'smallest'} along an axis, and their places; all are found, so any "
                    "recall is reached.")
    return call


approx_max_k, approx_min_k = _approximate(True, "approx_max_k"), _approximate(False, "approx_min_k")


def approx_top_k(input, k, reduction_dimension=-1, recall_target=0.95, is_max_k=True, reduction_input_size_override=-1,
                 aggregate_to_topk=True, name=None):
    """approx_max_k(), or approx_min_k() without is_max_k."""
    return (approx_max_k if is_max_k else approx_min_k)(
        input, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)


def _dropped(what, x, rate, noise_shape, uniform):
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise ValueError(f"{what}: x is {x.dtype.name}; expected a floating dtype")
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise ValueError(f"{what}: rate is {rate}; expected at least 0 and less than 1")
    if isinstance(rate, (int, float)) and rate == 0:
        return x
    rate = convert_to_tensor(rate, x.dtype)
    shape = x.shape.as_list()
    if noise_shape is not None:
        wanted = convert_to_tensor(noise_shape).numpy().tolist() if not isinstance(noise_shape, (list, tuple)) else noise_shape
        shape = [a if b is None else int(b) for a, b in zip(shape, wanted)]
    keep = _m.greater_equal(uniform(shape, x.dtype), rate)
    return _ops.where(keep, x / (1 - rate), _ops.zeros_like(x))


def general_dropout(x, rate, uniform_sampler, noise_shape=None, name=None):
    """dropout() by the numbers of uniform_sampler(shape=, dtype=): those below the rate become 0, others grow."""
    return _dropped("general_dropout", x, rate, noise_shape, lambda shape, dtype: uniform_sampler(shape=shape, dtype=dtype))


def stateless_dropout(x, rate, seed, rng_alg=None, noise_shape=None, name=None):
    """dropout() that is the same for the same seed [2]."""
    if rng_alg not in (None, "auto_select", "philox"):
        raise ValueError(f"stateless_dropout: rng_alg is {rng_alg!r}; expected 'auto_select' or 'philox'")
    return _dropped("stateless_dropout", x, rate, noise_shape,
                    lambda shape, dtype: _ops.random.stateless_uniform(shape, seed, 0, 1, as_dtype(dtype)))
