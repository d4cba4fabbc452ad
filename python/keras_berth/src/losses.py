"""Losses in replicas: each is a part of the mean over the whole batch, so that gradients add up to those of one device.

Keras' losses ask two functions of keras.src.losses.loss, which know TensorFlow alone. Here each replica counts as much
as it has of the batch, in TensorFlow all count alike.
"""
import contextlib
import threading

from berth import _core
from keras.src.losses import loss as _loss


_parts = threading.local()


@contextlib.contextmanager
def part(rows, total=None):
    """A block in which losses are of `rows` examples, in a replica, of `total`; without it those of others are known when it runs."""
    mine = _core.convert(float(rows), None)
    _parts.share = mine / (_core.all_reduce("sum", [mine])[0] if total is None else float(total))
    try:
        yield
    finally:
        del _parts.share


def _share():
    return _parts.share if hasattr(_parts, "share") else _core.replica_share()


def _times(value, factor):
    return value if isinstance(factor, float) and factor == 1 else value * _core.ops.cast(_core.convert(factor, None), value.dtype)


def scaled(value):
    """The part of a mean over the batch that a mean over this replica's examples is."""
    return _times(value, _share())


def unscaled(value):
    """The mean over this replica's examples, of its part."""
    share = _share()
    if isinstance(share, float):
        return _times(value, 1 / share if share else 0.0)
    return _core.ops.math.divide_no_nan(value, _core.ops.cast(share, value.dtype))  # of no examples it is none


_loss.scale_loss_for_distribution, _loss.unscale_loss_for_distribution = scaled, unscaled
