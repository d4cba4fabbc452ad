"""tf.strings on the characters of text in any encoding that Python has, on the host."""
import functools

import numpy as np
from berth import _core
from berth._tensor import convert_to_tensor, int32, int64, string

_ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def _out_encoding(function, encoding):
    if encoding not in _ENCODINGS:
        raise _core.InvalidArgumentError(f"{function}: the encoding of the result is {encoding!r}; expected one of "
                                         f"{', '.join(_ENCODINGS)}")
    return encoding


def _characters(function, data, encoding, errors, replacement, replace_control):
    """(number, offset) of each character of bytes."""
    at, out = 0, []
    while at < len(data):
        try:
            text, bad = data[at:].decode(encoding), 0
        except UnicodeDecodeError as error:
            text, bad = data[at:at + error.start].decode(encoding), error.end - error.start
        except LookupError:
            raise _core.InvalidArgumentError(f"{function}: input_encoding is {encoding!r}, which is no encoding that Python "
                                             "has; expected one such as 'UTF-8'") from None
        for c in text:
            if replace_control and ord(c) < 32:
                if errors == "strict":
                    raise _core.InvalidArgumentError(f"{function}: byte {at} is a control character")
                out += [(replacement, at)] if errors == "replace" else []
            else:
                out.append((ord(c), at))
            at += len(c.encode(encoding))
        if bad:
            if errors == "strict":
                raise _core.InvalidArgumentError(f"{function}: {data[at:at + bad]!r} at byte {at} is no {encoding}; expected "
                                                 "text of that encoding, or errors='replace' or 'ignore'")
            out += [(replacement, at)] if errors == "replace" else []
            at += bad
    return out


def _reader(function, encoding, errors, replacement_char, replace_control):
    if errors not in ("replace", "ignore", "strict"):
        raise ValueError(f"{function}: errors is {errors!r}; expected 'replace', 'ignore' or 'strict'")
    if not 0 <= int(replacement_char) <= 0x10FFFF:
        raise _core.InvalidArgumentError(f"{function}: replacement_char is {replacement_char}; expected the number of a "
                                         "character")
    return lambda data: _characters(function, data, str(encoding), errors, int(replacement_char), replace_control)


def _of_rows(input, read, columns):
    """Tensors of what `columns` makes of the characters of a text; of several texts RaggedTensors."""
    from berth.ragged import RaggedTensor
    if isinstance(input, RaggedTensor):
        made = [input.with_flat_values(part) for part in _of_rows(input.flat_values, read, columns)]
        return made
    texts = convert_to_tensor(input, string)._array()
    rows = [read(t) for t in np.ravel(texts).tolist()]
    out = []
    for kind, take in columns:
        found = [take(pair) for row in rows for pair in row]
        values = np.empty(len(found), object) if kind == string else np.array(found, kind.as_numpy_dtype)
        values[:] = found
        values = convert_to_tensor(values, kind)
        if texts.ndim:
            made = RaggedTensor(values, np.cumsum([0, *map(len, rows)]))
            for size in texts.shape[:0:-1]:
                rows_inside = made.row_splits.shape[0] - 1
                made = RaggedTensor(made, np.arange(0, rows_inside + 1, size), size)
            values = made
        out.append(values)
    return out


_number, _offset = (int32, lambda pair: pair[0]), (int64, lambda pair: pair[1])


def _text(encoding):
    return string, lambda pair: chr(pair[0]).encode(encoding)


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False,
                   name=None):
    """The numbers of the characters of texts, int32."""
    read = _reader("unicode_decode", input_encoding, errors, replacement_char, replace_control_characters)
    return _of_rows(input, read, [_number])[0]


def unicode_decode_with_offsets(input, input_encoding, errors="replace", replacement_char=65533,
                                replace_control_characters=False, name=None):
    """(numbers, offsets) of the characters of texts: int32, and the bytes that they begin at, int64."""
    read = _reader("unicode_decode_with_offsets", input_encoding, errors, replacement_char, replace_control_characters)
    return tuple(_of_rows(input, read, [_number, _offset]))


