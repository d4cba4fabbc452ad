"""tf.linalg, tf.signal, tf.nn and tf.math.special where TensorFlow's form differs from the engine's."""
import collections
import functools
import itertools

from berth import _core
from berth._tensor import complex128, convert_to_tensor, float32, float64, int32, int64

_ops = _core.ops
TopK = collections.namedtuple("TopKV2", "values indices")
Qr, Lu = collections.namedtuple("Qr", "q r"), collections.namedtuple("Lu", "lu p")


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Singular values of matrices, and their vectors: s, u, v with tensor = u diag(s) v^T; s alone without compute_uv."""
    s, u, v = _ops.linalg.svd(tensor, full_matrices=full_matrices, compute_uv=compute_uv)
    return (s, u, v) if compute_uv else s


def top_k(input, k=1, sorted=True, index_type=int32, name=None):
    """The k largest along the last axis, and where they are: (values, indices).

    On a tie the first; NaN is larger than any number, here and in sort.
    """
    values, indices = _ops.math.top_k(input, k, sorted)
    return TopK(values, indices if index_type == int32 else _ops.math.cast(indices, index_type))


def qr(input, full_matrices=False, name=None):
    """Matrices [..., m, n] as an orthogonal q and an upper triangular r with input = q r: (q, r)."""
    x = convert_to_tensor(input)
    if x.dtype.name in ("float16", "bfloat16"):
        return Qr(*(_ops.cast(v, x.dtype) for v in _ops.linalg.qr(_ops.cast(x, "float32"), full_matrices)))
    return Qr(*_ops.linalg.qr(x, full_matrices))


def lu(input, output_idx_type=int32, name=None):
    """Matrices as lower and upper triangles in one, and the rows that were exchanged: (lu, p)."""
    return Lu(*_ops.linalg.lu(input, output_idx_type))


def _window(window_fn, frame_length, dtype):
    return _ops.ones([frame_length], dtype) if window_fn is None else window_fn(frame_length, dtype=dtype)


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=_ops.signal.hann_window, pad_end=False, name=None):
    """Transforms of windowed frames of real signals: [..., frames, fft_length / 2 + 1]."""
    signals = convert_to_tensor(signals)
    return _ops.signal.stft(signals, frame_length, frame_step, fft_length=fft_length, pad_end=pad_end,
                            window=_window(window_fn, frame_length, signals.dtype))


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=_ops.signal.hann_window, name=None):
    """The windowed frames of stft() added up; inverse_stft_window_fn() has the window that gives the signal back."""
    stfts = convert_to_tensor(stfts)
    real = float64 if stfts.dtype == complex128 else float32
    return _ops.signal.inverse_stft(stfts, frame_length, frame_step, fft_length=fft_length,
                                    window=_window(window_fn, frame_length, real))


def inverse_stft_window_fn(frame_step, forward_window_fn=_ops.signal.hann_window, name=None):
    """The window for inverse_stft() that undoes the one of stft(), as a function of its length."""
    def inverse(frame_length, dtype=float32):
        return _ops.signal.inverse_stft_window(forward_window_fn(frame_length, dtype=dtype), frame_step)
    return inverse


def _axes(what, x, data_format):
    """How many axes an input has besides batch and channels, and whether channels come first."""
    if not 3 <= len(x.shape) <= 5:
        raise ValueError(f"{what}: the input is {x.shape}; expected one to three axes between batch and channels")
    return len(x.shape) - 2, bool(data_format) and data_format.startswith("NC")


def _each(value, axes, first=False):
    """A number for each axis; of lists that name batch and channels, too, those between."""
    value = [int(v) for v in value] if isinstance(value, (list, tuple)) else [1 if value is None else int(value)]
    if len(value) == axes + 2:
        value = value[2:] if first else value[1:-1]
    return value * axes if len(value) == 1 else value


def _by_rank(functions, axes, data_format, *args, padding, **lists):
    """Calls the function for so many axes; that of one takes numbers in place of lists."""
    if axes == 1:
        lists = {k: v[0] for k, v in lists.items()}
    if data_format:
        lists["data_format"] = data_format
    return functions[axes - 1](*args, padding=padding, **lists)


def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """conv1d, conv2d or conv3d, by the rank of the input."""
    x = convert_to_tensor(input)
    axes, first = _axes("convolution", x, data_format)
    nn, steps = _ops.nn, "stride" if axes == 1 else "strides"
    return _by_rank((nn.conv1d, nn.conv2d, nn.conv3d), axes, data_format, x, filters, padding=padding,
                    dilations=_each(dilations, axes, first), **{steps: _each(strides, axes, first)})


def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    """conv1d_transpose, conv2d_transpose or conv3d_transpose; output_shape may be that of the axes alone."""
    x, filters = convert_to_tensor(input), convert_to_tensor(filters)
    axes, first = _axes("conv_transpose", x, data_format)
    shape = [int(n) for n in output_shape]
    if len(shape) == axes:
        channels = filters.shape[axes]
        shape = [x.shape[0], channels, *shape] if first else [x.shape[0], *shape, channels]
    nn, steps = _ops.nn, "stride" if axes == 1 else "strides"
    given = [x, filters] if axes == 3 else [x, filters, shape]
    y = _by_rank((nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose), axes, data_format, *given,
                 padding=padding, dilations=_each(dilations, axes, first), **{steps: _each(strides, axes, first)})
    if axes == 3 and shape and list(y.shape)[1:] != shape[1:]:
        raise ValueError(f"conv_transpose: output_shape is {shape}, of three axes it can be {y.shape} only")
    return y


def _pool(what, kind, input, window, strides, padding, data_format):
    x = convert_to_tensor(input)
    axes, first = _axes(what, x, data_format)
    functions = [getattr(_ops.nn, f"{kind}_pool{n}d") for n in (1, 2, 3)]
    if kind == "max":
        from berth._forms import max_pool2d
        functions[1] = max_pool2d
    return _by_rank(functions, axes, data_format, x, padding=padding, ksize=_each(window, axes, first),
                    strides=_each(strides, axes, first))


def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """The maximum ("MAX") or the mean ("AVG") of windows along one to three axes.

    dilations: how far apart the elements of a window are, a number or one for each axis; above 1 the strides must be 1, and
    the padding "VALID" or numbers of zeros.
    """
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pool: pooling_type is {pooling_type!r}; expected 'MAX' or 'AVG'")
    x = convert_to_tensor(input)
    axes, first = _axes("pool", x, data_format)
    apart = _each(dilations, axes, first)
    if all(d == 1 for d in apart):
        return _pool("pool", pooling_type.lower(), x, window_shape, strides, padding, data_format)
    if padding == "SAME" or any(n != 1 for n in _each(strides, axes, first)) or min(apart) < 1:
        raise ValueError(f"pool: dilations are {dilations}, strides {strides}, padding {padding!r}; expected dilations of 1 or more, "
                         "and with those above 1 strides of 1 and no 'SAME'")
    return _pool_apart(pooling_type, x, _each(window_shape, axes, first), apart, padding, 2 if first else 1)


def _pool_apart(kind, x, window, apart, padding, axis):
    """Windows of elements `apart` from each other, along the axes from `axis` on."""
    if padding != "VALID":
        x = _ops.pad(x, [int(n) for pair in padding for n in pair])
    sizes = [x.shape[axis + i] - (w - 1) * d for i, (w, d) in enumerate(zip(window, apart))]
    if min(sizes) < 1:
        raise ValueError(f"pool: a window of {window}, {apart} apart, does not fit {x.shape}")
    parts = []
    for places in itertools.product(*(range(w) for w in window)):
        part = x
        for i, (at, d, n) in enumerate(zip(places, apart, sizes)):
            part = part[(slice(None),) * (axis + i) + (slice(at * d, at * d + n),)]
        parts.append(part)
    out = functools.reduce(_ops.math.maximum if kind == "MAX" else _ops.math.add, parts)
    return out if kind == "MAX" else out / float(len(parts))


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The maximum of windows along one to three axes."""
    return _pool("max_pool", "max", input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The mean of windows along one to three axes."""
    return _pool("avg_pool", "avg", input, ksize, strides, padding, data_format)


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """-log of the probability of each row of labels, dense or sparse, given logits: [batch]."""
    if hasattr(labels, "dense_shape"):
        if blank_index is None:
            raise ValueError("ctc_loss: blank_index is None; expected one with sparse labels")
        rows = _ops.gather(convert_to_tensor(labels.indices), 0, axis=1)
        label_length = _ops.math.unsorted_segment_sum(_ops.ones_like(rows), rows, int(labels.dense_shape[0]))
        at, shape = labels.indices, [int(d) for d in labels.dense_shape]
        labels = _ops.scatter_nd(at, labels.values, shape)
    logits = convert_to_tensor(logits)
    if logit_length is None:
        time, batch = (0, 1) if logits_time_major else (1, 0)
        logit_length = _ops.fill([logits.shape[batch]], logits.shape[time], int64)
    return _ops.nn.ctc_loss(labels, logits, label_length, logit_length, logits_time_major=logits_time_major,
                            blank_index=0 if blank_index is None else blank_index)


def _sparse(rows):
    """Rows of labels that end with -1 as a sparse tensor."""
    from berth.sparse import SparseTensor
    at = _ops.where(_ops.math.greater_equal(rows, 0))
    most = int(_ops.math.reduce_max(_ops.math.count_nonzero(_ops.math.greater_equal(rows, 0), 1))) if rows.shape[0] else 0
    return SparseTensor(at, _ops.gather_nd(rows, at), [rows.shape[0], most])


def ctc_greedy_decoder(inputs, sequence_length, merge_repeated=True, blank_index=None):
    """The labels of the path of the largest logits, in a list of one sparse tensor, and their negative sum."""
    rows, score = _ops.nn.ctc_greedy_labels(inputs, sequence_length, merge_repeated=merge_repeated,
                                            blank_index=-1 if blank_index is None else blank_index)
    return [_sparse(rows)], score


def ctc_beam_search_decoder(inputs, sequence_length, beam_width=100, top_paths=1):
    """The most probable labels as a list of sparse tensors, and the logarithms of their probabilities."""
    paths, score = _ops.nn.ctc_beam_search_labels(inputs, sequence_length, beam_width=beam_width, top_paths=top_paths)
    return [_sparse(rows) for rows in _ops.unstack(paths)], score
