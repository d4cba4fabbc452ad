"""Functions of tf on RaggedTensors that pick, move or group parts: gather_nd, squeeze, partitions, segments, shapes, pictures."""
from berth import _core
from berth._lazy import Lazy
from berth._not_tensors import refuse_kinds
from berth._ragged_ops import _axis, _binary, _expand_dims, _is, _reduced, _unary
from berth._tensor import convert_to_tensor, string

_ops = _core.ops
_np = Lazy("numpy")
ragged = Lazy("berth.ragged")


def _gather_nd(plain, params, indices, batch_dims=0, name=None, bad_indices_policy=""):
    if batch_dims:
        raise ValueError(f"gather_nd: batch_dims is {batch_dims}; expected 0 where an argument is a RaggedTensor")
    if _is(indices):
        return indices.with_flat_values(_gather_nd(plain, params, indices.flat_values))
    indices = convert_to_tensor(indices)
    if not _is(params):
        return plain(params, indices)
    if not indices.dtype.is_integer:
        raise _core.InvalidArgumentError(f"gather_nd: the indices are {indices.dtype.name}; expected one of int32, int64: write tf.cast")
    *batch, depth = indices.shape.as_list()
    at = indices.numpy().reshape([int(_np.prod(batch)), depth])
    rows, rest = (at[:, 0], at[:, 1:]) if depth else (_np.zeros(len(at), "int64"), at)
    if not depth:
        params = _expand_dims(params, 0)
    if ((rows < 0) | (rows >= params._count())).any():
        raise _core.InvalidArgumentError(f"gather_nd: the indices name rows {rows[:8].tolist()}; there are {params._count()}")
    while rest.shape[1] and _is(params):
        s = params._rows()
        if ((rest[:, 0] < 0) | (rest[:, 0] >= _np.diff(s)[rows])).any():
            raise _core.InvalidArgumentError(f"gather_nd: the indices name places {rest[:8, 0].tolist()} in rows of "
                                             f"{_np.diff(s)[rows][:8].tolist()}")
        rows, rest, params = s[rows] + rest[:, 0], rest[:, 1:], params.values
    found = ragged._take(params, rows) if not rest.shape[1] else plain(params, _np.concatenate([rows[:, None], rest], 1))
    if not batch:
        return found[0]
    if not _is(found):
        return _ops.reshape(found, [*batch, *found.shape.as_list()[1:]])
    for k in range(len(batch) - 1, 0, -1):
        found = ragged.RaggedTensor.from_uniform_row_length(found, batch[k], int(_np.prod(batch[:k])))
    return found


def _squeeze(plain, input, axis=None, name=None):
    if axis is None:
        raise ValueError("squeeze: axis is None; expected the axes to take out of a RaggedTensor")
    axes = {_axis(input, a) for a in (axis if isinstance(axis, (list, tuple)) else [axis])}
    for a in sorted(axes, reverse=True):
        input = _without(plain, input, a)
    return input


def _without(plain, x, axis):
    """x without an axis of length 1."""
    if not _is(x):
        return plain(x, [axis])
    if axis > 1:
        return x.with_values(_without(plain, x.values, axis - 1))
    lengths = _np.diff(x._rows()) if axis else _np.asarray([x._count()])
    if (lengths != 1).any():
        raise _core.InvalidArgumentError(f"squeeze: axis {axis} of the RaggedTensor has lengths {lengths[:8].tolist()}; expected 1")
    return x.values


def _partitions(plain, data, partitions, num_partitions, name=None):
    """Rows, or elements, by their numbers."""
    refuse_kinds("dynamic_partition", "a whole number", num_partitions=num_partitions)
    if not _is(partitions):
        at = convert_to_tensor(partitions).numpy()
        if at.ndim != 1:
            raise ValueError(f"dynamic_partition: partitions are {at.shape}; expected [rows] of a RaggedTensor, or its rows")
        return [ragged._take(data, _np.flatnonzero(at == k)) for k in range(int(num_partitions))]
    data, partitions = _values_of(plain, data, partitions)
    return _partitions(plain, data, partitions, num_partitions) if _is(data) else plain(data, partitions, num_partitions)


