"""Special functions: tf.math.igamma, igammac, betainc and tf.math.special.

They are integrals and sums over an axis of nodes, computed in float64, and have gradients by all of their arguments.
"""
import functools

from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, float64

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")
_PI, _EULER = 3.141592653589793, 0.5772156649015329


def _arguments(what, *values):
    """The arguments in float64, and the dtype of the result."""
    given = next((v.dtype for v in values if hasattr(v, "dtype") and isinstance(v, (_core.Tensor, _core.Variable))), None)
    tensors = [convert_to_tensor(v, given) for v in values]
    for t in tensors:
        if not t.dtype.is_floating:
            raise _core.InvalidArgumentError(f"{what}: the argument is {t.dtype.name}; expected a floating dtype")
    return [_m.cast(t, float64) for t in tensors], tensors[0].dtype


def _node(values):
    return convert_to_tensor(_np.asarray(values, "float64"))


def _sum(x, weights):
    return _m.reduce_sum(x * _node(weights), -1)


def _last(x):
    return _ops.expand_dims(x, -1)


def _select(condition, inside, yes, no):
    """yes(x) where the condition holds, else no(x); each sees the argument only where it counts, elsewhere a harmless one."""
    x, for_yes, for_no = inside
    return _ops.where(condition, yes(_ops.where(condition, x, _ops.zeros_like(x) + for_yes)),
                      no(_ops.where(condition, _ops.zeros_like(x) + for_no, x)))


def _nodes(low=-4.3, high=5.6, count=150):
    """Places t and weights of integrals from 0 to infinity: t = exp(y - exp(-y)) for equal steps of y."""
    y = _np.linspace(low, high, count)
    t = _np.exp(y - _np.exp(-y))
    return t, t * (1 + _np.exp(-y)) * (y[1] - y[0])


@functools.cache
def _gauss(count):
    """Places and weights of Gauss' rule from 0 to 1."""
    place, weight = _np.polynomial.legendre.leggauss(count)
    return (place + 1) / 2, weight / 2


def _decaying(log_f, scale):
    """The integral of exp(log_f(t)) from 0 to infinity, of a function that falls within about `scale`."""
    t, weights = _nodes()
    return _sum(_m.exp(log_f(_last(scale) * _node(t))), weights) * scale


def _gammas(what, a, x, upper):
    (a, x), given = _arguments(what, a, x)
    a, x = a + _ops.zeros_like(x), x + _ops.zeros_like(a)
    bad = _m.logical_or(_m.logical_not(_m.greater_equal(x, 0.0)), _m.logical_not(_m.greater(a, 0.0)))
    inside = _m.logical_and(_m.greater(a, 0.0), _m.logical_and(_m.greater(x, 0.0), _m.is_finite(x)))
    sa, sx = (_ops.where(inside, v, _ops.ones_like(v)) for v in (a, x))
    is_low = _m.less_equal(sx, sa)
    front = sa * _m.log(sx) - sx - _m.lgamma(sa)

    def lower():
        # x^a e^-x times the integral of exp(-a t - x (e^-t - 1)), where x <= a
        p = _ops.where(is_low, sx, sa)
        scale = _ops.stop_gradient(1.0 / (sa - p + _m.minimum(sa, _m.sqrt(sa))))
        return _m.exp(front) * _decaying(lambda t: -_last(sa) * t - _last(p) * _m.expm1(-t), scale)

    def higher():
        # the integral of exp(-x t) (1 + t)^(a - 1), where x > a
        p = _ops.where(is_low, sa + 1.0, sx)
        scale = _ops.stop_gradient(1.0 / (p - sa + _m.minimum(1.0, sa) + _m.sqrt(sa)))
        return _m.exp(front) * _decaying(lambda t: (_last(sa) - 1.0) * _m.log1p(t) - _last(p) * t, scale)
    low, high = lower(), higher()
    out = _ops.where(is_low, 1.0 - low, high) if upper else _ops.where(is_low, low, 1.0 - high)
    at_end = _m.cast(_m.greater(x, 0.0), float64)  # x is infinite, or 0
    edge = 1.0 - at_end if upper else at_end
    nan = _ops.zeros_like(a) + float("nan")
    return _m.cast(_ops.where(bad, nan, _ops.where(inside, out, edge)), given)


