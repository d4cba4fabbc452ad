"""What is around the training function of a worker: the trace, and the end of a cluster with parameter servers."""
import json
import os
import threading

import ray.train

from berth.ray import _state


def task_name():
    """"worker:1", of this process."""
    here = json.loads(os.environ["TF_CONFIG"])["task"]
    return f"{here['type']}:{here['index']}"


class Run:
    """Called in every worker by Ray Train, as BackendConfig.train_func_context; a context manager per run."""

    def __init__(self, trace):
        self._trace = trace

    def __call__(self):
        return _Running(self._trace)


class _Running:
    def __init__(self, trace):
        self._trace = trace

    def __enter__(self):
        self._task = task_name()
        self._servers = '"ps"' in os.environ["TF_CONFIG"]
        if self._servers and self._task != "chief:0":
            threading.Thread(target=_follow, daemon=True, name="berth-follow-reports").start()
        if self._trace:
            from berth import profiler
            profiler.start()
        return self

    def __exit__(self, kind, value, trace):
        done = kind is None or (kind is SystemExit and value.code in (None, 0))
        try:
            if self._trace:
                from berth import profiler
                timeline = profiler.stop(save=False)
                _state.store_file(f"{self._task.replace(':', '-')}.pftrace", timeline.write)
            if done and self._servers and self._task == "chief:0":
                ray.train.report({})  # the others have handed over what they reported before
        finally:
            if self._servers:
                from berth._servers import end_all
                end_all()
        return done  # a worker of parameter servers ends in SystemExit(0)


def _follow():
    """Calls report() as often as the chief does: it waits for all workers of Ray, and those that serve never call it."""
    while True:
        ray.train.report({})
