"""Pictures of BMP and GIF files, read on the host, and PNG files of 16 bits, written there."""
import struct
import zlib

import numpy as np
from berth import _core
from berth._tensor import convert_to_tensor, string, uint8, uint16

_MOST = 1 << 30  # bytes of a picture


def _bytes(contents):
    return convert_to_tensor(contents, string)._array().item()


def _refused(function, what):
    raise _core.InvalidArgumentError(f"{function}: {what}")


def decode_bmp(contents, channels=0, name=None):
    """The picture in the bytes of a BMP file without compression: uint8 [height, width, 1, 3 or 4].

    channels: 0 takes as many as the file has; another number is checked.
    """
    data = _bytes(contents)
    if data[:2] != b"BM" or len(data) < 54:
        _refused("decode_bmp", f"the bytes begin with {data[:2]!r}; expected the file of a picture, which begins with b'BM'")
    start, = struct.unpack_from("<I", data, 10)
    width, height = struct.unpack_from("<ii", data, 18)
    bits, packing = struct.unpack_from("<HI", data, 28)
    found = {8: 1, 24: 3, 32: 4}.get(bits)
    if found is None or packing not in (0, 3):
        _refused("decode_bmp", f"the file has {bits} bits for each pixel and the compression {packing}; expected 8, 24 or 32 "
                               "bits without compression")
    if channels not in (0, found):
        _refused("decode_bmp", f"the file has {found} channels; channels={channels} was asked for")
    row = (width * found + 3) // 4 * 4
    if width <= 0 or not 0 < abs(height) <= _MOST // row or start + row * (abs(height) - 1) + width * found > len(data):
        _refused("decode_bmp", f"{len(data)} bytes are too few for {width} x {abs(height)} pixels of {found} bytes")
    body = np.frombuffer(data[start:start + row * abs(height)].ljust(row * abs(height), b"\0"), np.uint8)
    picture = body.reshape([abs(height), row])[:, :width * found].reshape([abs(height), width, found])
    if height > 0:
        picture = picture[::-1]
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[found]
    return convert_to_tensor(np.ascontiguousarray(picture[:, :, order]))


class _Gif:
    """Reads the parts of a GIF file one after the other."""

    def __init__(self, data):
        if data[:6] not in (b"GIF87a", b"GIF89a"):
            _refused("decode_gif", f"the bytes begin with {data[:6]!r}; expected b'GIF87a' or b'GIF89a'")
        self.data, self.at = data, 6

    def take(self, count):
        part = self.data[self.at:self.at + count]
        if len(part) < count:
            _refused("decode_gif", f"the file ends at byte {len(self.data)}, inside a picture")
        self.at += count
        return part

    def table(self, flags):
        """The colours that follow, where the flags say that there are some."""
        return np.frombuffer(self.take(3 << (flags & 7) + 1), np.uint8).reshape([-1, 3]) if flags & 128 else None

    def blocks(self):
        out = b""
        while size := self.take(1)[0]:
            out += self.take(size)
        return out


def _unpacked(data, least, count):
    """The numbers of `count` pixels that LZW packed."""
    clear, stop = 1 << least, (1 << least) + 1
    first = [bytes([i]) for i in range(clear)] + [b"", b""]
    table, width, before = list(first), least + 1, None
    out, bits, held = bytearray(), 0, 0
    for byte in data:
        bits |= byte << held
        held += 8
        while held >= width:
            code, bits, held = bits & (1 << width) - 1, bits >> width, held - width
            if code == clear:
                table, width, before = list(first), least + 1, None
                continue
            if code == stop or len(out) >= count:
                return out
            if code < len(table):
                part = table[code]
            elif code == len(table) and before is not None:
                part = before + before[:1]
            else:
                _refused("decode_gif", f"the code {code} is not in the table of {len(table)}")
            out += part
            if before is not None and len(table) < 4096:
                table.append(before + part[:1])
                if len(table) == 1 << width and width < 12:
                    width += 1
            before = part
    return out


def _rows(height, interlaced):
    """The order in which the rows of a picture are in the file."""
    return [*range(0, height, 8), *range(4, height, 8), *range(2, height, 4), *range(1, height, 2)] if interlaced else [
        *range(height)]


