"""tf.train: checkpoints (docs/checkpoints.md says how they are kept)."""
import functools
import weakref

from berth import _core, _remote
from berth._checkpoint_status import LoadStatus, NothingRestored as _NothingRestored, Part as _Part
from berth._lazy import Lazy as _Lazy
from berth._example import BytesList, Example, Feature, Features, FloatList, Int64List
from berth._sequence_example import FeatureList, FeatureLists, SequenceExample
from berth._train_more import (CheckpointView, ExponentialMovingAverage, PythonState, TrackableView, checkpoints_iterator,
                               get_checkpoint_state, state_of as _state_of, take_state as _take_state)
from berth._coordinator import Coordinator
from berth._lazy import Names as _Names
from berth._core import Variable, latest_checkpoint as _latest
from berth._control import init_scope
from berth._module import Module, of_keras, variables_in
from berth._tensor import convert_to_tensor, refuse

_away = _Lazy("berth._remote_checkpoints")
__all__ = ["Checkpoint", "CheckpointManager", "CheckpointOptions", "latest_checkpoint",
           "list_variables", "load_variable", "load_checkpoint", "LoadStatus", "ClusterSpec", "Example", "Features", "Feature",
           "BytesList", "FloatList", "Int64List", "SequenceExample", "FeatureList", "FeatureLists",
           "CheckpointView", "ExponentialMovingAverage", "TrackableView", "checkpoints_iterator", "get_checkpoint_state",
           "Coordinator"]
experimental = _Names("tf.train.experimental", PythonState=PythonState)


class CheckpointOptions:
    """enable_async: values are copied, and written while the program goes on.

    What goes to a URL is uploaded while the program goes on in any case; with it the copy on this machine is, too.
    """

    def __init__(self, experimental_io_device=None, experimental_enable_async_checkpoint=False,
                 enable_async=False):
        self.enable_async = enable_async or experimental_enable_async_checkpoint


class _NotTracked(TypeError, ValueError):
    """What a Checkpoint cannot keep."""


_PLAIN = (str, bytes, int, float, complex, type(None), tuple, set)


