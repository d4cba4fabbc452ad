"""Functions of several replicas op by op: a thread for each, which meet where a sum, a write or merge_call() joins them.

So run() calls what no trace can hold, as TensorFlow does: values that are read, NumPy, decisions of Python.
"""
import threading

from berth import _core
from berth._function import NeedsValues
from berth._host import custom_gradient
from berth._structure import flatten, pack
from berth._tensor import convert_to_tensor

_here = threading.local()


def current():
    """The replica that this thread runs op by op, or None."""
    return getattr(_here, "replica", None)


class _Ended(Exception):
    """Another replica has failed; its error is the one to raise."""


class _Group:
    """Replicas of one run()."""

    def __init__(self, strategy, count):
        self.strategy, self.count = strategy, count
        self._room = threading.Condition()
        self._came, self._round, self._results = {}, 0, None
        self._ended, self.failed = set(), False

    def meet(self, replica, what, value, join):
        """join(values of all replicas, in their order), called once all are here; what: the call, which must be that of all."""
        with self._room:
            if self.failed:
                raise _Ended
            self._came[replica], mine = (what, value), self._round
            if len(self._came) == self.count:
                self._join(join)
            else:
                self._check_ended()
                while self._round == mine and not self.failed:
                    self._room.wait()
            if self.failed:
                raise _Ended
            return self._results

    def _join(self, join):
        calls = [self._came[r][0] for r in range(self.count)]
        if len(set(calls)) > 1:
            self._fail()
            raise ValueError(f"run(): replica 0 calls {calls[0]} where another calls "
                             f"{next(c for c in calls if c != calls[0])}; expected the same calls in all replicas")
        with _Outside(self.strategy):
            self._results = join([self._came[r][1] for r in range(self.count)])
        self._came, self._round = {}, self._round + 1
        self._room.notify_all()

    def _check_ended(self):
        if self._ended and self._came:
            self._fail()
            at, (what, _) = next(iter(self._came.items()))
            raise ValueError(f"run(): replica {at} calls {what} where replica {min(self._ended)} has ended; expected the same "
                             "calls in all replicas")

    def _fail(self):
        self.failed = True
        self._room.notify_all()

    def end(self, replica, failed):
        with self._room:
            self._ended.add(replica)
            if failed:
                self._fail()
            elif self._came and not self.failed:
                self._check_ended()


class _Outside:
    """What joins replicas runs outside of them, in the scope of the strategy."""

    def __init__(self, strategy):
        self._scope = strategy.scope()

    def __enter__(self):
        self._outer = current()
        _enter(None)
        self._scope.__enter__()

    def __exit__(self, *error):
        self._scope.__exit__(*error)
        _enter(self._outer)


def _enter(replica):
    _here.replica = replica
    _core._set_replica(-1 if replica is None else replica.id, None if replica is None else replica.write)


class Replica:
    """What a thread asks and tells."""

    def __init__(self, group, number):
        self.group, self.id = group, number

    def _meet(self, what, value, join):
        if _core.traces_loop():
            raise NeedsValues(f"{what} in a tf.function of a replica that runs op by op")
        return self.group.meet(self.id, what, value, join)

    def all_reduce(self, how, leaves):
        """The sum or mean of each tensor over replicas; so are gradients."""
        reduce = self.group.strategy.__berth__.reduce

        @custom_gradient
        def reduced(*tensors):
            out = self._meet("all_reduce", tensors, lambda parts: [reduce(how, list(v), None) for v in zip(*parts)])
            return tuple(out), lambda *dy: self.all_reduce(how, dy)
        return list(reduced(*leaves))

    def all_gather(self, value, axis):
        """The values of all replicas one after the other along an axis, >= 0; of the gradients the sum of its own part."""
        @custom_gradient
        def gathered(x):
            parts = []

            def join(values):
                parts.extend(v[0].shape[axis] for v in values)
                return parts, self.group.strategy.__berth__.gather([v[0] for v in values], axis)
            lengths, out = self._meet("all_gather", [x], join)
            return out, lambda dy: _core.ops.split(self.all_reduce("sum", [dy])[0], list(lengths), axis)[self.id]
        return gathered(value)

    def merge_call(self, merge_fn, args, kwargs):
        """merge_fn(strategy, ...) once for all, with the tensors of each as a PerReplica."""
        from berth.distribute import PerReplica
        leaves, form = flatten((tuple(args), kwargs or {}), lambda v: isinstance(v, _core.Tensor))

        def join(parts):
            a, k = pack(form, [PerReplica(v) for v in zip(*parts)])
            return merge_fn(self.group.strategy, *a, **k)
        return self._meet("merge_call", leaves, join)

    def apply(self, grads, update):
        """update(sums over replicas of gradients, None where there are none), once for all."""
        found = [i for i, g in enumerate(grads) if g is not None]
        sums = self.all_reduce("sum", [convert_to_tensor(grads[i]) for i in found])

        def join(_):
            update([sums[found.index(i)] if i in found else None for i in range(len(grads))])
        self._meet("apply_gradients", None, join)

    def write(self, variable, name, value):
        """A write of a variable: once for all, of what they write together. False: it is the replica's own."""
        from berth.distribute import VariableAggregation as How, VariableSynchronization as When
        if variable.synchronization == When.ON_READ:
            if name.startswith("scatter"):
                raise NotImplementedError(f"{name}() of {variable.name!r}, which each replica has on its own, in a function that reads "
                                          "values and so runs op by op: use assign()")
            return False
        how = variable.aggregation
        if how == How.NONE or (name.startswith("scatter") and how != How.ONLY_FIRST_REPLICA):
            raise ValueError(f"{name}() of {variable.name!r} in a replica: its aggregation is {how.name}; expected a variable made with "
                             "aggregation=tf.VariableAggregation." + ("ONLY_FIRST_REPLICA" if how != How.NONE else "SUM, MEAN or "
                                                                      "ONLY_FIRST_REPLICA"))

        def join(values):
            if how != How.ONLY_FIRST_REPLICA:
                values = [self.group.strategy.__berth__.reduce(how.name.lower(), values, None)]
            getattr(variable, name)(values[0])
        value = value if name.startswith("scatter") else convert_to_tensor(value, None if hasattr(value, "dtype") else variable.dtype)
        self._meet(f"{name}() of {variable.name!r}", value, join)
        return True


def run(strategy, devices, one, by_replica):
    """one(replica, tensors) -> (tensors, structure) of each replica on its devices: (the tensors of each, the structure)."""
    from berth._gradient import device
    group, out = _Group(strategy, len(by_replica)), [None] * len(by_replica)

    def call(number):
        error = None
        _enter(Replica(group, number))
        try:
            with device(devices[number][0]):
                out[number] = one(number, by_replica[number])
        except BaseException as e:  # of another thread: raised by the caller
            error = out[number] = e
        finally:
            _enter(None)
            group.end(number, error is not None)

    threads = [threading.Thread(target=call, args=(n,), name=f"replica {n}") for n in range(len(by_replica))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    errors = [v for v in out if isinstance(v, BaseException)]
    for error in [*(e for e in errors if not isinstance(e, _Ended)), *errors]:
        raise error
    if len({len(tensors) for tensors, _ in out}) > 1:
        raise ValueError(f"run(): the function returns {[len(tensors) for tensors, _ in out]} tensors in the replicas; expected "
                         "equally many")
    return [tensors for tensors, _ in out], out[0][1]
