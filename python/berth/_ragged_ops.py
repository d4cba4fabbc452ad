"""Functions of tf on RaggedTensors: elements, rows and what is reduced."""
import functools
import operator

from berth import _core
from berth._dispatch import BINARY, UNARY, dispatched, functions_named
from berth._lazy import Lazy
from berth._not_tensors import refuse_kinds
from berth._structure import Composite
from berth._tensor import convert_to_tensor, string

_ops = _core.ops
_np = Lazy("numpy")
ragged = Lazy("berth.ragged")


def _is(x):
    return isinstance(x, ragged.RaggedTensor)


def _axis(x, axis):
    return int(axis) + (len(x.shape) if axis < 0 else 0)


def _unary(plain, x, *args, **kwargs):
    return x.with_flat_values(plain(x.flat_values, *args, **kwargs))


def _binary(plain, x, y, *args, **kwargs):
    """Element by element; a tensor is broadcast over rows."""
    if _is(x) and _is(y):
        if x.ragged_rank == y.ragged_rank:
            if not ragged._same_rows(x, y):
                raise _core.InvalidArgumentError(
                    f"RaggedTensors of rows of other lengths: {x.row_lengths().numpy()[:8].tolist()} and "
                    f"{y.row_lengths().numpy()[:8].tolist()}")
            return x.with_flat_values(plain(x.flat_values, y.flat_values, *args, **kwargs))
        if x.ragged_rank < y.ragged_rank:
            return _binary(lambda a, b: plain(b, a, *args, **kwargs), y, x)
        return x.with_values(_binary(plain, x.values, y.values, *args, **kwargs))
    if _is(y):
        return _binary(lambda a, b: plain(b, a, *args, **kwargs), y, x)
    y = convert_to_tensor(y, None if hasattr(y, "dtype") else x.dtype)
    if len(y.shape) <= len(x.flat_values.shape) - 1:
        return x.with_flat_values(plain(x.flat_values, y, *args, **kwargs))
    while len(y.shape) < len(x.shape):
        y = _ops.expand_dims(y, 0)
    return x.with_values(_over_rows(plain, x, y, *args, **kwargs))


def _compared(plain, of_other_rows):
    """== or !=: a tensor for each element, or one bool where the rows differ in length, as in TensorFlow."""
    def compare(a, b):
        try:
            return _binary(plain, a, b)
        except (_core.InvalidArgumentError, ValueError):
            return of_other_rows
    return compare


def _over_rows(plain, x, y, *args, **kwargs):
    """plain() of the values of x and of y [rows or 1, 1 or length of each row, ...]."""
    rows, columns, ids = y.shape[0], y.shape[1], x.value_rowids().numpy()
    if rows not in (1, x._count()):
        raise _core.InvalidArgumentError(f"ragged: {x._count()} rows and a tensor {y.shape} cannot be broadcast")
    lengths = _np.diff(x._rows())
    if columns != 1 and (lengths != columns).any():
        raise _core.InvalidArgumentError(f"ragged: rows of {lengths[:8].tolist()} elements and a tensor {y.shape} cannot be "
                                         "broadcast")
    row, column = ids if rows > 1 else ids * 0, _np.arange(len(ids)) - x._rows()[ids] if columns != 1 else ids * 0
    y = ragged._take(_ops.reshape(y, [rows * columns, *y.shape.as_list()[2:]]), row * columns + column)
    if _is(x.values):
        return x.values.with_values(_over_rows(plain, x.values, y, *args, **kwargs))
    return plain(x.values, y, *args, **kwargs)


def _reduce(name, plain, x, axis=None, keepdims=False, **kwargs):
    if name in ("reduce_mean", "reduce_variance", "reduce_std") and x.dtype.is_integer:  # quotients
        x = x.with_flat_values(_ops.math.cast(x.flat_values, _core.float32 if x.dtype.size < 4 else _core.float64))
    if axis is None:
        return plain(x.flat_values, **kwargs)
    if isinstance(axis, (list, tuple)):
        axes = sorted({_axis(x, a) for a in axis}, reverse=True)
        if name in ("reduce_mean", "reduce_variance", "reduce_std") and len(axes) > 1:
            ones = x.with_flat_values(_ops.ones_like(x.flat_values))
            total, count = (functools.reduce(lambda v, a: _sum(v, a, keepdims), axes, v) for v in (x, ones))
            mean = total / count
            if name == "reduce_mean":
                return mean
            both = functools.reduce(lambda v, a: _sum(v, a, keepdims), axes, _unary(_ops.math.square, x)) / count
            variance = _any_unary(_ops.nn.relu, both - mean * mean)
            return variance if name == "reduce_variance" else _any_unary(_ops.math.sqrt, variance)
        return functools.reduce(lambda v, a: _reduced(name, plain, v, a, keepdims), axes, x)
    return _reduced(name, plain, x, _axis(x, axis), keepdims)


