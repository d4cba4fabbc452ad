"""tf.distribute: one program on several devices and processes."""
import contextlib as _contextlib
import enum as _enum
import functools as _functools
import itertools as _itertools
import sys as _sys
import threading as _threading
import types as _types

from berth import _core, _replica_threads
from berth._distribute_options import (
    CommunicationImplementation, CommunicationOptions, CrossDeviceOps, HierarchicalCopyAllReduce, InputOptions,  # noqa: F401
    InputReplicationMode, NcclAllReduce, ReductionToOneDevice, RunOptions, ValueContext)  # noqa: F401
from berth._frames import hide_in
from berth._modules import later as _later
from berth._not_tensors import NotATensor as _NotATensor
from berth._structure import Composite, flatten, pack, present
from berth._tensor import TensorSpec, convert_to_tensor, say_missing as _say_missing
from berth._tensor import name_missing as _name_missing
from berth.data import Iterator


class ReduceOp(_enum.Enum):
    """How values of replicas become one (tf.distribute.ReduceOp)."""
    SUM, MEAN = "SUM", "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """The one that a variable's aggregation means."""
        if aggregation not in (VariableAggregation.SUM, VariableAggregation.MEAN):
            raise ValueError(f"{aggregation!r} is no reduction; expected VariableAggregation.SUM or MEAN")
        return ReduceOp[aggregation.name]


class VariableSynchronization(_enum.IntEnum):
    """When the copies of a variable are made equal (tf.VariableSynchronization)."""
    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class VariableAggregation(_enum.IntEnum):
    """How what replicas write to a variable is combined (tf.VariableAggregation); NONE: they may not."""
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


_scopes = _threading.local()  # .open: the strategies whose scope or run() is open on a thread, the innermost last


class DistributedValues:
    """A value of each of several; see its subclass PerReplica."""


class PerReplica(DistributedValues, Composite):
    """A value of each replica, or the spec of each."""

    def __init__(self, values):
        self.values = tuple(values)

    def _parts(self):
        return self.values, PerReplica, "PerReplica"

    def is_compatible_with(self, other):
        """True if another has as many values, each of which fits the spec here."""
        return isinstance(other, PerReplica) and len(other.values) == len(self.values) and all(
            spec.is_compatible_with(v) for spec, v in zip(self.values, other.values))

    def __repr__(self):
        return f"PerReplica({list(self.values)})"


class Mirrored(PerReplica):
    """A value of each replica that is the same in all; for annotations."""


class _Scope:
    def __init__(self, strategy):
        self._strategy, self._scopes = strategy, []

    def __enter__(self):
        scope, opened = self._strategy.__berth__.scope(), _contextlib.ExitStack()
        scope.enter()
        opened.callback(scope.exit)
        opened.enter_context(_open(self._strategy))
        self._scopes.append(opened)

    def __exit__(self, *_):
        self._scopes.pop().close()


@_contextlib.contextmanager
def _open(strategy):
    _scopes.open = [*getattr(_scopes, "open", ()), strategy]
    try:
        yield
    finally:
        _scopes.open = _scopes.open[:-1]


