"""keras.ops: conversions, control flow, scatters; and what a call of a layer would return, found by a trace."""
import builtins

import berth as tf
import numpy as np
from berth import _core
from berth._control import recompute_grad
from keras.src import tree
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope

from keras_berth.src.loops import in_turns, rows_of
from keras_berth.src.ops import sparse as _sparse
from keras_berth.src.variable import Variable

SUPPORTS_SPARSE_TENSORS = True
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True

Tensor = _core.Tensor
_ops = _core.ops
_cast = _core.ops.cast


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    """A tensor; of a sparse one a sparse one, unless `sparse` is False."""
    if ragged:
        raise ValueError("keras_berth has no ragged tensors: ragged=True")
    if isinstance(x, _sparse.SPARSE) and sparse is not False:
        return x if dtype is None else _sparse.cast(x, dtype)
    return dense_tensor(x, dtype)


def dense_tensor(x, dtype=None):
    if dtype is not None:
        dtype = standardize_dtype(dtype)
    if isinstance(x, Variable):
        x = x.value
    if not isinstance(x, Tensor):
        x = _tensor_of(x, dtype)
    if dtype is None or x.dtype.name == dtype:
        return x
    return _cast(x, dtype)


def _tensor_of(x, dtype):
    """A tensor, whose dtype is not yet `dtype` where values have to be converted."""
    if isinstance(x, _core.Variable):
        return _core.convert(x, None)
    if isinstance(x, _sparse.SPARSE):
        return _sparse.dense(x)
    if isinstance(x, KerasTensor):
        raise ValueError("A KerasTensor is symbolic: it's a placeholder for a shape and a dtype. It has no value.")
    if isinstance(x, (builtins.bool, int, float)) and dtype is not None and dtype != "bool":
        return _core.convert(x, dtype) if isinstance(x, builtins.bool) is False and (
            not isinstance(x, float) or dtype[0] in "fb") else _core.convert(x, None)
    return _core.convert(x, None)


def convert_to_numpy(x):
    if isinstance(x, Variable):
        x = x.value
    return np.array(_sparse.dense(x) if isinstance(x, _sparse.SPARSE) else x)


def is_tensor(x):
    return isinstance(x, (Tensor, _core.Variable, *_sparse.SPARSE))


def shape(x):
    """The shape as a tuple of numbers; of what a trace does not know, scalar tensors; of rows of several lengths, None."""
    if isinstance(x, KerasTensor):
        return x.shape
    if isinstance(x, _sparse.SPARSE):
        return _sparse.shape_of(x)
    known = tuple(x.shape if hasattr(x, "shape") else convert_to_tensor(x).shape)
    if None not in known or hasattr(x, "flat_values"):
        return known
    whole = _ops.shape(x)
    return tuple(whole[i] if n is None else n for i, n in enumerate(known))


def cast(x, dtype):
    return convert_to_tensor(x, dtype=dtype)


class _Traced(Exception):
    """Ends a trace whose graph nobody needs."""


_FILLS = 83, 89  # two sizes that differ and are primes stand for one that is not known


def compute_output_spec(fn, *args, **kwargs):
    """KerasTensors like what fn returns: traced, without memory or kernels; with open sizes twice."""
    given = (args, kwargs)
    symbolic = [x for x in tree.flatten(given) if _is_spec(x)]
    open_sizes = any(None in tuple(x.shape) for x in symbolic)
    first = _traced(fn, given, symbolic, _FILLS[0])
    if not open_sizes:
        return tree.map_structure(lambda x: _spec(x, x), first)
    return tree.map_structure(_spec, first, _traced(fn, given, symbolic, _FILLS[1]))


def _is_spec(x):
    """True of what has a shape and a dtype alone; a tensor of an outer trace counts as that."""
    return isinstance(x, KerasTensor) or (isinstance(x, Tensor) and x.is_symbolic)


def _spec(x, other):
    if not is_tensor(x) and not isinstance(x, Variable):
        return x
    sizes = [a if a == b else None for a, b in zip(shape(x), shape(other))]
    values = x.values if isinstance(x, _sparse.SPARSE) else x
    return KerasTensor(sizes, standardize_dtype(values.dtype), sparse=values is not x)


_VALUES = 3  # of a sparse tensor of which nothing but the shape is known


def _is_sparse(x):
    return isinstance(x, KerasTensor) and x.sparse


def _sparse_like(sizes, values):
    """A SparseTensor in place of a KerasTensor that is one."""
    return _sparse.sparse_tensor(np.stack([np.arange(_VALUES) % n for n in sizes], 1), values, sizes)


