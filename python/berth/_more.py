"""Functions of tf that are made of a few others."""
import base64 as _base64

from berth import _core
from berth._lazy import Lazy
from berth._not_tensors import NotATensor, refuse_kinds
from berth._strings import _of_text_too
from berth._tensor import as_dtype, convert_to_tensor, float32, int32, string

_ops, _m = _core.ops, _core.ops.math
_np = Lazy("numpy")


def saturate_cast(value, dtype, name=None):
    """A cast in which values that the dtype lacks become its least or greatest."""
    value, dtype = convert_to_tensor(value), as_dtype(dtype)
    low, high = max(value.dtype.min, dtype.min), min(value.dtype.max, dtype.max)
    cut = _m.maximum(_m.minimum(value, convert_to_tensor(high, value.dtype)), convert_to_tensor(low, value.dtype))
    return _m.cast(cut, dtype)


def dynamic_partition(data, partitions, num_partitions, name=None):
    """num_partitions lists of the parts of data whose number in `partitions` is 0, 1, ..."""
    data, at = convert_to_tensor(data), convert_to_tensor(partitions).numpy()
    if at.size and (at.min() < 0 or at.max() >= num_partitions):
        raise _core.InvalidArgumentError(f"dynamic_partition: partitions are {at.ravel()[:8].tolist()}; expected numbers "
                                         f"from 0 to {num_partitions - 1}")
    from berth import reshape
    from berth.ragged import _take
    flat = reshape(data, [at.size, *data.shape.as_list()[at.ndim:]])
    return [_take(flat, _np.flatnonzero(at.ravel() == i)) for i in range(num_partitions)]


def dynamic_stitch(indices, data, name=None):
    """The parts of data at the places of indices; a place that comes twice has the last."""
    refuse_kinds("dynamic_stitch", "a list of tensors", indices=indices, data=data)
    at = [convert_to_tensor(i).numpy() for i in indices]
    parts = [convert_to_tensor(d) for d in data]
    flat = [_of_text_too(_ops.reshape)(d, [i.size, *d.shape.as_list()[i.ndim:]]) for i, d in zip(at, parts)]
    places = _np.concatenate([i.ravel() for i in at])
    last = _np.zeros(int(places.max()) + 1 if places.size else 0, "int64")
    last[places] = _np.arange(places.size)
    return _of_text_too(_ops.gather)(_of_text_too(_ops.concat)(flat, 0), last)


parallel_stack = _ops.stack


def unravel_index(indices, dims, name=None):
    """The places of flat indices in a shape: [rank, ...]."""
    at, shape = convert_to_tensor(indices), [int(n) for n in convert_to_tensor(dims).numpy()]
    return convert_to_tensor(_np.stack(_np.unravel_index(at.numpy(), shape)).astype(at.dtype.as_numpy_dtype))


def shape_n(input, out_type=int32, name=None):
    """The shapes of several tensors, a list."""
    refuse_kinds("shape_n", "a list of tensors", input=input)
    return [_ops.shape(convert_to_tensor(v), out_type) for v in input]


def tuple(tensors, control_inputs=None, name=None):  # noqa: A001
    """The tensors; effects keep program order."""
    refuse_kinds("tuple", "a list of tensors", tensors=tensors)
    return list(tensors)


def get_static_value(tensor, partial=False):
    """The value of a tensor as an array; None of one that a trace does not know."""
    if isinstance(tensor, NotATensor) or _core.is_open(tensor):
        return None
    return convert_to_tensor(tensor).numpy()


def is_symbolic_tensor(tensor):
    """True of a tensor of a trace, which has no value yet."""
    return bool(getattr(tensor, "is_symbolic", False))


def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None):
    """The first seq_lengths[i] elements along seq_axis of row i the other way round."""
    x, lengths = convert_to_tensor(input), convert_to_tensor(seq_lengths).numpy()
    batch = batch_axis or 0
    order = _np.broadcast_to(_np.arange(x.shape[seq_axis]), [len(lengths), x.shape[seq_axis]]).copy()
    for row, n in zip(order, lengths):
        row[:n] = row[:n][::-1]
    rest = [a for a in range(len(x.shape)) if a not in (batch, seq_axis)]
    perm = [batch, seq_axis, *rest]
    transpose = _of_text_too(_ops.transpose)
    out = _of_text_too(_ops.gather)(transpose(x, perm), order, axis=1, batch_dims=1)
    return transpose(out, _np.argsort(perm).tolist())