class Strategy:
    """How a program is spread over devices; see its subclasses."""

    __getattr__ = _say_missing

    cluster_resolver = None

    def __init__(self, handle):
        self.__berth__ = handle
        self._need_values = set()  # what functions of run() no trace can hold

    def __repr__(self):
        devices = ", ".join(d.rsplit("device:", 1)[-1] for replica in self.devices() for d in replica)
        return f"<{type(self).__name__} replicas={self.num_replicas_in_sync}, devices here: {devices}>"

    @property
    def extended(self):
        """What TensorFlow keeps apart for libraries."""
        return StrategyExtended(self)

    @property
    def num_replicas_in_sync(self):
        """How many replicas compute together, those of all tasks."""
        return self.__berth__.num_replicas_in_sync

    def scope(self):
        """Variables and models made inside are the strategy's."""
        return _Scope(self)

    def devices(self):
        """The device names of each replica."""
        return self.__berth__.devices()

    def run(self, fn, args=(), kwargs=None, options=None):
        """Calls fn in every replica; PerReplica arguments give each its own. Variables, numbers and objects stay so."""
        from berth import _function
        n = self.__berth__.replicas_here
        if _function.executing_eagerly():
            code = None if isinstance(fn, _function.Function) else getattr(fn, "__code__", None)
        else:  # as what a tf.function calls is
            code, fn = None, _functools.partial(_function.call_converted, fn)
        leaves, form = flatten((tuple(args), kwargs or {}), lambda v: isinstance(v, (PerReplica, _core.Tensor))
                               or hasattr(v, "__array_interface__"), PerReplica)
        by_replica = [[convert_to_tensor(v.values[r] if isinstance(v, PerReplica) else v)
                       for v in leaves] for r in range(n)]

        merges = []  # the structures of what merge_call() returned, in the order of the calls

        def one(replica, tensors):
            a, k = pack(form, tensors)
            with _open(self):
                _scopes.merges = merges, _itertools.count()
                out, structure = present(fn(*a, **k))
            return [convert_to_tensor(v) for v in out], structure

        try:
            found = None if code in self._need_values else self.__berth__.run(by_replica, "", one, _split_of(leaves))
        except Exception as error:
            if not _function.needs_values(error):
                raise
            if self.num_replicas_in_sync != n:
                error.args = (f"{error}; in run() of replicas of several tasks there is no way but a trace: compute what needs "
                              "values before run(), or from the values that it returned (experimental_local_results)",)
                raise
            found = None
            if n > 1 and code is not None:
                self._need_values.add(code)
        results, structure = found or self._op_by_op(one, by_replica)
        if n == 1:
            return pack(structure, results[0])
        return pack(structure, [PerReplica(parts) for parts in zip(*results)])

    def _op_by_op(self, one, by_replica):
        """What run() gives of a function that cannot be traced."""
        if len(by_replica) > 1:
            return _replica_threads.run(self, self.devices(), one, by_replica)
        from berth._gradient import device
        outer, _scopes.alone = getattr(_scopes, "alone", False), True
        try:
            with device(self.devices()[0][0]):
                out, structure = one(0, by_replica[0])
        finally:
            _scopes.alone = outer
        return [out], structure

    def reduce(self, reduce_op, value, axis=None):
        """The sum or mean of a value over replicas."""
        leaves, form = flatten(value, whole=PerReplica)
        return pack(form, [self.__berth__.reduce(_op(reduce_op), self._parts(v), axis)
                           for v in leaves])

    def gather(self, value, axis):
        """The values of all replicas one after the other along an axis."""
        return self.__berth__.gather(self._parts(value), axis)

    def _parts(self, value):
        if isinstance(value, PerReplica):
            return list(value.values)
        return [value] * self.__berth__.replicas_here

    def experimental_local_results(self, value):
        """A tuple with the value of each replica of this task; a variable of the strategy has as many copies."""
        if isinstance(value, _core.Variable):
            return (value,) * self.__berth__.replicas_here
        leaves, form = flatten(value, whole=(PerReplica,))
        counts = {len(v.values) for v in leaves if isinstance(v, PerReplica)} or {1}
        return tuple(pack(form, [v.values[i] if isinstance(v, PerReplica) else v for v in leaves]) for i in range(max(counts)))

    local_results = experimental_local_results

    def experimental_distribute_dataset(self, dataset, options=None):
        """Batches cut into a part for each replica."""
        return DistributedDataset(self, self.__berth__.distribute(dataset.__berth__), dataset)

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """dataset_fn(InputContext) makes batches for one replica; each replica takes one of its own."""
        made = []

        def call(replicas, pipelines, number):
            made.append(dataset_fn(InputContext(pipelines, number, replicas)))
            return made[-1].__berth__

        handle = self.__berth__.distribute_from_function(call)
        return DistributedDataset(self, handle, made[0], split=False)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn):
        """value_fn(ValueContext) of each replica, a tensor or number, as a PerReplica; alone: the value."""
        n = self.__berth__.replicas_here
        values = [value_fn(ValueContext(i, n)) for i in range(n)]
        return values[0] if n == 1 else PerReplica([convert_to_tensor(v) for v in values])

    def plan(self, model, batch_size):
        """What a training step of a compiled model would do: shares, sums, peak memory, predicted time, and what fits.

        model: of Keras on Berth, too; for that batch_size may be a batch of data.
        """
        from berth._placement import StrategyPlan
        of_keras = getattr(model, "_berth_plan", None)
        plan = of_keras(self, batch_size) if of_keras else self.__berth__.plan(model.__berth__, batch_size)
        return StrategyPlan("", plan)