class Checkpoint:
    """Objects that are saved and restored together: Checkpoint(model=model, step=step).

    Models, layers, optimizers, metrics, variables, tf.Module, other Checkpoints, and lists, dictionaries and objects that
    hold such. Paths may be URLs (s3://bucket/run/ckpt; docs/checkpoints.md). What becomes an attribute of a Checkpoint, or is appended to its lists, after restore() gets the values that
    were saved under its name; texts and numbers as attributes are not saved.
    """

    def __init__(self, root=None, **kwargs):
        self.__dict__.update(_parts={}, _made={}, _status=None)
        if root is not None:
            kwargs["root"] = root
        for name, value in kwargs.items():
            if isinstance(value, _PLAIN):
                raise _NotTracked(f"Checkpoint: '{name}' is {value!r}, which holds no variables; expected a model, layer, "
                                 "optimizer, metric, variable, or an object that holds such")
            setattr(self, name, value)

    def __getattr__(self, name):
        if name in self.__dict__.get("_parts", {}):
            return self._parts[name]
        if name == "__berth__":
            handle = _core.Checkpoint.make(self._handles())
            self.__dict__["__berth__"] = handle
            return handle
        raise AttributeError(f"the Checkpoint has no object '{name}'; it has {sorted(self._parts)}")

    def __repr__(self):
        return f"<Checkpoint of {', '.join(self._parts) or 'nothing'}>"

    def __setattr__(self, name, value):
        if isinstance(value, _PLAIN) or (callable(value) and not hasattr(value, "variables")):
            self._parts.pop(name, None)
            self.__dict__[name] = value
            return
        self.__dict__.pop(name, None)
        value = _List(value) if type(value) is list else value
        replaces = name in self._parts
        self._parts[name] = value
        self._made.pop(name, None)
        self._changed()
        if "_late" in self.__dict__ and not replaces:
            self._take(name, value)

    def __delattr__(self, name):
        if self.__dict__.pop(name, self._parts.pop(name, self)) is self:
            raise AttributeError(f"the Checkpoint has no object '{name}'; it has {sorted(self._parts)}")
        self._made.pop(name, None)
        self._changed()

    def _handles(self):
        for name, value in self._parts.items():
            if name not in self._made:
                self._made[name] = _part(name, value)
        return [(name, self._made[name]) for name in self._parts]

    def _changed(self):
        if "__berth__" in self.__dict__:
            self.__berth__.set_objects(self._handles())

    def _take(self, name, value):
        """Gives a part that came after restore() what the checkpoint has for it."""
        file, prefix = self._late
        if not prefix and not isinstance(value, (Checkpoint, _List)) and any(
                n.split("/")[0].split("@")[0].split(":")[0] == name for n, _ in _names_in(file)):
            made = self._made[name] if name in self._made else _part(name, value)
            found = _core.Checkpoint.make([(name, made)]).restore(file, False)
            found.expect_partial()
            found = _Part(name, found.restored, found.deferred, found.missing)
        else:
            found = _Part(name, *_give(file, f"{prefix}{name}", value, self._status))
        if self._status is not None:
            self._status._add(found)

    def _checkpointed(self):
        return sorted(("" if name == "root" else name, part) for name, part in self._parts.items())

    def _await(self, file, prefix, status):
        """Objects that come later get their values from a file, where their names begin with the prefix."""
        self.__dict__.update(_late=(file, prefix), _status=status)
        for name, part in self._parts.items():
            if isinstance(part, (Checkpoint, _List)):
                part._await(file, f"{prefix}{name}/", status)

    def _waits(self, name):
        """Whether the variable of a deferred value is yet to be made."""
        first, _, path = name.partition("/")
        part = self._made.get(first)
        if isinstance(part, _State):
            return False
        if isinstance(part, _Awaiting):
            return path in part._values
        return not getattr(self._parts.get(first), "weights", ())

    def save(self, file_prefix, options=None):
        """Writes PREFIX-N, where N counts; returns that path.

        To a URL it is uploaded while the program goes on: an error is raised by the next save, or by sync().
        """
        return self._save(file_prefix, True, options)

    def write(self, file_prefix, options=None):
        """Writes PREFIX itself, uncounted; returns it."""
        return self._save(file_prefix, False, options)

    def _save(self, path, counted, options):
        path = _remote.plain(path)
        handle = self.__berth__
        states = [part for part in self._made.values() if isinstance(part, _State)]
        for part in states:
            part.saved = _state_of(part.state)
        try:
            if _remote.is_url(path):
                return _away.save(self, path, counted, _is_async(options))
            return handle.save(path, counted, _is_async(options))
        finally:
            for part in states:
                part.saved = []

    def restore(self, save_path, options=None):
        """Puts the values back, also those of variables yet to be made. None: nothing happens."""
        if save_path is None:
            return _NothingRestored()
        return self._read(save_path, True)

    def read(self, save_path, options=None):
        """restore() of what write() wrote: the counter stays."""
        return self._read(save_path, False)

    def _read(self, path, counted):
        path = _remote.plain(path)
        if _remote.is_url(path):
            path, mirror = _away.fetched(self, path)
            with mirror.naming():
                found = self.__berth__.restore(path, counted)
        else:
            found = self.__berth__.restore(path, counted)
        uncounted = counted and not self.__berth__.save_counter()
        status = LoadStatus(found, self._waits, ["save_counter"] if uncounted else ())
        self._await(path, "", status)
        return status

    def sync(self):
        """Waits for an asynchronous save, and until what was saved is at its URL; raises their errors."""
        if "_mirrors" in self.__dict__:
            _away.sync(self)
        self.__berth__.sync()

    @property
    def save_counter(self):
        """How many checkpoints were saved, a variable."""
        return convert_to_tensor(self.__berth__.save_counter(), _core.int64)


class _List(list):
    """A list of a Checkpoint: what is appended after restore() gets its value."""

    _late = None

    def _await(self, file, prefix, status):
        self._late = file, prefix, status

    def append(self, value):
        super().append(value)
        if self._late is not None:
            file, prefix, status = self._late
            name = f"{prefix}{len(self) - 1}"
            found = _Part(name, *_give(file, name, value, status))
            if status is not None:
                status._add(found)


def _names_in(file):
    try:
        return _core.list_variables(file)
    except _core.NotFoundError:  # it was deleted since
        return []


def _give(file, name, value, status=None):
    """Puts back what a checkpoint has for an object of this name, also what the object has yet to make.

    Returns the names of (what was put back, what waits, what is missing).
    """
    if isinstance(value, (Checkpoint, _List)):
        value._await(file, name + "/", status)
    saved = [n for n, _ in _names_in(file) if n == name or n.startswith(name + "/")]
    variables = {"/".join(filter(None, (name, path))): v for path, v in variables_in(value)}
    later, given, waiting = _Awaiting(value), [], []
    for full in saved:
        if full in variables:
            variables[full].assign(_core.load_variable(file, full))
            given.append(full)
        elif (isinstance(value, Module) or of_keras(value)) and later(full[len(name) + 1:], _core.load_variable(file, full)):
            waiting.append(full)
    return given, waiting, [n for n in variables if n not in saved]


def _is_async(options):
    return bool(options and options.enable_async)