def igamma(a, x, name=None):
    """The lower incomplete gamma function of a > 0 and x >= 0, over Gamma(a)."""
    return _gammas("igamma", a, x, False)


def igammac(a, x, name=None):
    """1 - igamma(a, x): the upper incomplete gamma function over Gamma(a)."""
    return _gammas("igammac", a, x, True)


def betainc(a, b, x, name=None):
    """The incomplete beta function of a > 0, b > 0 and x from 0 to 1, over Beta(a, b); elsewhere NaN."""
    (a, b, x), given = _arguments("betainc", a, b, x)
    zero = _ops.zeros_like(a + b + x)
    a, b, x = a + zero, b + zero, x + zero
    good = _m.logical_and(_m.logical_and(_m.greater(a, 0.0), _m.greater(b, 0.0)),
                          _m.logical_and(_m.greater_equal(x, 0.0), _m.less_equal(x, 1.0)))
    inside = _m.logical_and(good, _m.logical_and(_m.greater(x, 0.0), _m.less(x, 1.0)))
    a1, b1 = (_ops.where(inside, v, _ops.ones_like(v)) for v in (a, b))
    x1 = _ops.where(inside, x, zero + 0.5)
    swapped = _m.greater(x1, a1 / (a1 + b1))  # the smaller part is computed
    p, q = _ops.where(swapped, b1, a1), _ops.where(swapped, a1, b1)
    z = _ops.where(swapped, 1.0 - x1, x1)
    front = p * _m.log(z) + q * _m.log1p(-z) - (_m.lgamma(p) + _m.lgamma(q) - _m.lgamma(p + q))
    # z^p (1 - z)^q times the integral of exp(-p t) (1 - z e^-t)^(q - 1) / (1 - z)^q
    slope = (q - 1.0) * z / (1.0 - z)
    scale = _ops.stop_gradient(1.0 / (_m.maximum(p - _m.maximum(slope, 0.0), 0.0) + _m.minimum(p, _m.sqrt(p))))

    def log_f(t):
        return -_last(p) * t + (_last(q) - 1.0) * _m.log1p(-_last(z / (1.0 - z)) * _m.expm1(-t))
    part = _m.exp(front) * _decaying(log_f, scale) / (1.0 - z)
    out = _ops.where(swapped, 1.0 - part, part)
    return _m.cast(_ops.where(good, _ops.where(inside, out, x), zero + float("nan")), given)


def _edge(x, value):
    """What functions of positive x have for others: a value, NaN of NaN."""
    return _ops.where(_m.is_nan(x), x, _ops.zeros_like(x) + float(value))


# Integrals of exponentials and logarithms.