# tf.math

def polyval(coeffs, x, name=None):
    """The polynomial with these coefficients, the highest first, at x."""
    x = convert_to_tensor(x)
    out = _ops.zeros_like(x)
    for c in coeffs:
        out = out * x + c
    return out


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=int32, name=None):
    """How often label i was predicted as j, or the sum of the weights: [classes, classes]."""
    y, p = (_m.cast(convert_to_tensor(v), int32) for v in (labels, predictions))
    n = int(max(int(_m.reduce_max(y)), int(_m.reduce_max(p))) + 1) if num_classes is None else int(num_classes)
    w = _ops.ones(y.shape, dtype) if weights is None else _m.cast(convert_to_tensor(weights), dtype)
    return _ops.scatter_nd(_ops.stack([y, p], 1), w, [n, n])


def _steps(x):
    x = _ops.reshape(convert_to_tensor(x), [-1])
    return x[1:], x[:-1]


def is_non_decreasing(x, name=None):
    """Whether each element, in the order of rows, is at least the one before it; a bool scalar."""
    return _m.reduce_all(_m.greater_equal(*_steps(x)))


def is_strictly_increasing(x, name=None):
    """Whether each element, in the order of rows, is larger than the one before it; a bool scalar."""
    return _m.reduce_all(_m.greater(*_steps(x)))


def lbeta(x, name=None):
    """The logarithm of the Beta function of the last axis."""
    x = convert_to_tensor(x)
    return _m.reduce_sum(_m.lgamma(x), -1) - _m.lgamma(_m.reduce_sum(x, -1))


# tf.image

def total_variation(images, name=None):
    """The sum of the differences of neighbours, for each picture [n, height, width, channels] or of one."""
    x = convert_to_tensor(images)
    a = x.shape.rank - 3
    axes = [a, a + 1, a + 2]
    down = _m.abs(x[..., 1:, :, :] - x[..., :-1, :, :])
    right = _m.abs(x[..., :, 1:, :] - x[..., :, :-1, :])
    return _m.reduce_sum(down, axes) + _m.reduce_sum(right, axes)


def psnr(a, b, max_val, name=None):
    """The ratio of the greatest value and the error of pictures, in decibels."""
    given = convert_to_tensor(a).dtype
    a, b = (_ops.image.convert_image_dtype(convert_to_tensor(v), float32) for v in (a, b))
    top = _ops.image.convert_image_dtype(convert_to_tensor(max_val, given), float32)
    error = _m.reduce_mean(_m.squared_difference(a, b), [-3, -2, -1])
    return 20 * _m.log(top) / float(_np.log(10.0)) - 10 / float(_np.log(10.0)) * _m.log(error)


def image_gradients(image):
    """(dy, dx) of pictures [n, height, width, channels]: the next pixel less this one, 0 at the end."""
    x = convert_to_tensor(image)
    dy = _ops.pad(x[:, 1:] - x[:, :-1], [0, 0, 0, 1, 0, 0, 0, 0])
    dx = _ops.pad(x[:, :, 1:] - x[:, :, :-1], [0, 0, 0, 0, 0, 1, 0, 0])
    return dy, dx


def is_jpeg(contents, name=None):
    """Whether the bytes of a file begin as those of JPEG do."""
    return convert_to_tensor(convert_to_tensor(contents).numpy()[:3] == b"\xff\xd8\xff")


# tf.io

def _each(name, fn, input):
    x = convert_to_tensor(input)
    if x.dtype != string:
        raise TypeError(f"{name}(): the input is {x.dtype.name}; expected strings")
    made = _np.asarray([fn(v) for v in x._array().ravel()], dtype=object).reshape(x.shape.as_list())
    return convert_to_tensor(made, string)