def _traced(fn, given, symbolic, fill):
    """fn's result with tensors of a trace in place of KerasTensors, whose open sizes are `fill`."""
    sizes = [[fill if n is None else n for n in x.shape] for x in symbolic]
    specs = [(tf.TensorShape([_VALUES] if _is_sparse(x) else s), tf.as_dtype(x.dtype)) for x, s in zip(symbolic, sizes)]
    out = []

    def call(leaves):
        at = iter([_sparse_like(s, v) if _is_sparse(x) else v for x, s, v in zip(symbolic, sizes, leaves)])
        args, kwargs = tree.map_structure(lambda x: next(at) if _is_spec(x) else x, given)
        return fn(*args, **kwargs)

    def trace(leaves):
        out.append(call(leaves))
        raise _Traced

    try:
        with StatelessScope(), SymbolicScope():  # its end makes variables, which no trace may do
            _core.trace_concrete(trace, "spec", specs)
    except _Traced:
        return out[0]
    except Exception as error:
        if not getattr(error, "needs_values", False):
            raise
    # Its control flow depends on values: with zeros, op by op.
    with StatelessScope(), SymbolicScope():
        return call([_ops.zeros(s, d) for s, d in specs])


def cond(pred, true_fn, false_fn):
    if isinstance(pred, Variable):
        pred = pred.value
    if is_tensor(pred) and pred.dtype.name != "bool":
        pred = _cast(pred, "bool")
    return tf.cond(pred, true_fn=_flat(true_fn), false_fn=_flat(false_fn))


def _flat(fn):
    """A branch whose variables are values."""
    def call():
        return tree.map_structure(lambda v: v.value if isinstance(v, Variable) else v, fn())
    return call


def vectorized_map(function, elements):
    return map(function, elements)


def map(f, xs):
    _, ys = scan(lambda _, x: ((), f(x)), (), xs)
    return ys


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, builtins.bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    leaves = [convert_to_tensor(x) for x in tree.flatten(xs)] if xs is not None else []
    rows = [rows_of(x) for x in leaves]
    n = int(length) if length is not None else leaves[0].shape[0]

    def step(k, carry):
        i = n - 1 - k if reverse else k
        new, y = f(carry, tree.pack_sequence_as(xs, [row(i) for row in rows]) if rows else None)
        return new, new if y is None and tree.flatten(init) else y

    carry = tree.map_structure(convert_to_tensor, init)
    if not n:
        return carry, None
    carry, ys = in_turns(step, carry, n)
    return carry, tree.map_structure(lambda y: _ops.reverse(y, [0]), ys) if reverse and ys is not None else ys


def associative_scan(f, elems, reverse=False, axis=0):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    leaves = [convert_to_tensor(e) for e in tree.flatten(elems)]
    lengths = {e.shape[axis] for e in leaves}
    if len(lengths) != 1:
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {[tuple(e.shape) for e in leaves]})")
    if reverse:
        leaves = [_ops.reverse(e, [_positive(axis, e)]) for e in leaves]

    def combine(a, b):
        return tree.flatten(f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b)))

    out = _scanned(combine, leaves, axis)
    if reverse:
        out = [_ops.reverse(e, [_positive(axis, e)]) for e in out]
    return tree.pack_sequence_as(elems, out)


def _positive(axis, x):
    return axis + len(x.shape) if axis < 0 else axis


def _scanned(combine, leaves, axis):
    """All prefixes, by pairs: half of them are prefixes of the pairs, the others one element more."""
    n = leaves[0].shape[axis]
    if n < 2:
        return leaves

    def part(x, *bounds):
        return x[(builtins.slice(None),) * _positive(axis, x) + (builtins.slice(*bounds),)]

    odd = _scanned(combine, combine([part(e, 0, n - 1, 2) for e in leaves], [part(e, 1, n, 2) for e in leaves]), axis)
    out = []
    if n > 2:
        count = (n - 1) // 2
        rest = combine([part(o, 0, count) for o in odd], [part(e, 2, n, 2) for e in leaves])
        even = [_ops.concat([part(e, 0, 1), r], axis) for e, r in zip(leaves, rest)]
    else:
        even = [part(e, 0, 1) for e in leaves]
    for a, b in zip(even, odd):
        at = _positive(axis, a)
        count = b.shape[at]
        both = _ops.stack([part(a, 0, count), b], at + 1)
        sizes = list(b.shape)
        sizes[at] = 2 * count
        both = _ops.reshape(both, sizes)
        out.append(_ops.concat([both, part(a, count, count + 1)], at) if n % 2 else both)
    return out


