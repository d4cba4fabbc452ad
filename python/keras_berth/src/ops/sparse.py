"""What keeps sparse tensors sparse in keras.ops; every other function takes them as dense tensors."""
import functools

import berth as tf
from berth import sparse
from berth._function import NeedsValues
from berth._tensor import IndexedSlices
from keras.src.backend.common.backend_utils import canonicalize_axes
from keras.src.backend.common.variables import standardize_dtype

SPARSE = sparse.SparseTensor, IndexedSlices


class _Traced(sparse.SparseTensor):
    """One that is traced and knows its shape."""
    shape = property(lambda self: self.known_shape)


def sparse_tensor(indices, values, shape):
    made = sparse.SparseTensor(indices, values, shape if len(shape) else tf.zeros([0], "int64"))
    if made.dense_shape.is_symbolic:
        made.__class__, made.known_shape = _Traced, tf.TensorShape(shape)
    return made


def shape_of(x):
    return tuple(x.shape) if isinstance(x, sparse.SparseTensor) else tuple(int(n) for n in x.dense_shape)


def _places(x):
    """Where its values are, int64 [n, k], and its shape."""
    shape = list(shape_of(x))
    if None in shape:
        raise NeedsValues("the shape of a SparseTensor follows from values")
    if isinstance(x, sparse.SparseTensor):
        return x.indices, shape
    return tf.expand_dims(tf.cast(x.indices, "int64"), 1), shape


_SCATTERED_AS = {"bool": "int8", "float16": "float32", "bfloat16": "float32"}


def dense(x):
    places, shape = _places(x)
    values = tf.convert_to_tensor(x.values)
    if not shape:
        return tf.reshape(values, [])
    if values.dtype.is_complex:
        return tf.complex(*(tf.scatter_nd(places, part(values), shape) for part in (tf.math.real, tf.math.imag)))
    wide = _SCATTERED_AS.get(values.dtype.name)
    if wide is None:
        return tf.scatter_nd(places, values, shape)
    return tf.cast(tf.scatter_nd(places, tf.cast(values, wide), shape), values.dtype)


def with_values(x, values, places=None):
    """A tensor like x with other values, perhaps elsewhere."""
    if isinstance(x, sparse.SparseTensor):
        places, shape = x.indices if places is None else places, x.shape.as_list()
        return sparse.SparseTensor(places, values, x.dense_shape) if None in shape else sparse_tensor(
            places, values, shape)
    return IndexedSlices(values, x.indices if places is None else places[:, 0], x.dense_shape)


def from_dense(x):
    """The SparseTensor of what is not zero."""
    there = tf.where(tf.math.not_equal(x, tf.zeros_like(x)))
    return sparse_tensor(there, tf.gather_nd(x, there), x.shape.as_list())


def _union(places, shape):
    """Each place once, in order; of tensors whose first axes have the shape."""
    there = tf.scatter_nd(places, tf.ones([places.shape[0]], "int32"), shape[:places.shape[1]])
    return tf.where(tf.math.greater(there, tf.zeros_like(there)))


def _same_kind(x1, x2):
    return any(isinstance(x1, kind) and isinstance(x2, kind) for kind in SPARSE)


def _of_values(function):
    """Of functions that are zero at zero."""
    def call(x, *args, **kwargs):
        if not isinstance(x, SPARSE):
            return function(x, *args, **kwargs)
        return with_values(x, function(x.values, *args, **kwargs))
    return call


def _of_union(function):
    """Of functions that are zero at two zeros."""
    def call(x1, x2):
        if not _same_kind(x1, x2):
            return function(x1, x2)
        (a, shape), (b, _) = _places(x1), _places(x2)
        at = _union(tf.concat([a, b], 0), shape)
        return with_values(x1, function(tf.gather_nd(dense(x1), at), tf.gather_nd(dense(x2), at)), at)
    return call


def _beside(x, other):
    """Another tensor, as large as the sparse one; None where it would be larger."""
    other = dense(other) if isinstance(other, SPARSE) else tf.convert_to_tensor(other)
    shape = list(shape_of(x))
    if len(other.shape) > len(shape) or any(n not in (1, m) for n, m in zip(other.shape[::-1], shape[::-1])):
        return None
    return tf.broadcast_to(other, shape)


def _multiply(function):
    def call(x1, x2):
        if not isinstance(x1, SPARSE):
            x1, x2 = x2, x1
        if isinstance(x2, (int, float)) and isinstance(x1, SPARSE):
            return with_values(x1, function(x1.values, x2))
        other = _beside(x1, x2) if isinstance(x1, SPARSE) else None
        if other is None:
            return function(x1, x2)
        return with_values(x1, function(x1.values, tf.gather_nd(other, _places(x1)[0])))
    return call


def _divide(function):
    """What is divided by zero or NaN has a value, too."""
    def call(x1, x2):
        if isinstance(x2, SPARSE) or not isinstance(x1, SPARSE):
            return function(x1, x2)
        if isinstance(x2, (int, float)) and x2 and x2 == x2:
            return with_values(x1, function(x1.values, x2))
        other = _beside(x1, x2)
        if other is None:
            return function(x1, x2)
        places, shape = _places(x1)
        odd = tf.math.equal(other, tf.zeros_like(other))
        if other.dtype.is_floating:
            odd = tf.math.logical_or(odd, tf.math.is_nan(other))
        odd = tf.reduce_any(odd, list(range(places.shape[1], len(shape))))
        at = _union(tf.concat([places, tf.where(odd)], 0), shape)
        return with_values(x1, function(tf.gather_nd(dense(x1), at), tf.gather_nd(other, at)), at)
    return call


