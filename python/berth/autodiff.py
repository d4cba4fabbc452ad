"""tf.autodiff: derivatives in both directions."""
from berth import _core
from berth._gradient import GradientTape, UnconnectedGradients as _Unconnected, _fills, _held, open_tapes as _open_tapes, reopened as _reopened
from berth._structure import flatten as _flatten, pack as _pack
from berth._tensor import convert_to_tensor as _tensor

__all__ = ["ForwardAccumulator", "GradientTape"]


class ForwardAccumulator:
    """How much results change when `primals` change by `tangents`: jvp() of what a `with` block computes from them.

    The engine's gradients run in reverse. What they give is linear in the weights of the result, and is differentiated by those
    weights: jvp() costs about two gradients, whatever the number of primals, and the block keeps what a tape keeps.
    """

    def __init__(self, primals, tangents):
        self._primals, form = _flatten(primals)
        given, other = _flatten(tangents)
        if len(given) != len(self._primals):
            raise ValueError(f"ForwardAccumulator: {len(self._primals)} primals and {len(given)} tangents; expected one for each")
        self._primals = [_held(p) for p in self._primals]
        self._tangents = []
        for i, (p, t) in enumerate(zip(self._primals, given)):
            if not hasattr(p, "dtype") or not (p.dtype.is_floating or p.dtype.is_complex):
                raise ValueError(f"ForwardAccumulator: the primal {i} is {p!r}; expected a tensor or variable of a floating "
                                 "dtype")
            if any(p is q for q in self._primals[:i]):
                raise ValueError(f"ForwardAccumulator: the primal {i} is there twice; give it once, with the sum of its tangents")
            t = _tensor(t, p.dtype)
            if not t.shape.is_compatible_with(p.shape):
                raise ValueError(f"ForwardAccumulator: the tangent {i} has shape {t.shape}; expected {p.shape}, that of its "
                                 "primal")
            self._tangents.append(t)
        self._tape, self._is_open, self._used = GradientTape(persistent=True, watch_accessed_variables=False), False, False

    def __enter__(self):
        if self._used:
            raise ValueError("the ForwardAccumulator was open already; make one for each block")
        self._used = self._is_open = True
        self._around = _open_tapes()  # TensorFlow's know of the change from the first; here it is computed when asked for
        self._tape.__enter__()
        for p in self._primals:
            self._tape.watch(p)
        return self

    def __exit__(self, *error):
        self._is_open = False
        self._tape.__exit__(*error)

    def jvp(self, primals, unconnected_gradients=_Unconnected.NONE):
        """The change of results computed in the block, in their structure.

        None where one does not depend on the primals, unless unconnected_gradients is tf.UnconnectedGradients.ZERO.
        """
        zeros = _fills(unconnected_gradients)
        leaves, form = _flatten(primals)
        return _pack(form, [self._change(_held(v), zeros) for v in leaves])

    def _change(self, result, zeros):
        for p, t in zip(self._primals, self._tangents):
            if result is p:
                return t
        change = None
        if result is not None and (result.dtype.is_floating or result.dtype.is_complex):
            with _reopened(self._around):
                change = self._paused(lambda: self._of(_tensor(result)))
        return _core.ops.zeros_like(result) if change is None and zeros else change

    def _paused(self, run):
        if not self._is_open:
            return run()
        with self._tape.stop_recording():
            return run()

    def _of(self, result):
        weights = _core.ops.ones_like(result)
        with GradientTape() as tape:
            tape.watch(weights)
            slopes = self._tape.gradient(result, self._primals, output_gradients=weights)
            parts = [_core.ops.math.reduce_sum(s * _core.ops.math.conj(t) if s.dtype.is_complex else s * t)
                     for s, t in zip(map(_dense, slopes), self._tangents) if s is not None]
            total = sum(parts[1:], parts[0]) if parts else None
        return None if total is None else tape.gradient(total, weights, unconnected_gradients="zero")


def _dense(slope):
    return slope if slope is None or isinstance(slope, _core.Tensor) else _tensor(slope)
