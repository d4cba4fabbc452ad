"""Functions of tf on RaggedTensors that join elements of rows: products, sums that run along, counts, assertions."""
from berth import _core
from berth._dispatch import itself as _itself
from berth._lazy import Lazy
from berth._ragged_ops import _binary, _concat, _expand_dims, _is, _reduce, _unary
from berth._tensor import convert_to_tensor

_ops = _core.ops
_np = Lazy("numpy")
ragged = Lazy("berth.ragged")


def _padded(plain, x, *args, **kwargs):
    """A function that keeps shapes, of the tensor in which short rows are filled up with zeros."""
    out, places, inner = plain(x.to_tensor(), *args, **kwargs), _np.arange(x._count())[:, None], x
    while _is(inner):
        s = inner._rows()
        column = ragged._places(_np.zeros(len(s) - 1, "int64"), _np.diff(s))
        places, inner = _np.concatenate([_np.repeat(places, _np.diff(s), 0), column[:, None]], 1), inner.values
    return x.with_flat_values(_ops.gather_nd(out, places) if len(places) else x.flat_values)


def _logsumexp(plain, x, axis=None, keepdims=False, name=None):
    if axis is None:
        return plain(x.flat_values)
    m = _ops.math
    top = _reduce("reduce_max", m.reduce_max, x, axis, True)
    out = _reduce("reduce_sum", m.reduce_sum, _unary(m.exp, _binary(m.subtract, x, top)), axis, keepdims)
    top = top if keepdims else _reduce("reduce_max", m.reduce_max, x, axis)
    return _binary(m.add, _unary(m.log, out), top) if _is(out) else m.log(out) + top


def _asserts(plain, x, y, *args, **kwargs):
    given = [v for v in (x, y) if _is(v)]
    if len(given) == 2 and not ragged._same_rows(*given):
        lengths = [v.row_lengths().numpy()[:8].tolist() for v in given]
        raise _core.InvalidArgumentError(f"{plain.__name__}: the RaggedTensors have rows of {lengths[0]} and {lengths[1]} elements")
    return plain(*(v.flat_values if _is(v) else v for v in (x, y)), *args, **kwargs)


def _matmul(plain, a, b, *args, **kwargs):
    """Products of matrices of any lengths, one after the other; those of rank 2 must have rows of one length."""
    a, b = (v if _is(v) else convert_to_tensor(v) for v in (a, b))
    ranks = len(a.shape), len(b.shape)
    if ranks[0] != ranks[1] or ranks[0] < 2:
        raise _core.InvalidArgumentError(f"matmul: a has rank {ranks[0]} and b has rank {ranks[1]}; expected equal ranks of 2 "
                                         "or more where one is a RaggedTensor")
    if ranks[0] == 2:
        return plain(_matrix(a, "a"), _matrix(b, "b"), *args, **kwargs)
    rows = [v._count() if _is(v) else v.shape[0] for v in (a, b)]
    if rows[0] != rows[1]:
        raise _core.InvalidArgumentError(f"matmul: a has {rows[0]} matrices and b has {rows[1]}; expected equal numbers where "
                                         "one is a RaggedTensor")
    parts = [_matmul(plain, a[i], b[i], *args, **kwargs) for i in range(rows[0])]
    if not parts:
        raise _core.InvalidArgumentError("matmul: the RaggedTensor has no rows; expected one matrix or more")
    rank = max(p.ragged_rank if _is(p) else 0 for p in parts)
    if rank == 0 and len({p.shape[-1] for p in parts}) > 1:
        rank = 1
    return ragged.RaggedTensor(_concat([_of_rank(p, rank) for p in parts], 0), ragged._splits([p.shape[0] for p in parts]))


def _of_rank(x, rank):
    """The same with so many ragged axes."""
    if not rank:
        return x
    if not _is(x):
        return ragged.RaggedTensor.from_tensor(x, ragged_rank=rank)
    return x.with_values(_of_rank(x.values, rank - 1))


def _matrix(x, name):
    if not _is(x):
        return x
    lengths = _np.diff(x._rows())
    if (lengths != lengths[:1]).any():
        raise _core.InvalidArgumentError(f"matmul: a matrix of {name!r} is a RaggedTensor with rows of {lengths[:8].tolist()} "
                                         "elements; expected rows of one length, such as to_tensor() of it has")
    return x.to_tensor()


def _matvec(plain, a, b, *args, **kwargs):
    from berth import matmul
    out = _matmul(getattr(matmul, "__wrapped__", matmul), a, _expand_dims(b, -1), *args, **kwargs)
    return out.with_flat_values(_ops.squeeze(out.flat_values, [-1])) if _is(out) else _ops.squeeze(out, [-1])


def _pixels(plain, x, *args, **kwargs):
    """A function of pictures that changes each number by itself."""
    flat = plain(_ops.reshape(x.flat_values, [-1, 1, 1]), *args, **kwargs)
    return x.with_flat_values(_ops.reshape(flat, x.flat_values.shape))


HANDLERS = {"adjust_brightness": _pixels, "adjust_gamma": _pixels, "random_brightness": _pixels,
            "stateless_random_brightness": _pixels,
            "cumsum": _padded, "reduce_logsumexp": _logsumexp, "bincount": _itself, "matmul": _matmul, "matvec": _matvec,
            **{f"assert_{name}": _asserts for name in "equal none_equal less less_equal greater greater_equal near".split()}}
