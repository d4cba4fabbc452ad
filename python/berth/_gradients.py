"""tf.gradients and tf.hessians, which work while a function is traced; tf.grad_pass_through."""
from berth import _core
from berth._function import _calls
from berth._gradient import GradientTape, _one
from berth._structure import flatten, pack
from berth._tensor import _watching, convert_to_tensor, refuse

_ops = _core.ops


class NeedsTape(Exception):
    """A trace asks for gradients and nothing was recorded; it is traced again under a tape."""


def retraced(call, leaves):
    """Calls a function that asked for gradients again, under a tape that watches its arguments and its constants."""
    before, tape = _calls.__dict__.get("tape"), GradientTape(persistent=True)
    try:
        with tape:
            tape.watch([v for v in leaves if v.dtype.is_floating or v.dtype.is_complex])
            _calls.tape = tape
            _watching.append(tape)
            return call()
    finally:
        _calls.tape = before
        _watching[:] = [t for t in _watching if t is not tape]


def _tape(what):
    if not _calls.tracing:
        raise RuntimeError(f"tf.{what} is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    tape = _calls.__dict__.get("tape")
    if tape is None:
        raise NeedsTape(f"tf.{what} is called where nothing is recorded; call it in a tf.function, or use tf.GradientTape")
    return tape


def _known(what, tape, values):
    """Each value if the tape knows where it comes from."""
    for v in values:
        if not isinstance(v, _core.Variable) and tape.gradient(v, v) is None:
            raise NotImplementedError(f"tf.{what}: {v!r} is not made of arguments, constants or variables of the traced function; "
                                      "make it an argument, or use tf.GradientTape and watch() it")
    return values


def _listed(values):
    return list(values) if isinstance(values, (list, tuple)) else [values]


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None, stop_gradients=None,
              unconnected_gradients="none"):
    """The gradients of the sum of ys by xs, a list. In a traced function only, of its arguments, constants, variables
    and what they become.

    grad_ys: a weight for each of ys, or None. unconnected_gradients: tf.UnconnectedGradients, for xs that ys do not depend on.
    """
    tape = _tape("gradients")
    refuse("tf.gradients", stop_gradients=stop_gradients or None)
    leaves, form = flatten(xs if isinstance(xs, (list, tuple, dict)) else [xs])
    weights = None
    if grad_ys is not None:
        weights = [_ops.ones_like(y) if g is None else convert_to_tensor(g, y.dtype)
                   for y, g in zip(_listed(ys), _listed(grad_ys))]
    out = tape.gradient(_listed(ys), _known("gradients", tape, leaves), weights, unconnected_gradients)
    return pack(form, out)


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """The second derivatives of the sum of ys by each of xs: a list of [x's shape, x's shape]. In a traced function only."""
    tape, out = _tape("hessians"), []
    for x in _known("hessians", tape, _listed(xs)):
        first = tape.gradient(_listed(ys), x, unconnected_gradients="zero")
        flat, n = _ops.reshape(first, [-1]), x.shape.num_elements()
        rows = [tape.gradient(flat, x, _ops.math.cast(_one(n, i), x.dtype), "zero") for i in range(n)]
        out.append(_ops.reshape(_ops.stack(rows), x.shape.as_list() * 2))
    return out


def grad_pass_through(f):
    """A function like f through which gradients go as they are: that of the result is that of the argument."""
    from berth import custom_gradient
    if not callable(f):
        raise TypeError(f"grad_pass_through: f is a {type(f).__name__}; expected a function")

    @custom_gradient
    def call(*args, **kwargs):
        def grad(*dy, variables=None):
            if variables is not None:
                return dy, [None] * len(variables)
            return dy[0] if len(dy) == 1 else dy
        return f(*args, **kwargs), grad
    return lambda *args, **kwargs: call(*args, **kwargs)


def guarantee_const(input, name=None):
    """The tensor as it is; TensorFlow lets a caller promise so that it does not change."""
    return _ops.identity(convert_to_tensor(input))