def _pictures(gif):
    """(left, top, numbers of colours, colours, the number that is clear or None) of each picture in the file."""
    width, height, flags, _, _ = struct.unpack("<HHBBB", gif.take(7))
    shared, clear = gif.table(flags), None
    while gif.at < len(gif.data):
        kind = gif.take(1)
        if kind == b";":
            return
        if kind == b"!":
            label, block = gif.take(1), gif.blocks()
            if label == b"\xf9" and len(block) >= 4:
                clear = block[3] if block[0] & 1 else None
            continue
        if kind != b",":
            _refused("decode_gif", f"byte {gif.at - 1} is {kind!r}; expected a picture, an extension or the end")
        left, top, across, down, flags = struct.unpack("<HHHHB", gif.take(9))
        own = gif.table(flags)
        colours = shared if own is None else own
        least, count = gif.take(1)[0], across * down
        numbers = np.frombuffer(bytes(_unpacked(gif.blocks(), min(least, 11), count)[:count]), np.uint8)
        if colours is None or not count or len(numbers) < count or numbers.max() >= len(colours):
            _refused("decode_gif", f"a picture has {len(numbers)} of {across} x {down} pixels, or no colours for them")
        part = np.empty([down, across], np.uint8)
        part[_rows(down, flags & 64)] = numbers.reshape([down, across])
        yield left, top, part, colours, clear
        clear = None


def decode_gif(contents, name=None):
    """The frames of a GIF file: uint8 [frames, height, width, 3], of the size of the largest.

    What a frame leaves out is that of the frame before. Of a PNG or JPEG file it is the picture alone.
    """
    data = _bytes(contents)
    if data[:4] == b"\x89PNG" or data[:3] == b"\xff\xd8\xff":
        return _core.ops.expand_dims(_core.ops.io.decode_image(contents, 3), 0)
    found, size, frames = [], [0, 0], []
    for picture in _pictures(_Gif(data)):
        found.append(picture)
        size = [max(pair) for pair in zip(size, picture[2].shape)]
        if len(found) * size[0] * size[1] * 3 > _MOST:
            _refused("decode_gif", f"{len(found)} frames of {size[1]} x {size[0]} pixels are more than {_MOST} bytes")
    for left, top, part, colours, clear in found:
        frame = frames[-1].copy() if frames else np.zeros([*size, 3], np.uint8)
        part = part[:max(size[0] - top, 0), :max(size[1] - left, 0)]
        inside = frame[top:top + part.shape[0], left:left + part.shape[1]]
        shown = np.ones(part.shape, bool) if clear is None else part != clear
        inside[shown] = colours[part[shown]]
        frames.append(frame)
    if not frames:
        _refused("decode_gif", "the file has no picture")
    return convert_to_tensor(np.stack(frames), uint8)


def _wide_png(picture, compression):
    """The file of a picture, uint16 [height, width, channels]."""
    height, width, channels = picture.shape

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    rows = np.zeros([height, 1 + 2 * width * channels], np.uint8)  # a byte says how a row differs from the one above: not at all
    rows[:, 1:] = picture.astype(">u2").reshape([height, -1]).view(np.uint8)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), compression))
            + chunk(b"IEND", b""))


def encode_png(image, compression=-1, name=None):
    """Pictures, uint8 or uint16 [..., height, width, 1 to 4], as the bytes of PNG files: [...]; compression: 0 to 9, or -1."""
    image = convert_to_tensor(image)
    lengths = image.shape.as_list() if image.dtype in (uint8, uint16) else []
    if len(lengths) < 3 or not 1 <= lengths[-1] <= 4 or 0 in lengths[-3:] or (
            image.dtype == uint8 and len(lengths) == 3) or not -1 <= compression <= 9:
        return _core.ops.io.encode_png(image, compression)
    pictures = image._array().reshape([-1, *lengths[-3:]])
    files = [_wide_png(v, compression) if image.dtype == uint16 else
             _core.ops.io.encode_png(convert_to_tensor(v), compression)._array().item() for v in pictures]
    return convert_to_tensor(np.array(files, object).reshape(lengths[:-3]) if len(lengths) > 3 else files[0], string)
