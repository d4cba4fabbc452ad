"""Crosses of features: tf.sparse.cross, tf.ragged.cross and their hashed forms; tf.fingerprint. They work on the host."""
import itertools

from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, float32, int64, string, uint8

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")
_KEY = 956888297470  # TensorFlow's, where hash_key is not given
_MASK, _PRIME = 2**64 - 1, 0xc6a4a7935bd1e995


def _hashes(texts):
    """64 bits of each text, as TensorFlow's hash buckets have them."""
    if not len(texts):
        return []
    flat = convert_to_tensor(_np.asarray(list(texts), dtype=object), string)
    # The bucket of 2**62 has the lower bits, that of 5 tells the upper two, for 2**62 is 4 modulo 5.
    low = _core.ops.strings.to_hash_bucket_fast(flat, 2**62).numpy().tolist()
    rest = _core.ops.strings.to_hash_bucket_fast(flat, 5).numpy().tolist()
    return [v + 2**62 * next(k for k in range(4) if (v + 2**62 * k) % 5 == r) for v, r in zip(low, rest)]


def _mixed(value):
    return value ^ value >> 47


def _joined(a, b):
    """One hash of two, which depends on their order."""
    out = a ^ _PRIME ^ _mixed(b * _PRIME & _MASK) * _PRIME & _MASK
    out = out * _PRIME & _MASK
    return _mixed(_mixed(out) * _PRIME & _MASK)


def _rows(what, value):
    """The values of each row of a sparse, a ragged or a dense input, and its dtype."""
    if hasattr(value, "dense_shape"):
        rows = [[] for _ in range(int(value.dense_shape[0]))]
        for at, v in zip(convert_to_tensor(value.indices).numpy().tolist(), convert_to_tensor(value.values).numpy().tolist()):
            rows[at[0]].append(v)
        dtype = convert_to_tensor(value.values).dtype
    elif hasattr(value, "nrows"):
        rows, dtype = value.to_list(), value.dtype
    else:
        x = convert_to_tensor(value)
        if len(x.shape) != 2:
            raise ValueError(f"{what}: an input is {x.shape}; expected [batch, features]")
        rows, dtype = x.numpy().tolist(), x.dtype
    if dtype != string and not dtype.is_integer:
        raise ValueError(f"{what}: an input is {dtype.name}; expected whole numbers or strings")
    return rows, dtype