def _op(value):
    return str(value).lower().rsplit(".", 1)[-1]


class InputContext:
    """What a function that makes a dataset is told: of how many replicas and pipelines it is which."""

    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def __repr__(self):
        return (f"<tf.distribute.InputContext pipeline {self.input_pipeline_id} of {self.num_input_pipelines}, "
                f"{self.num_replicas_in_sync} replicas>")

    def get_per_replica_batch_size(self, global_batch_size):
        """The batch size of one replica; ValueError unless it divides evenly."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(f"a batch of {global_batch_size} does not divide by {self.num_replicas_in_sync} replicas")
        return global_batch_size // self.num_replicas_in_sync


class StrategyExtended:
    """strategy.extended: devices, and reductions in the form of libraries."""

    def __init__(self, strategy):
        self._strategy = strategy

    worker_devices = property(lambda self: tuple(d for devices in self._strategy.devices() for d in devices),
                              doc="The names of the devices that compute.")
    parameter_devices = worker_devices
    experimental_require_static_shapes = False

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"strategy.extended has no {name}, which is planned; it has "
                             f"{', '.join(n for n in dir(type(self)) if n[0] != '_')}")

    should_checkpoint = property(lambda self: getattr(self._strategy, "is_chief", True), doc="Whether this task writes checkpoints.")
    should_save_summary = should_checkpoint

    def variable_created_in_scope(self, v):
        """Whether a variable lives on the strategy's devices, as those that are made in its scope do."""
        return v.device in self.worker_devices or hasattr(v, "values")

    def reduce_to(self, reduce_op, value, destinations=None, options=None):
        """The sum or mean of a value over replicas."""
        return self._strategy.reduce(reduce_op, value)

    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        """reduce_to() of each pair."""
        return [self._strategy.reduce(reduce_op, value) for value, _ in value_destination_pairs]

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """fn(var, *args, **kwargs), on the copies of a variable."""
        return fn(var, *args, **(kwargs or {}))

    def call_for_each_replica(self, fn, args=(), kwargs=None):
        """strategy.run()."""
        return self._strategy.run(fn, args, kwargs)


class DistributedDataset(_NotATensor):
    """Batches with a part for each replica: iterate over it, or give it to fit()."""

    __berth_advice__ = "iterate over it, and give what next() returns to strategy.run()"

    def __init__(self, strategy, handle, dataset, split=True):
        self.__berth__, self._strategy, self._dataset, self._split = handle, strategy, dataset, split
        self._form = dataset._form

    def __iter__(self):
        return DistributedIterator(self.__berth__, self._element, self.element_spec)

    @property
    def __berth_whole__(self):
        """The dataset that is split, which fit() splits by itself."""
        if not self._split:
            raise NotImplementedError("fit: a dataset of distribute_datasets_from_function() has batches for one replica; "
                                      "give fit the dataset with global batches")
        return self._dataset

    def _element(self, components):
        return pack(self._form, [p[0] if len(p) == 1 else PerReplica(p) for p in components])

    @property
    def element_spec(self):
        """The specs of a batch: of several replicas a PerReplica of that of each, whose batch sizes may differ."""
        n = self._strategy.__berth__.replicas_here
        leaves, form = flatten(self._dataset.element_spec)
        if n == 1:
            return pack(form, leaves)
        return pack(form, [PerReplica([TensorSpec([None, *s.shape[1:]] if self._split else s.shape, s.dtype)] * n)
                           for s in leaves])


class DistributedIterator(Iterator):
    """One pass over a distributed dataset."""

    def __init__(self, handle, element_of, spec):
        super().__init__(handle, element_of)
        self._spec = spec

    element_spec = property(lambda self: self._spec, doc="The specs of an element, in its structure.")


class MirroredStrategy(Strategy):
    """All replicas compute, each with copies of the variables.

    shares: "auto", or the part of the batch of each device; slices: results have the same bits on
    any number of equal devices (docs/distribute.md).

    sharding: what fit divides over the memories of the devices instead of copying it (docs/split-models.md):
    "none", "optimizer" (its variables; ZeRO 1), "gradients" (also gradients; ZeRO 2) or "parameters" (also
    trainable variables; ZeRO 3, FSDP). run() then raises NotImplementedError.
    """

    def __init__(self, devices=None, cross_device_ops=None, *, shares=None, slices=0, sharding="none"):
        super().__init__(_core.mirrored_strategy(_names(devices), shares, slices, sharding))
        self.sharding = sharding


