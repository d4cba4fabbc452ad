"""Rows of tables at ids that are sparse: tf.nn.embedding_lookup_sparse and its safe form; tf.edit_distance."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, float32, int32, int64

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")


def _table(params):
    if isinstance(params, (list, tuple)):
        if not params:
            raise ValueError("embedding_lookup_sparse: params is empty; expected a table, or a list of its shards")
        return _ops.concat([convert_to_tensor(p) for p in params], 0)
    return params


def _as_sparse(what, ids):
    from berth.sparse import SparseTensor
    if hasattr(ids, "nrows"):
        ids = ids.to_sparse()
    if not isinstance(ids, SparseTensor):
        raise TypeError(f"{what} is a {type(ids).__name__}; expected a SparseTensor or a RaggedTensor")
    return ids


def embedding_lookup_sparse(params, sp_ids, sp_weights, combiner=None, max_norm=None, name=None, allow_fast_lookup=False):
    """The rows of params at the ids of each row of sp_ids, as one: their "sum", "mean" or "sqrtn", weighted by sp_weights.

    [rows up to the last that has ids, ...]. With max_norm longer rows are made so long first.
    """
    combiner = combiner or "mean"
    if combiner not in ("sum", "mean", "sqrtn"):
        raise ValueError(f"embedding_lookup_sparse: combiner is {combiner!r}; expected 'mean', 'sqrtn' or 'sum'")
    sp_ids = _as_sparse("embedding_lookup_sparse: sp_ids", sp_ids)
    rows = _m.cast(convert_to_tensor(sp_ids.indices)[:, 0], int32)
    found = _ops.gather(_table(params), sp_ids.values)
    if max_norm is not None:
        found = _ops.clip_by_norm(found, max_norm, list(range(1, len(found.shape))))
    given = found.dtype
    found = _m.cast(found, float32) if given.size == 2 else found
    shape = [-1] + [1] * (len(found.shape) - 1)
    if sp_weights is None:
        weights = _ops.ones(rows.shape, found.dtype)
    else:
        weights = _m.cast(_as_sparse("embedding_lookup_sparse: sp_weights", sp_weights).values, found.dtype)
    count = int(rows[-1]) + 1 if rows.shape[0] else 0
    total = _m.unsorted_segment_sum(found * _ops.reshape(weights, shape), rows, count)
    if combiner != "sum":
        share = _m.unsorted_segment_sum(weights if combiner == "mean" else weights * weights, rows, count)
        total = _m.divide_no_nan(total, _ops.reshape(share if combiner == "mean" else _m.sqrt(share), shape))
    return _m.cast(total, given)


def safe_embedding_lookup_sparse(embedding_weights, sparse_ids, sparse_weights=None, combiner="mean", default_id=None,
                                 max_norm=None, name=None, allow_fast_lookup=False):
    """embedding_lookup_sparse() without negative ids, and ids without a positive weight.

    Rows with none have that of default_id, or zeros.
    """
    from berth import sparse
    if embedding_weights is None or isinstance(embedding_weights, (list, tuple)) and not embedding_weights:
        raise ValueError(f"safe_embedding_lookup_sparse: embedding_weights is {embedding_weights!r}; expected a table, or its "
                         "shards")
    ids = _as_sparse("safe_embedding_lookup_sparse: sparse_ids", sparse_ids)
    shape = [int(n) for n in convert_to_tensor(ids.dense_shape).numpy()]
    flat = [int(_np.prod(shape[:-1])), shape[-1]]
    ids = sparse.reshape(ids, flat)
    keep = _m.greater_equal(ids.values, 0)
    weights = None
    if sparse_weights is not None:
        weights = sparse.reshape(_as_sparse("safe_embedding_lookup_sparse: sparse_weights", sparse_weights), flat)
        if combiner != "sum":
            keep = _m.logical_and(keep, _m.greater(weights.values, 0))
        weights = sparse.retain(weights, keep)
    ids = sparse.retain(ids, keep)
    ids, is_empty = sparse.fill_empty_rows(ids, default_id or 0)
    if weights is not None:
        weights = sparse.fill_empty_rows(weights, 1.0)[0]
    out = embedding_lookup_sparse(embedding_weights, ids, weights, combiner, max_norm)
    if default_id is None:
        gone = _ops.reshape(is_empty, [-1] + [1] * (len(out.shape) - 1))
        out = _ops.where(gone, _ops.zeros_like(out), out)
    return _ops.reshape(out, [*shape[:-1], *out.shape.as_list()[1:]])


def edit_distance(hypothesis, truth, normalize=True, name="edit_distance"):
    """How many insertions, deletions and exchanges make the rows of the hypothesis those of the truth, both sparse: float32.

    With normalize over the length of the truth's row: inf if that is 0 and the other is not.
    """
    both = [_as_sparse(f"edit_distance: {n}", v) for n, v in (("hypothesis", hypothesis), ("truth", truth))]
    shapes = [convert_to_tensor(v.dense_shape).numpy() for v in both]
    if len(shapes[0]) != len(shapes[1]):
        raise ValueError(f"edit_distance: the shapes are {shapes[0].tolist()} and {shapes[1].tolist()}; expected equal ranks")
    out = _np.zeros(_np.maximum(*shapes)[:-1], "float32")
    rows = [{}, {}]
    for found, one in zip(rows, both):
        for at, value in zip(convert_to_tensor(one.indices).numpy().tolist(), convert_to_tensor(one.values).numpy().tolist()):
            found.setdefault(tuple(at[:-1]), []).append(value)
    for at in _np.ndindex(*out.shape):
        a, b = (found.get(at, []) for found in rows)
        out[at] = _distance(a, b)
        if normalize:
            out[at] = out[at] / len(b) if b else float("inf") if a else 0.0
    return convert_to_tensor(out)


def _distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, before + (x != y))
    return row[-1]
