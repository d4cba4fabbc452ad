"""keras.ops.math: segments, top k, error functions and Fourier transforms."""
import math as _math

import berth as tf
from keras.src import backend
from keras_berth.src.ops.arrays import pad, take_along_axis
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, define, floating, is_whole, name_of, number, unary

_m = tf.math


# Segments.
def _segments(name, function, empty=None):
    def call(data, segment_ids, num_segments=None, sorted=False):
        data, ids = convert_to_tensor(data), cast(convert_to_tensor(segment_ids), "int32")
        if num_segments is None:
            num_segments = int(tf.reduce_max(ids)) + 1 if ids.shape.num_elements() else 0
        num_segments = int(num_segments)
        out = function(data, ids, num_segments)
        if empty is None or is_whole(name_of(data)):
            return out
        counts = _m.unsorted_segment_sum(tf.ones_like(ids), ids, num_segments)
        nothing = tf.reshape(_m.equal(counts, tf.zeros_like(counts)), [-1] + [1] * (len(data.shape) - 1))
        return tf.where(nothing, convert_to_tensor(empty, name_of(out)), out)
    call.__name__ = call.__qualname__ = name
    return call


segment_sum = _segments("segment_sum", _m.unsorted_segment_sum)
segment_prod = _segments("segment_prod", _m.unsorted_segment_prod)
segment_max = _segments("segment_max", _m.unsorted_segment_max, float("-inf"))
segment_min = _segments("segment_min", _m.unsorted_segment_min, float("inf"))


def top_k(x, k, sorted=True):
    x = convert_to_tensor(x)
    values, indices = tf.math.top_k(cast(x, number(name_of(x))), k, sorted)
    return cast(values, name_of(x)), cast(indices, "int32")


def in_top_k(targets, predictions, k):
    targets, predictions = convert_to_tensor(targets), convert_to_tensor(predictions)
    aimed = take_along_axis(predictions, tf.expand_dims(targets, -1), -1)
    aimed = tf.where(_m.is_nan(aimed), convert_to_tensor(float("-inf"), name_of(aimed)), aimed)
    above = tf.reduce_sum(cast(_m.greater(predictions, aimed), "int32"), -1)
    return _m.less(above, convert_to_tensor(k, "int32"))


def logsumexp(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    return _m.reduce_logsumexp(cast(x, floating(name_of(x))), axis, keepdims)


def cdist(x, y):
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    gap = tf.expand_dims(x, -2) - tf.expand_dims(y, -3)
    return _m.sqrt(tf.reduce_sum(_m.square(gap), -1))


define(globals(), unary, {
    "rsqrt": (floating, _m.rsqrt), "erf": (floating, _m.erf), "erfc": (floating, _m.erfc),
    "erfinv": (floating, _m.erfinv),
})


def logdet(x):
    from keras_berth.src.ops.numpy import slogdet
    return slogdet(x)[1]


# Fourier transforms.
def _get_complex_tensor_from_tuple(x):  # keras.ops.nn.polar() asks for it by this name
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary. Received: x={x}")
    real, imag = map(convert_to_tensor, x)
    if tuple(real.shape) != tuple(imag.shape):
        raise ValueError("Input `x` should be a tuple of two tensors - real and imaginary. Both the real and imaginary "
                         f"parts should have the same shape. Received: x[0].shape = {real.shape}, "
                         f"x[1].shape = {imag.shape}")
    if not backend.is_float_dtype(name_of(real)) or not backend.is_float_dtype(name_of(imag)):
        raise ValueError(f"At least one tensor in input `x` is not of type float. Received: x={x}.")
    return tf.complex(real, imag)


def _parts(x):
    return _m.real(x), _m.imag(x)


def fft(x):
    return _parts(tf.signal.fft(_get_complex_tensor_from_tuple(x)))


def fft2(x):
    return _parts(tf.signal.fft2d(_get_complex_tensor_from_tuple(x)))


def ifft2(x):
    return _parts(tf.signal.ifft2d(_get_complex_tensor_from_tuple(x)))


def _length(fft_length):
    return [] if fft_length is None else [[fft_length]]


def rfft(x, fft_length=None):
    return _parts(tf.signal.rfft(convert_to_tensor(x), *_length(fft_length)))


def irfft(x, fft_length=None):
    return tf.signal.irfft(_get_complex_tensor_from_tuple(x), *_length(fft_length))


def extract_sequences(x, sequence_length, sequence_stride):
    x = convert_to_tensor(x)
    count = 1 + (x.shape[-1] - sequence_length) // sequence_stride
    starts = tf.range(max(count, 0)) * convert_to_tensor(sequence_stride, "int32")
    return tf.gather(x, tf.expand_dims(starts, 1) + tf.expand_dims(tf.range(sequence_length), 0), axis=-1)


_COSINES = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}


def _window(window, sequence_length, fft_length, dtype):
    """The window in the middle of a frame."""
    left = (fft_length - sequence_length) // 2
    if window is None:
        return tf.ones([fft_length], dtype)
    if isinstance(window, str):
        if window not in _COSINES:
            raise ValueError('If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                             f"Received: window={window}")
        level, depth = _COSINES[window]
        window = [level - depth * _math.cos(2 * _math.pi * n / sequence_length) for n in range(sequence_length)]
    window = convert_to_tensor(window, dtype=dtype)
    if len(window.shape) != 1 or window.shape[-1] != sequence_length:
        raise ValueError("The shape of `window` must be equal to [sequence_length]. "
                         f"Received: window shape={window.shape}")
    return pad(window, [[left, fft_length - sequence_length - left]])


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = convert_to_tensor(x)
    if name_of(x) not in ("float32", "float64"):
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={name_of(x)}")
    if fft_length < sequence_length:
        raise ValueError("`fft_length` must equal or larger than `sequence_length`. "
                         f"Received: sequence_length={sequence_length}, fft_length={fft_length}")
    weights = _window(window, sequence_length, fft_length, name_of(x))
    if center:
        x = pad(x, [[0, 0]] * (len(x.shape) - 1) + [[fft_length // 2] * 2], mode="reflect")
    return rfft(extract_sequences(x, fft_length, sequence_stride) * weights, fft_length)


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    x = _get_complex_tensor_from_tuple(x)
    if len(x.shape) < 2:
        raise ValueError(f"Input `x` must have at least 2 dimensions. Received shape: {x.shape}")
    inverse = None
    if window is not None:
        inverse = tf.signal.inverse_stft_window_fn(
            sequence_stride, lambda _, dtype: _window(window, sequence_length, fft_length, dtype.name))
    out = tf.signal.inverse_stft(x, fft_length, sequence_stride, fft_length, inverse)
    start = fft_length // 2 if center else 0
    end = out.shape[-1] - (fft_length // 2 if center else 0) if length is None else start + length
    return out[..., start:end]