class OneDeviceStrategy(Strategy):
    """Variables and steps on one device, by its name ("/GPU:0")."""

    def __init__(self, device):
        super().__init__(_core.one_device_strategy(str(device)))


class PipelineStrategy(Strategy):
    """Each device has a part of the model, and works on its own part of a batch.

    fit, evaluate and predict split a batch into `micro_batches` and give the results of the whole batch on one
    device (docs/split-models.md). Raises ValueError for options that do not fit the devices.

    devices: of one type. schedule: "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v". stages: names of the layers
    with which each stage but the first begins, in the order of the model; without them device scopes of the
    model ("/GPU:1": the second device) divide it, and without these the first step cuts it by what layers cost and
    devices hold. instructions: a line per device, such as "0F0 0F1 0B0 0B1".
    slices: results have the same bits for any number of micro-batches and devices.

    layout_map, in place of devices: stages of several devices, which divide the variables of the map and the ops that
    use them as a ModelParallel does; stages are along the axis stage_dim_name of its mesh.
    """

    def __init__(self, devices=None, micro_batches=4, schedule="1f1b", stages=(), *, instructions="", slices=0,
                 layout_map=None, stage_dim_name="stage"):
        options = micro_batches, schedule, list(stages), instructions, slices
        if layout_map is None:
            if devices is None:
                raise TypeError("PipelineStrategy: expected devices, or a layout_map whose mesh has them")
            super().__init__(_core.pipeline_strategy(_names(devices), *options))
            return
        if devices is not None:
            raise TypeError("PipelineStrategy: devices and layout_map are given; expected one of them")
        self.layout_map, self.batch_dim_name = layout_map, stage_dim_name
        super().__init__(_core.pipeline_of_layers(*_parts_of(layout_map), stage_dim_name, *options))

    @property
    def instructions(self):
        """What the devices run, a line for each: stage, pass (F, B, or its halves I and W), micro-batch."""
        return _core.pipeline_instructions(self.__berth__)


class Mesh:
    """Devices in a grid with named axes (tf.experimental.dtensor.Mesh).

    axes: a name and a size for each, as {"model": 2} or pairs; along the last one devices follow each other.
    devices: names; all GPUs, else all CPU devices, by default. Raises ValueError unless there is one for each place.
    """

    def __init__(self, axes, devices=None):
        pairs = axes.items() if isinstance(axes, dict) else axes
        self._axes = tuple((str(name), int(size)) for name, size in pairs)
        self.devices = _names(devices) or _all_devices()
        _core.check_mesh([n for n, _ in self._axes], [s for _, s in self._axes], self.devices)

    dim_names = property(lambda self: [name for name, _ in self._axes], doc="The names of the axes.")
    size = property(lambda self: len(self.devices), doc="How many devices there are.")

    def dim_size(self, name):
        """Places along an axis. Raises ValueError for a name that it lacks."""
        sizes = dict(self._axes)
        if name not in sizes:
            raise ValueError(f"the mesh has no axis {name!r}; it has {self.dim_names}")
        return sizes[name]

    def __repr__(self):
        return f"Mesh({dict(self._axes)}, {self.devices})"


class LayoutMap(dict):
    """Which variables are divided over a mesh, and how (keras.distribution.LayoutMap).

    A key is the name of a variable, or a regular expression for the whole of it. A value has, for each axis of the
    variable, the name of the axis of the mesh that divides it, or None: {"up/kernel": (None, "model")}.
    """

    def __init__(self, mesh, layouts=()):
        super().__init__(layouts)
        self.mesh = mesh

    def __repr__(self):
        return f"LayoutMap({self.mesh!r}, {super().__repr__()})"


class ModelParallel(Strategy):
    """Variables of a layout map are divided over devices, and with them the ops that use them (tensor parallelism).

    fit, evaluate and predict give the results of one device to rounding; what optimizers keep of a variable is divided
    as it is; what the program holds is the whole variable. run() raises NotImplementedError. batch_dim_name: the axis of
    the mesh along which batches are divided, as over the replicas of a MirroredStrategy. shares: how much of each layer a
    device of a replica has, whole numbers; equal by default. Raises ValueError for layouts that do not fit the mesh, and, when
    a variable is made, for one that does not fit it; in the first step for a key that matched no variable
    (docs/split-models.md).
    """

    def __init__(self, layout_map, *, batch_dim_name="", shares=()):
        self.layout_map, self.batch_dim_name = layout_map, batch_dim_name or ""
        super().__init__(_core.model_parallel_strategy(
            *_parts_of(layout_map), self.batch_dim_name, [float(s) for s in shares]))