def _values_of(plain, data, ids):
    """The values of data by elements, and their numbers, where both have the same rows."""
    while _is(ids):
        if not _is(data) or len(data._rows()) != len(ids._rows()) or (data._rows() != ids._rows()).any():
            raise _core.InvalidArgumentError(f"{plain.__name__}: the data and the numbers of their parts have other rows")
        data, ids = data.values, ids.values
    return data, ids


def _segments(kind, plain, data, segment_ids, num_segments, name=None):
    """unsorted_segment_sum and its kin: the rows of a segment, element by element, as one row."""
    refuse_kinds(plain.__name__, "a whole number", num_segments=num_segments)
    data, ids = _values_of(plain, data, segment_ids)
    if not _is(data):
        return plain(data, ids, num_segments)
    ids, n = convert_to_tensor(ids).numpy(), int(num_segments)
    order = _np.argsort(ids, kind="stable")
    order = order[ids[order] >= 0]
    grouped = ragged.RaggedTensor(ragged._take(data, order), ragged._splits(_np.bincount(ids[order], minlength=n)))
    if kind != "sqrt_n":
        return _reduced(f"reduce_{kind}", None, grouped, 1, False)
    count = _reduced("reduce_sum", None, grouped.with_flat_values(_ops.ones_like(grouped.flat_values)), 1, False)
    return _binary(_ops.math.divide, _reduced("reduce_sum", None, grouped, 1, False), _unary(_ops.math.sqrt, count))


def _format(plain, template, inputs, placeholder="{}", summarize=3, name=None):
    refuse_kinds("strings.format", "text", template=template)
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(values) + 1:
        raise ValueError(f"tf.strings.format: {len(parts) - 1} placeholders for {len(values)} values")
    shown = [str(_decoded(v.to_list())) if _is(v) else plain("{}", v, summarize=summarize).numpy().decode() for v in values]
    return convert_to_tensor("".join(p + v for p, v in zip(parts, [*shown, ""])))


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(v) for v in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _reduce_join(plain, inputs, axis=None, keepdims=False, separator="", name=None):
    if inputs.dtype != string:
        raise _core.InvalidArgumentError(f"reduce_join: the RaggedTensor is {inputs.dtype.name}; expected string")
    if axis is None:
        return plain(inputs.flat_values, keepdims=keepdims, separator=separator)
    axes = sorted({_axis(inputs, a) for a in (axis if isinstance(axis, (list, tuple)) else [axis])}, reverse=True)
    out = inputs
    for a in axes:
        out = _joined(plain, out, a, separator)
    for a in sorted(axes) if keepdims else ():
        out = _expand_dims(out, a)
    return out


def _joined(plain, x, axis, separator):
    """Texts along one axis in one; those after it fall together by their places."""
    if not _is(x):
        return plain(x, axis, separator=separator)
    if axis > 1:
        return x.with_values(_joined(plain, x.values, axis - 1, separator))
    lists = x.to_list() if axis else [x.to_list()]
    out = [_column(rows, separator.encode(), 0) for rows in lists]
    out = out if axis else out[0]
    nested = any(isinstance(v, list) for v in out)
    return ragged.constant(out, string, ragged_rank=len(x.shape) - 2) if nested else convert_to_tensor(_np.asarray(out, object), string)


def _column(parts, separator, depth):
    if not any(isinstance(p, list) for p in parts):
        return separator.join(parts)
    return [_column([p[i] for p in parts if i < len(p)], separator, depth + 1) for i in range(max(map(len, parts)))]


def _resize(plain, images, *args, **kwargs):
    """Pictures of any sizes as a tensor of those of one."""
    rows = [images[i] for i in range(images._count())]
    return _ops.stack([plain(row.to_tensor() if _is(row) else row, *args, **kwargs) for row in rows])


HANDLERS = {"gather_nd": _gather_nd, "squeeze": _squeeze, "dynamic_partition": _partitions, "format": _format,
            "reduce_join": _reduce_join, "resize": _resize,
            "reshape": lambda plain, tensor, shape, name=None: plain(tensor.flat_values, shape),
            "scalar_mul": lambda plain, scalar, x, name=None: _unary(lambda v: plain(scalar, v), x),
            **{f"unsorted_segment_{kind}": lambda plain, *args, kind=kind, **kwargs: _segments(kind, plain, *args, **kwargs)
               for kind in "sum mean max min prod sqrt_n".split()}}
