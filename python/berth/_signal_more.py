"""tf.signal: cosine transforms, transforms over several axes, mel scales."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import as_dtype, complex128, convert_to_tensor, float32, float64

_ops, _m, _s = _core.ops, _core.ops.math, _core.ops.signal
_np = Lazy("numpy")


def _cut(x, axis, length):
    """x with this length along an axis: cut off, or zeros at the end."""
    axis %= len(x.shape)
    more = length - x.shape[axis]
    if more < 0:
        return _ops.slice(x, [0] * len(x.shape), [length if a == axis else n for a, n in enumerate(x.shape.as_list())])
    return _ops.pad(x, [v for a in range(len(x.shape)) for v in (0, more if a == axis else 0)]) if more else x


def _numbers(values, like):
    return convert_to_tensor(_np.asarray(values).astype(like.as_numpy_dtype))


def dct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The discrete cosine transform of type 1, 2, 3 or 4 of the last axis, of n elements; norm="ortho": its orthogonal form."""
    if type not in (1, 2, 3, 4) or axis != -1 or norm not in (None, "ortho") or (n is not None and n < 1):
        raise ValueError(f"dct: type is {type}, n {n}, axis {axis}, norm {norm!r}; expected type 1 to 4, n None or at least "
                         "1, axis -1 and norm None or 'ortho'")
    x = convert_to_tensor(input)
    x = x if n is None else _cut(x, -1, int(n))
    n, kind = x.shape[-1], complex128 if x.dtype == float64 else _core.complex64
    if type == 1 and (norm or n < 2):
        raise ValueError(f"dct: norm is {norm!r} of type 1 and {n} elements; expected None and at least 2")
    if type == 1:  # the even signal of which x is a half
        return _m.real(_s.rfft(_ops.concat([x, _ops.reverse(x[..., 1:-1], [-1])], -1)))
    if type == 4:  # every other frequency of twice the length
        out = dct(_cut(x, -1, 2 * n), 2)[..., 1::2]
        return out * float(_np.sqrt(0.5 / n)) if norm else out
    turn = _np.exp((1j if type == 3 else -1j) * _np.pi * _np.arange(n) / (2 * n))
    if type == 3:
        first = _np.full(n, _np.sqrt(n / 2.0) if norm else n)
        first[0] = _np.sqrt(n) if norm else n
        x = x * _numbers(first, x.dtype)
        bent = _m.complex(x, _ops.zeros_like(x)) * _numbers(2 * turn, kind)
        return _s.irfft(_cut(bent, -1, n + 1), [2 * n])[..., :n]
    out = _m.real(_s.rfft(_cut(x, -1, 2 * n))[..., :n] * _numbers(2 * turn, kind))
    if norm:
        share = _np.full(n, _np.sqrt(0.5 / n))
        share[0] = 0.5 / _np.sqrt(n)
        out = out * _numbers(share, x.dtype)
    return out


def idct(input, type=2, n=None, axis=-1, norm=None, name=None):
    """The transform that undoes dct() of this type, but for a factor without norm="ortho"."""
    if type not in (1, 2, 3, 4):
        raise ValueError(f"idct: type is {type}; expected 1, 2, 3 or 4")
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm)


def mdct(signals, frame_length, window_fn=_s.vorbis_window, pad_end=False, norm=None, name=None):
    """Cosine transforms of windowed frames that overlap by half: [..., frames, frame_length / 2]."""
    x, half = convert_to_tensor(signals), int(frame_length) // 2
    if int(frame_length) % 4:
        raise ValueError(f"mdct: frame_length is {frame_length}; expected a multiple of 4")
    frames = _s.frame(x, int(frame_length), half, pad_end=pad_end)
    frames = frames * (float(_np.sqrt(0.5)) if window_fn is None else window_fn(int(frame_length), dtype=x.dtype))
    a, b, c, d = _ops.split(frames, num=4, axis=-1)
    folded = _ops.concat([-_ops.reverse(c, [-1]) - d, a - _ops.reverse(b, [-1])], -1)
    return dct(folded, 4, norm=norm)


def inverse_mdct(mdcts, window_fn=_s.vorbis_window, norm=None, name=None):
    """The signals [..., samples] that mdct() was made of, but for their first and last half frame."""
    x = convert_to_tensor(mdcts)
    half = x.shape[-1]
    y = dct(x, 4, norm=norm)
    y = y if norm else y * (0.5 / half)
    low, high = _ops.split(y, num=2, axis=-1)
    frames = _ops.concat([high, -_ops.reverse(high, [-1]), -_ops.reverse(low, [-1]), -low], -1)
    frames = frames * (float(_np.sqrt(0.5)) if window_fn is None else window_fn(2 * half, dtype=x.dtype))
    return _s.overlap_and_add(frames, half)


# Real transforms over several axes.