def _crossed(what, inputs, join, begin=None):
    """For each row of the batch its crosses: one value of each input, the last input's changing fastest."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise TypeError(f"{what}: inputs are {inputs!r}; expected a list of tensors")
    columns = [_rows(what, v) for v in inputs]
    if len({len(rows) for rows, _ in columns}) > 1:
        raise _core.InvalidArgumentError(f"{what}: the inputs have {[len(r) for r, _ in columns]} rows; expected equal numbers")
    prepared = [join.prepare(rows, dtype) for rows, dtype in columns]
    return [[join.put(parts) for parts in itertools.product(*row)] for row in zip(*prepared)]


class _Texts:
    dtype = string

    def __init__(self, separator):
        self.separator = separator.encode() if isinstance(separator, str) else separator

    def prepare(self, rows, dtype):
        return [[v if isinstance(v, bytes) else str(v).encode() for v in row] for row in rows]

    def put(self, parts):
        return self.separator.join(parts)


class _Hashed:
    dtype = int64

    def __init__(self, num_buckets, hash_key):
        self.buckets, self.key = int(num_buckets), _KEY if hash_key is None else int(hash_key)

    def prepare(self, rows, dtype):
        if dtype != string:
            return [[v & _MASK for v in row] for row in rows]
        found = iter(_hashes([v for row in rows for v in row]))
        return [[next(found) for _ in row] for row in rows]

    def put(self, parts):
        out = self.key & _MASK
        for part in parts:
            out = _joined(out, part)
        return out % self.buckets if self.buckets > 0 else out % (2**63 - 1)


def _flat(rows, dtype):
    values = [v for row in rows for v in row]
    if dtype == string:
        return convert_to_tensor(_np.asarray(values, dtype=object), string)
    return convert_to_tensor(_np.asarray(values, "int64"))


def _sparse(rows, dtype):
    from berth.sparse import SparseTensor
    at = _np.asarray([(i, j) for i, row in enumerate(rows) for j in range(len(row))], "int64").reshape(-1, 2)
    return SparseTensor(convert_to_tensor(at), _flat(rows, dtype), [len(rows), max(map(len, rows), default=0)])


def _ragged(rows, dtype):
    from berth.ragged import RaggedTensor, _splits
    return RaggedTensor(_flat(rows, dtype), _splits([len(row) for row in rows]))


def _sparse_first(inputs):
    """As TensorFlow has them: dense inputs come last."""
    return sorted(inputs, key=lambda v: not hasattr(v, "dense_shape")) if isinstance(inputs, (list, tuple)) else inputs


def cross(what, inputs, ragged, separator="_X_"):
    """Every way to take one feature of each input, as texts: a RaggedTensor or a SparseTensor."""
    inputs = inputs if ragged else _sparse_first(inputs)
    return (_ragged if ragged else _sparse)(_crossed(what, inputs, _Texts(separator)), string)


def cross_hashed(what, inputs, ragged, num_buckets, hash_key):
    """The same as numbers."""
    inputs = inputs if ragged else _sparse_first(inputs)
    return (_ragged if ragged else _sparse)(_crossed(what, inputs, _Hashed(num_buckets, hash_key)), int64)


def fingerprint(data, method="farmhash64", name=None):
    """Eight bytes for each row of data that tell rows apart, the same everywhere: uint8 [rows, 8]."""
    if method != "farmhash64":
        raise ValueError(f"fingerprint: method is {method!r}; expected 'farmhash64'")
    x = convert_to_tensor(data)
    if not len(x.shape):
        raise _core.InvalidArgumentError("fingerprint: data is a scalar; expected one axis at least")
    rows = x.numpy().reshape(x.shape[0], -1) if x.shape.num_elements() else _np.zeros([x.shape[0], 0])
    if x.dtype != string:
        hashes = _hashes([_np.ascontiguousarray(row).tobytes() for row in rows])
    else:
        hashes = [_hashes(row.tolist()) for row in rows]
        hashes = [h[0] if len(h) == 1 else _hashes([b"".join(v.to_bytes(8, "little") for v in h)])[0] for h in hashes]
    return convert_to_tensor(_np.asarray(hashes, "uint64").view("uint8").reshape(-1, 8), uint8)


def sampled_addmm(indices, values, dense_shape, mat1, mat2, beta=1.0, alpha=1.0, output_type=float32):
    """beta * values + alpha * (mat1 mat2) at indices alone: (indices, new values, dense_shape)."""
    at, old = convert_to_tensor(indices), _m.cast(convert_to_tensor(values), output_type)
    a, b = (_m.cast(convert_to_tensor(v), output_type) for v in (mat1, mat2))
    wanted = [*a.shape.as_list()[:-1], b.shape[-1]]
    shape = [int(n) for n in convert_to_tensor(dense_shape).numpy()]
    if a.shape[-1] != b.shape[-2] or shape != wanted:
        raise ValueError(f"sampled_addmm: dense_shape is {shape}, the matrices are {a.shape} and {b.shape}; expected the "
                         "shape of their product")
    if at.shape.as_list()[:-2] not in ([], wanted[:-2]) or at.shape[-1] not in (2, len(shape)):
        raise ValueError(f"sampled_addmm: indices are {at.shape}; expected [..., count, 2]")
    if len(shape) == 2 or at.shape[-1] == len(shape):
        rows = _ops.gather_nd(a, at[..., :-1])
        places = _ops.concat([at[..., :-2], at[..., -1:]], -1)
        columns = _ops.gather_nd(_ops.linalg.matrix_transpose(b), places)
    else:
        batch = len(shape) - 2
        rows = _ops.gather(a, at[..., 0], axis=batch, batch_dims=batch)
        columns = _ops.gather(_ops.linalg.matrix_transpose(b), at[..., 1], axis=batch, batch_dims=batch)
    product = _m.reduce_sum(rows * columns, -1)
    return at, old * _m.cast(convert_to_tensor(beta), old.dtype) + product * _m.cast(convert_to_tensor(alpha), old.dtype), \
        convert_to_tensor(dense_shape)
