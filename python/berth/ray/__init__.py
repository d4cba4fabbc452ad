"""Training on Ray (https://www.ray.io): `pip install 'berth[ray]'`, docs/cluster.md.

    from berth.ray import BerthTrainer, ReportCheckpoint, dataset

A BerthTrainer is a trainer of Ray Train: its workers are tasks of one cluster of Berth, under
MultiWorkerMirroredStrategy or ParameterServerStrategy. Ray starts, replaces and adds workers; Berth sums gradients.
Raises ImportError where Ray is not installed.
"""
try:
    import ray.train.v2.api.data_parallel_trainer as _  # noqa: F401
except ImportError as _error:
    raise ImportError(f"berth.ray needs Ray 2.60, which cannot be imported ({_error}); install it: pip install 'berth[ray]'",
                      name="ray") from _error

from berth.ray._backend import BerthConfig
from berth.ray._data import dataset
from berth.ray._state import CheckpointManager, ReportCheckpoint, placements, report_placement, traces
from berth.ray._trainer import BerthTrainer

__all__ = ["BerthTrainer", "BerthConfig", "dataset", "CheckpointManager", "ReportCheckpoint", "report_placement",
           "placements", "traces"]
