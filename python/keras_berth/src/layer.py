"""What layers of Keras get from this backend."""
import contextlib
import threading

import berth as tf
from berth import _core
from keras.src.backend.common.keras_tensor import any_symbolic_tensors

_thread = threading.local()  # .model: whose steps run; .in_pipeline: by a PipelineStrategy


@contextlib.contextmanager
def steps_of(model, pipeline=None):
    """Layers are named as in the model's summary(); a PipelineStrategy says where they are."""
    outer = _model_and_pipeline()
    _thread.model, _thread.in_pipeline = model, pipeline is not None
    try:
        with contextlib.nullcontext() if pipeline is None else pipeline.scope():
            yield
    finally:
        _thread.model, _thread.in_pipeline = outer


def _model_and_pipeline():
    return getattr(_thread, "model", None), getattr(_thread, "in_pipeline", False)


class BerthLayer:
    """The mixin of keras.Layer: its path names its ops, "block/dense/MatMul".

    A layer of a graph of layers runs in the tf.device in which it was first called.
    """

    _device = None  # not known yet; "": none was asked for

    def __call__(self, *args, **kwargs):
        model, in_pipeline = _model_and_pipeline()
        if self is model:
            return super().__call__(*args, **kwargs)
        if self._device is None and any_symbolic_tensors(args, kwargs):
            self._device = _core.device_scope()
        call = _core.NamedLayer()
        call.enter(self.name, in_pipeline)
        try:
            if not self._device or _core.replica_id() is not None:
                return super().__call__(*args, **kwargs)
            with tf.device(self._device):
                return super().__call__(*args, **kwargs)
        finally:
            call.leave()