def _moved(x, columns, shape):
    """A SparseTensor whose indices are some columns of x's; None is a column of zeros."""
    zeros = tf.zeros([x.indices.shape[0]], "int64")
    columns = [zeros if c is None else x.indices[:, c] if isinstance(c, int) else c for c in columns]
    places = tf.stack(columns, 1) if columns else tf.zeros([x.indices.shape[0], 0], "int64")
    return sparse_tensor(places, x.values, shape)


def _of_sparse(name):
    """For SparseTensors the function below of this name."""
    def around(function):
        own = globals()[name]

        def call(x, *args, **kwargs):
            return (own if isinstance(x, sparse.SparseTensor) else function)(x, *args, **kwargs)
        return call
    return around


def _transpose(x, axes=None):
    shape = x.shape.as_list()
    axes = canonicalize_axes(axes, len(shape)) if axes is not None else range(len(shape))[::-1]
    return _moved(x, list(axes), [shape[i] for i in axes])


def _expand_dims(x, axis):
    shape = x.shape.as_list()
    columns = list(range(len(shape)))
    rank = len(shape) + (1 if isinstance(axis, int) else len(axis))
    for at in sorted(canonicalize_axes(axis, rank)):
        columns.insert(at, None)
        shape.insert(at, 1)
    return _moved(x, columns, shape)


def _squeeze(x, axis=None):
    shape = x.shape.as_list()
    axes = [i for i, n in enumerate(shape) if n == 1] if axis is None else canonicalize_axes(axis, len(shape))
    kept = [i for i in range(len(shape)) if i not in axes]
    return _moved(x, kept, [shape[i] for i in kept])


def _reshape(x, newshape):
    newshape = [newshape] if isinstance(newshape, int) else list(newshape)
    shape = x.shape.as_list()
    if -1 in newshape:
        newshape[newshape.index(-1)] = functools.reduce(lambda a, b: a * b, shape, 1) // functools.reduce(
            lambda a, b: a * b, [n for n in newshape if n != -1], 1)
    flat = tf.zeros([x.indices.shape[0]], "int64")
    for i, n in enumerate(shape):
        flat = flat * n + x.indices[:, i]
    columns = []
    for n in reversed(newshape):
        columns.insert(0, tf.math.floormod(flat, tf.fill(flat.shape, tf.cast(n, "int64"))))
        flat = tf.math.floordiv(flat, tf.fill(flat.shape, tf.cast(n, "int64")))
    return _moved(x, columns, newshape)


def _sum(function):
    def call(x, axis=None, keepdims=False):
        if not isinstance(x, sparse.SparseTensor):
            return function(x, axis, keepdims)
        shape = x.shape.as_list()
        axes = range(len(shape)) if axis is None else canonicalize_axes(axis, len(shape))
        if not axes:
            return x
        total = function(dense(x), axis, keepdims)
        columns = [None if i in axes else i for i in range(len(shape)) if keepdims or i not in axes]
        if not columns:
            return sparse_tensor(tf.zeros([1, 0], "int64"), tf.reshape(total, [1]), [])
        at = _union(_moved(x, columns, total.shape.as_list()).indices, total.shape.as_list())
        return sparse_tensor(at, tf.gather_nd(total, at), total.shape.as_list())
    return call


def _concatenate(function):
    def call(xs, axis=0):
        if not all(isinstance(x, sparse.SparseTensor) for x in xs):
            return function(xs, axis)
        rank, begin, places = xs[0].rank, 0, []
        axis = canonicalize_axes(axis, rank)[0]
        for x in xs:
            columns = [x.indices[:, i] + begin if i == axis else i for i in range(rank)]
            places.append(_moved(x, columns, x.shape.as_list()).indices)
            begin += x.shape[axis]
        shape = [begin if i == axis else n for i, n in enumerate(xs[0].shape.as_list())]
        return sparse_tensor(tf.concat(places, 0), function([x.values for x in xs], 0), shape)
    return call


def _matmul(function):
    def call(x1, x2):
        out = function(x1, x2)
        return from_dense(out) if isinstance(x1, sparse.SparseTensor) and isinstance(x2, sparse.SparseTensor) else out
    return call


def cast(x, dtype):
    return with_values(x, tf.cast(x.values, standardize_dtype(dtype)))


_AROUND = {
    **dict.fromkeys((
        "abs", "absolute", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "conj", "conjugate", "copy", "digitize",
        "expm1", "floor", "imag", "log1p", "negative", "real", "round", "sign", "sin", "sinh", "sqrt", "square", "tan",
        "tanh", "elu", "gelu", "hard_shrink", "leaky_relu", "relu", "relu6", "selu", "silu", "soft_shrink", "softsign",
        "tanh_shrink"), _of_values),
    **dict.fromkeys(("add", "subtract", "maximum", "minimum"), _of_union),
    **dict.fromkeys(("divide", "true_divide"), _divide),
    **{name: _of_sparse("_" + name) for name in ("expand_dims", "reshape", "squeeze", "transpose")},
    "concatenate": _concatenate, "matmul": _matmul, "multiply": _multiply, "sum": _sum,
}


def keep_sparse(module):
    """Puts what keeps tensors sparse around the functions of a module."""
    for name in _AROUND.keys() & module.keys():
        module[name] = functools.update_wrapper(_AROUND[name](module[name]), module[name])
