"""keras.random: numbers that follow from a seed alone."""
import berth as tf
from keras.src.backend.common.variables import standardize_dtype
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed  # noqa: F401
from keras_berth.src.ops.core import convert_to_tensor
from keras_berth.src.ops.promotion import cast, is_whole, name_of

_r = tf.random


def _drawn(seed):
    return convert_to_tensor(draw_seed(seed))


def _wide(dtype):
    """The dtype in which numbers are drawn."""
    return "float64" if dtype == "float64" else "float32"


def _shifted(x, factor, summand, dtype):
    if factor != 1:
        x = x * cast(convert_to_tensor(factor), name_of(x))
    if summand != 0:
        x = x + cast(convert_to_tensor(summand), name_of(x))
    return cast(x, dtype)


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = standardize_dtype(dtype)
    return _shifted(_r.stateless_normal(shape, _drawn(seed), dtype=_wide(dtype)), stddev, mean, dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    dtype = standardize_dtype(dtype)
    return _shifted(_r.stateless_truncated_normal(shape, _drawn(seed), dtype=_wide(dtype)), stddev, mean, dtype)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    dtype = standardize_dtype(dtype)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and minval < maxval:
        out = _r.stateless_uniform(shape, _drawn(seed), float(minval), float(maxval), dtype=_wide(dtype))
        return cast(out, dtype)
    return _shifted(_r.stateless_uniform(shape, _drawn(seed), dtype=_wide(dtype)), maxval - minval, minval, dtype)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    dtype = standardize_dtype(dtype)
    wide = "int64" if dtype in ("int64", "uint32", "uint64") else "int32"
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)):
        return cast(_r.stateless_uniform(shape, _drawn(seed), int(minval), int(maxval), dtype=wide), dtype)
    # Of a range that is a tensor: the rest of a division of large numbers.
    minval, maxval = (cast(convert_to_tensor(v), wide) for v in (minval, maxval))
    large = _r.stateless_uniform(shape, _drawn(seed), 0, 2 ** 62, dtype="int64")
    return cast(cast(tf.math.floormod(large, cast(maxval - minval, "int64")), wide) + minval, dtype)


def categorical(logits, num_samples, dtype="int32", seed=None):
    logits = convert_to_tensor(logits)
    logits = cast(logits, "float64" if name_of(logits) == "float64" else "float32")
    return cast(_r.stateless_categorical(logits, num_samples, _drawn(seed)), standardize_dtype(dtype))


def dropout(inputs, rate, noise_shape=None, seed=None):
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return tf.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    shape = list(inputs.shape)
    if noise_shape is not None:
        shape = [n if wanted is None else int(wanted) for wanted, n in zip(noise_shape, shape)]
    kept = tf.math.greater_equal(_r.stateless_uniform(shape, _drawn(seed)), convert_to_tensor(rate, "float32"))
    dtype = name_of(inputs)
    if is_whole(dtype):
        return tf.where(kept, cast(cast(inputs, "float32") / (1.0 - rate), dtype), tf.zeros_like(inputs))
    return tf.where(kept, inputs * convert_to_tensor(1.0 / (1.0 - rate), dtype), tf.zeros_like(inputs))


def shuffle(x, axis=0, seed=None):
    """Each row of the axis has an order of its own."""
    from keras_berth.src.ops.arrays import take_along_axis
    x = convert_to_tensor(x)
    keys = _r.stateless_uniform(x.shape, _drawn(seed), 0, 2 ** 62, dtype="int64")
    return take_along_axis(x, tf.argsort(keys, axis=axis), axis)


def _parameters(shape, *values):
    return [tf.broadcast_to(cast(convert_to_tensor(v), "float32"), shape) for v in values]


def gamma(shape, alpha, dtype=None, seed=None):
    (alpha,) = _parameters(shape, alpha)
    return cast(_r.stateless_gamma(shape, _drawn(seed), alpha), standardize_dtype(dtype))


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    counts, probabilities = _parameters(shape, counts, probabilities)
    out = _r.stateless_binomial(shape, _drawn(seed), counts, probabilities, output_dtype="float32")
    return cast(out, standardize_dtype(dtype))


def beta(shape, alpha, beta, dtype=None, seed=None):
    return cast(_r.stateless_beta(shape, _drawn(seed), *_parameters(shape, alpha, beta)), standardize_dtype(dtype))
