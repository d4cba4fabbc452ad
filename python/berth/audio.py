"""tf.audio: WAV files of 16 bits, read and written on the host."""
import collections as _collections
import struct as _struct

from berth._core import InvalidArgumentError as _InvalidArgumentError
from berth._tensor import convert_to_tensor as _tensor, float32 as _float32, int32 as _int32, string as _string

__all__ = ["decode_wav", "encode_wav"]
_Decoded = _collections.namedtuple("DecodeWav", ["audio", "sample_rate"])


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """(audio, sample_rate) of the bytes of a WAV file of 16 bits: float32 [samples, channels] from -1 to 1, and int32.

    desired_channels: 1 and 2 repeat the last channel or drop channels; desired_samples cuts, or adds zeros. -1: as in the file.
    """
    import numpy
    data = _tensor(contents, _string)._array().item()
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _InvalidArgumentError(f"decode_wav: the bytes begin with {data[:12]!r}; expected RIFF and WAVE, as in a WAV file")
    at, form, samples = 12, None, None
    while at + 8 <= len(data) and samples is None:
        kind, size = data[at:at + 4], _struct.unpack_from("<I", data, at + 4)[0]
        part = data[at + 8:at + 8 + size]
        if kind == b"fmt " and len(part) >= 16:
            form = _struct.unpack_from("<HHIIHH", part)
        elif kind == b"data":
            samples = part
        at += 8 + size + size % 2
    if form is None or samples is None:
        raise _InvalidArgumentError("decode_wav: the file has no part 'fmt ', or no 'data' after it")
    code, channels, rate, _, _, bits = form
    if code not in (1, 65534) or bits != 16 or not channels:
        raise _InvalidArgumentError(f"decode_wav: the samples have the format {code}, {bits} bits and {channels} channels; "
                                    "expected format 1 (PCM), 16 bits")
    count = len(samples) // (2 * channels)
    audio = numpy.frombuffer(samples[:count * 2 * channels], "<i2").reshape([count, channels]).astype("float32") / 32768
    if desired_channels not in (-1, channels):
        last = numpy.repeat(audio[:, -1:], max(desired_channels - channels, 0), 1)
        audio = numpy.concatenate([audio, last], 1)[:, :desired_channels]
    if desired_samples != -1:
        audio = numpy.pad(audio[:desired_samples], [(0, max(desired_samples - count, 0)), (0, 0)])
    return _Decoded(_tensor(numpy.ascontiguousarray(audio), _float32), _tensor(rate, _int32))


def encode_wav(audio, sample_rate, name=None):
    """The bytes of a WAV file of 16 bits, of float32 [samples, channels]; values beyond -1 and 1 are cut."""
    import numpy
    audio, rate = _tensor(audio, _float32), int(_tensor(sample_rate))
    if len(audio.shape) != 2 or not audio.shape[1]:
        raise _InvalidArgumentError(f"encode_wav: the audio has shape {audio.shape}; expected [samples, channels]")
    values = audio.numpy() * 32768
    body = numpy.clip(numpy.trunc(values + numpy.copysign(0.5, values)), -32768, 32767).astype("<i2").tobytes()
    channels = audio.shape[1]
    head = _struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, 1, channels, rate,
                        rate * channels * 2, channels * 2, 16, b"data", len(body))
    return _tensor(head + body, _string)