class AutoStrategy(Strategy):
    """The way to divide a model over devices, found automatically at its first step, or by choose() before it.

    Chooses among one device, MirroredStrategy with shares and sharding, ModelParallel with layouts that it finds, and
    PipelineStrategy, also with divided layers; fit, evaluate and predict then are those of that strategy
    (docs/split-models.md). run() raises NotImplementedError.

    devices: names; all GPUs, else all CPU devices, by default. memory_bytes_per_device: 0 is the limit that a device
    has. most_micro_batches: of a pipeline. most_copies: between devices in a step; 0: any number. replicas, sharding,
    divided_layers, pipelines: what it may choose. Raises ValueError for devices that do not exist and numbers below 0.
    """

    def __init__(self, devices=None, *, memory_bytes_per_device=0, most_micro_batches=64, most_copies=0, replicas=True,
                 sharding=True, divided_layers=True, pipelines=True):
        super().__init__(_core.auto_strategy(_names(devices), memory_bytes_per_device, most_micro_batches, most_copies,
                                             replicas, sharding, divided_layers, pipelines))

    def choose(self, model, batch_size):
        """Chooses for a compiled model, unless that is done, and returns the ParallelPlan. Nothing runs.

        Raises MemoryError if nothing fits, naming what comes closest.
        """
        self.plan(model, batch_size)
        return self.chosen

    @property
    def chosen(self):
        """The ParallelPlan; None before the choice."""
        found = _core.chosen_plan(self.__berth__)
        return None if found is None else ParallelPlan(*found)


class ParallelPlan:
    """A way to run training steps on devices, and why: str(), json() (docs/json.md), save() for PlannedStrategy."""

    def __init__(self, text, json):
        self._text, self._json = text, json

    def __str__(self):
        return self._text

    __repr__ = __str__

    def json(self):
        """The plan as a dict."""
        import json
        return json.loads(self._json)

    def save(self, path):
        """Writes json() to a file, atomically."""
        _core.save_plan(self._json, str(path))


class PlannedStrategy(Strategy):
    """Runs a plan that ParallelPlan.save() wrote. Raises ValueError for a damaged or foreign file."""

    def __init__(self, path):
        super().__init__(_core.planned_strategy(str(path)))


def _parts_of(layout_map):
    """Names and sizes of axes, devices, keys, and a list of names for each."""
    mesh = layout_map.mesh
    layouts = [["" if name is None else str(name) for name in names] for names in layout_map.values()]
    return mesh.dim_names, [mesh.dim_size(n) for n in mesh.dim_names], mesh.devices, [str(k) for k in layout_map], layouts


