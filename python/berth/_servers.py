"""Parameter servers: variables live on servers, workers compute (tf.distribute.ParameterServerStrategy)."""
import atexit
import socket
import threading
import weakref

from berth import _core
from berth._frames import hide_in
from berth._function import Function, call_converted, convert_signature, needs_values
from berth._resolvers import SimpleClusterResolver, handle_of, jobs_of, spec_of, url
from berth._structure import LEAF, flatten, is_value, pack
from berth._tensor import NamesMissing, TensorSpec, convert_to_tensor
from berth.data import Dataset
from berth.distribute import InputContext, Strategy
from berth.train import ClusterSpec

_HOUR = 3600.0
_MOST_ELEMENTS = 1000  # that a scheduled function takes of an iterator
_pipelines = threading.local()  # .context: of the worker for which a data set is being made
_strategies = weakref.WeakSet()  # those of this process


class ParameterServerStrategy(Strategy):
    """Variables live on parameter servers; workers compute, each at its own pace; the chief schedules.

    In the chief it returns. In workers and servers it serves until the chief is done and ends the program then, so
    that one script without tf.distribute.Server works in all tasks, too.
    max_staleness: a function sees the updates of all scheduled before it but for so many; None: no bound.
    """

    def __init__(self, cluster_resolver=None, variable_partitioner=None, *, max_staleness=None,
                 worker_timeout_seconds=_HOUR, join_timeout_seconds=_HOUR, closure_timeout_seconds=600.0,
                 queue_length=262144):
        self._resolver = _in_this_process(cluster_resolver, join_timeout_seconds)
        handle = handle_of(self._resolver)
        if handle.task_type in ("worker", "ps"):
            _core.serve(handle, join_timeout_seconds)
            raise SystemExit(0)
        super().__init__(_core.parameter_server_strategy(handle, {
            "variable_partitioner": getattr(variable_partitioner, "__berth__", variable_partitioner),
            "max_staleness": max_staleness, "worker_timeout_seconds": worker_timeout_seconds,
            "join_timeout_seconds": join_timeout_seconds, "closure_timeout_seconds": closure_timeout_seconds,
            "queue_length": queue_length}))
        _strategies.add(self)
        atexit.register(_end, weakref.ref(self))

    cluster_resolver = property(lambda self: self._resolver, doc="The resolver that was given.")
    num_workers = property(lambda self: self.__berth__.num_workers, doc="The number of workers.")
    num_parameter_servers = property(lambda self: self.__berth__.num_parameter_servers,
                                     doc="The number of parameter servers.")

    def __repr__(self):
        return f"<ParameterServerStrategy workers={self.num_workers}, servers={self.num_parameter_servers}>"

    def servers_of(self, variable):
        """The tasks that have a variable, one per shard: ["/job:ps/task:1"]."""
        return self.__berth__.servers_of(variable)

    def experimental_distribute_dataset(self, dataset, options=None):
        """The data set itself: a step runs on one worker."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """dataset_fn(InputContext); in the function of create_per_worker_dataset() once per worker."""
        return dataset_fn(getattr(_pipelines, "context", None) or InputContext())


def _end(strategy):
    if (strategy := strategy()) is not None:
        strategy.__berth__.end()


def end_all():
    """Ends the strategies of this process, as its end does: workers and servers are told that the chief is done."""
    for strategy in list(_strategies):
        strategy.__berth__.end()


def serve(join_timeout_seconds=_HOUR):
    """Serves as the task that the environment says, until the chief is done."""
    _core.serve(_core.environment_resolver(), join_timeout_seconds)


class Server(metaclass=NamesMissing):
    """A task of a cluster that serves: what workers and parameter servers make and join().

    Nothing listens before join(). A strategy in the same process whose cluster has no chief, and all of whose tasks
    are Servers of this process, starts them: a cluster to try things with.
    """
    __module__ = "berth.distribute"
    _made = {}  # by address

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, protocol=None, config=None, start=True):
        spec = ClusterSpec(getattr(server_or_cluster_def, "cluster", server_or_cluster_def))
        if job_name is None and len(spec.jobs) == 1:
            job_name = spec.jobs[0]
        if job_name is None:
            raise ValueError(f"Server: no job_name; expected one of {spec.jobs}")
        if task_index is None and spec.num_tasks(job_name) == 1:
            task_index = spec.task_indices(job_name)[0]
        if task_index is None:
            raise ValueError(f"Server: no task_index; expected one of {spec.task_indices(job_name)}")
        self.cluster, self.job_name, self.task_index = spec, str(job_name), int(task_index)
        self.protocol, self._config = protocol or "grpc", config
        self._address = spec.task_address(job_name, self.task_index)
        Server._made[self._address] = self

    target = property(lambda self: url(self._address, self.protocol), doc="The address, as grpc://host:port.")
    server_def = property(lambda self: self, doc="What the server was started with.")

    def start(self):
        """Does nothing: join() serves."""

    def join(self):
        """Serves until the chief is done and ends the program then, with status 0: it does not return, as in TensorFlow."""
        if self.job_name not in ("worker", "ps"):
            raise ValueError(f"join() of a Server of job {self.job_name!r}; expected a worker or ps: the chief makes a "
                             "ParameterServerStrategy, an evaluator reads checkpoints")
        _core.serve(self._handle(jobs_of(self.cluster)), _HOUR)
        raise SystemExit(0)

    def _handle(self, jobs):
        return _core.simple_resolver(jobs, self.job_name, self.task_index, self.protocol, "")

    def __repr__(self):
        return f"<Server {self.job_name}:{self.task_index} at {self.target}>"


def _in_this_process(resolver, join_timeout):
    """The resolver; of a cluster of Servers of this process, which are started, one whose chief is this process, too."""
    spec = None if resolver is None else spec_of(resolver)
    if not spec:
        return resolver
    if "chief" in spec.jobs:
        return resolver if resolver.task_type else SimpleClusterResolver(spec, task_type="chief", task_id=0)
    if resolver.task_type:
        return resolver  # the engine says what is missing
    jobs = jobs_of(spec)
    addresses = [a for tasks in jobs.values() for a in tasks.values()]
    if not all(a in Server._made for a in addresses):
        raise ValueError(
            "ParameterServerStrategy: the cluster has no chief, and not all of its tasks are Servers of this process; "
            "expected a cluster with this process as \"chief\": [\"host:port\"], the same in all tasks, as `berth launch "
            "--workers 2 --ps 1` makes it, or tf.distribute.Servers made in this process for all of them")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        jobs["chief"] = {0: f"{addresses[0].rpartition(':')[0]}:{free.getsockname()[1]}"}
    for address in addresses:
        _core.serve_beside(Server._made.pop(address)._handle(jobs), join_timeout)
    return SimpleClusterResolver(ClusterSpec(jobs), task_type="chief", task_id=0)


class RemoteValue:
    """The result of a scheduled function, which may not be done yet."""

    def __init__(self, handle):
        self.__berth__ = handle

    def done(self):
        """Whether get() returns at once."""
        return self.__berth__.done()

    def get(self):
        """Waits for the result, tensors; raises the error of the function, CancelledError if another one failed."""
        tensors = self.__berth__.tensors()
        return pack(self.__berth__.form(), tensors)

    def fetch(self):
        """get(), as NumPy has it."""
        leaves, form = flatten(self.get())
        return pack(form, [v.numpy() if isinstance(v, _core.Tensor) else v for v in leaves])

    def __repr__(self):
        return f"<RemoteValue, {'done' if self.done() else 'not done'}>"


class PerWorkerValues:
    """A value of each worker, which a scheduled function gets as an argument: that of the worker that runs it."""

    def __init__(self, values):
        self._values = tuple(values)
        made = [flatten(v) for v in self._values]
        if not made or any(str(form) != str(made[0][1]) for _, form in made):
            raise ValueError("PerWorkerValues: expected a value of each worker, of the same structure")
        self._form = made[0][1]
        self._datasets = [Dataset.from_tensors(tuple(convert_to_tensor(v) for v in leaves)).repeat() for leaves, _ in made]
        self.__berth__ = None

    def _source(self, strategy):
        if self.__berth__ is None:
            if len(self._values) != strategy.num_workers:
                raise ValueError(f"PerWorkerValues has {len(self._values)} values, the cluster {strategy.num_workers} workers")
            self.__berth__ = strategy.__berth__.dataset_of([d.__berth__ for d in self._datasets]).make_iterator()
        return self.__berth__

    def _taken(self, elements):
        return pack(self._form, elements[0])


PerWorkerValue = PerWorkerValues


class _Made(PerWorkerValues):
    """What the coordinator makes of each worker."""

    def __init__(self, handle, form):
        self.__berth__, self._form = handle, form

    def _source(self, strategy):
        return self.__berth__

    @property
    def element_spec(self):
        """The specs of an element."""
        return pack(self._form, [TensorSpec(shape, dtype) for shape, dtype in self.__berth__.specs()])

    def __repr__(self):
        return f"<{type(self).__name__.strip('_')} of each worker, elements: {self.element_spec!r}>"


class PerWorkerDataset(_Made):
    """A data set of each worker; iter() of it is what schedule() takes."""

    def __iter__(self):
        return PerWorkerIterator(self.__berth__.make_iterator(), self._form)

    def _source(self, strategy):
        raise TypeError("a data set of each worker is an argument of schedule(); expected iter(dataset)")


class PerWorkerIterator(_Made):
    """An iterator of each worker: next() of it belongs in a scheduled function."""

    def __iter__(self):
        return self

    def __next__(self):
        raise RuntimeError("next() of an iterator of each worker; expected it in a function that schedule() sends")

    def _taken(self, elements):
        return _Elements(self, [pack(self._form, e) for e in elements])


class _MoreElements(Exception):
    """A trace asks for one more element of an iterator."""


class _Elements:
    """The iterator of the worker that runs a function, in its trace."""

    def __init__(self, source, elements):
        self._source, self._left = source, list(elements)
        self.element_spec = source.element_spec

    def __iter__(self):
        return self

    def __next__(self):
        if not self._left:
            raise _MoreElements(self._source)
        return self._left.pop(0)

    get_next = __next__


class ClusterCoordinator:
    """Schedules functions on the workers of a ParameterServerStrategy.

    A function is traced here and its parts are sent: workers and servers need neither it nor Python's modules.
    """

    def __init__(self, strategy):
        if not isinstance(strategy, ParameterServerStrategy):
            raise ValueError(f"ClusterCoordinator of a {type(strategy).__name__}; expected a ParameterServerStrategy")
        self.strategy = strategy

    def schedule(self, fn, args=(), kwargs=None):
        """Runs fn(*args, **kwargs) on some worker, at least once; returns a RemoteValue at once.

        A tf.function is traced once per signature, another function at each call. Raises the first error of earlier
        functions, once.
        """
        traced = fn if isinstance(fn, Function) else Function(fn)
        args, kwargs = _arguments(traced, args, kwargs)
        leaves, form = flatten((args, kwargs), lambda v: is_value(v) or isinstance(v, PerWorkerValues))
        text = traced._text_of(form) + str([type(v).__name__ for v in leaves if isinstance(v, PerWorkerValues)])
        counts = traced.__dict__.setdefault("_elements", {}).setdefault(text, [1] * len(leaves))
        while True:
            sent = [(v._source(self.strategy), n) if isinstance(v, PerWorkerValues) else convert_to_tensor(v)
                    for v, n in zip(leaves, counts)]
            try:
                return RemoteValue(self.strategy.__berth__.schedule(
                    traced if traced is fn else None, sent, f"{text} {counts}",
                    lambda tensors: _trace(traced, form, leaves, counts, tensors)))
            except _MoreElements as more:
                at = next(i for i, v in enumerate(leaves) if v is more.args[0])
                counts[at] += 1
                if counts[at] > _MOST_ELEMENTS:
                    raise ValueError("a scheduled function takes an iterator's elements without end; expected so many "
                                     "calls of next() as a run needs") from None
            except Exception as error:
                if not needs_values(error):
                    raise
                raise NotImplementedError(f"schedule: {traced.__name__} cannot be traced, and workers run nothing but "
                                          f"traces: {error}") from error

    def join(self):
        """Waits until all is done, then this process's copies of variables are what servers have.

        Raises the first error of a function, once: what was not done then is cancelled.
        """
        self.strategy.__berth__.join()

    def done(self):
        """Whether all is done; raises as join() does."""
        return self.strategy.__berth__.done()

    def fetch(self, val):
        """The results of RemoteValues in a structure, as NumPy has them, when they are there."""
        leaves, form = flatten(val)
        return pack(form, [v.fetch() if isinstance(v, RemoteValue) else v for v in leaves])

    def create_per_worker_dataset(self, dataset_fn):
        """A data set of each worker.

        dataset_fn: a function without arguments that returns one, called here once per worker; the elements are sent
        with the functions that take them. Or a data set, or the name of one that all tasks have given to
        tf.distribute.register_dataset(): that is made and read on the workers.
        """
        core = self.strategy.__berth__
        if isinstance(dataset_fn, str):
            return PerWorkerDataset(core.dataset_named(dataset_fn), _registered[dataset_fn](InputContext(
                core.num_workers, 0, 1))._form)
        fn = getattr(dataset_fn, "python_function", dataset_fn)
        made = [fn if isinstance(fn, Dataset) else _made_for(fn, core.num_workers, w) for w in range(core.num_workers)]
        return PerWorkerDataset(core.dataset_of([d.__berth__ for d in made]), made[0]._form)

    def create_per_worker_resource(self, fn):
        """What fn() returns, tensors, computed once by each worker; an argument of scheduled functions."""
        forms = []

        def run():
            out, form = flatten(call_converted(fn))
            forms.append(form)
            return [convert_to_tensor(v) for v in out]
        return _Resource(self.strategy.__berth__.resource(run), forms)

    def statistics(self):
        """How many functions were scheduled, are done, failed, were cancelled or run again."""
        return self.strategy.__berth__.statistics()


class _Resource(_Made):
    """What each worker has computed."""

    def __init__(self, handle, forms):
        super().__init__(handle, forms[0])


def _arguments(traced, args, kwargs):
    """The arguments of a call, as the signature has them."""
    args, kwargs = tuple(args or ()), dict(kwargs or {})
    if any(isinstance(v, RemoteValue) for v in flatten((args, kwargs))[0]):
        raise ValueError("results of other functions cannot be arguments of schedule(): fetch() them, or keep them in a "
                         "variable")
    if traced.input_signature is not None:
        import inspect
        bound = inspect.signature(traced.python_function).bind(*args, **kwargs)
        args, kwargs = tuple(convert_signature(traced.input_signature, bound.args)), {}
    return args, kwargs


def _trace(traced, form, leaves, counts, tensors):
    """Calls the function with tensors of a trace; returns leaves and structure of the result."""
    at, values = iter(tensors), []
    for leaf, count in zip(leaves, counts):
        if isinstance(leaf, PerWorkerValues):
            parts = len(flatten(leaf._form)[0])
            values.append(leaf._taken([[next(at) for _ in range(parts)] for _ in range(count)]))
        else:
            values.append(next(at))
    return traced.trace_with(LEAF, [pack(form, values)])


def _made_for(fn, workers, number):
    """What the function of create_per_worker_dataset() makes for a worker."""
    _pipelines.context = InputContext(workers, number, 1)
    try:
        made = fn()
    finally:
        _pipelines.context = None
    if not isinstance(made, Dataset):
        raise TypeError(f"create_per_worker_dataset: the function returns a {type(made).__name__}; expected a tf.data.Dataset")
    return made


_registered = {}


def register_dataset(name, dataset_fn):
    """Has workers make a data set by themselves: every task gives dataset_fn(InputContext) the same name, before it makes
    the strategy or joins its Server."""
    _registered[str(name)] = dataset_fn
    _core.register_dataset(str(name), lambda replicas, pipelines, number: dataset_fn(
        InputContext(pipelines, number, replicas)).__berth__)


class Partitioner:
    """Into how many shards a variable is split along an axis; derive from it, or give a strategy a function."""

    def __call__(self, shape, dtype, axis=0):
        """A list: how many parts along each axis."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__()")


class _EnginePartitioner(Partitioner):
    def __call__(self, shape, dtype, axis=0):
        """A list: how many parts along each axis."""
        return self.__berth__(shape, dtype, axis)


class FixedShardsPartitioner(_EnginePartitioner):
    """So many shards, at most one per row."""

    def __init__(self, num_shards):
        self.__berth__ = _core.fixed_shards_partitioner(num_shards)


class MinSizePartitioner(_EnginePartitioner):
    """As many shards as give each about min_shard_bytes, at most max_shards."""

    def __init__(self, min_shard_bytes=256 << 10, max_shards=1, bytes_per_string=16):
        self.__berth__ = _core.min_size_partitioner(min_shard_bytes, max_shards, bytes_per_string)


class MaxSizePartitioner(_EnginePartitioner):
    """As few shards as keep each under max_shard_bytes."""

    def __init__(self, max_shard_bytes, max_shards=None, bytes_per_string=16):
        self.__berth__ = _core.max_size_partitioner(max_shard_bytes, max_shards, bytes_per_string)


hide_in(ParameterServerStrategy, ClusterCoordinator, RemoteValue, Server, _EnginePartitioner, FixedShardsPartitioner,
        MinSizePartitioner, MaxSizePartitioner)