def _sum(x, axis, keepdims=False):
    return _reduced("reduce_sum", _ops.math.reduce_sum, x, axis, keepdims)


def _any_unary(plain, x):
    return _unary(plain, x) if _is(x) else plain(x)


def _reduced(name, plain, x, axis, keepdims):
    if not _is(x):
        return plain(x, axis, keepdims)
    if axis > 1:
        inner = _reduced(name, plain, x.values, axis - 1, keepdims) if _is(x.values) else plain(x.values, axis - 1, keepdims)
        return x.with_values(inner)
    ids, rows = x.value_rowids().numpy(), x._count()
    if axis == 0:
        ids = _np.arange(len(ids)) - x._rows()[ids]
        rows = int(ids.max()) + 1 if len(ids) else 0
    if _is(x.values):  # elements of the rows that fall together, one after the other
        order = _np.argsort(ids, kind="stable")
        lengths = _np.bincount(ids, minlength=rows)
        grouped = ragged.RaggedTensor(ragged._take(x.values, order), ragged._splits(lengths))
        parts = [_reduced(name, plain, grouped[i], 0, False) for i in range(rows)]
        out = ragged.stack(parts)
    else:
        out = _segments(name, x.values, ids, rows)
    return _expand_dims(out, axis) if keepdims else out


def _segments(name, values, ids, rows):
    m = _ops.math
    if name in ("reduce_any", "reduce_all"):
        numbers = m.cast(values, _core.int32)
        if name == "reduce_any":
            return m.greater(m.unsorted_segment_sum(numbers, ids, rows), 0)
        return m.equal(m.unsorted_segment_sum(1 - numbers, ids, rows), 0)
    if name == "reduce_mean":
        count = _np.bincount(ids, minlength=rows).astype(values.dtype.as_numpy_dtype)
        count = _ops.reshape(convert_to_tensor(count), [rows] + [1] * (len(values.shape) - 1))
        total = m.unsorted_segment_sum(values, ids, rows)
        return m.floordiv(total, m.maximum(count, 1)) if values.dtype.is_integer else total / count
    if name in ("reduce_variance", "reduce_std"):
        mean = _segments("reduce_mean", values, ids, rows)
        out = _segments("reduce_mean", m.square(values - _ops.gather(mean, ids)), ids, rows)
        return m.sqrt(out) if name == "reduce_std" else out
    kind = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod"}[name]
    return getattr(m, f"unsorted_segment_{kind}")(values, ids, rows)


def _ragged_of(v, rank):
    """A RaggedTensor of ragged_rank `rank` of a tensor."""
    if _is(v):
        return v
    v = convert_to_tensor(v)
    return ragged.RaggedTensor.from_tensor(v, ragged_rank=rank)


def _concat(parts, axis):
    from berth import concat
    plain = getattr(concat, "__wrapped__", concat)
    parts = [p if _is(p) else convert_to_tensor(p) for p in parts]
    rank = max(p.ragged_rank if _is(p) else 0 for p in parts)
    if rank == 0:
        return plain(parts, axis)
    parts = [_ragged_of(p, rank) for p in parts]
    axis = _axis(parts[0], axis)
    if axis > 1:
        return parts[0].with_values(_concat([p.values for p in parts], axis - 1))
    values = _concat([p.values for p in parts], 0)
    begins = ragged._splits([len(p.values) for p in parts])[:-1]
    splits = [p._rows() for p in parts]
    if axis == 0:
        return ragged.RaggedTensor(values, ragged._splits(_np.concatenate([_np.diff(s) for s in splits])))
    if len({len(s) for s in splits}) > 1:
        raise _core.InvalidArgumentError(f"concat: the parts have {[len(s) - 1 for s in splits]} rows")
    starts = _np.stack([s[:-1] + b for s, b in zip(splits, begins)], 1)
    stops = _np.stack([s[1:] + b for s, b in zip(splits, begins)], 1)
    return ragged.RaggedTensor(ragged._take(values, ragged._places(starts.ravel(), stops.ravel())),
                               ragged._splits((stops - starts).sum(1)))


