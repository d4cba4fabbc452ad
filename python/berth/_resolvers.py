"""tf.distribute.cluster_resolver: which processes train together, and which of them this one is."""
from berth import _core
from berth._frames import hide_in
from berth.train import ClusterSpec


class ClusterResolver:
    """The cluster and this process's place in it. Derive from it where a launcher is not known: cluster_spec(),
    task_type and task_id are what strategies ask."""

    task_type = None
    task_id = None
    rpc_layer = None
    environment = ""

    def cluster_spec(self):
        """A tf.train.ClusterSpec."""
        raise NotImplementedError(f"{type(self).__name__} has no cluster_spec()")

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, else of this one, as a URL; "" where there is no cluster."""
        kind = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        spec = self.cluster_spec()
        if not spec or not kind or (task_type is None and kind not in spec.jobs):  # an evaluator beside the cluster
            return ""
        return url(spec.task_address(kind, int(number or 0)), rpc_layer or self.rpc_layer)

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """How many devices of each kind but CPUs this process has: {"GPU": 2}."""
        from berth.config import list_logical_devices
        kinds = [d.device_type for d in list_logical_devices() if d.device_type != "CPU"]
        return {kind: kinds.count(kind) for kind in kinds}

    def __repr__(self):
        return f"<{type(self).__name__} {self.task_type}:{self.task_id} of {self.cluster_spec().as_dict()}>"


def url(address, rpc_layer):
    """"grpc://host:port"."""
    return f"{rpc_layer}://{address}" if rpc_layer else address


def _spec_of(jobs):
    return ClusterSpec({job: dict(tasks) for job, tasks in jobs.items()})


class TFConfigClusterResolver(ClusterResolver):
    """The cluster of the variable TF_CONFIG; arguments stand in for what it says of this process."""

    def __init__(self, task_type=None, task_id=None, rpc_layer=None, environment=None):
        found = _core.tf_config_resolver(task_type or "", None if task_id is None else int(task_id), rpc_layer or "",
                                         environment or "")
        self._spec = _spec_of(found.jobs)
        self.task_type, self.task_id = (found.task_type, found.task_id) if found.jobs else (task_type, task_id)
        self.rpc_layer, self.environment = found.rpc_layer or "grpc", found.environment

    def cluster_spec(self):
        """The ClusterSpec that TF_CONFIG says."""
        return self._spec


class SimpleClusterResolver(ClusterResolver):
    """A cluster that is given."""

    def __init__(self, cluster_spec, master="", task_type=None, task_id=None, environment="", num_accelerators=None,
                 rpc_layer=None):
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError(f"cluster_spec is a {type(cluster_spec).__name__}; expected a tf.train.ClusterSpec")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id = task_type, task_id
        self.environment, self.rpc_layer = environment, rpc_layer

    def cluster_spec(self):
        """The ClusterSpec that was given."""
        return self._spec

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, as a URL; without one what `master` was."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return url(self._master, rpc_layer or self.rpc_layer) if self._master else self._master

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        """What was given, else what this process has."""
        return super().num_accelerators() if self._accelerators is None else dict(self._accelerators)


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a step of Slurm (srun), node by node.

    jobs: {"chief": 1, "worker": 3}, in the order of ranks; without it all are workers. Which GPUs a task sees is
    Slurm's affair (docs/cluster.md): gpus_per_node, gpus_per_task and auto_set_gpu change nothing.
    """

    def __init__(self, jobs=None, port_base=8888, gpus_per_node=None, gpus_per_task=None, tasks_per_node=None,
                 auto_set_gpu=True, rpc_layer="grpc"):
        per_node = [tasks_per_node] if isinstance(tasks_per_node, int) else list(tasks_per_node or [])
        found = _core.slurm_resolver([(str(job), int(n)) for job, n in (jobs or {}).items()], int(port_base), per_node,
                                     rpc_layer or "")
        self._spec = _spec_of(found.jobs)
        self.task_type, self.task_id = (found.task_type, found.task_id) if found.jobs else (None, None)
        self.rpc_layer = rpc_layer

    def cluster_spec(self):
        """The ClusterSpec that Slurm's variables say."""
        return self._spec

    def get_task_info(self):
        """(job, index) of this process."""
        return self.task_type, self.task_id


class UnionResolver(ClusterResolver):
    """The clusters of several resolvers as one; which task this is, and all else, is the first one's."""

    def __init__(self, *resolvers, rpc_layer=None, task_type=None, task_id=None):
        if not resolvers:
            raise ValueError("UnionResolver has no resolvers; expected one or more")
        for r in resolvers:
            if not isinstance(r, ClusterResolver):
                raise TypeError(f"UnionResolver got a {type(r).__name__}; expected resolvers")
        first = resolvers[0]
        self._resolvers = resolvers
        self.task_type = first.task_type if task_type is None else task_type
        self.task_id = first.task_id if task_id is None else task_id
        self.rpc_layer = rpc_layer or first.rpc_layer
        self.environment = first.environment

    def cluster_spec(self):
        """The jobs of all resolvers together."""
        jobs = {}
        for resolver in self._resolvers:
            spec = resolver.cluster_spec()
            for job in spec.jobs:
                _merge(jobs.setdefault(job, {}), {i: spec.task_address(job, i) for i in spec.task_indices(job)}, job)
        return ClusterSpec(jobs)

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        """The address of a task, as a URL; without one what the first resolver says."""
        if task_type is None and task_id is None:
            return self._resolvers[0].master(rpc_layer=rpc_layer)
        return super().master(task_type, task_id, rpc_layer)


def _merge(into, tasks, job):
    """Puts tasks after those that are there; where one has gaps in its indices, beside them."""
    appends = all(sorted(t) == list(range(len(t))) for t in (into, tasks))
    after = len(into)
    for index, address in tasks.items():
        at = after + index if appends else index
        if at in into:
            raise ValueError(f"UnionResolver: {job}:{index} is in two of the clusters; expected indices of its own in each")
        into[at] = address


def jobs_of(spec):
    """{job: {index: address}} of a ClusterSpec."""
    return {job: {i: spec.task_address(job, i) for i in spec.task_indices(job)} for job in spec.jobs}


def spec_of(resolver):
    """The cluster of a resolver; TypeError of what is none."""
    if not hasattr(resolver, "cluster_spec"):
        raise TypeError(f"cluster_resolver is a {type(resolver).__name__}; expected one of tf.distribute.cluster_resolver")
    return resolver.cluster_spec()


def handle_of(resolver):
    """The engine's form of a resolver; None: what the environment says."""
    if resolver is None:
        return _core.environment_resolver()
    spec, kind = spec_of(resolver), resolver.task_type
    if not spec:
        return _core.environment_resolver()
    return _core.simple_resolver(jobs_of(spec), kind or "", int(resolver.task_id or 0),
                                 resolver.rpc_layer or "", resolver.environment or "")


hide_in(TFConfigClusterResolver, SlurmClusterResolver)
