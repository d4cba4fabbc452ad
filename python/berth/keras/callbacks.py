"""tf.keras.callbacks: those of the engine, and Callback for those of one's own."""
import sys
import types

from berth import _core, _remote

_engine = getattr(_core.ops.keras, "callbacks", None)
for _name, _value in (vars(_engine).items() if _engine is not None else ()):
    if isinstance(_value, types.BuiltinFunctionType):
        globals()[_name] = _value


_model_checkpoint, _backup, _tensor_board = _engine.ModelCheckpoint, _engine.BackupAndRestore, _engine.TensorBoard


def BackupAndRestore(backup_dir="", *args, **kwargs):
    """Makes fit go on where an interrupted one saved last; the folder may be a URL (docs/checkpoints.md)."""
    folder = _remote.plain(backup_dir)
    if not _remote.is_url(folder):
        return _backup(folder, *args, **kwargs)
    from berth.keras import _remote_callbacks
    return _remote_callbacks.backup_and_restore(_backup, folder, args, kwargs)


def TensorBoard(log_dir="", *args, **kwargs):
    """Writes logs, graph, weights and profiles for TensorBoard; the folder may be a URL."""
    folder = _remote.plain(log_dir)
    if not _remote.is_url(folder):
        return _tensor_board(folder, *args, **kwargs)
    from berth.keras import _remote_callbacks
    return _remote_callbacks.tensor_board(_tensor_board, folder, args, kwargs)


def ModelCheckpoint(filepath, *args, save_freq="epoch", **kwargs):
    """Saves the model or its weights while fit runs: after each epoch, or each save_freq batches.

    To a URL files are uploaded while training goes on: an error is raised by the next save, or at the end of fit.
    """
    from berth.keras.saving import is_keras_file
    filepath = _remote.plain(filepath)
    if save_freq == "epoch" and not is_keras_file(filepath) and not _remote.is_url(filepath):
        return _model_checkpoint(filepath, *args, **kwargs)
    return _Checkpoints(filepath, *args, save_freq=save_freq, **kwargs)


class _Around(tuple):
    """A callback of the engine with one before and one after it, which fit calls in its place."""

    def __new__(cls, before, engine, after):
        return super().__new__(cls, (before, engine, after))


class _BatchLogs(dict):
    """Logs of a batch, which are read back when they are looked at or kept.

    Until then it has the names alone: json, which asks dictionaries for their size, must not see none.
    """

    _model = None
    _names = {}

    def __init__(self, model):
        super().__init__(_BatchLogs._names)
        self._model = model

    def _fill(self):
        model, self._model = self._model, None
        if model is not None:
            dict.clear(self)
            dict.update(self, model.__berth__.metrics_result())
            _BatchLogs._names = dict.fromkeys(self)
        return self


def _reads_first(name):
    method = getattr(dict, name)

    def read(self, *args, **kwargs):
        return method(self._fill(), *args, **kwargs)
    setattr(_BatchLogs, name, read)


for _name in ("__getitem__", "__iter__", "__len__", "__contains__", "__repr__", "__eq__", "__ne__", "__or__",
              "__ror__", "__ior__", "__reversed__", "__setitem__", "__delitem__", "__reduce_ex__", "get", "items",
              "keys", "values", "copy", "pop", "popitem", "setdefault", "clear", "update"):
    _reads_first(_name)


def _hand_logs(model, batch, *hooks):
    """Calls hooks with a batch's logs, which a hook may keep; steps stay short when none reads them."""
    logs = _BatchLogs(model)
    if not _BatchLogs._names:
        logs._fill()
    for hook in hooks:
        hook(batch, logs)
    if sys.getrefcount(logs) > 2:
        logs._fill()


def _hooks(name, of):
    """on_NAME_begin and on_NAME_end, which do nothing."""
    def hook(end, word):
        def nothing(self, *args, **kwargs):
            return None
        nothing.__name__ = f"on_{name}_{end}"
        nothing.__doc__ = f"Called at the {word} of {of}; logs: losses and metrics."
        return nothing
    return hook("begin", "start"), hook("end", "end")


