"""What layers of Keras get from this backend."""
import berth as tf
from berth import _core
from keras.src.backend.common.keras_tensor import any_symbolic_tensors


class BerthLayer:
    """The mixin of keras.Layer: a layer of a graph of layers runs in the tf.device in which it was first called."""

    _device = None  # not known yet; "": none was asked for

    def __call__(self, *args, **kwargs):
        if self._device is None and any_symbolic_tensors(args, kwargs):
            self._device = _core.device_scope()
        if not self._device or _core.replica_id() is not None:
            return super().__call__(*args, **kwargs)
        with tf.device(self._device):
            return super().__call__(*args, **kwargs)