def _plan(what, x, fft_length, axes):
    rank = len(x.shape)
    lengths = None if fft_length is None else [int(n) for n in convert_to_tensor(fft_length).numpy()]
    if axes is None:
        axes = range(rank) if lengths is None else range(rank - len(lengths), rank)
    axes = [int(a) % rank for a in (axes if isinstance(axes, (list, tuple, range)) else convert_to_tensor(axes).numpy())]
    if lengths is not None and len(lengths) != len(axes) or len(set(axes)) < len(axes) or not axes:
        raise ValueError(f"{what}: fft_length is {lengths}, axes are {axes}; expected one length for each axis, and each axis "
                         "once")
    return lengths, axes


def _last(x, axis):
    """An order of axes in which one comes last; it undoes itself."""
    order = list(range(len(x.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    return order


def _along(function, x, axis):
    order = _last(x, axis)
    return _ops.transpose(function(_ops.transpose(x, order)), order)


def _scaled(what, x, norm, count, inverse):
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"{what}: norm is {norm!r}; expected 'backward', 'ortho', 'forward' or None")
    power = {"ortho": 0.5, "forward": 1.0}.get(norm, 0.0) * (1 if inverse else -1)
    return x * _m.cast(convert_to_tensor(float(count) ** power), x.dtype) if power else x


def _complex(what, x, fft_length, axes, norm):
    x = convert_to_tensor(x)
    lengths, axes = _plan(what, x, fft_length, axes)
    out = getattr(_s, what)(x, lengths or [], axes)
    return _scaled(what, out, norm, _np.prod([out.shape[a] for a in axes]), what == "ifftnd")


def fftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    """The Fourier transform over axes, all by default, cut or filled with zeros to fft_length first.

    norm: "backward" or None as it is, "forward" divided by the number of elements, "ortho" by its square root.
    """
    return _complex("fftnd", input_tensor, fft_length, axes, norm)


def ifftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    """The inverse of fftnd() with the same arguments."""
    return _complex("ifftnd", input_tensor, fft_length, axes, norm)


def rfftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    """The Fourier transform of real values over axes; of the last one half of the frequencies, which tell the others."""
    x = convert_to_tensor(input_tensor)
    lengths, axes = _plan("rfftnd", x, fft_length, axes)
    for axis, n in zip(axes, lengths or ()):
        x = _cut(x, axis, n)
    count = _np.prod([x.shape[a] for a in axes])
    x = _along(_s.rfft, x, axes[-1])
    for axis in axes[:-1]:
        x = _along(_s.fft, x, axis)
    return _scaled("rfftnd", x, norm, count, False)


def irfftnd(input_tensor, fft_length=None, axes=None, norm=None, name=None):
    """The real values that rfftnd() gives, back; fft_length says their lengths along the axes."""
    x = convert_to_tensor(input_tensor)
    lengths, axes = _plan("irfftnd", x, fft_length, axes)
    lengths = lengths or [*[x.shape[a] for a in axes[:-1]], max(2 * (x.shape[axes[-1]] - 1), 1)]
    for axis, n in zip(axes[:-1], lengths):
        x = _along(_s.ifft, _cut(x, axis, n), axis)
    x = _along(lambda v: _s.irfft(_cut(v, -1, lengths[-1] // 2 + 1), [lengths[-1]]), x, axes[-1])
    return _scaled("irfftnd", x, norm, _np.prod(lengths), True)


def rfft3d(input_tensor, fft_length=None, name=None):
    """rfftnd() of the last three axes."""
    return rfftnd(input_tensor, fft_length, [-3, -2, -1])


def irfft3d(input_tensor, fft_length=None, name=None):
    """irfftnd() of the last three axes."""
    return irfftnd(input_tensor, fft_length, [-3, -2, -1])


# Mel scales.

def linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000, lower_edge_hertz=125.0,
                                upper_edge_hertz=3800.0, dtype=float32, name=None):
    """The matrix [num_spectrogram_bins, num_mel_bins] that makes bands of equal width on the mel scale of a spectrogram."""
    rate, low, high = (float(v) for v in (sample_rate, lower_edge_hertz, upper_edge_hertz))
    if num_mel_bins <= 0 or rate <= 0 or not 0 <= low < high <= rate / 2:
        raise ValueError(f"linear_to_mel_weight_matrix: num_mel_bins is {num_mel_bins}, sample_rate {rate}, the edges {low} "
                         f"and {high}; expected more than 0, and 0 <= lower edge < upper edge <= half of the rate")

    def mel(hertz):
        return 1127.0 * _np.log1p(_np.asarray(hertz) / 700.0)
    bins = mel(_np.linspace(0, rate / 2, int(num_spectrogram_bins)))[:, None]
    edges = _np.linspace(mel(low), mel(high), int(num_mel_bins) + 2)
    rise, fall = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    weights = _np.maximum(0, _np.minimum(rise, fall))
    weights[0] = 0  # the constant part belongs to no band
    return _numbers(weights, as_dtype(dtype))


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None):
    """The cepstral coefficients of the logarithms of mel spectrograms, [..., bands]."""
    x = convert_to_tensor(log_mel_spectrograms)
    if not x.shape[-1]:
        raise ValueError(f"mfccs_from_log_mel_spectrograms: the spectrograms are {x.shape}; expected at least one band")
    return dct(x, 2) * float(_np.sqrt(0.5 / x.shape[-1]))
