"""Callbacks whose files go to URLs.

The engine's write into a folder of this machine; what stands around them in the list sends what they wrote, while
training goes on. Only tasks that write files send some.
"""
import os

from berth import _core, _remote
from berth.keras.callbacks import _Around, Callback


class _Before(Callback):
    """What is done before the engine's callback."""

    def __init__(self, start):
        self._start = start

    def on_train_begin(self, logs=None):
        self._start(self.model)

    def _on_train_batch_end(self, batch):
        pass  # nobody reads logs


class _Backups(Callback):
    """Sends what BackupAndRestore saved, as soon as it is there; the next one waits for the upload of this."""

    def __init__(self, url, folder):
        self._url, self._folder, self._mirror = url.rstrip("/"), folder, None
        _remote.pending(self)

    def start(self, model):
        """Fetches the backups of this task, which the engine then looks at."""
        from berth import _remote_checkpoints as away
        number, is_chief = _core.task_of(model.__berth__)
        under = "" if is_chief else f"/task_{number}"
        self._is_ours = away._numbered("backup")
        if self._mirror is None:
            os.makedirs(self._folder + under, exist_ok=True)
            self._mirror = away.Mirror(self._url + under, self._folder + under)
        self._mirror.uploads.wait()
        self._mirror.pull(self._is_ours, True)
        for name in sorted(n for n in self._mirror._there if n.endswith(".json")):
            try:
                self._mirror.fill(name.removesuffix(".json"))
            except _core.NotFoundError:
                pass  # a file is missing: the engine says so, and takes the one before
        self._mirror._known = set(self._mirror._listing(self._is_ours))

    def _send(self, ends=False):
        taken = self._mirror.taken(self._is_ours, deletes=ends)
        if taken is not None:
            self._mirror.uploads.begin(lambda: self._mirror.push(*taken, hollow=False))

    def on_epoch_begin(self, epoch, logs=None):
        self._send()

    def _on_train_batch_end(self, batch):
        self._send()

    def on_train_end(self, logs=None):
        self._send(ends=True)
        self._mirror.uploads.wait()

    def settle(self):
        """Before the process is ended, by a notice that the machine is taken away as well."""
        if self._mirror is not None:
            self._mirror.uploads.settle()
            self._send()
            self._mirror.uploads.settle()


def backup_and_restore(make, url, args, kwargs):
    """BackupAndRestore(url, ...)."""
    folder = _remote.new_folder(url)
    after = _Backups(url, folder)
    return _Around(_Before(after.start), make(folder, *args, **kwargs), after)


class _Events(Callback):
    """Sends the files of TensorBoard, which grow."""

    def __init__(self, logs):
        self._logs = logs

    def on_epoch_end(self, epoch, logs=None):
        self._logs.send()

    def _on_train_batch_end(self, batch):
        pass

    def on_train_end(self, logs=None):
        self._logs.finish()


def tensor_board(make, url, args, kwargs):
    """TensorBoard(log_dir=url, ...)."""
    logs = _remote.Logs(url)
    return _Around(_Before(lambda model: None), make(logs.folder, *args, **kwargs), _Events(logs))