class MultiWorkerMirroredStrategy(Strategy):
    """The replicas of all tasks of a cluster; TF_CONFIG and other launchers' variables say which."""

    def __init__(self, cluster_resolver=None, communication_options=None, *, slices=0, min_tasks=0):
        """min_tasks, for elastic(): how many tasks are enough to begin; 0: BERTH_MIN_TASKS, else all."""
        from berth import _resolvers
        self._resolver = cluster_resolver
        given = communication_options or CommunicationOptions()
        super().__init__(_core.multi_worker_mirrored_strategy(
            _resolvers.handle_of(cluster_resolver), int(given.bytes_per_pack), float(given.timeout_seconds or 0), slices,
            int(min_tasks)))

    @property
    def cluster_resolver(self):
        """What was given, else the resolver of TF_CONFIG."""
        from berth import _resolvers
        return self._resolver or _resolvers.TFConfigClusterResolver()

    is_chief = property(lambda self: self.__berth__.is_chief, doc="Whether this task writes checkpoints.")
    task_type = property(lambda self: self.__berth__.task_type, doc="The job of this task.")
    task_id = property(lambda self: self.__berth__.task_id, doc="The number of this task in its job.")

    def leave(self):
        """Says that this task is done, at the end of a program."""
        self.__berth__.leave()

    def elastic(self, train, min=1, max=0, *, timeout_seconds=600, most_restarts=10, steps_per_copy=1,
                termination_watcher_fn=None, grace_period=0, signals=(), notice_file=""):
        """Calls train() with the tasks that are there, and again each time one was lost, added or told to end.

        In each Model.fit of `train` weights, optimizer, metrics, position, random numbers and callbacks go on from
        the last step that all tasks finished: from memory, and in new tasks from that of another one. All else in
        `train` is done again. `min` tasks are enough (with fewer the others
        wait, at most timeout_seconds), and more than `max` (0: all of the cluster) wait as spares. State is copied
        every steps_per_copy steps; errors of `train` itself are raised after most_restarts of them. A task is told to
        end by SIGTERM, or `signals`, or termination_watcher_fn, which returns True then, or by the appearance of
        notice_file; grace_period seconds later it hands over and raises SystemExit(143). (Horovod's
        hvd.elastic.run; the names of tf.distribute.experimental.TerminationConfig.)
        """
        if not callable(train):
            raise TypeError(f"elastic: train is {train!r}; expected a function without arguments")
        raised = []  # by the last call of `train`

        def call():
            raised.clear()
            try:
                train()
            except Exception as e:
                raised.append(e)
                raise
        try:
            self.__berth__.elastic(call, int(min), int(max), float(timeout_seconds), int(most_restarts),
                                   int(steps_per_copy), termination_watcher_fn, float(grace_period),
                                   [int(s) for s in signals], str(notice_file))
        except _core.OpError as e:
            if raised and not isinstance(raised[0], _core.OpError):
                raise raised[0] from e
            raise


def _split_of(leaves):
    """The first argument with a part of the batch for each replica, whose sizes are known; -1: there is none."""
    for i, v in enumerate(leaves):
        if isinstance(v, PerReplica) and all(len(t.shape) for t in v.values):
            return i if all(t.shape[0] is not None for t in v.values) else -1
    return -1


def _all_devices():
    """The names of all GPUs, else of all CPU devices."""
    from berth import config
    return [d.name for d in config.list_logical_devices("GPU") or config.list_logical_devices("CPU")]


def _names(devices):
    names = [getattr(d, "name", d) for d in ([devices] if isinstance(devices, str) else devices or [])]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"devices are names, such as ['/GPU:0', '/GPU:1'], not {devices!r}")
    return names


class ReplicaContext:
    """What a function in Strategy.run() may ask; outside, that of the one replica of the default strategy."""

    @property
    def replica_id_in_sync_group(self):
        """The number of the replica; 0 where there is one."""
        replica = _replica_threads.current()
        return replica.id if replica else _core.replica_id() or 0

    @property
    def num_replicas_in_sync(self):
        """How many replicas compute together."""
        return _core.get_strategy().num_replicas_in_sync

    @property
    def strategy(self):
        """The strategy that runs."""
        return get_strategy()

    def all_reduce(self, reduce_op, value, options=None):
        """The sum or mean of a tensor, or a structure of such, over replicas; differentiable."""
        leaves, form = flatten(value)
        if replica := _replica_threads.current():
            return pack(form, replica.all_reduce(_op(reduce_op), leaves))
        if _core.replica_id() is None:
            return pack(form, [convert_to_tensor(v) for v in leaves])
        return pack(form, _core.all_reduce(_op(reduce_op), leaves))

    def all_gather(self, value, axis, options=None):
        """The values of all replicas one after the other along `axis`; differentiable."""
        leaves, form = flatten(value)
        if replica := _replica_threads.current():
            leaves = [convert_to_tensor(v) for v in leaves]
            return pack(form, [replica.all_gather(v, int(axis) + (len(v.shape) if axis < 0 else 0)) for v in leaves])
        if _core.replica_id() is None:
            return pack(form, [convert_to_tensor(v) for v in leaves])
        return pack(form, [_core.all_gather(convert_to_tensor(v), int(axis)) for v in leaves])

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """merge_fn(strategy, *args, **kwargs), once for all replicas, whose tensors it gets as PerReplicas.

        Every replica gets the result, a tensor, None, or a structure of such.
        """
        if replica := _replica_threads.current():
            return replica.merge_call(merge_fn, args, kwargs)
        strategy = get_strategy()
        if _core.replica_id() is None:
            return merge_fn(strategy, *args, **(kwargs or {}))
        leaves, form = flatten((tuple(args), kwargs or {}), lambda v: isinstance(v, _core.Tensor))

        forms, numbers = _scopes.merges
        number = next(numbers)

        def merged(values):
            a, k = pack(form, [PerReplica(v) for v in values])
            out, structure = present(merge_fn(strategy, *a, **k))
            forms.append(structure)
            return [convert_to_tensor(v) for v in out]

        out = _core.merge_call(merged, leaves)
        return pack(forms[number], out)