def encode_base64(input, pad=False, name=None):
    """Texts in web-safe base64, without "=" unless pad."""
    encode = _base64.urlsafe_b64encode
    return _each("encode_base64", lambda v: encode(v) if pad else encode(v).rstrip(b"="), input)


def decode_base64(input, name=None):
    """The bytes that texts of web-safe base64 stand for, [shape of input]."""
    return _each("decode_base64", lambda v: _base64.urlsafe_b64decode(v + b"=" * (-len(v) % 4)), input)


def decode_compressed(bytes, compression_type="", name=None):  # noqa: A002
    """Texts that are "ZLIB" or "GZIP", unpacked; "": as they are."""
    import gzip
    import zlib
    kinds = {"": lambda v: v, "ZLIB": zlib.decompress, "GZIP": gzip.decompress}
    if compression_type not in kinds:
        raise ValueError(f"decode_compressed: compression_type is {compression_type!r}; expected one of {sorted(kinds)}")
    return _each("decode_compressed", kinds[compression_type], bytes)


def matching_files(pattern, name=None):
    """The names of the files that match a pattern, or several, in order."""
    from berth import _gfile
    given = convert_to_tensor(pattern)._array().ravel()
    found = sorted({f.encode() for p in given for f in _gfile.glob(p.decode())})
    return convert_to_tensor(_np.asarray(found, dtype=object), string)


# tf.strings

def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    """Texts in "UTF-8", "UTF-16-BE" or "UTF-32-BE" of rows of the numbers of characters: a tensor or a RaggedTensor.

    Numbers that no character has become replacement_char, are left out (errors="ignore"), or are an
    InvalidArgumentError (errors="strict").
    """
    if output_encoding not in ("UTF-8", "UTF-16-BE", "UTF-32-BE") or errors not in ("replace", "ignore", "strict"):
        raise ValueError(f"unicode_encode: output_encoding is {output_encoding!r}, errors {errors!r}; expected 'UTF-8', "
                         "'UTF-16-BE' or 'UTF-32-BE', and 'replace', 'ignore' or 'strict'")
    input = input if hasattr(input, "nrows") else convert_to_tensor(input)

    def text(row):
        numbers = [n if 0 <= n < 0xd800 or 0xe000 <= n <= 0x10ffff else None for n in row.numpy().tolist()]
        if errors == "strict" and None in numbers:
            raise _core.InvalidArgumentError(f"unicode_encode: {row.numpy().tolist()} has a number that no character has")
        kept = [replacement_char if n is None else n for n in numbers if n is not None or errors == "replace"]
        return "".join(map(chr, kept)).encode(output_encoding)

    if len(input.shape) == 1:
        return convert_to_tensor(text(input), string)
    return convert_to_tensor(_np.asarray([text(row) for row in input], dtype=object), string)


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """Runs of ngram_width neighbours of rows of texts, joined: of a RaggedTensor ragged, of a tensor a tensor."""
    from berth.ragged import RaggedTensor, _splits
    refuse_kinds("ngrams", "a whole number, or a list of some", ngram_width=ngram_width)
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    is_rows = isinstance(data, RaggedTensor)
    data = data if is_rows else convert_to_tensor(data)
    rows = list(data) if is_rows or len(data.shape) > 1 else [data]
    left, right = (pad_values, pad_values) if isinstance(pad_values, str) else pad_values or ("", "")
    out = []
    for row in rows:
        texts, made = row._array().tolist(), []
        for n in widths:
            k = 0 if pad_values is None else min(n - 1, padding_width) if padding_width is not None else n - 1
            full = [left.encode()] * k + texts + [right.encode()] * k
            made += [separator.encode().join(full[i:i + n]) for i in range(len(full) - n + 1)]
        if not made and preserve_short_sequences and texts:
            made = [separator.encode().join(texts)]
        out.append(made)
    flat = convert_to_tensor(_np.asarray([t for row in out for t in row], dtype=object), string)
    if not is_rows and len(data.shape) < 2:
        return flat
    made = RaggedTensor(flat, _splits([len(row) for row in out]))
    return made if is_rows else made.to_tensor("")