def scatter(indices, values, shape):
    return _ops.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), shape)


_SCATTERS = {None: "update", "add": "add", "max": "max", "min": "min"}


def scatter_update(inputs, indices, updates, reduction=None):
    inputs, indices = convert_to_tensor(inputs), convert_to_tensor(indices)
    updates = convert_to_tensor(updates, inputs.dtype)
    if reduction in _SCATTERS:
        return getattr(_ops, f"tensor_scatter_nd_{_SCATTERS[reduction]}")(inputs, indices, updates)
    if reduction != "mul":
        raise ValueError(f"Unsupported reduction: {reduction}")
    for i in range(indices.shape[0]):
        at = indices[i:i + 1]
        inputs = _ops.tensor_scatter_nd_update(inputs, at, _ops.gather_nd(inputs, at) * updates[i])
    return inputs


def slice(inputs, start_indices, shape):
    return tf.slice(convert_to_tensor(inputs), _places(start_indices), [int(n) for n in shape])


def _places(start_indices):
    """Numbers where they are known, else scalar tensors."""
    if is_tensor(start_indices) or isinstance(start_indices, np.ndarray):
        start_indices = _ops.unstack(convert_to_tensor(start_indices))
    places = [convert_to_tensor(i) if is_tensor(i) or isinstance(i, Variable) else int(i) for i in start_indices]
    return [i if isinstance(i, int) or _core.is_open(i) else int(i) for i in places]


def slice_update(inputs, start_indices, updates):
    inputs = convert_to_tensor(inputs)
    updates = convert_to_tensor(updates, inputs.dtype)
    axes = []
    for i, (start, size, whole) in enumerate(zip(_places(start_indices), updates.shape, inputs.shape)):
        # The block stays inside, as in lax.dynamic_update_slice.
        if isinstance(start, int):
            start = min(max(start, 0), whole - size)
        else:
            start = _ops.clip_by_value(_cast(start, "int32"), 0, whole - size)
        axes.append(_ops.range(0, size, 1) + start)
    if not axes:
        return updates
    places = _ops.stack(_ops.meshgrid(axes, "ij"), len(axes))
    return _ops.tensor_scatter_nd_update(inputs, places, updates)


def switch(index, branches, *operands):
    index = _ops.clip_by_value(convert_to_tensor(index, "int32"), 0, len(branches) - 1)
    if not _core.is_open(index):
        return branches[int(index)](*operands)
    return tf.switch_case(index, [lambda b=b: b(*operands) for b in branches])


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    several = isinstance(loop_vars, (tuple, list))
    start = tree.map_structure(convert_to_tensor, tuple(loop_vars) if several else (loop_vars,))

    def turn(*args):
        out = body(*args)
        out = tuple(out) if several else (out,)
        return tree.map_structure(lambda v, old: convert_to_tensor(v, old.dtype), out, tuple(args))

    out = tf.while_loop(cond, turn, start, maximum_iterations=maximum_iterations)
    return tuple(out) if several else out[0]


def fori_loop(lower, upper, body_fun, init_val):
    if isinstance(lower, int) and isinstance(upper, int) and tf.executing_eagerly():  # i is a number, of any dtype
        value = tree.map_structure(convert_to_tensor, init_val)
        for i in builtins.range(lower, upper):
            value = body_fun(i, value)
        return tree.map_structure(convert_to_tensor, value)
    return while_loop(lambda i, _: i < upper, lambda i, v: (i + 1, body_fun(i, v)), (lower, init_val))[1]


def stop_gradient(variable):
    return _ops.stop_gradient(convert_to_tensor(variable))


def unstack(x, num=None, axis=0):
    return list(_ops.unstack(convert_to_tensor(x), axis=axis))


def random_seed_dtype():
    return "int64"


class custom_gradient:
    """fun(*args) returns a result and the function of its gradient."""

    def __init__(self, fun):
        self._fun = fun

    def __call__(self, *args, **kwargs):
        values = [convert_to_tensor(a) if isinstance(a, Variable) else a for a in args]
        return tf.custom_gradient(self._fun)(*values, **kwargs)


def remat(f):
    return recompute_grad(f)


def device_scope(device_name):
    """"gpu:0" is "/GPU:0"."""
    if not isinstance(device_name, str):
        raise ValueError(f"Invalid value for argument `device_name`: {device_name!r}; expected a string like 'gpu:0'")
    kind, _, number = device_name.rpartition("/")[2].rpartition("device:")[2].partition(":")
    return tf.device(f"/{kind.upper()}:{number or 0}" if "job:" not in device_name else device_name)
