"""Checkpoints before a machine is taken away: tf.distribute.experimental.PreemptionCheckpointHandler."""
import contextlib
import os
import signal
import sys
import threading
import time

from berth import _core

_RESTART = 143  # the exit status that launchers take as "start it again"


class TerminationConfig:
    """termination_watcher_fn: returns True once this task is to end, else SIGTERM says so. exit_fn: ends the process after
    saving, else sys.exit(143), upon which launchers start it again. grace_period: seconds that training goes on after the
    notice. save_fn: saves in place of the CheckpointManager.
    """

    def __init__(self, termination_watcher_fn=None, exit_fn=None, grace_period=None, save_fn=None):
        self.termination_watcher_fn, self.exit_fn, self.save_fn = termination_watcher_fn, exit_fn, save_fn
        self.grace_period = 0 if grace_period is None else grace_period


class _Notice:
    """Whether this task was told to end: by SIGTERM, whose earlier handler does not run, or by a function."""

    def __init__(self, watcher=None):
        self._watcher, self.told_at, self.seen = watcher, None, threading.Event()
        if watcher is None:
            if threading.current_thread() is not threading.main_thread():
                raise RuntimeError("SIGTERM can be watched in the main thread only; make this there, or give "
                                   "TerminationConfig(termination_watcher_fn=...)")
            signal.signal(signal.SIGTERM, lambda *_: self._tell())

    def _tell(self):
        if self.told_at is None:
            self.told_at = time.monotonic()
        self.seen.set()

    def over(self, grace):
        """True once there was a notice and the seconds after it are over."""
        if self._watcher is not None and self.told_at is None and self._watcher():
            self._tell()
        return self.told_at is not None and time.monotonic() - self.told_at >= grace


class PreemptionCheckpointHandler:
    """Saves after the call of run() that runs when a task is told to end, in all tasks after the same one, and ends the process.

    Started again, it restores what was saved, and total_run_calls goes on. Several tasks: make it, and call run(), in the
    scope of their strategy. For Model.fit there is keras.callbacks.BackupAndRestore(save_before_preemption=True).
    """

    def __init__(self, cluster_resolver, checkpoint_or_checkpoint_manager, checkpoint_dir=None, termination_config=None):
        from berth.distribute import get_strategy
        from berth.train import Checkpoint, CheckpointManager
        given = checkpoint_or_checkpoint_manager
        if isinstance(given, Checkpoint):
            if not checkpoint_dir:
                raise ValueError("PreemptionCheckpointHandler: a Checkpoint needs checkpoint_dir; or give a CheckpointManager")
            given = CheckpointManager(given, checkpoint_dir, max_to_keep=1)
        elif not isinstance(given, CheckpointManager):
            raise TypeError(f"PreemptionCheckpointHandler: {given!r}; expected a tf.train.Checkpoint or CheckpointManager")
        self._manager, self._config = given, termination_config or TerminationConfig()
        self._notice = _Notice(self._config.termination_watcher_fn)
        strategy = get_strategy()
        self._strategy = strategy if type(strategy).__name__ == "MultiWorkerMirroredStrategy" else None
        if self._strategy is None and cluster_resolver is not None and _tasks(cluster_resolver) > 1:
            raise ValueError(f"PreemptionCheckpointHandler: there are {_tasks(cluster_resolver)} tasks; make it inside of "
                             "strategy.scope() of a MultiWorkerMirroredStrategy, by which tasks agree when to save")
        restored = given.restore_or_initialize()
        number = restored.rpartition("-")[2] if restored else "0"
        self._calls = int(number) if number.isdigit() else 0

    total_run_calls = property(lambda self: self._calls, doc="How often run() was called, with the calls before the restart.")

    def run(self, distributed_train_function, *args, **kwargs):
        """distributed_train_function(*args, **kwargs); afterwards saves and ends the process, if a task is to end."""
        out = distributed_train_function(*args, **kwargs)
        self._calls += 1
        self.save_checkpoint_if_preempted()
        return out

    @contextlib.contextmanager
    def watch_preemption_scope(self):
        """A block after which save_checkpoint_if_preempted() is called."""
        yield
        self.save_checkpoint_if_preempted()

    def save_checkpoint_if_preempted(self, *args, **kwargs):
        """Saves and ends the process if any task is to end; all tasks call it at the same place, with arguments of save()."""
        if not self._agreed(self._notice.over(self._config.grace_period)):
            return
        if self._config.save_fn is not None:
            self._config.save_fn(*args, **kwargs)
        else:
            self._manager.save(self._calls, False, *args, **kwargs)
            self._manager.sync()
        (self._config.exit_fn or (lambda: sys.exit(_RESTART)))()

    def _agreed(self, told):
        if self._strategy is None:
            return told
        from berth.distribute import ReduceOp, get_replica_context
        flag = _core.convert(float(told), _core.float32)
        found = self._strategy.run(lambda: get_replica_context().all_reduce(ReduceOp.SUM, flag))
        return float(self._strategy.experimental_local_results(found)[0]) > 0


def _tasks(resolver):
    spec = resolver.cluster_spec()
    return sum(spec.num_tasks(job) for job in spec.jobs if job in ("chief", "worker")) if spec else 1


class PreemptionWatcher:
    """Watches for SIGTERM, by which a machine says that it will be taken away."""

    def __init__(self):
        self._notice = _Notice()

    @property
    def preemption_message(self):
        """What the notice said, or None before it."""
        return f"SIGTERM of process {os.getpid()}" if self._notice.seen.is_set() else None

    def block_until_worker_exit(self):
        """Waits for the notice."""
        self._notice.seen.wait()
