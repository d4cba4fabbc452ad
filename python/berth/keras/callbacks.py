"""tf.keras.callbacks: those of the engine, and Callback for those of one's own."""
import types

from berth import _core

_engine = getattr(_core.ops.keras, "callbacks", None)
for _name, _value in (vars(_engine).items() if _engine is not None else ()):
    if isinstance(_value, types.BuiltinFunctionType):
        globals()[_name] = _value


_model_checkpoint = _engine.ModelCheckpoint


def ModelCheckpoint(filepath, *args, save_freq="epoch", **kwargs):
    """Saves the model or its weights while fit runs; after each epoch, the one save_freq so far."""
    if save_freq != "epoch":
        raise ValueError(f"ModelCheckpoint: save_freq is {save_freq!r}; expected 'epoch', the one that "
                         "Python can give yet")
    return _model_checkpoint(filepath, *args, **kwargs)


class _BatchLogs(dict):
    """Logs of a batch, which are read back when they are looked at."""

    def __init__(self, model):
        super().__init__()
        self._model, self._read = model, False

    def _fill(self):
        if not self._read:
            self._read = True
            self.update(self._model.__berth__.metrics_result())
        return self

    def __getitem__(self, key):
        return dict.__getitem__(self._fill(), key)

    def get(self, key, default=None):
        return dict.get(self._fill(), key, default)

    def items(self):
        return dict.items(self._fill())

    def keys(self):
        return dict.keys(self._fill())

    def __iter__(self):
        return dict.__iter__(self._fill())

    def __len__(self):
        return dict.__len__(self._fill())

    def __contains__(self, key):
        return dict.__contains__(self._fill(), key)


class Callback:
    """Called while fit runs; override what you need."""

    model = None
    params = None

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params

    def _on_train_batch_end(self, batch):
        self.on_train_batch_end(batch, _BatchLogs(self.model))
        self.on_batch_end(batch, None)


def _nothing(*names):
    for name in names:
        def hook(self, *args, **kwargs):
            return None
        hook.__name__ = name
        setattr(Callback, name, hook)


_nothing("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_train_batch_begin",
         "on_train_batch_end", "on_batch_begin", "on_batch_end", "on_test_begin", "on_test_end",
         "on_predict_begin", "on_predict_end")


class LambdaCallback(Callback):
    """Functions as a callback."""

    def __init__(self, **hooks):
        for name, fn in hooks.items():
            if fn is not None:
                setattr(self, name, fn)


class LearningRateScheduler(Callback):
    """Sets the learning rate of each epoch: schedule(epoch, rate) -> rate."""

    def __init__(self, schedule, verbose=0):
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch, logs=None):
        rate = float(self.schedule(epoch, float(self.model.optimizer.learning_rate)))
        self.model.optimizer.learning_rate = rate
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class History(Callback):
    """What fit returns."""

    def __init__(self, model, values):
        self.model = model
        self.epoch, self.history = values["epoch"], values["history"]
        self.seconds = values["seconds"]
        self.fallback_ops, self.fallback_bytes = values["fallback_ops"], values["fallback_bytes"]
