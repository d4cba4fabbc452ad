"""What a training keeps in the storage of its run: checkpoints, reports of placement, traces."""
import contextlib
import os
import tempfile

import ray.train
from pyarrow import fs as _fs

from berth import train as _train
from berth.errors import FailedPreconditionError
from berth.keras.callbacks import Callback

_FOLDER = "berth"  # of a run's storage


class CheckpointManager:
    """The checkpoints of a berth.train.Checkpoint in the storage of a run of Ray Train.

    All workers make one and call restore() and report() equally often; worker 0 writes. restore() reads the newest
    checkpoint that was reported, also by a group of another size, or before a worker was lost.
    """

    def __init__(self, checkpoint, checkpoint_name="ckpt"):
        if not isinstance(checkpoint, _train.Checkpoint):
            raise TypeError(f"berth.ray.CheckpointManager: checkpoint is a {type(checkpoint).__name__}; expected a "
                            "tf.train.Checkpoint, for example tf.train.Checkpoint(model=model, optimizer=model.optimizer)")
        self._checkpoint, self._name = checkpoint, checkpoint_name

    def restore(self):
        """Restores the newest reported checkpoint; returns what report() was told of it, {} of a fresh start."""
        newest = ray.train.get_checkpoint()
        if newest is None:
            return {}
        with newest.as_directory() as folder:
            path = _train.latest_checkpoint(folder)
            if path is None:
                raise FileNotFoundError(f"berth.ray.CheckpointManager: {newest} has no checkpoint of Berth; expected what "
                                        "report() wrote")
            self._checkpoint.restore(path).expect_partial()
        return dict(newest.get_metadata())

    def report(self, metrics, **position):
        """Saves, and calls ray.train.report() with the metrics and the checkpoint; a barrier of all workers.

        position: what restore() returns, numbers and texts, for example epoch=3.
        """
        if ray.train.get_context().get_world_rank() != 0:
            ray.train.report(metrics)
            return
        with tempfile.TemporaryDirectory() as folder:
            _train.CheckpointManager(self._checkpoint, folder, 1, checkpoint_name=self._name).save()
            self._checkpoint.sync()
            made = ray.train.Checkpoint.from_directory(folder)
            made.set_metadata(position)
            ray.train.report(metrics, checkpoint=made)


class ReportCheckpoint(Callback):
    """Reports the logs of an epoch to Ray with a checkpoint, for fit of tf.keras and of the package Keras on Berth.

        callback = ReportCheckpoint(model)
        model.fit(data, epochs=10, initial_epoch=callback.restore(), callbacks=[callback])

    restore() puts back what was reported last, weights and the state of the optimizer, and returns the number of epochs
    that are done. every: an epoch of so many is reported; the last one is, too. At the end of fit the placement of the
    model goes into the storage of the run, too.
    """

    serves_the_package = True  # Keras on Berth refuses other callbacks of berth.keras

    def __init__(self, model, every=1):
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"ReportCheckpoint: every={every!r}; expected a number of epochs, 1 or more")
        parts = {"model": model}
        if getattr(model, "optimizer", None) is not None:
            parts["optimizer"] = model.optimizer
        self._manager, self._every, self._model = CheckpointManager(_train.Checkpoint(**parts)), every, model
        self._logs, self._done, self._reported = {}, 0, 0

    def restore(self):
        """Restores the newest state; returns the number of epochs that are done, 0 of a fresh start."""
        self._done = self._reported = int(self._manager.restore().get("epoch", 0))
        return self._done

    def on_epoch_end(self, epoch, logs=None):
        """Reports."""
        self._logs = {k: float(v) for k, v in dict(logs or {}).items()}
        self._done = epoch + 1
        if self._done % self._every == 0:
            self._report()

    def on_train_end(self, logs=None):
        """Reports what is left, and the placement."""
        if self._reported < self._done:
            self._report()
        report_placement(self._model)

    def _report(self):
        self._manager.report({**self._logs, "epoch": self._done}, epoch=self._done)
        self._reported = self._done


def report_placement(model):
    """Puts model.placement() of this worker into the storage of the run, where `result.placements` finds it."""
    from berth.ray._run import task_name
    text = _placement_of(model)

    def write(path):
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    store_file(f"{task_name().replace(':', '-')}.placement.txt", write)


def _placement_of(model):
    """model.placement(); of a model of tf.keras under parameter servers, which has none, the servers of its variables."""
    try:
        return str(model.placement())
    except FailedPreconditionError:
        from berth import _servers
        lines = [f"{v.name}: {', '.join(s.servers_of(v))}" for s in list(_servers._strategies) for v in model.weights]
        if not lines:
            raise
        return "\n".join(lines)


def store_file(name, write):
    """write(path) makes a file, which goes into the folder of Berth in the storage of the run, in place of an older one."""
    storage = ray.train.get_context().get_storage()
    folder = f"{storage.experiment_fs_path}/{_FOLDER}"
    storage.storage_filesystem.create_dir(folder, recursive=True)
    with tempfile.TemporaryDirectory() as local:
        path = os.path.join(local, name)
        write(path)
        _fs.copy_files(path, f"{folder}/{name}", source_filesystem=_fs.LocalFileSystem(),
                       destination_filesystem=storage.storage_filesystem)


def _files(run, ending):
    """(file system, {task: path}) of the files of a run with an ending."""
    if isinstance(run, (str, os.PathLike)):
        system, path = (_fs.LocalFileSystem(), str(run)) if "://" not in str(run) else _fs.FileSystem.from_uri(str(run))
    else:
        system, path = run.filesystem, run.path
    found = {}
    with contextlib.suppress(FileNotFoundError):
        for info in system.get_file_info(_fs.FileSelector(f"{path}/{_FOLDER}")):
            if info.base_name.endswith(ending):
                found[info.base_name[:-len(ending)].replace("-", ":")] = info.path
    return system, dict(sorted(found.items()))


def placements(run):
    """{task: report of placement} of a run: ray.train.Result, or the path of its storage, also of one that failed."""
    system, found = _files(run, ".placement.txt")
    return {task: system.open_input_stream(path).read().decode() for task, path in found.items()}


def traces(run):
    """{task: path in the storage} of the traces of a run with trace=True; `berth report` and Perfetto open them."""
    return _files(run, ".pftrace")[1]
