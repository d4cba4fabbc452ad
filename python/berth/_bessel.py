"""Bessel functions: integrals near 0, asymptotic sums far from it."""
from berth import _core
from berth._lazy import Lazy
from berth._special import _PI, _arguments, _edge, _gauss, _last, _node, _select, _sum

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")
_FAR = 25.0  # from here on the asymptotic form


def _bent(x, order, scaled):
    """exp(x) K(x), or K(x), of positive x: the integral of exp(-x cosh t) cosh(order t), by equal steps of t."""
    end = _m.log(1.0 + 750.0 / x + _m.sqrt(1500.0 / x + _m.square(750.0 / x)))  # arcosh(1 + 750 / x)
    u = _np.arange(181) / 180
    t = _last(_ops.stop_gradient(end)) * _node(u)
    rise = 2.0 * _m.square(_m.sinh(0.5 * t))  # cosh t - 1
    f = _m.exp(-_last(x) * rise) * (1.0 + rise if order else 1.0)
    weights = _np.where(u == 0, 0.5, 1.0) / 180
    out = _sum(f, weights) * _ops.stop_gradient(end)
    return out if scaled else out * _m.exp(-x)


def _bessel_k(name, order, scaled):
    def call(x, name=None):
        (x,), given = _arguments(call.__name__, x)
        good = _m.greater(x, 0.0)
        out = _bent(_ops.where(good, x, _ops.ones_like(x)), order, scaled)
        return _m.cast(_ops.where(good, out, _edge(x, "inf")), given)
    call.__name__ = name
    call.__doc__ = (f"The modified Bessel function of the second kind of order {order}"
                    f"{', times exp(x)' if scaled else ''}, of positive x.")
    return call


bessel_k0, bessel_k1 = _bessel_k("bessel_k0", 0, False), _bessel_k("bessel_k1", 1, False)
bessel_k0e, bessel_k1e = _bessel_k("bessel_k0e", 0, True), _bessel_k("bessel_k1e", 1, True)


def _hankel(x, order):
    """(P, Q) with J = sqrt(2 / (pi x)) (P cos w - Q sin w), Y with sin and cos exchanged, w = x - order pi / 2 - pi / 4."""
    terms = [1.0]
    for k in range(1, 22):
        terms.append(terms[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    y = 1.0 / x
    even, odd = (None, None)
    for k in range(20, -1, -2):
        sign = -1 if k // 2 % 2 else 1
        even = _ops.zeros_like(y) + terms[k] * sign if even is None else even * y * y + terms[k] * sign
        odd = _ops.zeros_like(y) + terms[k + 1] * sign if odd is None else odd * y * y + terms[k + 1] * sign
    return even, odd * y


def _far(x, order, second):
    p, q = _hankel(x, order)
    w = x - (order / 2 + 0.25) * _PI
    wave = p * _m.sin(w) + q * _m.cos(w) if second else p * _m.cos(w) - q * _m.sin(w)
    return _m.sqrt(2.0 / (_PI * x)) * wave


def _near_j(x, order):
    angle = (_np.arange(64) + 0.5) * _PI / 64
    return _m.reduce_mean(_m.cos(_last(x) * _node(_np.sin(angle)) - _node(order * angle)), -1)


def _near_y(x, order):
    place, weight = _gauss(64)
    angle = place * _PI
    first = _sum(_m.sin(_last(x) * _node(_np.sin(angle)) - _node(order * angle)), weight)
    # exp(-x sinh t) (e^t - e^-t), or times 2, up to where it is next to nothing
    place, weight = _gauss(200)
    end = _ops.stop_gradient(_m.asinh(45.0 / x))
    rise = _m.sinh(_last(end) * _node(place))
    second = _sum(_m.exp(-_last(x) * rise) * (rise if order else 1.0), weight) * end * 2.0 / _PI
    return first - second


def _bessel_j(name, order):
    def call(x, name=None):
        (x,), given = _arguments(call.__name__, x)
        size = _m.abs(x)
        out = _select(_m.less(size, _FAR), (size, 1.0, 30.0), lambda v: _near_j(v, order), lambda v: _far(v, order, False))
        return _m.cast(out * _m.sign(x) if order else out, given)
    call.__name__, call.__doc__ = name, f"The Bessel function of the first kind of order {order}."
    return call


def _bessel_y(name, order):
    def call(x, name=None):
        (x,), given = _arguments(call.__name__, x)
        good = _m.greater(x, 0.0)
        size = _ops.where(good, x, _ops.ones_like(x))
        out = _select(_m.less(size, _FAR), (size, 1.0, 30.0), lambda v: _near_y(v, order), lambda v: _far(v, order, True))
        return _m.cast(_ops.where(good, out, _edge(x, "-inf")), given)
    call.__name__, call.__doc__ = name, f"The Bessel function of the second kind of order {order}, of positive x."
    return call


bessel_j0, bessel_j1 = _bessel_j("bessel_j0", 0), _bessel_j("bessel_j1", 1)
bessel_y0, bessel_y1 = _bessel_y("bessel_y0", 0), _bessel_y("bessel_y1", 1)