def _part(name, value):
    if isinstance(value, (Variable, _core.Layer, _core.Optimizer, _core.Metric)):
        return value
    if isinstance(value, (Checkpoint, list, dict)):
        return _Awaiting(value)
    if hasattr(value, "__berth__") and isinstance(
            value.__berth__, (_core.Layer, _core.Optimizer, _core.Metric)):
        return value.__berth__
    if hasattr(value, "_pass"):  # an iterator of a dataset
        if type(value).__name__ == "DistributedIterator":
            raise _NotTracked(f"Checkpoint: '{name}' is an iterator of a distributed data set, which is planned; keep that of "
                             "the data set")
        return value._pass
    if isinstance(value, PythonState):
        return _State(value)
    if not isinstance(value, Module) and not of_keras(value) and not hasattr(value, "_saved_as") and not variables_in(value):
        raise _NotTracked(f"Checkpoint: '{name}' is {value!r}, which holds no variables; expected a "
                        "model, layer, optimizer, metric, variable, or an object that holds such")
    return _Awaiting(value)


class _Awaiting:
    """What a checkpoint asks for the variables of an object, and gives the values of those that are yet to be made."""

    def __init__(self, value):
        try:
            self._held = weakref.ref(value)  # the Checkpoint keeps it, and may be kept by it
        except TypeError:
            self._held = lambda: value
        self._values = {}

    def __call__(self, path=None, value=None):
        held = self._held()
        if path is None:
            return variables_in(held)
        if held.variables if isinstance(held, Module) else getattr(held, "built", True):
            return False
        if isinstance(held, Module):
            held.await_values(self._values)
        elif not self._values:
            self._await_build(held)
        self._values[path] = value
        return True

    def _await_build(self, held):
        build = held.build

        @functools.wraps(build)
        def built(*args, **kwargs):
            out = build(*args, **kwargs)
            with init_scope():
                self._fill()
            return out
        object.__setattr__(held, "build", built)

    def _fill(self):
        for path, variable in variables_in(self._held()):
            if path in self._values:
                variable.assign(self._values.pop(path))


class _State:
    """A PythonState for the engine: bytes, as a variable, while a checkpoint is saved."""

    def __init__(self, state):
        self.state, self.saved = state, []

    def __call__(self, path=None, value=None):
        if path is None:
            return self.saved
        _take_state(self.state, value)
        return True


