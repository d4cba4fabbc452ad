"""GradientTape and device scopes."""
import functools
from _thread import _local as thread_local  # threading.local, without the import of threading

from berth import _core
from berth._structure import LEAF, Composite, flatten, has_composite, pack


def _warn(text):
    import warnings
    warnings.warn(text, stacklevel=3)


ops = _core.ops


class UnconnectedGradients:
    """What tape.gradient() gives for what the target does not depend on: None or zeros."""
    NONE, ZERO = "none", "zero"


class _Open(thread_local):
    """The tapes that record on a thread."""

    def __init__(self):
        self.tapes = []


_open = _Open()


def open_tapes():
    """The tapes that record on this thread, the outermost first."""
    return list(_open.tapes)


def reopened(tapes):
    """A block in which those of `tapes` that were closed go on recording, but for those that gradient() has used up."""
    from contextlib import ExitStack
    stack = ExitStack()
    for tape in tapes:
        if tape not in _open.tapes and not tape._tape.spent():
            stack.enter_context(tape)
    return stack


def note_read(variables):
    """Says to open tapes which variables a function read that was loaded from a file."""
    if _open.tapes:
        found = list(variables)
        for tape in _open.tapes:
            tape._noted += [v for v in found if all(v is not w for w in tape._noted)]


class GradientTape:
    """Records operations, then differentiates them in reverse (tf.GradientTape)."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._tape = _core.Tape(bool(persistent), bool(watch_accessed_variables))
        self._noted = []  # variables that loaded functions read

    def __enter__(self):
        if self in _open.tapes:
            raise ValueError("the GradientTape is open already")
        self._tape.enter()
        _open.tapes.append(self)
        return self

    def __exit__(self, *_):
        self._tape.exit()
        _open.tapes.remove(self)

    def watch(self, tensor):
        """Records what is computed from a tensor, or a structure of tensors."""
        leaves, form = flatten(tensor)
        for leaf in map(_held, leaves):
            if not hasattr(leaf, "dtype"):
                raise ValueError(f"tape.watch: {leaf!r} is no tensor; expected tensors and variables")
            if leaf.dtype.is_floating or leaf.dtype.is_complex:
                self._tape.watch(leaf)
            elif not has_composite(form):
                _warn(f"tape.watch: {leaf.dtype.name} has no gradient; expected a floating dtype")

    def watched_variables(self):
        """The trainable variables that were read while the tape was open, in that order."""
        found = self._tape.watched()
        return tuple(found + [v for v in self._noted if all(v is not w for w in found)])

    def reset(self):
        """Forgets what was recorded."""
        self._tape.reset()

    def gradient(self, target, sources, output_gradients=None,
                 unconnected_gradients=UnconnectedGradients.NONE):
        """Returns the gradients of the sum of `target` by `sources`, in their structure."""
        if target is None:
            raise TypeError("tape.gradient: the target is None; expected a tensor, or a structure of tensors")
        zeros = _fills(unconnected_gradients)
        if any(isinstance(v, Composite) for v in flatten(sources, whole=(Composite,))[0]):
            return self._of_composites(target, sources, output_gradients, unconnected_gradients)
        targets, form = flatten(target)
        if has_composite(form):  # the places of its values have no gradient
            targets = [t for t in targets if t.dtype.is_floating or t.dtype.is_complex]
        leaves, structure = flatten(sources)
        leaves = [_held(v) for v in leaves]
        given = None
        if output_gradients is not None:
            given = [output_gradients] if form is LEAF else flatten(output_gradients)[0]
            if has_composite(form):
                given = [g for g in given if g.dtype.is_floating or g.dtype.is_complex]
        if not any(t.dtype.is_floating or t.dtype.is_complex for t in targets):
            if targets:
                _warn(f"tape.gradient: the target is {targets[0].dtype.name}, which has no gradient")
            return pack(structure, [ops.zeros_like(v) if zeros else None for v in leaves])
        out = self._tape.gradient(targets, leaves, given, zeros, False)
        return pack(structure, _with_own(targets, given, leaves, out))

    def _of_composites(self, target, sources, output_gradients, unconnected_gradients):
        """gradient() by values such as RaggedTensors: those of their values, at the same places."""
        whole, structure = flatten(sources, whole=(Composite,))
        parts = [flatten(v) if isinstance(v, Composite) else ([v], None) for v in whole]
        by = [[v for v in map(_held, leaves) if form is None or v.dtype.is_floating or v.dtype.is_complex]
              for leaves, form in parts]
        out = self.gradient(target, by, output_gradients, unconnected_gradients)
        made = []
        for (leaves, form), gradients in zip(parts, out):
            if form is None or any(g is None for g in gradients):
                made.append(gradients[0] if form is None else None)
            else:
                at = iter(gradients)
                made.append(pack(form, [next(at) if v.dtype.is_floating or v.dtype.is_complex else v for v in leaves]))
        return pack(structure, made)

    def stop_recording(self):
        """A block in which nothing is recorded."""
        return _Pause(self._tape)

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                 experimental_use_pfor=True):
        """The derivative of each element of `target` by `sources`: tensors [*target, *source], in their structure.

        None where the target does not depend on a source, unless unconnected_gradients="zero".
        """
        rows = self._rows(target, sources, unconnected_gradients, target.shape.num_elements(), lambda i, n: _one(n, i))
        return _stacked_rows(rows, lambda r, s: ops.reshape(ops.stack(r), [*target.shape, *s.shape]), sources)

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                       experimental_use_pfor=True):
        """jacobian() of each row of target [n, ...] by the same row of source [n, ...]: a tensor [n, ..., ...]."""
        if len(target.shape) < 2 or len(source.shape) < 2:
            raise ValueError(f"batch_jacobian: target {target.shape} and source {source.shape} need two axes at least")
        n, per_row = target.shape[0], target.shape[1:].num_elements()
        if source.shape[0] != n:
            raise ValueError(f"batch_jacobian: target {target.shape} and source {source.shape} have other first axes")
        rows = self._rows(target, source, unconnected_gradients, per_row, lambda i, _: ops.tile(_one(per_row, i), [n]))
        return _stacked_rows(rows, lambda r, s: ops.reshape(ops.stack(r, 1), [*target.shape, *s.shape[1:]]), source)

    def _rows(self, target, sources, unconnected, count, weights):
        """The gradients of `count` weighted sums of the target, by leaves of the sources."""
        leaves = [_held(v) for v in flatten(sources)[0]]
        n = target.shape.num_elements()
        return [self._tape.gradient(
            [target], leaves, [ops.reshape(ops.math.cast(weights(i, n), target.dtype), target.shape)],
            _fills(unconnected), i < count - 1) for i in range(count)]


def _fills(unconnected):
    """Whether sources that the target does not depend on get zeros; ValueError of what says neither."""
    if unconnected not in (UnconnectedGradients.NONE, UnconnectedGradients.ZERO):
        raise ValueError(f"unconnected_gradients is {unconnected!r}; expected tf.UnconnectedGradients.NONE or ZERO")
    return unconnected == UnconnectedGradients.ZERO


def _with_own(targets, given, sources, gradients):
    """The gradients, where a target that is a variable has those by itself, too."""
    for i, target in enumerate(targets):
        for k, source in enumerate(sources):
            if target is source and isinstance(target, _core.Variable):
                own = ops.ones_like(target) if given is None or given[i] is None else _core.convert(given[i], target.dtype)
                gradients[k] = own if gradients[k] is None else _core.convert(gradients[k], None) + own
    return gradients


def _held(value):
    """What an object of a library that stands for a tensor or variable holds."""
    return value.__berth_tensor__() if hasattr(value, "__berth_tensor__") else value


class _Pause:
    """A block in which a tape does not record."""

    def __init__(self, tape):
        self._tape = tape

    def __enter__(self):
        self._tape.pause()

    def __exit__(self, *_):
        self._tape.resume()


def _one(length, at):
    """Zeros, and a one at a place."""
    return ops.math.cast(ops.math.equal(ops.range(0, length, 1), at), _core.float32)


def _stacked_rows(rows, join, sources):
    leaves, structure = flatten(sources)
    return pack(structure, [None if any(r is None for r in column) else join(list(column), s)
                            for s, column in zip(leaves, zip(*rows))])


class device:
    """Says where the ops of a block run (tf.device)."""

    def __init__(self, device_name):
        self._name = self._device_name = None if device_name is None else str(getattr(device_name, "name", device_name))
        self._scopes = []

    def __enter__(self):
        scope = _core.DeviceScope(self._name)
        scope.enter()
        self._scopes.append(scope)
        return self

    def __exit__(self, *_):
        self._scopes.pop().exit()

    def __call__(self, fn):
        @functools.wraps(fn)
        def inside(*args, **kwargs):
            with device(self._name):
                return fn(*args, **kwargs)
        return inside