def unicode_split(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """The characters of texts, each as text of the same encoding."""
    read = _reader("unicode_split", _out_encoding("unicode_split", input_encoding), errors, replacement_char, False)
    return _of_rows(input, read, [_text(input_encoding)])[0]


def unicode_split_with_offsets(input, input_encoding, errors="replace", replacement_char=65533, name=None):
    """(characters, offsets) of texts: each as text of the same encoding, and the bytes that they begin at, int64."""
    encoding = _out_encoding("unicode_split_with_offsets", input_encoding)
    read = _reader("unicode_split_with_offsets", encoding, errors, replacement_char, False)
    return tuple(_of_rows(input, read, [_text(encoding), _offset]))


def _each(fn, input):
    """fn of each text, in the shape of the input, ragged or not."""
    if hasattr(input, "with_flat_values"):
        return input.with_flat_values(_each(fn, input.flat_values))
    texts = convert_to_tensor(input, string)._array()
    out = np.empty(texts.shape, object)
    for at, text in np.ndenumerate(texts):
        out[at] = fn(text)
    return convert_to_tensor(out, string)


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533,
                      replace_control_characters=False, name=None):
    """Texts in another encoding: UTF-8, UTF-16-BE or UTF-32-BE."""
    encoding = _out_encoding("unicode_transcode", output_encoding)
    read = _reader("unicode_transcode", input_encoding, errors, replacement_char, replace_control_characters)
    return _each(lambda text: b"".join(chr(c).encode(encoding) for c, _ in read(text)), input)


@functools.cache
def _script_runs():
    from berth._scripts import runs
    starts, codes = zip(*runs())
    return np.array(starts), np.array(codes, "int32")


def unicode_script(input, name=None):
    """The scripts of characters by their numbers, int32: the codes of ICU, such as 25 of Latin; -1 of what is no character."""
    numbers = convert_to_tensor(input, None if hasattr(input, "dtype") else int32)
    if numbers.dtype != int32:
        raise TypeError(f"unicode_script: the input is {numbers.dtype.name}; expected one of int32: write tf.cast")
    starts, codes = _script_runs()
    at = numbers._array()
    found = np.where((at < 0) | (at > 0x10FFFF), -1, codes[np.searchsorted(starts, np.clip(at, 0, None), "right") - 1])
    return convert_to_tensor(np.asarray(found, "int32"))


def unsorted_segment_join(inputs, segment_ids, num_segments, separator="", name=None):
    """The texts of each number 0, 1, ... joined; segment_ids have the shape of `inputs`, or of its first axes."""
    texts, at = convert_to_tensor(inputs, string)._array(), np.asarray(convert_to_tensor(segment_ids).numpy())
    count = int(convert_to_tensor(num_segments))
    if texts.shape[:at.ndim] != at.shape:
        raise _core.InvalidArgumentError(f"unsorted_segment_join: segment_ids have shape {list(at.shape)}; expected the first "
                                         f"axes of {list(texts.shape)}")
    if at.size and not 0 <= at.min() <= at.max() < count:
        raise _core.InvalidArgumentError(f"unsorted_segment_join: segment_ids are {at.ravel()[:8].tolist()}; expected numbers "
                                         f"from 0 to {count - 1}")
    inner = texts.shape[at.ndim:]
    rows, parts = texts.reshape([at.size, -1]), [[] for _ in range(count)]
    for row, segment in zip(rows, at.ravel()):
        parts[segment].append(row)
    out = np.empty([count, rows.shape[1]], object)
    joint = separator.encode() if isinstance(separator, str) else separator
    for i, found in enumerate(parts):
        out[i] = [joint.join(column) for column in zip(*found)] if found else [b""] * rows.shape[1]
    return convert_to_tensor(out.reshape([count, *inner]), string)


_ALL = (1 << 64) - 1


def _turned(v, n):
    return (v << n | v >> 64 - n) & _ALL


def _sip_hash(data, low, high):
    """SipHash-2-4 of bytes: https://www.aumasson.jp/siphash/siphash.pdf."""
    v = [low ^ 0x736f6d6570736575, high ^ 0x646f72616e646f6d, low ^ 0x6c7967656e657261, high ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            for a, b, c, d, m, n in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
                v[a] = (v[a] + v[b]) & _ALL
                v[b] = _turned(v[b], m) ^ v[a]
                v[a] = _turned(v[a], 32)
                v[c] = (v[c] + v[d]) & _ALL
                v[d] = _turned(v[d], n) ^ v[c]
    words = data + bytes(7 - len(data) % 8) + bytes([len(data) & 255])
    for at in range(0, len(words), 8):
        word = int.from_bytes(words[at:at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    """A number from 0 to num_buckets - 1 of each text, int64, by a hash with a key of two numbers that nobody can guess."""
    if len(key) != 2:
        raise _core.InvalidArgumentError(f"to_hash_bucket_strong: the key is {key!r}; expected two numbers")
    if int(num_buckets) < 1:
        raise _core.InvalidArgumentError(f"to_hash_bucket_strong: num_buckets is {num_buckets}; expected 1 or more")
    if hasattr(input, "with_flat_values"):
        return input.with_flat_values(to_hash_bucket_strong(input.flat_values, num_buckets, key))
    texts = convert_to_tensor(input, string)._array()
    low, high = (int(k) & _ALL for k in key)
    out = np.array([_sip_hash(t, low, high) % int(num_buckets) for t in texts.ravel().tolist()], "int64")
    return convert_to_tensor(out.reshape(texts.shape), int64)
