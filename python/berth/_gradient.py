"""GradientTape and device scopes."""
import functools

from berth import _core
from berth._structure import flatten, pack


def _warn(text):
    import warnings
    warnings.warn(text, stacklevel=3)


class UnconnectedGradients:
    NONE, ZERO = "none", "zero"


class GradientTape:
    """Records operations, then differentiates them in reverse (tf.GradientTape)."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._tape = _core.Tape(bool(persistent), bool(watch_accessed_variables))

    def __enter__(self):
        self._tape.enter()
        return self

    def __exit__(self, *_):
        self._tape.exit()

    def watch(self, tensor):
        for leaf in flatten(tensor)[0]:
            if leaf.dtype.is_floating or leaf.dtype.is_complex:
                self._tape.watch(leaf)
            else:
                _warn(f"tape.watch: {leaf.dtype.name} has no gradient; expected a floating dtype")

    def watched_variables(self):
        """The trainable variables that were read while the tape was open, in that order."""
        return tuple(self._tape.watched())

    def reset(self):
        """Forgets what was recorded."""
        self._tape.reset()

    def gradient(self, target, sources, output_gradients=None,
                 unconnected_gradients=UnconnectedGradients.NONE):
        """Returns the gradients of the sum of `target` by `sources`, in their structure."""
        targets, _ = flatten(target)
        leaves, structure = flatten(sources)
        given = None if output_gradients is None else flatten(output_gradients)[0]
        if not any(t.dtype.is_floating or t.dtype.is_complex for t in targets):
            _warn(f"tape.gradient: the target is {targets[0].dtype.name}, which has no gradient")
            return pack(structure, [None] * len(leaves))
        out = self._tape.gradient(targets, leaves, given, unconnected_gradients == "zero")
        return pack(structure, out)


class device:
    """Says where the ops of a block run (tf.device)."""

    def __init__(self, device_name):
        self._name = device_name
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

