"""Step functions as plans: one for each batch shape, or many steps over the rows of arrays in one call."""
import time

import berth as tf
import numpy as np
from berth import _core
from berth._function import Function
from berth._structure import pack, present
from berth.data import Iterator
from berth.distribute import DistributedIterator, PerReplica

_ops = _core.ops
_MOST = 256         # steps in a call
_CALL_SECONDS = .1  # that a call should take, so that the progress bar moves


class _Traced(Exception):
    """Ends a trace whose graph nobody needs."""


class Step:
    """A step function of a model."""

    def __init__(self, step, name, eager=False, contract=None, strategy=None, pipeline=None, joined="mean", weighs=True):
        self._step, self._strategy, self._joined = step, strategy, joined
        handle = None if pipeline is None else pipeline.__berth__
        make = (lambda fn, name: fn) if eager else (
            lambda fn, name: Function(fn, name=name, autograph=False, contract=contract, strategy=handle))
        self.one = make(step, name)
        self._many = make(self._loop, name)
        self._replicated = make(self._run, name)
        self.last = None
        self._weighs = weighs  # whether the step knows of idle replicas
        self.idle = set()      # without rows of their own: they compute those of another, which do not count
        self.total = None      # of the examples of all tasks, while a step is traced
        self._form = None
        self._count = 1  # steps in the next call

    def __call__(self, batches, totals=None):
        """The results of the last of some batches; totals: how many examples all tasks have together of each."""
        self.last = self.one if self._strategy is None else self._replicated
        for batch, total in zip(batches, totals or [None] * len(batches)):
            out = self.one(batch) if self._strategy is None else self._replicated(self._parts(batch), total)
        return out

    def may_read(self, iterator):
        """Whether group() takes batches from it as they are."""
        return isinstance(iterator, Iterator if self._strategy is None else DistributedIterator)

    def group(self, batch, iterator, most, total):
        """Runs a step for a batch and for those that follow, without Python; returns (results of the last, steps)."""
        self.last = self.one if self._strategy is None else self._replicated
        given = (batch,) if self._strategy is None else (self._parts(batch), total)
        return self.last._call_each(iterator, given, most, _CALL_SECONDS)

    def _parts(self, batch):
        """The tensors of a batch, a list of those of replicas of each; a batch has a PerReplica where there are several."""
        leaves, self._form = present(batch, PerReplica)
        return [list(v.values) if isinstance(v, PerReplica) else self._cut(v) for v in leaves]

    def _cut(self, t):
        """The parts of a tensor with fewer rows than replicas, of which some are empty; others stay whole."""
        n = self._strategy.num_replicas_in_sync
        if not t.shape or t.shape[0] >= n or n != self._strategy.__berth__.replicas_here:
            return [t]
        return [t[r:min(r + 1, t.shape[0])] for r in range(n)]

    def _run(self, parts, total):
        """The traced function: results are the mean over replicas, or one after the other."""
        self.total = total
        empty = {r for p in parts if len(p) > 1 for r, t in enumerate(p) if t.shape and not t.shape[0]}
        self.idle = empty if self._weighs and len(empty) < len(parts[0]) else set()
        if self.idle:
            busy = next(r for r in range(len(parts[0])) if r not in self.idle)
            parts = [[p[busy] if r in self.idle else t for r, t in enumerate(p)] for p in parts]
        data = pack(self._form, [p[0] if len(p) == 1 else PerReplica(p) for p in parts])
        out, form = present(self._strategy.run(self._step, args=(data,)), PerReplica)
        return pack(form, [self._of_all(v.values) if isinstance(v, PerReplica) else v for v in out])

    def _of_all(self, values):
        values = [v for r, v in enumerate(values) if r not in self.idle]
        if self._joined == "concat" and len(values[0].shape):
            return _ops.concat(list(values), 0)
        total = _ops.add_n([tf.cast(v, "float32") for v in values])
        return total / float(len(values))

    def over(self, whole, order, batch_size, per_call, begin):
        """Runs a step for each `batch_size` of the row numbers; yields (first step, last step, results of the last).

        per_call: steps in a call of the engine, None: as many as fit its time; begin(step) is called before each call.
        """
        arrays, self._form = present(whole)
        full, rest = divmod(len(order), batch_size)
        most, at = per_call or _MOST, 0
        while at < full or rest:
            count = min(per_call or self._count, full - at)
            begin(at)
            start = time.perf_counter()
            if count:
                places = order[at * batch_size:(at + count) * batch_size].reshape(count, batch_size)
                if count < most:
                    places = np.concatenate([places, np.zeros((most - count, batch_size), "int32")])
                out = self._call(arrays, places, count)
            last = at + count - 1
            if rest and at + count == full and count < most:  # the last batch is smaller
                out = self._call(arrays, order[full * batch_size:].reshape(1, rest), 1)
                last, rest = full, 0
            if per_call is None:
                self._adapt(count, time.perf_counter() - start)
            yield at, at + per_call - 1 if per_call else last, out
            at = last + 1

    def _call(self, arrays, places, count):
        self.last = self._many
        return self._many(arrays, _core.convert(places, None), _core.convert(count, "int32"))

    def _adapt(self, count, seconds):
        fitting = int(count * _CALL_SECONDS / max(seconds, 1e-6))
        self._count = max(1, min(_MOST, fitting, 8 * count))

    def _batch(self, arrays, places, i):
        rows = _ops.gather(places, i)
        return pack(self._form, [_ops.gather(a, rows) for a in arrays])

    def _loop(self, arrays, places, count):
        """The traced function: `count` steps, whose batches are the rows that `places` says."""
        if places.shape[0] == 1:
            return self._step(self._batch(arrays, places, 0))
        if not _core.traces_loop():
            for i in range(int(count)):
                out = self._step(self._batch(arrays, places, i))
            return out
        specs, form = self._results(arrays, places.shape[1])

        def turn(i, *_):
            leaves = present(self._step(self._batch(arrays, places, i)))[0]
            return (i + 1, *(tf.cast(_core.convert(v, None), d) for v, (_, d) in zip(leaves, specs)))

        start = (0, *(_ops.zeros(s, d) for s, d in specs))
        return pack(form, tf.while_loop(lambda i, *_: i < count, turn, start)[1:])

    def _results(self, arrays, batch_size):
        """Shapes and dtypes of a step's results, and their structure."""
        found = []

        def trace(leaves):
            out, form = present(self._step(pack(self._form, leaves)))
            found.extend([[(t.shape, t.dtype) for t in map(tf.convert_to_tensor, out)], form])
            raise _Traced

        try:
            _core.trace_concrete(trace, "results", [
                (tf.TensorShape([batch_size, *a.shape[1:]]), a.dtype) for a in arrays])
        except _Traced:
            pass
        return found


