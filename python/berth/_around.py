"""Names of tf around the computation: loggers, scopes of variables, conversions, locks, batches of calls."""
import functools
import threading
import time

from berth import _core
from berth._core import Variable
from berth._structure import flatten, pack
from berth._tensor import convert_to_tensor


class AggregationMethod:
    """How gradients are added up; Berth has one way, to which all of these lead."""
    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE, EXPERIMENTAL_ACCUMULATE_N = 1, 2


def get_logger():
    """The logger "berth" of Python's logging, for programs. What the engine says goes to sys.stdout (docs/diagnostics.md)."""
    import logging
    return logging.getLogger("berth")


class _Creators(threading.local):
    def __init__(self):
        self.open = []


_creators = _Creators()


def _create(*args, **kwargs):
    """A variable of the creators that are open on this thread, the innermost first."""
    from berth.distribute import VariableAggregation, VariableSynchronization
    defaults = {
        "initial_value": None, "trainable": None, "validate_shape": True, "caching_device": None, "name": None, "variable_def": None,
        "dtype": None, "import_scope": None, "constraint": None, "synchronization": VariableSynchronization.AUTO,
        "aggregation": VariableAggregation.NONE, "shape": None, "experimental_enable_variable_lifting": None}

    def make(**given):
        return Variable(**{k: v for k, v in given.items() if k not in defaults or v is not defaults[k]})
    for creator in _creators.open:
        make = functools.partial(creator, make)
    return make(**{**defaults, **dict(zip(defaults, args)), **kwargs})


class _StandsFor(type):
    """The class of what is tf.Variable while a variable_creator_scope is open."""

    def __call__(cls, *args, **kwargs):
        return _create(*args, **kwargs)

    def __instancecheck__(cls, value):
        return isinstance(value, Variable)

    def __subclasscheck__(cls, other):
        return issubclass(other, Variable)

    def __getattr__(cls, name):
        return getattr(Variable, name)


class _Made(metaclass=_StandsFor):
    """tf.Variable inside of a variable_creator_scope."""


_scopes, _lock = [0], threading.Lock()


class variable_creator_scope:
    """A block in which tf.Variable(...) calls variable_creator(next_creator, **kwargs), which returns a variable.

    kwargs are all arguments of tf.Variable, with their defaults where they were not given. Variables that the engine makes by itself, such as those of tf.keras, are not asked.
    """

    def __init__(self, variable_creator):
        self._creator = variable_creator

    def __enter__(self):
        _creators.open.append(self._creator)
        self._count(1)

    def __exit__(self, *_):
        _creators.open.remove(self._creator)
        self._count(-1)

    @staticmethod
    def _count(change):
        import berth
        with _lock:
            _scopes[0] += change
            berth.Variable = _Made if _scopes[0] else Variable


def register_tensor_conversion_function(base_type, conversion_func, priority=100):
    """Has tensors made of the objects of a class, or several, by conversion_func(value, dtype=None, name=None, as_ref=False).

    Of several functions of a class those with a lower priority come first; one that returns NotImplemented leaves it to the next.
    """
    if not callable(conversion_func):
        raise TypeError(f"register_tensor_conversion_function: {conversion_func!r} is not callable")
    for cls in base_type if isinstance(base_type, tuple) else (base_type,):
        if not isinstance(cls, type) or cls is Variable or issubclass(cls, (int, float, str, list, tuple, _core.Tensor)):
            raise TypeError(f"register_tensor_conversion_function: {cls!r} has a conversion already; expected a class of your "
                            "own")
        found = vars(cls).get("_berth_conversions", [])
        found = sorted([*found, (priority, len(found), conversion_func)], key=lambda row: row[:2])
        try:
            cls._berth_conversions, cls.__berth_tensor__ = found, _converted
        except TypeError:
            raise TypeError(f"register_tensor_conversion_function: {cls.__name__} takes no attributes; expected a class that "
                            "Python code defines") from None


def _converted(self):
    for _, _, function in type(self)._berth_conversions:
        made = function(self, dtype=None, name=None, as_ref=False)
        if made is not NotImplemented:
            return convert_to_tensor(made)
    raise TypeError(f"no conversion function makes a tensor of {self!r}")


class CriticalSection:
    """execute(fn) calls one function at a time, whatever thread asks; those of one shared_name are one."""

    _named = {}

    def __init__(self, name=None, shared_name=None, critical_section_def=None, import_scope=None):
        if critical_section_def is not None or import_scope is not None:
            raise NotImplementedError("CriticalSection: critical_section_def and import_scope are of version 1; leave them out")
        self.name = name or shared_name or "CriticalSection"
        self._owner = None
        self._lock = threading.Lock() if shared_name is None else self._named.setdefault(shared_name, threading.Lock())

    def execute(self, fn, exclusive_resource_access=True, name=None):
        """fn(), alone. It must not ask for the same section again."""
        if _core.traces_loop():
            from berth._function import NeedsValues
            raise NeedsValues("a CriticalSection is locked while a function runs, which a trace cannot do")
        if self._owner == threading.get_ident():
            raise ValueError(f"{self.name}: execute() is called inside of itself, which would wait for ever")
        with self._lock:
            self._owner = threading.get_ident()
            try:
                return fn()
            finally:
                self._owner = None


