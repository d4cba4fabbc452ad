"""tf.image where TensorFlow has names of its own."""
from berth import _core
from berth._tensor import as_dtype, convert_to_tensor, string, uint8

_ops = _core.ops


class ResizeMethod:
    """The methods of tf.image.resize() by name."""
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = "bilinear", "nearest", "bicubic", "area"
    LANCZOS3, LANCZOS5, GAUSSIAN, MITCHELLCUBIC = "lanczos3", "lanczos5", "gaussian", "mitchellcubic"


def decode_image(contents, channels=None, dtype=uint8, name=None, expand_animations=True, max_pixels=None):
    """The picture in the bytes of a PNG, JPEG, BMP or GIF file, [height, width, channels].

    That of a GIF is [frames, height, width, 3], with expand_animations=False the first frame.
    """
    data = contents if isinstance(contents, bytes) else convert_to_tensor(contents, string)
    begin = (data if isinstance(data, bytes) else data._array().item())[:4]
    if begin[:2] == b"BM":
        from berth import _pictures, image
        return image.convert_image_dtype(_pictures.decode_bmp(contents, channels or 0), dtype)
    if begin == b"GIF8":
        from berth import _pictures, image
        if channels not in (None, 0, 3):
            raise _core.InvalidArgumentError(f"decode_image: a GIF has 3 channels; channels={channels} was asked for")
        frames = _pictures.decode_gif(contents)
        return image.convert_image_dtype(frames if expand_animations else frames[0], dtype)
    options = {} if max_pixels is None else {"max_pixels": max_pixels}
    return _ops.io.decode_image(contents, channels or 0, as_dtype(dtype), **options)


def decode_and_crop_jpeg(contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False,
                         acceptable_fraction=1, dct_method="", name=None):
    """The window [y, x, height, width] of a JPEG: uint8 [height, width, channels], without decoding the whole.

    Other arguments are those of decode_jpeg().
    """
    y, x, height, width = (int(n) for n in convert_to_tensor(crop_window)._array().tolist())
    if acceptable_fraction != 1:
        raise ValueError(f"decode_and_crop_jpeg: acceptable_fraction is {acceptable_fraction}; expected 1, or "
                         "try_recover_truncated=True, which takes every fraction")
    return _ops.io.decode_and_crop_jpeg(contents, y, x, height, width, channels, ratio, fancy_upscaling, try_recover_truncated,
                                        dct_method=dct_method)


def extract_patches(images, sizes, strides, rates, padding, name=None):
    """The windows of pictures [n, height, width, channels]: [n, rows, columns, window height * width * channels].

    sizes, strides, rates: [1, rows, columns, 1]. padding: "VALID", or "SAME", which adds zeros.
    """
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"extract_patches: padding is {padding!r}; expected 'SAME' or 'VALID'")
    x = convert_to_tensor(images)
    spans, steps, padded = [], [], []
    for axis in (1, 2):
        length, size, step, rate = x.shape[axis], int(sizes[axis]), int(strides[axis]), int(rates[axis])
        span = (size - 1) * rate + 1
        count = -(-length // step) if padding == "SAME" else (length - span) // step + 1
        more = max((count - 1) * step + span - length, 0)
        padded += [more // 2, more - more // 2]
        spans.append([i * rate for i in range(size)])
        steps.append((step, (count - 1) * step + 1))
    if any(padded):
        x = _ops.pad(x, [0, 0, *padded, 0, 0])
    (down, height), (right, width) = steps
    return _ops.concat([x[:, i:i + height:down, j:j + width:right, :] for i in spans[0] for j in spans[1]], 3)