def _tile(plain, x, multiples, name=None):
    many = [int(n) for n in convert_to_tensor(multiples).numpy()]
    for axis, n in enumerate(many):
        x = _concat([x] * n, axis) if n != 1 else x
    return x


def _reverse(plain, x, axis, name=None):
    axes = {_axis(x, a) for a in axis}
    s = x._rows()
    if 0 in axes:
        x = ragged._take(x, _np.arange(x._count())[::-1])
        s = x._rows()
    if 1 in axes:
        x = x.with_values(ragged._take(x.values, ragged._joined([_np.arange(a, b)[::-1] for a, b in zip(s, s[1:])], "int64")))
    inner = sorted(a - 1 for a in axes if a > 1)
    if inner:
        x = x.with_values(_reverse(plain, x.values, inner) if _is(x.values) else plain(x.values, inner))
    return x


def _expand_dims(x, axis, name=None):
    from berth import expand_dims
    if not _is(x):
        return getattr(expand_dims, "__wrapped__", expand_dims)(convert_to_tensor(x), axis)
    axis = int(axis) + (len(x.shape) + 1 if axis < 0 else 0)
    n = x._count()
    if axis == 0:
        return ragged.RaggedTensor(x, [0, n], n)
    if axis == 1:
        return ragged.RaggedTensor(x, _np.arange(n + 1), 1)
    return x.with_values(_expand_dims(x.values, axis - 1))