class ClusterSpec:
    """The tasks of a cluster, their addresses by job: {"worker": ["host:port", ...]}, or {"worker": {3: "host:port"}}."""

    def __init__(self, cluster):
        jobs = cluster._jobs if isinstance(cluster, ClusterSpec) else cluster
        if not isinstance(jobs, dict):
            raise TypeError(f"a ClusterSpec of a {type(cluster).__name__}; expected addresses by job, "
                            '{"worker": ["host:port"]}')
        self._jobs = {job: {int(i): tasks[i] for i in sorted(tasks)} if isinstance(tasks, dict)
                      else dict(enumerate([tasks] if isinstance(tasks, str) else tasks))
                      for job, tasks in jobs.items()}

    jobs = property(lambda self: sorted(self._jobs), doc="The names of the jobs.")

    def as_dict(self):
        """Addresses by job: lists, or dictionaries where indices have gaps."""
        return {job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
                for job, tasks in self._jobs.items()}

    def _tasks(self, job_name):
        if job_name not in self._jobs:
            raise ValueError(f"the cluster has no job {job_name!r}; it has {self.jobs}")
        return self._jobs[job_name]

    def num_tasks(self, job_name):
        """How many tasks a job has; ValueError of a job that is not there."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name):
        """The indices of a job's tasks, in order."""
        return list(self._tasks(job_name))

    def job_tasks(self, job_name):
        """The addresses of a job, in order; None where an index is not there."""
        tasks = self._tasks(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def task_address(self, job_name, task_index):
        """The address of a task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"the job {job_name!r} has no task {task_index}; it has {list(tasks)}")
        return tasks[task_index]

    def __eq__(self, other):
        other = ClusterSpec(other) if isinstance(other, dict) else other
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __bool__(self):
        return bool(self._jobs)

    def __repr__(self):
        return f"ClusterSpec({self.as_dict()})"


class CheckpointManager:
    """The checkpoints of a folder, or of a URL: numbered, the oldest deleted."""

    def __init__(self, checkpoint, directory, max_to_keep=5, keep_checkpoint_every_n_hours=None,
                 checkpoint_name="ckpt", step_counter=None, checkpoint_interval=None, init_fn=None):
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError("CheckpointManager: checkpoint_interval counts steps; expected step_counter, a variable, beside it")
        self._checkpoint, self._directory = checkpoint, _remote.plain(directory)
        self._away = _away.Manager(self._directory, checkpoint_name) if _remote.is_url(self._directory) else None
        self._interval = checkpoint_interval
        self._options = {
            "max_to_keep": max_to_keep or 0, "every_n_hours": keep_checkpoint_every_n_hours or 0.0,
            "checkpoint_name": checkpoint_name, "step_counter": step_counter,
            "checkpoint_interval": checkpoint_interval or 0, "init_fn": init_fn}

    def __repr__(self):
        return f"<CheckpointManager directory={self._directory!r}, latest={self.latest_checkpoint!r}>"

    def __getattr__(self, name):
        if name == "__berth__":
            if self._away:
                self._away.know()
            handle = _core.CheckpointManager.make(
                self._checkpoint.__berth__, self._away.mirror.folder if self._away else self._directory, self._options)
            self.__dict__["__berth__"] = handle
            return handle
        raise AttributeError(f"CheckpointManager has no attribute '{name}'")

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        """Saves and deletes what is too old; returns the path, or None before the interval is over."""
        number = None if checkpoint_number is None else int(checkpoint_number)
        if number is None and self._options["step_counter"] is not None:
            number = int(self._checkpoint.save_counter) + 1  # the engine's own number would be the step
        if self._away:
            return self._away.save(lambda: self.__berth__.save(number, check_interval))
        return self.__berth__.save(number, check_interval)

    def restore_or_initialize(self):
        """Restores the latest, else calls init_fn; returns the path of what was restored."""
        if self._away:
            path = self._away.restore(lambda: self.__berth__.restore_or_initialize())
        else:
            path = self.__berth__.restore_or_initialize()
        if path is not None:
            self._checkpoint._await(path, "", None)
        return self._named(path)

    def sync(self):
        """Waits for an asynchronous save, and until what was saved is at its URL; raises their errors."""
        if self._away:
            self._away.sync()
        self.__berth__.sync()

    def _named(self, path):
        return self._away.mirror.url_of(path) if self._away else path

    checkpoints = property(lambda self: [self._named(p) for p in self.__berth__.checkpoints()],
                           doc="The paths of the kept checkpoints, the newest last.")
    latest_checkpoint = property(lambda self: latest_checkpoint(self._directory)
                                 if "__berth__" not in self.__dict__
                                 else self._named(self.__berth__.latest_checkpoint()),
                                 doc="The path of the newest checkpoint, or None.")
    directory = property(lambda self: self._directory, doc="The folder of the checkpoints.")
    checkpoint = property(lambda self: self._checkpoint, doc="The Checkpoint that is saved.")
    checkpoint_interval = property(lambda self: self._interval, doc="How many steps are between checkpoints, or None.")


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """Returns the path of the last complete checkpoint in a folder, or at a URL, or None."""
    refuse("latest_checkpoint", latest_filename=latest_filename)
    folder = _remote.plain(checkpoint_dir)
    return _away.latest(folder) if _remote.is_url(folder) else _latest(folder)


def _path_here(path, what):
    """A path of checkpoints; that of a copy of what a URL names."""
    path = _remote.plain(path)
    return _away.copy_of(path, what) if _remote.is_url(path) else path


def list_variables(ckpt_dir_or_file):
    """Returns (name, shape) of the values in a checkpoint."""
    return [(name, shape.as_list()) for name, shape in _core.list_variables(_path_here(ckpt_dir_or_file, "list_variables"))]


class CheckpointReader:
    """The values of a checkpoint by TensorFlow's names, NAME/.ATTRIBUTES/VARIABLE_VALUE, or by NAME."""

    _END = "/.ATTRIBUTES/VARIABLE_VALUE"

    def __init__(self, path):
        self._path = path

    def get_variable_to_shape_map(self):
        """{name: list of lengths}."""
        return {name + self._END: shape for name, shape in list_variables(self._path)}

    def get_variable_to_dtype_map(self):
        """{name: DType}."""
        return {name: _core.load_variable(self._path, name.removesuffix(self._END)).dtype for name in self.get_variable_to_shape_map()}

    def has_tensor(self, tensor_str):
        """Whether there is a value of this name."""
        return tensor_str.removesuffix(self._END) in dict(list_variables(self._path))

    def get_tensor(self, tensor_str):
        """A value as an array; NotFoundError of another name."""
        return load_variable(self._path, tensor_str)


def load_checkpoint(ckpt_dir_or_file):
    """A CheckpointReader of a checkpoint, or of the last one of a folder."""
    import os
    path = _path_here(ckpt_dir_or_file, "load_checkpoint")
    if os.path.isdir(path) and _latest(path) is not None:
        path = _latest(path)
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file, name):
    """Returns a value of a checkpoint as an array."""
    plain = str(name).removesuffix(CheckpointReader._END)
    return _core.load_variable(_path_here(ckpt_dir_or_file, "load_variable"), plain).numpy()