class ScheduledStep:
    """A step function that workers of a ParameterServerStrategy run, each at its own pace."""

    def __init__(self, step, name, strategy, variables):
        from berth._servers import ClusterCoordinator
        self._coordinator, self._name, self._variables = ClusterCoordinator(strategy), name, variables
        self._function = Function(step, name=name, autograph=False)
        self._newest = None
        self.last = self

    def __call__(self, batches):
        """The results of the last of some batches, when all are done."""
        for batch in batches:
            self._newest = self._coordinator.schedule(self._function, args=(batch,))
        self._coordinator.join()
        return self._newest.get()

    def over(self, epochs, alone, begin):
        """Runs a step for each batch; yields (first step, last step, results of one of them).

        alone: each is waited for, and the chief has its updates; else about two groups of _CALL_SECONDS are under way.
        """
        start = before = None
        try:
            for first, last, batches in epochs:
                if start is None:
                    begin(first)
                    start = first, time.perf_counter()
                if alone:
                    yield first, last, self(batches)
                    start = None
                    continue
                for batch in batches:
                    self._newest = self._coordinator.schedule(self._function, args=(batch,))
                if time.perf_counter() - start[1] > _CALL_SECONDS:
                    at, start = start[0], None
                    yield at, last, (before or self._newest).get()
                    before = self._newest
        finally:
            self._coordinator.join()
        if start is not None:
            yield start[0], last, self._newest.get()

    def placement(self):
        """How many steps workers ran, and which server has which variables."""
        from berth._placement import Report
        strategy, done = self._coordinator.strategy, self._coordinator.statistics()
        lines = [f'placement of "{self._name}" by workers: {done["done"]} functions done, '
                 f'{done["failed"]} failed, {done["run_again"]} run again']
        lines += [f"  {v.path} {tuple(v.shape)}: {', '.join(strategy.servers_of(v._value))}" for v in self._variables()]
        return Report("\n".join(lines) + "\n")
