"""Data sets of RaggedTensors, SparseTensors and ExtensionTypes: rows come together by Python."""
import itertools

import numpy as _np
from berth import _core
from berth._ragged_ops import _stack_any, stacked
from berth._structure import LEAF, Composite, Made, flatten, pack
from berth._tensor import AnyShape as TensorShape, TensorSpec, convert_to_tensor
from berth.data import Dataset, Iterator
from berth.ragged import RaggedTensor, Row
from berth.sparse import SparseTensor


def _rows(value):
    """The elements of each part of a structure, side by side."""
    if isinstance(value, Composite):
        return value._slices()
    if isinstance(value, dict):
        return [type(value)(zip(value, row)) for row in zip(*map(_rows, value.values()))]
    if isinstance(value, tuple):
        return list(zip(*map(_rows, value)))
    return list(convert_to_tensor(value))


def _together(values):
    first = values[0]
    if isinstance(first, dict):
        return {k: _together([v[k] for v in values]) for k in first}
    if isinstance(first, tuple):
        return tuple(map(_together, zip(*values)))
    if isinstance(first, Row):
        return Row.stacked([v.tensor for v in values]) if len(first.tensor.shape) else _stack_any([v.tensor for v in values])
    return stacked(values) if isinstance(first, Composite) else _stack_any(list(values))


def _of(make, open_rows=False):
    """The dataset of the elements of make(), whose dtypes and numbers of axes the first one says."""
    first = list(itertools.islice(make(), 1))
    if not first:
        raise ValueError("a data set of RaggedTensors, SparseTensors or ExtensionTypes needs an element")
    leaves, form = flatten(first[0])
    tensors = [convert_to_tensor(v) for v in leaves]
    # Sizes may differ but where an ordinary tensor says them.
    second = list(itertools.islice(make(), 1, 2))
    others = [convert_to_tensor(v) for v in flatten(second[0])[0]] if second else tensors
    open_ones, of_sparse = set(_open_leaves(form)), set(_open_leaves(form, ("sparse",)))
    specs = [TensorSpec([None, *t.shape.as_list()[1:]] if i in of_sparse else  # the number of axes stays known
                        [None] * len(t.shape) if i in open_ones or t.shape.as_list() != o.shape.as_list() else t.shape, t.dtype)
             for i, (t, o) in enumerate(zip(tensors, others))]
    if open_rows:
        specs = [TensorSpec([None, *s.shape.as_list()[1:]], s.dtype) for s in specs]
    made = Dataset.from_generator(lambda: (tuple(flatten(e)[0]) for e in make()), output_signature=tuple(specs))
    return Dataset(made.__berth__, form)


def _open_leaves(form, kinds=("ragged", "sparse", "row")):
    """The numbers of the leaves that are parts of Composites of these kinds."""
    count = itertools.count()

    def walk(f, inside):
        if f is LEAF:
            i = next(count)
            return [i] if inside else []
        if hasattr(f, "make"):
            return walk(f.form, f.key in kinds or inside)
        parts = f.values() if isinstance(f, dict) else f if isinstance(f, (tuple, list)) else ()
        return [i for p in parts for i in walk(p, inside)]
    return walk(form, False)


def slices(tensors):
    rows = list(_rows(tensors))
    return _of(lambda: iter(rows))


def _with_rows(form, all_leaves):
    """The structure of elements in which rows stay apart from tensors."""
    if form is LEAF:
        return Made(LEAF, Row, "row") if all_leaves else LEAF
    if isinstance(form, Made):
        return Made(form.form[0], Row, "row") if form.key == "row" else form
    if isinstance(form, dict):
        return type(form)((k, _with_rows(v, all_leaves)) for k, v in form.items())
    return tuple(_with_rows(v, all_leaves) for v in form) if isinstance(form, tuple) else form


def batched(dataset, size, drop_remainder, ragged=False):
    """Batches of elements; those of rows, or with `ragged` of all tensors with an axis, are ragged."""
    form = _with_rows(dataset._form, ragged)

    def make():
        elements = Iterator(dataset.__berth__, lambda leaves: pack(form, leaves))
        while part := list(itertools.islice(elements, size)):
            if len(part) == size or not drop_remainder:
                yield _together(part)
    return _of(make, open_rows=not drop_remainder)


def sparse_batched(dataset, size, row_shape):
    """Batches of tensors of at most `row_shape` as SparseTensors."""
    room = TensorShape(row_shape).as_list()

    def make():
        elements, first = iter(dataset), 0
        while part := [t.numpy() for t in itertools.islice(elements, size)]:
            for i, row in enumerate(part):
                if row.ndim != len(room) or any(n > most for n, most in zip(row.shape, room)):
                    raise _core.DataLossError(f"sparse_batch: element {first + i} has shape {list(row.shape)}; expected at "
                                              f"most row_shape, {room}")
            places = [_np.insert(_np.argwhere(_np.ones_like(row, bool)), 0, i, axis=1) for i, row in enumerate(part)]
            first += len(part)
            yield SparseTensor(_np.concatenate(places), _np.concatenate([row.ravel() for row in part]), [len(part), *room])
    return _of(make, open_rows=True)


def unbatched(dataset):
    return _of(lambda: (row for element in dataset for row in _rows(element)))


def with_row_splits_dtype(batch, dtype):
    """What a map was called with, the RaggedTensors with places of this dtype."""
    leaves, form = flatten(batch, whole=RaggedTensor)
    out = pack(form, [v.with_row_splits_dtype(dtype) if isinstance(v, RaggedTensor) else v for v in leaves])
    return out if len(out) > 1 else out[0]


def specs_of(types, shapes):
    """The structure of `types` with TensorSpecs; shapes: as many as it has, or None."""
    def shape_of(key):
        return None if shapes is None else shapes[key]
    if isinstance(types, dict):
        return {k: specs_of(v, shape_of(k)) for k, v in types.items()}
    if isinstance(types, (tuple, list)):
        parts = [specs_of(v, shape_of(i)) for i, v in enumerate(types)]
        return type(types)(*parts) if hasattr(types, "_fields") else type(types)(parts)
    return TensorSpec(shapes, types)
