"""tf.summary: events that the engine's files do not write themselves, in files of their own beside those."""
import os
import struct
import time

import numpy as np
from berth import _core, _remote
from berth._example import _field, _varint
from berth._tensor import convert_to_tensor, float32, string


def _file_of(writer):
    """A TFRecord file for events, in the folder of a writer."""
    if getattr(writer, "_events", None) is None:
        folder = writer._logs.folder if writer._logs else os.path.dirname(writer._core.path())
        path = os.path.join(folder, f"events.out.tfevents.{int(time.time())}.berth.{os.getpid()}.{id(writer):x}.v2")
        writer._events = _core.TFRecordWriter(_remote.plain(path), "", 0)
        writer._events.write(_event(0, _field(3, b"brain.Event:2")))
    return writer._events


def _event(step, what):
    return b"\x09" + struct.pack("<d", time.time()) + _varint(2 << 3) + _varint(step) + what


def write_summary(writer, summary, step):
    """Writes the bytes of a Summary message as an event."""
    _file_of(writer).write(_event(step, _field(5, summary)))


def audio_summary(name, data, sample_rate, max_outputs, encoding, description):
    """The bytes of a Summary with sounds [n, samples, channels], as the plug-in for audio of TensorBoard reads them."""
    from berth import audio
    from berth._tensor_proto import serialized
    if encoding not in (None, "wav"):
        raise ValueError(f"tf.summary.audio: encoding is {encoding!r}; expected 'wav'")
    sounds = convert_to_tensor(data, float32)
    if len(sounds.shape) != 3:
        raise ValueError(f"tf.summary.audio: the shape is {sounds.shape}; expected [n, samples, channels]")
    if max_outputs < 0:
        raise ValueError(f"tf.summary.audio: max_outputs is {max_outputs}; expected 0 or more")
    files = [audio.encode_wav(one, sample_rate).numpy() for one in list(sounds)[:max_outputs]]
    pairs = np.empty([len(files), 2], object)
    for i, file in enumerate(files):
        pairs[i] = [file, b""]
    plugin = _field(1, b"audio") + _field(2, _varint(2 << 3) + _varint(11))  # AudioPluginData: encoding WAV
    metadata = _field(1, plugin) + (_field(3, description.encode()) if description else b"")
    value = _field(1, name.encode()) + _field(9, metadata) + _field(8, serialized(pairs, string))
    return _field(1, value)
