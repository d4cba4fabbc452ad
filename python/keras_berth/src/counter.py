"""Random numbers that follow from a seed that is a tensor: element i is a hash of i and the seed.

A traced step reads its seed from a variable, which the engine's own random ops do not take.
"""
import math

import berth as tf
from berth import _core

_ops = _core.ops
_bits = _core.ops.bitwise


def _shifted(x, by):
    """x >> by, with zeros from above."""
    return _bits.bitwise_and(_bits.right_shift(x, by), (1 << (32 - by)) - 1)


def _mixed(x):
    """A hash of 32 bits: each bit of x changes about half of the result's."""
    x = _bits.bitwise_xor(x, _shifted(x, 16)) * 0x7FEB352D
    x = _bits.bitwise_xor(x, _shifted(x, 15)) * (0x846CA68B - (1 << 32))
    return _bits.bitwise_xor(x, _shifted(x, 16))


def _words(shape, seed, stream):
    """int32 of all bits."""
    n = math.prod(shape)
    low = _ops.cast(_bits.bitwise_and(seed, 0x7FFFFFFF), "int32")
    key, turn = _mixed(low[0] + (stream * 0x3C6EF35F) % (1 << 31)), _mixed(low[1] + 0x1B873593)
    x = _mixed(_ops.range(0, n, 1, "int32") + key)
    return _ops.reshape(_mixed(_bits.bitwise_xor(x, turn) + key), shape)


def uniform(shape, seed, stream=0):
    """float32 in [0, 1), of 24 bits."""
    return _ops.cast(_shifted(_words(shape, seed, stream), 8), "float32") * 2.0 ** -24


def whole(shape, low, high, seed):
    """int64 in [low, high)."""
    wide = (_ops.cast(_shifted(_words(shape, seed, 1), 2), "int64") * (1 << 31)
            + _ops.cast(_shifted(_words(shape, seed, 2), 1), "int64"))
    return _ops.math.floormod(wide, high - low) + low


def normal(shape, seed):
    """float32 of the standard normal distribution."""
    radius = _ops.sqrt(_ops.math.log(1.0 - uniform(shape, seed, 3)) * -2.0)
    return radius * _ops.cos(uniform(shape, seed, 4) * (2 * math.pi))


def truncated_normal(shape, seed):
    """float32 of the standard normal distribution, within two standard deviations."""
    edge = math.erf(math.sqrt(2.0))
    return _ops.math.erfinv((uniform(shape, seed, 5) * 2.0 - 1.0) * edge) * math.sqrt(2.0)


def categorical(logits, num_samples, seed):
    """Classes [rows, num_samples], int64: of logits [rows, classes], by the largest of logits with Gumbel noise."""
    rows, classes = logits.shape
    drawn = _ops.clip_by_value(uniform([rows, num_samples, classes], seed, 6), 1e-7, 1.0 - 6e-8)
    noise = _ops.negative(_ops.math.log(_ops.negative(_ops.math.log(drawn))))
    return _ops.argmax(_ops.expand_dims(logits, 1) + noise, axis=2)


class Open:
    """A seed that is a tensor: of a SeedGenerator, in a trace and outside of it alike."""

    def __init__(self, seed):
        self.seed = seed


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32"):
    if not isinstance(seed, Open):
        return tf.random.stateless_uniform(shape, seed, minval, maxval, dtype=dtype)
    if "int" in dtype:
        return _ops.cast(whole(shape, minval, maxval, seed.seed), dtype)
    x = uniform(shape, seed.seed)
    span = (1.0 if maxval is None else maxval) - minval
    x = x if span == 1.0 else x * span
    return _ops.cast(x if minval == 0 else x + minval, dtype)


def stateless_normal(shape, seed, dtype="float32"):
    if not isinstance(seed, Open):
        return tf.random.stateless_normal(shape, seed, dtype=dtype)
    return _ops.cast(normal(shape, seed.seed), dtype)


def stateless_truncated_normal(shape, seed, dtype="float32"):
    if not isinstance(seed, Open):
        return tf.random.stateless_truncated_normal(shape, seed, dtype=dtype)
    return _ops.cast(truncated_normal(shape, seed.seed), dtype)


def stateless_categorical(logits, num_samples, seed):
    if not isinstance(seed, Open):
        return tf.random.stateless_categorical(logits, num_samples, seed)
    return categorical(logits, num_samples, seed.seed)