def dawsn(x, name=None):
    """Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    (x,), given = _arguments("dawsn", x)
    step = 0.25
    nearest = _ops.stop_gradient(2.0 * _m.round(x / (2 * step)))
    odd = _np.arange(-27, 28, 2.0)
    left = _last(x - nearest * step) - _node(odd * step)
    small = _m.reduce_sum(_m.exp(-_m.square(left)) / (_last(nearest) + _node(odd)), -1) / float(_np.sqrt(_PI))
    return _m.cast(small, given)


def expint(x, name=None):
    """The exponential integral Ei: the principal value of the integral of exp(t) / t from minus infinity to x, x > 0."""
    (x,), given = _arguments("expint", x)
    good = _m.greater(x, 0.0)
    size = _ops.where(good, x, _ops.ones_like(x))

    def near(v):
        k = _np.arange(1, 130)
        return _EULER + _m.log(v) + _m.reduce_sum(_m.cumprod(_last(v) / _node(k), -1) / _node(k), -1)

    def far(v):
        k = _np.arange(0, 40)
        return _m.exp(v) / v * _m.reduce_sum(_m.cumprod(_ops.where(k > 0, _node(k) / _last(v), _ops.ones_like(_node(k))), -1), -1)
    out = _select(_m.less(size, 40.0), (size, 1.0, 50.0), near, far)
    edge = _ops.where(_m.equal(x, 0.0), _ops.zeros_like(x) - float("inf"), _ops.zeros_like(x) + float("nan"))
    return _m.cast(_ops.where(good, out, edge), given)


def _fresnel(name, is_sin):
    def near(v):
        # The integral from 0 to v of the sine or cosine of pi t^2 / 2.
        place, weight = _gauss(40)
        wave = (_m.sin if is_sin else _m.cos)(_PI / 2 * _m.square(_last(v) * _node(place)))
        return _sum(wave, weight) * v

    def far(v):
        t, weights = _nodes()
        w = _PI / 2 * _m.square(v)
        # f and g are Laplace transforms of 1 / (sqrt(t) (1 + t^2)) and sqrt(t) / (1 + t^2)
        share = _node(t) / _last(w)
        base = _m.exp(-_node(t)) / (1.0 + _m.square(share)) / (_PI * float(_np.sqrt(2.0)))
        f = _sum(base * _m.rsqrt(share), weights) / w
        g = _sum(base * _m.sqrt(share), weights) / w
        if is_sin:
            return 0.5 - f * _m.cos(w) - g * _m.sin(w)
        return 0.5 + f * _m.sin(w) - g * _m.cos(w)

    def call(x, name=None):
        (x,), given = _arguments(call.__name__, x)
        out = _select(_m.less(_m.abs(x), 3.0), (_m.abs(x), 1.0, 4.0), near, far)
        return _m.cast(out * _m.sign(x), given)
    call.__name__ = name
    call.__doc__ = f"Fresnel's integral of the {'sine' if is_sin else 'cosine'} of pi t^2 / 2 from 0 to x."
    return call


fresnel_sin, fresnel_cos = _fresnel("fresnel_sin", True), _fresnel("fresnel_cos", False)


def spence(x, name=None):
    """Spence's integral: that of log(t) / (1 - t) from 1 to x, x >= 0."""
    (x,), given = _arguments("spence", x)
    u, weight = _gauss(40)

    def inner(z):  # z from 1/2 to 2: the integral of -log(1 - w u) / u, w = 1 - z
        w = 1.0 - z
        return -_sum(_m.log1p(-_last(w) * _node(u)) / _node(u), weight)
    good = _m.greater(x, 0.0)
    z = _ops.where(good, x, _ops.ones_like(x))
    is_small, is_large = _m.less(z, 0.5), _m.greater(z, 2.0)
    near = _ops.where(is_small, 1.0 - z, _ops.where(is_large, 1.0 / z, z))
    log, core = _m.log(z), inner(near)
    other = _m.log1p(-_ops.where(is_small, z, _ops.zeros_like(z)))
    out = _ops.where(is_small, _PI * _PI / 6 - log * other - core, _ops.where(is_large, -0.5 * log * log - core, core))
    edge = _ops.where(_m.equal(x, 0.0), _ops.zeros_like(x) + _PI * _PI / 6, _ops.zeros_like(x) + float("nan"))
    return _m.cast(_ops.where(good, out, edge), given)


# Others of tf.math.

def unsorted_segment_sqrt_n(data, segment_ids, num_segments, name=None):
    """The sums of segments over the root of how many elements each has; 0 of none."""
    data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    total = _m.unsorted_segment_sum(data, ids, num_segments)
    count = _m.unsorted_segment_sum(_ops.ones(ids.shape, data.dtype), ids, num_segments)
    count = _m.maximum(count, _ops.ones_like(count))
    return total / _ops.reshape(_m.sqrt(count), count.shape.as_list() + [1] * (len(total.shape) - len(count.shape)))