class Callback:
    """Called while fit runs; override what you need."""

    model = None
    params = None
    on_train_begin, on_train_end = _hooks("train", "fit()")
    on_epoch_begin, on_epoch_end = _hooks("epoch", "each epoch")
    on_train_batch_begin, on_train_batch_end = _hooks("train_batch", "each batch that trains")
    on_batch_begin, on_batch_end = _hooks("batch", "each batch that trains")
    on_test_begin, on_test_end = _hooks("test", "evaluate()")
    on_test_batch_begin, on_test_batch_end = _hooks("test_batch", "each batch of evaluate()")
    on_predict_begin, on_predict_end = _hooks("predict", "predict()")
    on_predict_batch_begin, on_predict_batch_end = _hooks("predict_batch", "each batch of predict()")

    def set_model(self, model):
        """Is given the model that trains."""
        self.model = model

    def set_params(self, params):
        """Is given the numbers of epochs and steps."""
        self.params = params

    def _on_test_batch_end(self, batch):
        _hand_logs(self.model, batch, self.on_test_batch_end)

    def _on_predict_batch_end(self, batch, outputs):
        self.on_predict_batch_end(batch, {"outputs": [t.numpy() for t in outputs]})

    def _on_train_batch_end(self, batch):
        _hand_logs(self.model, batch, self.on_train_batch_end, self.on_batch_end)


class _Checkpoints(Callback):
    """ModelCheckpoint for Keras' files, for numbers of batches, and for URLs."""

    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False,
                 save_weights_only=False, mode="auto", save_freq="epoch", initial_value_threshold=None):
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(f"ModelCheckpoint: save_freq is {save_freq!r}; expected 'epoch' or a number "
                             "of batches")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"ModelCheckpoint: mode is {mode!r}; expected 'auto', 'min' or 'max'")
        self.filepath, self.monitor, self.verbose = str(filepath), monitor, verbose
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        rises = mode == "max" or (mode == "auto" and any(w in monitor for w in ("acc", "auc", "f1")))
        self._sign = -1 if rises else 1
        self.best, self.save_freq = initial_value_threshold, save_freq
        self._epoch = self._batches = 0
        self._uploads = _remote.Uploads(self.filepath) if _remote.is_url(self.filepath) else None

    def on_train_end(self, logs=None):
        if self._uploads:
            self._uploads.wait()

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self._batches += 1
        if self.save_freq != "epoch" and self._batches % self.save_freq == 0:
            self._save(batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        if self.save_freq == "epoch":
            self._save(None, logs)

    def _save(self, batch, logs):
        logs = dict((logs or {}).items())
        path = self.filepath.format(epoch=self._epoch + 1, **{} if batch is None else {"batch": batch + 1},
                                    **logs)
        if self.save_best_only:
            value = logs.get(self.monitor)
            if value is None:
                import warnings
                warnings.warn(f"ModelCheckpoint: there is no '{self.monitor}' to compare; the logs have "
                              f"{sorted(logs)}", stacklevel=2)
                return
            if self.best is not None and self._sign * value >= self._sign * self.best:
                return
            self.best = value
        if self.verbose:
            print(f"\nEpoch {self._epoch + 1}: saving model to {path}")
        if self._uploads:
            self._save_behind(path)
        elif self.save_weights_only:
            self.model.save_weights(path)
        else:
            self.model.save(path)

    def _save_behind(self, url):
        """Writes a file here; a thread brings it to the URL. Of several tasks the chief does."""
        import os
        import shutil
        if not _core.task_of(self.model.__berth__)[1]:
            return
        (above, name), folder = url.rsplit("/", 1), _remote.new_folder(url)
        with _remote.naming(folder, above):
            (self.model.save_weights if self.save_weights_only else self.model.save)(os.path.join(folder, name))

        def job():
            for file in os.listdir(folder):  # its name may have got an ending
                if not file.endswith(".lock"):
                    _remote.put(os.path.join(folder, file), f"{above}/{file}")
            shutil.rmtree(folder)
        self._uploads.begin(job)


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
        """Sets the rate of the epoch."""
        try:
            rate = float(self.schedule(epoch, float(self.model.optimizer.learning_rate)))
        except TypeError:  # of one argument, as in Keras 2
            rate = float(self.schedule(epoch))
        self.model.optimizer.learning_rate = rate
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch, logs=None):
        """Adds the rate to the logs."""
        if logs is not None:
            logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class History(Callback):
    """What fit returns."""

    def __init__(self, model, values):
        self.model = model
        self.epoch, self.history = values["epoch"], values["history"]
        self.seconds = values["seconds"]
        self.input_seconds = values["input_seconds"]
        self.fallback_ops, self.fallback_bytes = values["fallback_ops"], values["fallback_bytes"]

    def __repr__(self):
        last = ", ".join(f"{k}={v[-1]:.4g}" for k, v in self.history.items() if v)
        return f"<History epochs={len(self.epoch)}{', last: ' if last else ''}{last}>"
