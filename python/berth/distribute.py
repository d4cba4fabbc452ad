"""tf.distribute: one program on several devices and processes."""
import types as _types

from berth import _core
from berth._frames import hide_in
from berth._structure import flatten, pack
from berth._tensor import convert_to_tensor, refuse
from berth.data import Iterator


class ReduceOp:
    SUM, MEAN = "sum", "mean"


class PerReplica:
    """A value of each replica."""

    def __init__(self, values):
        self.values = tuple(values)

    def __repr__(self):
        return f"PerReplica({list(self.values)})"


class _Scope:
    def __init__(self, strategy):
        self._strategy, self._scopes = strategy, []

    def __enter__(self):
        scope = self._strategy.scope()
        scope.enter()
        self._scopes.append(scope)

    def __exit__(self, *_):
        self._scopes.pop().exit()


class Strategy:
    """How a program is spread over devices; see its subclasses."""

    def __init__(self, handle):
        self.__berth__ = handle

    def __repr__(self):
        devices = ", ".join(d.rsplit("device:", 1)[-1] for replica in self.devices() for d in replica)
        return f"<{type(self).__name__} replicas={self.num_replicas_in_sync}, devices here: {devices}>"

    @property
    def num_replicas_in_sync(self):
        return self.__berth__.num_replicas_in_sync

    def scope(self):
        """Variables and models made inside are the strategy's."""
        return _Scope(self.__berth__)

    def devices(self):
        """The device names of each replica."""
        return self.__berth__.devices()

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls fn in every replica; PerReplica arguments give each its own."""
        n = self.__berth__.replicas_here
        leaves, form = flatten((tuple(args), kwargs or {}))
        by_replica = [[convert_to_tensor(v.values[r] if isinstance(v, PerReplica) else v)
                       for v in leaves] for r in range(n)]

        def one(replica, tensors):
            a, k = pack(form, tensors)
            out, structure = flatten(fn(*a, **k), lambda v: v is not None)
            return [convert_to_tensor(v) for v in out], structure

        results, structure = self.__berth__.run(by_replica, repr(form), one)
        if n == 1:
            return pack(structure, results[0])
        return pack(structure, [PerReplica(parts) for parts in zip(*results)])

    def reduce(self, reduce_op, value, axis=None):
        """The sum or mean of a value over replicas."""
        leaves, form = flatten(value)
        return pack(form, [self.__berth__.reduce(_op(reduce_op), self._parts(v), axis)
                           for v in leaves])

    def gather(self, value, axis):
        return self.__berth__.gather(self._parts(value), axis)

    def _parts(self, value):
        if isinstance(value, PerReplica):
            return list(value.values)
        return [value] * self.__berth__.replicas_here

    def experimental_local_results(self, value):
        return value.values if isinstance(value, PerReplica) else (value,)

    def experimental_distribute_dataset(self, dataset, options=None):
        """Batches cut into a part for each replica."""
        return DistributedDataset(self.__berth__.distribute(dataset.__berth__), dataset._form)

    def plan(self, model, batch_size):
        """What a training step of a compiled model would do, as a table."""
        from berth._placement import Report
        return Report(self.__berth__.plan(model.__berth__, batch_size))


def _op(value):
    return str(value).lower().rsplit(".", 1)[-1]


class DistributedDataset:
    def __init__(self, handle, form):
        self.__berth__, self._form = handle, form

    def __iter__(self):
        return Iterator(self.__berth__, lambda components: pack(
            self._form, [p[0] if len(p) == 1 else PerReplica(p) for p in components]))


class MirroredStrategy(Strategy):
    """All replicas compute, each with copies of the variables.

    shares: "auto", or the part of the batch of each device; slices: results have the same bits on
    any number of equal devices (docs/distribute.md).
    """

    def __init__(self, devices=None, cross_device_ops=None, *, shares=None, slices=0):
        super().__init__(_core.mirrored_strategy(_names(devices), shares, slices))


class OneDeviceStrategy(Strategy):
    def __init__(self, device):
        super().__init__(_core.one_device_strategy(str(device)))


class MultiWorkerMirroredStrategy(Strategy):
    """The replicas of all tasks of a cluster; TF_CONFIG and other launchers' variables say which."""

    def __init__(self, cluster_resolver=None, communication_options=None, *, slices=0):
        refuse("MultiWorkerMirroredStrategy", cluster_resolver=cluster_resolver)
        super().__init__(_core.multi_worker_mirrored_strategy(slices))

    is_chief = property(lambda self: self.__berth__.is_chief)
    task_type = property(lambda self: self.__berth__.task_type)
    task_id = property(lambda self: self.__berth__.task_id)

    def leave(self):
        """Says that this task is done, at the end of a program."""
        self.__berth__.leave()


def _names(devices):
    return [getattr(d, "name", d) for d in devices or []]


class _ReplicaContext:
    """What a function in Strategy.run() may ask."""

    @property
    def replica_id_in_sync_group(self):
        return _core.replica_id()

    @property
    def num_replicas_in_sync(self):
        return _core.get_strategy().num_replicas_in_sync

    def all_reduce(self, reduce_op, value):
        leaves, form = flatten(value)
        return pack(form, _core.all_reduce(_op(reduce_op), leaves))


def get_replica_context():
    return None if _core.replica_id() is None else _ReplicaContext()


def get_strategy():
    return Strategy(_core.get_strategy())


def has_strategy():
    return _core.has_strategy()


hide_in(Strategy, MirroredStrategy, OneDeviceStrategy, MultiWorkerMirroredStrategy)
experimental = _types.SimpleNamespace(
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy,
    CentralStorageStrategy=lambda compute_devices=None, parameter_device=None: Strategy(
        _core.central_storage_strategy(_names(compute_devices))))
