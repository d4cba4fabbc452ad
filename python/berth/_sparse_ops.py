"""Functions of tf on SparseTensors: those that leave zeros zero go to the values, and what only asks for the shape."""
from berth import _core
from berth._dispatch import _bound_first, dispatched, functions_named, itself
from berth._tensor import convert_to_tensor

OF_VALUES = """abs asin asinh atan atanh bessel_i0e bessel_i1e cast erf identity negative sign sin sqrt square stop_gradient tan
tanh""".split()


def _over(plain, sparse, target):
    def call(args, kwargs):
        given = (args, kwargs) if args else _bound_first(plain, args, kwargs, 1)
        if given is None or not isinstance(given[0][0], sparse):
            return NotImplemented
        return target(plain, given[0][0], *given[0][1:], **given[1])
    return call


def _on_values(plain, x, *args, **kwargs):
    return x.with_values(plain(x.values, *args, **kwargs))


def _shape(plain, x, out_type=_core.int32, name=None):
    return _core.ops.math.cast(x.dense_shape, out_type)


def _size(plain, x, out_type=_core.int32, name=None):
    return _core.ops.math.cast(_core.ops.math.reduce_prod(x.dense_shape), out_type)


def _rank(plain, x, name=None):
    return convert_to_tensor(x.rank)


def install(sparse):
    """Lets the functions of tf take the class of SparseTensors."""
    targets = {**dict.fromkeys(OF_VALUES, _on_values), "divide": lambda plain, x, y, name=None: x / y, "shape": _shape,
               "size": _size, "rank": _rank, "bincount": itself}
    for name, target in targets.items():
        for function in functions_named([name]):
            f = dispatched(function)
            f.handlers.append(_over(f.__wrapped__, sparse, target))
    sparse.__neg__ = lambda x: x.with_values(-x.values)