class _Batches:
    """Calls of several threads that become one call of a function."""

    def __init__(self, fn, threads, largest, wait, sizes, waiting):
        self._fn, self._largest, self._wait, self._sizes, self._most = fn, largest, wait, sizes, waiting
        self._lock, self._running, self._open, self._waiting = threading.Condition(), threading.Semaphore(threads), None, 0

    def call(self, leaves, form):
        """The results for the rows of one call."""
        rows = leaves[0].shape[0]
        with self._lock:
            batch = self._open
            if batch is None or batch["rows"] + rows > self._largest or batch["form"] != form:
                if self._waiting >= self._most:
                    raise _core.UnavailableError(f"nondifferentiable_batch_function: {self._waiting} batches wait; expected at "
                                                 f"most max_enqueued_batches={self._most}")
                batch = {"rows": 0, "parts": [], "form": form, "done": threading.Event(), "out": None, "error": None}
                self._open, leads = batch, True
                self._waiting += 1
            else:
                leads = False
            at = batch["rows"]
            batch["rows"] += rows
            batch["parts"].append(leaves)
            self._lock.notify_all()
            if leads:
                ends = time.monotonic() + self._wait
                while batch["rows"] < self._largest and self._open is batch and (left := ends - time.monotonic()) > 0:
                    self._lock.wait(left)
                if self._open is batch:
                    self._open = None
        if leads:
            self._run(batch)
        batch["done"].wait()
        if batch["error"] is not None:
            raise batch["error"]
        out, result_form = flatten(batch["out"])
        return pack(result_form, [v[at:at + rows] for v in out])

    def _run(self, batch):
        try:
            with self._running:
                whole = [_core.ops.concat(list(column), 0) if len(column) > 1 else column[0] for column in zip(*batch["parts"])]
                size = next((n for n in self._sizes if n >= batch["rows"]), batch["rows"])
                if size > batch["rows"]:  # the first row again, which nobody gets
                    whole = [_core.ops.concat([v] + [v[:1]] * (size - batch["rows"]), 0) for v in whole]
                batch["out"] = self._fn(*pack(batch["form"], whole))
        except Exception as error:  # noqa: BLE001  each caller gets it
            batch["error"] = error
        finally:
            with self._lock:
                self._waiting -= 1
            batch["done"].set()


def nondifferentiable_batch_function(num_batch_threads, max_batch_size, batch_timeout_micros, allowed_batch_sizes=None,
                                     max_enqueued_batches=10, autograph=True, enable_large_batch_splitting=True):
    """Decorator: calls of several threads that come within batch_timeout_micros become one, along the first axis of arguments.

    allowed_batch_sizes: the sizes that a batch is filled up to. A call with more than max_batch_size rows is split, or is an
    error without enable_large_batch_splitting. autograph=False leaves the control flow of the function to Python.
    """
    for name, value in (("num_batch_threads", num_batch_threads), ("max_batch_size", max_batch_size),
                        ("batch_timeout_micros", batch_timeout_micros), ("max_enqueued_batches", max_enqueued_batches)):
        if not isinstance(value, int) or value < (name != "batch_timeout_micros"):
            raise TypeError(f"nondifferentiable_batch_function(): {name!r} must be a whole number, not {value!r}")
    sizes = sorted(allowed_batch_sizes or ())
    if sizes and (sizes != list(allowed_batch_sizes) or sizes[-1] != max_batch_size):
        raise ValueError(f"nondifferentiable_batch_function: allowed_batch_sizes are {allowed_batch_sizes}; expected numbers "
                         f"that grow, up to max_batch_size={max_batch_size}")

    def decorate(fn):
        from berth._function import function
        batches = _Batches(function(fn, autograph=autograph), num_batch_threads, max_batch_size, batch_timeout_micros / 1e6,
                           sizes, max_enqueued_batches)

        @functools.wraps(fn)
        def call(*args):
            leaves, form = flatten(args)
            leaves = [convert_to_tensor(v) for v in leaves]
            if not leaves or any(not len(v.shape) or v.shape[0] != leaves[0].shape[0] for v in leaves):
                raise _core.InvalidArgumentError(f"nondifferentiable_batch_function: the arguments have shapes "
                                                 f"{[v.shape.as_list() for v in leaves]}; expected one first axis, that of the "
                                                 "batch")
            rows = leaves[0].shape[0]
            if rows <= max_batch_size:
                return batches.call(leaves, form)
            if not enable_large_batch_splitting:
                raise _core.InvalidArgumentError(f"nondifferentiable_batch_function: {rows} rows; expected at most "
                                                 f"max_batch_size={max_batch_size}")
            parts = [flatten(batches.call([v[i:i + max_batch_size] for v in leaves], form))
                     for i in range(0, rows, max_batch_size)]
            return pack(parts[0][1], [_core.ops.concat(list(column), 0) for column in zip(*(p[0] for p in parts))])
        return call
    return decorate
