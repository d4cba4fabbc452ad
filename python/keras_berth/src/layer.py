"""What layers of Keras get from this backend."""
import contextlib
import threading

import berth as tf
from berth import _core
from keras.src.backend.common.keras_tensor import any_symbolic_tensors

_thread = threading.local()  # .model: whose steps run; .is_divided: over devices, by layers


@contextlib.contextmanager
def steps_of(model, divider=None):
    """Layers are named as in the model's summary(); a strategy that divides the model says where they are."""
    outer = _model_and_divided()
    _thread.model, _thread.is_divided = model, divider is not None
    try:
        with contextlib.nullcontext() if divider is None else divider.scope():
            yield
    finally:
        _thread.model, _thread.is_divided = outer


def _model_and_divided():
    return getattr(_thread, "model", None), getattr(_thread, "is_divided", False)


def is_divided():
    """Whether the step that runs on this thread is one that a strategy divides."""
    return _model_and_divided()[1]


class BerthLayer:
    """The mixin of keras.Layer: its path names its ops, "block/dense/MatMul".

    A layer of a graph of layers runs in the tf.device in which it was first called.
    """

    _device = None  # not known yet; "": none was asked for

    def _track_trackable(self, trackable, name, overwrite=False):
        """Makes it an attribute, as layers of one's own for TensorFlow do by this name; returns it."""
        if not overwrite and getattr(self, name, trackable) is not trackable:
            raise ValueError(f"the layer has another attribute {name!r}; overwrite=True replaces it")
        setattr(self, name, trackable)
        return trackable

    def __call__(self, *args, **kwargs):
        model, is_divided = _model_and_divided()
        if self is model:
            return super().__call__(*args, **kwargs)
        if self._device is None and any_symbolic_tensors(args, kwargs):
            self._device = _core.device_scope()
        call = _core.NamedLayer()
        call.enter(self.name, is_divided)
        try:
            if not self._device or _core.replica_id() is not None:
                return super().__call__(*args, **kwargs)
            with tf.device(self._device):
                return super().__call__(*args, **kwargs)
        finally:
            call.leave()
