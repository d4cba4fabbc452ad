"""Functions of tf that other classes of values answer: rows of different lengths, types of the user's own.

Functions are replaced when the first such class is used: who has none pays nothing.
"""
import functools
import inspect
import sys
import threading
import typing

from berth import _core
from berth._structure import Composite

UNARY = """abs acos acosh angle asin asinh atan atanh cast ceil clip_by_value conj cos cosh digamma erf erfc erfcinv erfinv exp
expm1 floor identity imag is_finite is_inf is_nan lgamma log log1p log_sigmoid logical_not ndtri negative ones_like
real reciprocal reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus softsign sqrt square stop_gradient tan
tanh zeros_like elu gelu leaky_relu relu relu6 selu silu swish dropout as_string length lower regex_full_match regex_replace
strip substr to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong to_number upper check_numerics
convert_image_dtype saturate_cast bitcast invert bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1
bessel_k0 bessel_k0e bessel_k1 bessel_k1e bessel_y0 bessel_y1 dawsn expint fresnel_cos fresnel_sin spence stateless_dropout
unicode_script encode_base64 decode_base64 decode_compressed is_jpeg""".split()
BINARY = """add atan2 divide divide_no_nan equal floordiv floormod greater greater_equal less less_equal logical_and logical_or
logical_xor maximum minimum mod multiply multiply_no_nan not_equal pow realdiv squared_difference subtract truediv
truncatediv truncatemod xdivy xlog1py xlogy complex bitwise_and bitwise_or bitwise_xor left_shift right_shift
nextafter zeta""".split()
_PLACES = ("", ".math", ".nn", ".strings", ".bitwise", ".linalg", ".image", ".debugging", ".io")


def _modules():
    tf = sys.modules["berth"]
    return [*(sys.modules["berth" + p] for p in _PLACES if "berth" + p in sys.modules), tf.math.special, tf.nn.experimental]


def dispatched(function):
    """The function of tf, in all its places, made such that handlers may answer its calls."""
    if hasattr(function, "handlers"):
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        if _foreign(args) or (kwargs and _foreign(kwargs.values())):
            out = _answered(call.handlers, args, kwargs)
            if out is not NotImplemented:
                return out
        return function(*args, **kwargs)

    call.handlers = []
    for module in _modules():
        for name, value in list(vars(module).items()):
            if value is function:
                setattr(module, name, call)
    return call


_late = threading.local()


def answered_late(name, args, kwargs):
    """What handlers answer to a call of the engine's function `name`, which was read before they were there; or NotImplemented."""
    if getattr(_late, "asked", False):
        return NotImplemented
    return _answered([h for f in functions_named([name]) for h in getattr(f, "handlers", ())], args, kwargs)


def _answered(handlers, args, kwargs):
    """What the first handler that knows the values gives. What it calls was not read before it: nothing is late there."""
    outer = getattr(_late, "asked", False)
    _late.asked = True
    try:
        for handler in handlers:
            out = handler(args, kwargs)
            if out is not NotImplemented:
                return out
        return NotImplemented
    finally:
        _late.asked = outer


def functions_named(names):
    """The functions of tf with these names, each once."""
    found, modules = [], [(m, set(dir(m))) for m in _modules()]
    for name in names:
        for module, known in modules:
            value = getattr(module, name) if name in known else None
            if callable(value) and not inspect.isclass(value) and not any(value is f for f in found):
                found.append(value)
    return found


def _foreign(values):
    for v in values:
        if isinstance(v, Composite) or (type(v) in (list, tuple) and _foreign(v)):
            return True
    return False


def _bound(function, args, kwargs):
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None


def fits(value, kind):
    """True of a value of the class, or of what typing makes of classes."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:
        return any(fits(value, k) for k in parts)
    if origin in (list, tuple):
        return isinstance(value, (list, tuple)) and all(fits(v, parts[0]) for v in value)
    if kind is _core.Tensor:
        return not isinstance(value, Composite)
    return not inspect.isclass(kind) or isinstance(value, kind)


def itself(plain, *args, **kwargs):
    """The handler of a function that takes the class, too."""
    return plain(*args, **kwargs)


def dispatch_for_api(api, *signatures):
    """A decorator: the function answers calls of `api`, a function of tf, with arguments of its annotated classes."""
    def register(target):
        wanted = list(signatures) or [{n: p.annotation for n, p in inspect.signature(target).parameters.items()
                                       if p.annotation is not inspect.Parameter.empty}]

        def handler(args, kwargs):
            given = _bound(target, args, kwargs)
            for signature in wanted if given is not None else ():
                named = {(list(given)[k] if isinstance(k, int) and k < len(given) else k): kind
                         for k, kind in signature.items()}
                if all(n in given and fits(given[n], kind) for n, kind in named.items()):
                    return target(*args, **kwargs)
            return NotImplemented
        handler.target = target
        dispatched(api).handlers.insert(0, handler)
        _registered.append((target, dispatched(api).handlers, handler))
        return target
    return register


_registered = []


def unregister_dispatch_for(dispatch_target):
    """Ends what a decorator of these began for the function."""
    mine = [r for r in _registered if r[0] is dispatch_target]
    if not mine:
        raise ValueError(f"{dispatch_target!r} was not registered by a decorator of tf.experimental.dispatch_for_...")
    for r in mine:
        if r[2] in r[1]:
            r[1].remove(r[2])
        _registered.remove(r)


def _elementwise(names, kinds, target):
    for function in functions_named(names):
        function = dispatched(function)

        def handler(args, kwargs, plain=function.__wrapped__):
            if len(args) < len(kinds):
                given = _bound_first(plain, args, kwargs, len(kinds))
                if given is None:
                    return NotImplemented
                args, kwargs = given
            first, rest = args[:len(kinds)], args[len(kinds):]
            if not all(fits(v, k) for v, k in zip(first, kinds)) or not _foreign(first):
                return NotImplemented
            return target(lambda *values: plain(*values, *rest, **kwargs), *first)
        function.handlers.insert(0, handler)
        _registered.append((target, function.handlers, handler))
    return target


def _bound_first(function, args, kwargs, n):
    """Arguments by name made positional, where their names are those of the first."""
    names = [k for k in kwargs if k in ("x", "y", "a", "b", "input", "features", "value")]
    if len(args) + len(names) < n:
        return None
    kept = dict(kwargs)
    return (*args, *(kept.pop(k) for k in names[:n - len(args)])), kept


def dispatch_for_unary_elementwise_apis(x_type):
    """A decorator: handler(function, x) answers functions of one tensor, element by element, of a value of the class."""
    return lambda handler: _elementwise(UNARY, (x_type,), handler)


def dispatch_for_binary_elementwise_apis(x_type, y_type):
    """A decorator: handler(function, x, y) answers functions of two tensors of values of the classes."""
    return lambda handler: _elementwise(BINARY, (x_type, y_type), handler)


ASSERTS = """assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near
assert_none_equal""".split()


def dispatch_for_binary_elementwise_assert_apis(x_type, y_type):
    """A decorator: handler(function, x, y) answers tf.debugging.assert_equal() and its kin on values of the classes."""
    from berth import debugging  # noqa: F401  its functions are to be found
    return lambda handler: _elementwise(ASSERTS, (x_type, y_type), handler)
