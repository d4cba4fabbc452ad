"""keras.utils: pictures of files, and sequences of equal length."""
import numpy as np

_PIL_MODES = {"rgb": "RGB", "rgba": "RGBA", "grayscale": "L"}


def load_img(path, color_mode="rgb", target_size=None, interpolation="nearest", keep_aspect_ratio=False):
    """The picture of a file as a PIL image, resized to target_size (height, width); needs the package pillow."""
    from PIL import Image
    if color_mode not in _PIL_MODES:
        raise ValueError(f"load_img: color_mode is {color_mode!r}; expected one of {sorted(_PIL_MODES)}")
    if hasattr(path, "read"):
        image = Image.open(path)
    else:
        with open(path, "rb") as file:
            image = Image.open(file)
            image.load()
    if image.mode != _PIL_MODES[color_mode]:
        image = image.convert(_PIL_MODES[color_mode])
    if target_size is None:
        return image
    height, width = target_size
    if keep_aspect_ratio:
        high = min(image.height, int(image.width * height / width))
        wide = min(image.width, int(image.height * width / height))
        top, left = (image.height - high) // 2, (image.width - wide) // 2
        image = image.crop((left, top, left + wide, top + high))
    methods = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "hamming": Image.HAMMING,
               "box": Image.BOX, "lanczos": Image.LANCZOS}
    if interpolation not in methods:
        raise ValueError(f"load_img: interpolation is {interpolation!r}; expected one of {sorted(methods)}")
    return image.resize((width, height), methods[interpolation]) if image.size != (width, height) else image


def img_to_array(img, data_format=None, dtype=None):
    """A PIL image as an array [height, width, channels], float32; "channels_first": channels first."""
    x = np.asarray(img, dtype or "float32")
    x = x[:, :, None] if x.ndim == 2 else x
    if x.ndim != 3:
        raise ValueError(f"img_to_array: the image has the shape {x.shape}; expected two or three axes")
    return x.transpose(2, 0, 1) if data_format == "channels_first" else x


def array_to_img(x, data_format=None, scale=True, dtype=None):
    """An array [height, width, channels] as a PIL image; scale: from its least to its greatest value."""
    from PIL import Image
    x = np.asarray(x, dtype or "float32")
    x = x.transpose(1, 2, 0) if data_format == "channels_first" else x
    if x.ndim != 3 or x.shape[2] not in (1, 3, 4):
        raise ValueError(f"array_to_img: the array has the shape {x.shape}; expected [height, width, 1, 3 or 4]")
    if scale:
        x = x - np.min(x)
        x = x / np.max(x) * 255 if np.max(x) != 0 else x
    if x.shape[2] == 1:
        return Image.fromarray(x[:, :, 0].astype("int32" if np.max(x) > 255 else "uint8"))
    return Image.fromarray(x.astype("uint8"))


def save_img(path, x, data_format=None, file_format=None, scale=True, **kwargs):
    """Writes an array as a picture."""
    array_to_img(x, data_format, scale).save(path, format=file_format, **kwargs)


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre", value=0.0):
    """Lists of different lengths as an array [n, maxlen, ...]; "pre" and "post" say where is filled up and cut off."""
    for name, given in (("padding", padding), ("truncating", truncating)):
        if given not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name} is {given!r}; expected 'pre' or 'post'")
    rows = [np.asarray(s) for s in sequences]
    length = max((len(r) for r in rows), default=0) if maxlen is None else maxlen
    inner = next((r.shape[1:] for r in rows if len(r)), ())
    out = np.full([len(rows), length, *inner], value, dtype=object if isinstance(value, str) else dtype)
    for i, row in enumerate(rows):
        row = (row[-length:] if truncating == "pre" else row[:length]) if length else row[:0]
        if len(row):
            out[i, (length - len(row) if padding == "pre" else 0):][:len(row)] = row
    return out