def _gather(plain, params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    if _is(indices) and not indices.dtype.is_integer:
        raise _core.InvalidArgumentError(f"gather: the indices are {indices.dtype.name}; expected one of int32, int64: write tf.cast")
    if batch_dims:
        from berth import gather
        own = None if axis is None else axis - 1
        return ragged.stack([gather(p, i, axis=own, batch_dims=batch_dims - 1)
                             for p, i in zip(*(_rows_of(v if _is(v) else convert_to_tensor(v)) for v in (params, indices)))])
    if _is(indices) and not _is(params):
        return indices.with_flat_values(plain(params, indices.flat_values, axis=axis))
    if _is(indices):
        return indices.with_values(_gather(plain, params, indices.values))
    at = convert_to_tensor(indices).numpy()
    if at.dtype.kind not in "iu":
        raise _core.InvalidArgumentError(f"gather: the indices are {at.dtype}; expected one of int32, int64: write tf.cast")
    if axis not in (None, 0):
        rows = [plain(params[i], at, axis=axis - 1) for i in range(params._count())]
        return ragged.stack(rows) if any(map(_is, rows)) else _ops.stack(rows)
    out = ragged._take(params, at.ravel())
    return out if at.ndim == 1 else params[int(at)] if at.ndim == 0 else ragged.RaggedTensor(
        out, _np.arange(at.shape[0] + 1) * at.shape[1])


def _map_fn(plain, fn, elems, *args, **kwargs):
    """fn() of each row; rows of other lengths come together as a RaggedTensor."""
    from berth._structure import flatten, pack
    parts = flatten(elems, lambda v: True)
    rows = _rows_of(elems)
    out = [fn(row) for row in rows]
    del parts
    leaves, forms = zip(*[flatten(v) for v in out])
    if forms[0] is not None and all(f == forms[0] for f in forms) and not isinstance(out[0], Composite):
        return pack(forms[0], [_stack_any(list(column)) for column in zip(*leaves)])
    return stacked(out)


def _stack_any(column):
    tensors = [convert_to_tensor(v) for v in column]
    same = len({tuple(t.shape) for t in tensors}) == 1 and not len(tensors[0].shape)
    from berth import stack
    return getattr(stack, "__wrapped__", stack)(tensors) if same else ragged.stack(tensors)


def stacked(values):
    """Values of one class as one with an axis more."""
    first = values[0]
    if hasattr(type(first), "_stack"):
        return type(first)._stack(values)
    return ragged.stack(values)


def _rows_of(elems):
    from berth._structure import flatten, pack
    if isinstance(elems, Composite):
        return elems._unstack() if hasattr(elems, "_unstack") else list(elems)
    if isinstance(elems, (tuple, list)):
        return [type(elems)(parts) for parts in zip(*map(_rows_of, elems))]
    if isinstance(elems, dict):
        return [dict(zip(elems, parts)) for parts in zip(*map(_rows_of, elems.values()))]
    leaves, form = flatten(elems)
    return [pack(form, list(row)) for row in zip(*[list(convert_to_tensor(v)) for v in leaves])]


def _where_true(plain, condition):
    """The indices of what is True, int64 [n, rank]."""
    if not _is(condition):
        return plain(condition)
    o, found = _core.ops, _where_true(plain, condition.values)
    rows = o.gather(condition.value_rowids(), found[:, 0])
    at = found[:, 0] - o.math.cast(o.gather(condition.row_starts(), rows), _core.int64)
    return o.concat([o.stack([o.math.cast(rows, _core.int64), at], 1), found[:, 1:]], 1)


def _where(plain, condition, x=None, y=None, name=None):
    if x is None:
        return _where_true(plain, condition)
    given = [v for v in (condition, x, y) if _is(v)]
    flat = [v.flat_values if _is(v) else v for v in (condition, x, y)]
    if any(not ragged._same_rows(given[0], v) for v in given[1:]):
        raise _core.InvalidArgumentError("where: the RaggedTensors have rows of other lengths")
    return given[0].with_flat_values(plain(*flat))


def _many(plain, inputs, *args, **kwargs):
    """strings.join, add_n: functions of a list of equal rows."""
    refuse_kinds(plain.__name__, "a list of tensors", inputs=inputs)
    given = [v for v in inputs if _is(v)]
    if any(not ragged._same_rows(given[0], v) for v in given[1:]):
        raise _core.InvalidArgumentError("the RaggedTensors have rows of other lengths")
    return given[0].with_flat_values(plain([v.flat_values if _is(v) else v for v in inputs], *args, **kwargs))


def _parts_of(plain, x, *args, **kwargs):
    """tf.split: runs of rows; strings.split and its kin: one ragged axis more."""
    import berth
    if plain is getattr(berth.split, "__wrapped__", berth.split):
        return _split(x, *args, **kwargs)
    return x.with_flat_values(plain(x.flat_values, *args, **kwargs))


def _split(x, num_or_size_splits, axis=0, num=None, name=None):
    if _axis(x, axis) > x.ragged_rank:
        from berth import split
        plain = getattr(split, "__wrapped__", split)
        return [x.with_flat_values(part) for part in plain(x.flat_values, num_or_size_splits, _axis(x, axis) - x.ragged_rank)]
    if _axis(x, axis) != 0:
        raise ValueError(f"split: axis {axis} of the RaggedTensor has rows of other lengths; expected axis 0, or one after those")
    n, sizes = x._count(), convert_to_tensor(num_or_size_splits).numpy()
    if not sizes.ndim:
        if n % sizes:
            raise _core.InvalidArgumentError(f"split: {n} rows are not a multiple of {sizes}")
        sizes = [n // sizes] * int(sizes)
    return [x[int(end - size):int(end)] for size, end in zip(sizes, _np.cumsum(sizes))]


def _softmax(plain, x, axis=None, name=None):
    axis = _axis(x, -1 if axis is None else axis)
    if axis > 1:
        return x.with_values(_softmax(plain, x.values, axis - 1) if _is(x.values) else plain(x.values, axis - 1))
    shifted = _binary(_ops.math.subtract, x, _reduced("reduce_max", None, x, axis, True))
    e = _unary(_ops.math.exp, shifted)
    return _binary(_ops.math.divide, e, _reduced("reduce_sum", None, e, axis, True))


def _of(x):
    from berth._ragged_shape import DynamicRaggedShape
    return DynamicRaggedShape.from_tensor(x)


def _over(name, plain, handler):
    """A handler for _dispatch: calls of which an argument is ragged."""
    def call(args, kwargs):
        if not _found(args) and not _found(kwargs.values()):
            return NotImplemented
        return handler(plain, *args, **kwargs)
    for_name = getattr(plain, "__name__", name)
    call.__name__ = for_name
    return call


def _found(values):
    return any(_is(v) or (type(v) in (list, tuple) and _found(v)) for v in values)


_OTHERS = {
    "concat": lambda plain, values, axis, name=None: _concat(values, axis),
    "stack": lambda plain, values, axis=0, name=None: ragged.stack(values, axis),
    "tile": _tile, "reverse": _reverse, "gather": _gather, "map_fn": _map_fn, "where": _where,
    "expand_dims": lambda plain, input, axis, name=None: _expand_dims(input, axis),
    "embedding_lookup": lambda plain, params, ids, *a, **k: ids.with_flat_values(plain(params, ids.flat_values, *a, **k)),
    "one_hot": lambda plain, indices, *a, **k: _unary(plain, indices, *a, **k),
    "join": _many, "add_n": _many, "split": _parts_of, "bytes_split": _parts_of,
    "unicode_split": _parts_of, "softmax": _softmax, "unicode_decode": _parts_of,
    "shape": lambda plain, input, out_type=None, name=None: _of(input),
    "size": lambda plain, input, out_type=_core.int32, name=None: plain(input.flat_values, out_type),
    "rank": lambda plain, input, name=None: convert_to_tensor(len(input.shape)),
    "boolean_mask": lambda plain, tensor, mask, axis=None, name=None: ragged.boolean_mask(tensor, mask),
    "reverse_sequence": None, "sigmoid_cross_entropy_with_logits": lambda plain, labels, logits, name=None: _binary(plain, labels, logits),
}
_REDUCE = "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_any reduce_all reduce_variance reduce_std".split()


def _by_keyword(plain, handler, names):
    def call(args, kwargs):
        args, kwargs = list(args), dict(kwargs)
        for name in names[len(args):]:
            if name in kwargs:
                args.append(kwargs.pop(name))
        if not _found(args):
            return NotImplemented
        return handler(plain, *args, **kwargs)
    return call


def install():
    """Lets the functions of tf take RaggedTensors, and gives these operators."""
    import berth
    from berth import _ragged_math, _ragged_parts, debugging  # noqa: F401  debugging: its functions are among these
    for names, handler, order in ((UNARY, _unary, ("x", "input", "features", "tensor")), (BINARY, _binary, ("x", "y"))):
        for function in functions_named(names):
            f = dispatched(function)
            f.handlers.append(_by_keyword(f.__wrapped__, handler, order))
    for name in _REDUCE:
        for function in functions_named([name]):
            f = dispatched(function)
            f.handlers.append(_by_keyword(f.__wrapped__, functools.partial(_reduce, name), ("input_tensor", "axis", "keepdims")))
    for name, handler in {**_OTHERS, **_ragged_math.HANDLERS, **_ragged_parts.HANDLERS}.items():
        for function in functions_named([name]) if handler else ():
            f = dispatched(function)
            f.handlers.append(_over(name, f.__wrapped__, handler))
    for name in "add sub mul truediv floordiv mod pow lt le gt ge and or xor".split():
        function = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(ragged.RaggedTensor, f"__{name}__", lambda a, b, f=function: _binary(f, a, b))
        if name not in ("lt", "le", "gt", "ge"):
            setattr(ragged.RaggedTensor, f"__r{name}__", lambda a, b, f=function: _binary(lambda x, y: f(y, x), a, b))
    equal, not_equal = _ops.math.equal, _ops.math.not_equal
    ragged.RaggedTensor.__eq__ = _compared(equal, False)
    ragged.RaggedTensor.__ne__ = _compared(not_equal, True)
    ragged.RaggedTensor.__matmul__ = lambda a, b: berth.matmul(a, b)
    ragged.RaggedTensor.__rmatmul__ = lambda a, b: berth.matmul(b, a)
    ragged.RaggedTensor.__neg__ = lambda a: _unary(_ops.math.negative, a)
    ragged.RaggedTensor.__abs__ = lambda a: _unary(_ops.math.abs, a)
    ragged.RaggedTensor.__invert__ = lambda a: _unary(_ops.math.logical_not, a)
