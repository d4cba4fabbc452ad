"""The backend of Ray Train: each group of workers that Ray starts becomes a cluster of Berth."""
import os
from dataclasses import dataclass, field

import ray
from ray.train import BackendConfig
from ray.train.backend import Backend

from berth import _ray_plan as plan
from berth.ray import _worker
from berth.ray._run import Run

_START_SECONDS = 120.0


@dataclass
class BerthConfig(BackendConfig):
    """How the workers of a DataParallelTrainer of Ray become a cluster. BerthTrainer makes one.

    strategy: "multi-worker" (all workers compute the same step) or "parameter-server" (worker 0 is the chief, the others
    compute, and servers, which are actors beside the group, hold the variables).
    secret: what the tasks prove to each other; by default BERTH_CLUSTER_SECRET of the driver, else one of its own. It
    reaches the workers by Ray's calls, and stands in no command line and no log.
    cores: "even" binds each worker to as many cores as it has CPUs of Ray; "all" binds none.
    devices: BERTH_DEVICES of every worker. trace: records every worker into the storage of the run.
    """

    strategy: str = "multi-worker"
    parameter_servers: int = 1
    resources_per_server: dict = field(default_factory=lambda: {"CPU": 0})
    devices: str | None = None
    cores: str = "even"
    trace: bool = False
    secret: str = field(default_factory=lambda: plan.Secret(os.environ.get("BERTH_CLUSTER_SECRET") or plan.new_secret()),
                        repr=False)

    def __post_init__(self):
        plan.check(self.strategy, self.parameter_servers if self.strategy == "parameter-server" else None)
        if self.cores not in ("even", "all"):
            raise ValueError(f"BerthTrainer: cores={self.cores!r}; expected 'even' (each worker as many cores of its own as it "
                             "has CPUs of Ray) or 'all'")

    @property
    def backend_cls(self):
        """The class that Ray calls when a group starts and ends."""
        return _BerthBackend

    @property
    def train_func_context(self):
        """What is around the training function in every worker."""
        return Run(self.trace)

    def to_dict(self):
        """What Ray may show: everything but the secret."""
        return {"strategy": self.strategy, "parameter_servers": self.parameter_servers, "devices": self.devices,
                "cores": self.cores, "trace": self.trace}


class _BerthBackend(Backend):
    """Runs in Ray's controller."""

    def __init__(self):
        self._servers, self._serving, self._groups = [], [], 0

    def on_start(self, worker_group, backend_config):
        """Describes the cluster to every worker, and starts the servers. Called for each group: first, replaced, resized."""
        c = backend_config
        self._end_servers()
        addresses = worker_group.execute(_worker.free_address)
        servers = self._start_servers(c) if c.strategy == "parameter-server" else []
        jobs = plan.cluster(c.strategy, addresses, servers)
        shared = {"BERTH_CLUSTER_SECRET": plan.Secret(c.secret), "BERTH_DEVICES": c.devices,
                  "BERTH_RESTART_COUNT": str(self._groups)}
        self._groups += 1
        cpus = worker_group.get_resources_per_worker().get("CPU", 0)
        ray.get([worker_group.execute_single_async(
            rank, _worker.prepare, {**shared, "TF_CONFIG": plan.tf_config(jobs, *plan.task(c.strategy, rank))}, cpus, c.cores)
            for rank in range(len(addresses))])
        self._serving = [s.serve.remote({**shared, "TF_CONFIG": plan.tf_config(jobs, "ps", i)})
                         for i, s in enumerate(self._servers)]

    def on_shutdown(self, worker_group, backend_config):
        """Ends the servers of the group."""
        self._end_servers()

    def _start_servers(self, c):
        need = dict(c.resources_per_server)
        options = {"num_cpus": need.pop("CPU", 0), "num_gpus": need.pop("GPU", 0), "resources": need}
        self._servers = [_worker.ParameterServer.options(**options).remote() for _ in range(c.parameter_servers)]
        asked = [s.address.remote() for s in self._servers]
        ready, late = ray.wait(asked, num_returns=len(asked), timeout=_START_SECONDS)
        if late:
            self._end_servers()
            raise RuntimeError(f"BerthTrainer: {len(late)} of {len(asked)} parameter servers have not started within "
                               f"{_START_SECONDS:.0f} s; Ray must have resources_per_server={c.resources_per_server} for each, "
                               "beside what the workers take")
        return ray.get(asked)

    def _end_servers(self):
        servers, self._servers = self._servers, []
        for server in servers:
            ray.kill(server)