def get_replica_context():
    """The context of the replica that runs; None in the scope of a strategy, where no replica does."""
    return None if in_cross_replica_context() else ReplicaContext()


def in_cross_replica_context():
    """True in the scope of a strategy, outside of run()."""
    return (has_strategy() and _core.replica_id() is None and not getattr(_scopes, "alone", False)
            and _replica_threads.current() is None)


_default = []


def get_strategy():
    """The strategy whose scope or run() is open, or the default one, which has one replica."""
    if opened := getattr(_scopes, "open", None):
        return opened[-1]
    if _core.has_strategy():
        return Strategy(_core.get_strategy())
    if not _default:
        _default.append(Strategy(_core.get_strategy()))
    return _default[0]


_global = []


def experimental_set_strategy(strategy):
    """Opens the scope of a strategy for the rest of the program, in place of one that was opened so before; None closes that."""
    while _global:
        _global.pop().__exit__()
    if strategy is not None:
        scope = strategy.scope()
        scope.__enter__()
        _global.append(scope)


def has_strategy():
    """Whether the scope of a strategy is open."""
    return _core.has_strategy()


class CentralStorageStrategy(Strategy):
    """Variables live on the host, or on the device if there is only one; all devices compute."""

    def __init__(self, compute_devices=None, parameter_device=None):
        if parameter_device is not None and not str(parameter_device).upper().endswith("CPU:0"):
            raise NotImplementedError(f"parameter_device={parameter_device!r}: the variables of a central storage "
                                      "are on CPU:0, or on the device if there is only one; leave it out")
        super().__init__(_core.central_storage_strategy(_names(compute_devices)))


hide_in(Strategy, MirroredStrategy, PipelineStrategy, ModelParallel, Mesh, OneDeviceStrategy, MultiWorkerMirroredStrategy)


def _module(name, doc, values, source="", names=""):
    """A module of this package; `names` are those of `source`, which is imported when one is used."""
    made = _types.ModuleType(f"berth.distribute.{name}", doc)
    vars(made).update(values)
    _sys.modules[made.__name__] = made
    _name_missing(made)
    if names:
        _later(made, {source: names})
    return made


cluster_resolver = _module(
    "cluster_resolver", "tf.distribute.cluster_resolver", {}, "_resolvers",
    "ClusterResolver TFConfigClusterResolver SimpleClusterResolver SlurmClusterResolver UnionResolver")
_later(cluster_resolver, {"_absent": "TPUClusterResolver"})
coordinator = _module("coordinator", "tf.distribute.coordinator", {}, "_servers",
                      "ClusterCoordinator RemoteValue PerWorkerValue")
experimental = _module("experimental", "tf.distribute.experimental", {
    "MultiWorkerMirroredStrategy": MultiWorkerMirroredStrategy, "CommunicationOptions": CommunicationOptions,
    "CollectiveHints": CommunicationOptions, "CommunicationImplementation": CommunicationImplementation,
    "CollectiveCommunication": CommunicationImplementation, "CentralStorageStrategy": CentralStorageStrategy,
    "ValueContext": ValueContext}, "_servers", "ParameterServerStrategy")
_later(experimental, {"_preemption": "PreemptionCheckpointHandler PreemptionWatcher TerminationConfig", "_absent": "TPUStrategy"})
experimental.coordinator = _module("experimental.coordinator", "tf.distribute.experimental.coordinator", {},
                                   "_servers", "ClusterCoordinator RemoteValue PerWorkerValues")
experimental.partitioners = _module(
    "experimental.partitioners", "tf.distribute.experimental.partitioners", {}, "_servers",
    "Partitioner FixedShardsPartitioner MinSizePartitioner MaxSizePartitioner")
_SERVERS = "ParameterServerStrategy Server register_dataset"
_name_missing(_sys.modules[__name__])
_later(_sys.modules[__name__], {"_servers": _SERVERS, "_absent": "TPUStrategy"})
