"""keras.ops.image: colours, sizes, and images whose pixels come from other places."""
import itertools
import math as _math

import berth as tf
from keras.src import backend
from keras_berth.src.ops.arrays import moveaxis
from keras_berth.src.ops.convolution import depthwise_conv
from keras_berth.src.ops.core import dense_tensor as convert_to_tensor
from keras_berth.src.ops.promotion import cast, float_of_whole, is_whole, name_of, result_type

_m = tf.math

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}
AFFINE_TRANSFORM_FILL_MODES = MAP_COORDINATES_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}
SCALE_AND_TRANSLATE_METHODS = {"linear", "bilinear", "trilinear", "cubic", "bicubic", "tricubic", "lanczos3",
                               "lanczos5"}


def _expect(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"Invalid value for argument `{name}`. Expected of one {allowed}. Received: {name}={value}")


def _checked(images):
    images = convert_to_tensor(images)
    if len(images.shape) not in (3, 4):
        raise ValueError("Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). Received "
                         f"input with shape: images.shape={tuple(images.shape)}")
    return images


def _batched(images, data_format):
    """Images [n, h, w, c], and the function that gives a result the form of the argument."""
    images = _checked(images)
    single, first = len(images.shape) == 3, backend.standardize_data_format(data_format) == "channels_first"
    out = tf.expand_dims(images, 0) if single else images
    out = tf.transpose(out, [0, 2, 3, 1]) if first else out

    def back(result):
        result = tf.transpose(result, [0, 3, 1, 2]) if first else result
        return tf.squeeze(result, [0]) if single else result
    return out, back


# Colours.
def rgb_to_grayscale(images, data_format=None):
    images, back = _batched(images, data_format)
    if images.shape[-1] not in (1, 3):
        raise ValueError("Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received input with shape: "
                         f"images.shape={tuple(images.shape)}")
    if images.shape[-1] == 1:
        return back(images)
    dtype = name_of(images)
    wide = cast(images, result_type(dtype, float))
    weights = convert_to_tensor([[0.2989], [0.5870], [0.1140]], name_of(wide))
    return back(cast(tf.tensordot(wide, weights, 1), dtype))


def _colours(name):
    def call(images, data_format=None):
        images, back = _batched(images, data_format)
        dtype = name_of(images)
        if is_whole(dtype):
            raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={dtype}")
        exact = "float64" if dtype == "float64" else "float32"
        if name == "rgb_to_hsv":
            bits = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}[dtype]
            tiny = _m.less(_m.abs(images), convert_to_tensor(2.0 ** -bits, dtype))
            images = tf.where(tiny, tf.zeros_like(images), images)
        return back(cast(getattr(tf.image, name)(cast(images, exact)), dtype))
    call.__name__ = call.__qualname__ = name
    return call


rgb_to_hsv, hsv_to_rgb = _colours("rgb_to_hsv"), _colours("hsv_to_rgb")


# Sizes.
def resize(images, size, interpolation="bilinear", antialias=False, crop_to_aspect_ratio=False,
           pad_to_aspect_ratio=False, fill_mode="constant", fill_value=0.0, data_format=None):
    _expect("interpolation", interpolation, RESIZE_INTERPOLATIONS)
    if fill_mode != "constant":
        raise ValueError("Invalid value for argument `fill_mode`. Only `'constant'` is supported. Received: "
                         f"fill_mode={fill_mode}")
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if len(size) != 2:
        raise ValueError(f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}")
    images, back = _batched(images, data_format)
    height, width = images.shape[1:3]
    # The sizes that have the ratio of what is asked for.
    wanted_height = int(float(width * size[0]) / size[1])
    wanted_width = int(float(height * size[1]) / size[0])
    if crop_to_aspect_ratio:
        rows, columns = max(min(height, wanted_height), 1), max(min(width, wanted_width), 1)
        top, left = int(float(height - rows) / 2), int(float(width - columns) / 2)
        images = images[:, top:top + rows, left:left + columns]
    elif pad_to_aspect_ratio:
        top = int(float(max(height, wanted_height) - height) / 2)
        left = 0 if top else int(float(max(width, wanted_width) - width) / 2)
        images = tf.pad(images, [[0, 0], [top, top], [left, left], [0, 0]], constant_values=float(fill_value))
    return back(tf.image.resize(images, list(size), method=interpolation, antialias=antialias))


def _to(x, dtype):
    """Floats in the dtype of the images: of whole numbers the nearest, within their limits."""
    if is_whole(dtype) and dtype != "bool" and not is_whole(name_of(x)):
        limits = tf.as_dtype(dtype)
        x = tf.clip_by_value(_m.round(x), convert_to_tensor(float(limits.min), name_of(x)),
                             convert_to_tensor(float(limits.max), name_of(x)))
    return cast(x, dtype)


def _triangle(x):
    return _m.maximum(1 - x, tf.zeros_like(x))


def _cubic(x):
    inner = ((1.5 * x - 2.5) * x) * x + 1
    outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
    one, two = (convert_to_tensor(v, name_of(x)) for v in (1.0, 2.0))
    return tf.where(_m.less(x, one), inner, tf.where(_m.less(x, two), outer, tf.zeros_like(x)))


def _lanczos(radius):
    def weights(x):
        small = _m.less(x, convert_to_tensor(1e-3, name_of(x)))
        at = tf.where(small, tf.ones_like(x), x) * _math.pi
        wave = radius * _m.sin(at) * _m.sin(at / radius) / _m.square(at)
        outside = _m.greater(x, convert_to_tensor(float(radius), name_of(x)))
        return tf.where(outside, tf.zeros_like(x), tf.where(small, tf.ones_like(x), wave))
    return weights


def _kernel(method):
    if method.startswith("lanczos"):
        return _lanczos(int(method[-1]))
    return _triangle if method.endswith("linear") else _cubic


def _weights(old, new, scale, translation, kernel, antialias):
    """What each of `old` pixels of an axis gives to each of `new`: [old, new]."""
    dtype = name_of(scale)
    inverse = _m.reciprocal(scale)
    spread = _m.maximum(inverse, tf.ones_like(inverse)) if antialias else tf.ones_like(inverse)
    centre = (cast(tf.range(new), dtype) + 0.5 - translation) * inverse - 0.5
    away = _m.abs(tf.expand_dims(centre, 0) - tf.expand_dims(cast(tf.range(old), dtype), 1)) / spread
    weights = kernel(away)
    total = tf.reduce_sum(weights, 0, True)
    enough = _m.greater(_m.abs(total), convert_to_tensor(1000 * 2.0 ** (-52 if dtype == "float64" else -23), dtype))
    weights = tf.where(enough, weights / tf.where(enough, total, tf.ones_like(total)), tf.zeros_like(weights))
    inside = _m.logical_and(_m.greater_equal(centre, convert_to_tensor(-0.5, dtype)),
                            _m.less_equal(centre, convert_to_tensor(old - 0.5, dtype)))
    return tf.where(inside, weights, tf.zeros_like(weights))


def scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    _expect("method", method, SCALE_AND_TRANSLATE_METHODS)
    images = convert_to_tensor(images)
    dtype = float_of_whole(name_of(images))
    wide = "float64" if dtype == "float64" else "float32"
    out = cast(images, wide)
    scale, translation = (cast(convert_to_tensor(v), wide) for v in (scale, translation))
    for i, axis in enumerate(spatial_dims):
        weights = _weights(images.shape[axis], int(output_shape[axis]), scale[i], translation[i], _kernel(method),
                           antialias)
        out = moveaxis(tf.tensordot(moveaxis(out, axis, -1), weights, 1), -1, axis)
    return cast(out, dtype)


# Places.
def _mirrored(at, size):
    """Beyond the ends the way goes back, without the ends themselves."""
    last = size - 1
    if last < 1:
        return tf.zeros_like(at)
    return _m.abs(_m.floormod(at + _whole(last), _whole(2 * last)) - _whole(last))


def _whole(n):
    return convert_to_tensor(n, "int32")


def _inside(at, size, mode):
    """Places within an axis for those of any number."""
    if mode == "wrap":
        return _m.floormod(at, _whole(size))
    if mode == "mirror":
        return _mirrored(at, size)
    if mode == "reflect":
        return _m.floordiv(_mirrored(2 * at + _whole(1), 2 * size + 1) - _whole(1), _whole(2))
    return tf.clip_by_value(at, _whole(0), _whole(size - 1))


def _neighbours(place, order):
    """The whole places about one, and their weights."""
    if order == 0:
        away = _m.floor(_m.abs(place) + 0.5) * _m.sign(place)
        return [(cast(away, "int32"), None)]
    low = _m.floor(place)
    part = place - low
    low = cast(low, "int32")
    return [(low, 1 - part), (low + _whole(1), part)]


def _interpolated(pick, sizes, places, order, mode, fill_value, spread=lambda x: x):
    """Sums of what pick(flat index) gives, by the weights of the corners about places (one tensor per axis)."""
    total = None
    for corner in itertools.product(*[_neighbours(p, order) for p in places]):
        flat, weight, valid = None, None, None
        for (at, share), size in zip(corner, sizes):
            within = _inside(at, size, mode)
            flat = within if flat is None else flat * _whole(size) + within
            if share is not None:
                weight = share if weight is None else weight * share
            if mode == "constant":
                there = _m.equal(within, at)
                valid = there if valid is None else _m.logical_and(valid, there)
        value = pick(flat)
        if valid is not None:
            value = tf.where(spread(valid), value, cast(convert_to_tensor(fill_value), name_of(value)))
        if weight is not None:
            value = value * spread(weight)
        total = value if total is None else total + value
    return total


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    inputs, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != len(inputs.shape):
        raise ValueError("First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with "
                         f"shape: {tuple(inputs.shape)} and coordinate leading dim of {coordinates.shape[0]}")
    if len(coordinates.shape) < 2:
        raise ValueError("Invalid coordinates rank: expected at least rank 2. Received input with shape: "
                         f"{tuple(coordinates.shape)}")
    _expect("fill_mode", fill_mode, MAP_COORDINATES_FILL_MODES)
    _expect("order", order, [0, 1])
    dtype = name_of(inputs)
    wide = "float64" if dtype == "float64" else "float32"
    flat = tf.reshape(cast(inputs, wide), [-1])
    out = _interpolated(lambda at: tf.gather(flat, at), inputs.shape, tf.unstack(cast(coordinates, wide)), order,
                        fill_mode, fill_value)
    if is_whole(dtype):
        out = _m.floor(_m.abs(out) + 0.5) * _m.sign(out)
    return cast(out, dtype)


def _sampled(images, rows, columns, order, mode, fill_value):
    """Images [n, h, w, c] with the pixel at (rows, columns), each [n, h', w'], in place of each."""
    dtype = name_of(images)
    n, height, width, channels = images.shape
    flat = tf.reshape(cast(images, name_of(rows)), [n, height * width, channels])
    out = _interpolated(lambda at: tf.gather(flat, at, axis=1, batch_dims=1), (height, width), (rows, columns), order,
                        mode, fill_value, lambda x: tf.expand_dims(x, -1))
    return _to(out, dtype)


def _grid(height, width, dtype):
    """The rows and the columns of the pixels, [1, h, w]."""
    y = tf.reshape(cast(tf.range(height), dtype), [1, height, 1])
    x = tf.reshape(cast(tf.range(width), dtype), [1, 1, width])
    return y + tf.zeros_like(x), x + tf.zeros_like(y)


def _parts(transform, dtype):
    """The numbers of transforms [n, 8], each [n, 1, 1]."""
    return [tf.reshape(v, [-1, 1, 1]) for v in tf.unstack(cast(transform, dtype), axis=1)]


def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0,
                     data_format=None):
    _expect("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _expect("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images, back = _batched(images, data_format)
    transform = convert_to_tensor(transform)
    if len(transform.shape) not in (1, 2):
        raise ValueError("Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
                         f"Received input with shape: transform.shape={tuple(transform.shape)}")
    n, height, width, _ = images.shape
    wide = "float64" if name_of(images) == "float64" else "float32"
    transform = tf.broadcast_to(tf.reshape(transform, [-1, 8]), [n, 8])
    a0, a1, a2, b0, b1, b2, _, _ = _parts(transform, wide)
    y, x = _grid(height, width, wide)
    return back(_sampled(images, b0 * x + b1 * y + b2, a0 * x + a1 * y + a2,
                         AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], fill_mode, fill_value))


def perspective_transform(images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None):
    _expect("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    images, back = _batched(images, data_format)
    start_points, end_points = (convert_to_tensor(p, "float32") for p in (start_points, end_points))
    for name, points in (("start_points", start_points), ("end_points", end_points)):
        if tuple(points.shape)[-2:] != (4, 2) or len(points.shape) not in (2, 3):
            raise ValueError(f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                             f"Received shape: {tuple(points.shape)}")
    if tuple(start_points.shape) != tuple(end_points.shape):
        raise ValueError("start_points and end_points must have the same shape. Received "
                         f"start_points.shape={tuple(start_points.shape)}, "
                         f"end_points.shape={tuple(end_points.shape)}")
    n, height, width, _ = images.shape
    start_points, end_points = (tf.reshape(p, [-1, 4, 2]) for p in (start_points, end_points))
    transform = tf.broadcast_to(compute_homography_matrix(start_points, end_points), [n, 8])
    a0, a1, a2, b0, b1, b2, c0, c1 = _parts(transform, "float32")
    y, x = _grid(height, width, "float32")
    share = c0 * x + c1 * y + 1
    return back(_sampled(images, (b0 * x + b1 * y + b2) / share, (a0 * x + a1 * y + a2) / share,
                         AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], "constant", fill_value))


def compute_homography_matrix(start_points, end_points):
    start_points, end_points = convert_to_tensor(start_points), convert_to_tensor(end_points)
    start_x, start_y = tf.unstack(start_points, axis=-1)
    x, y = tf.unstack(end_points, axis=-1)
    zero, one = tf.zeros_like(x), tf.ones_like(x)
    rows = [tf.stack([x, y, one, zero, zero, zero, -start_x * x, -start_x * y], -1),
            tf.stack([zero, zero, zero, x, y, one, -start_y * x, -start_y * y], -1)]
    wanted = tf.expand_dims(tf.concat([start_x, start_y], -1), -1)
    return tf.squeeze(tf.linalg.solve(tf.concat(rows, -2), wanted), [-1])


# Filters.
def _bell(size, sigma, dtype):
    x = cast(tf.range(size), dtype) - convert_to_tensor((size - 1) / 2, dtype)
    weights = _m.exp(-0.5 * _m.square(x / sigma))
    return weights / tf.reduce_sum(weights)


def _filtered(images, kernel):
    """Each channel of images [n, h, w, c] by a kernel [h, w, m]."""
    kernel = tf.tile(tf.expand_dims(kernel, 2), [1, 1, images.shape[-1], 1])
    return depthwise_conv(images, kernel, 1, "same", "channels_last")


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images, back = _batched(images, data_format)
    dtype = name_of(images)
    sigma = convert_to_tensor(sigma, dtype)
    along_x, along_y = (_bell(kernel_size[i], sigma[i], dtype) for i in (0, 1))
    return back(_filtered(images, tf.reshape(along_y, [-1, 1, 1]) * tf.reshape(along_x, [1, -1, 1])))


def sobel_edges(images, data_format=None):
    images, _ = _batched(images, data_format)
    edges = tf.image.sobel_edges(images)  # with mirrored borders
    return tf.transpose(edges, [0, 3, 1, 2, 4]) if data_format == "channels_first" else edges


def elastic_transform(images, alpha=20.0, sigma=5.0, interpolation="bilinear", fill_mode="reflect", fill_value=0.0,
                      seed=None, data_format=None):
    from keras_berth.src.random import normal
    _expect("interpolation", interpolation, AFFINE_TRANSFORM_INTERPOLATIONS)
    _expect("fill_mode", fill_mode, AFFINE_TRANSFORM_FILL_MODES)
    images, back = _batched(images, data_format)
    n, height, width, _ = images.shape
    wide = "float64" if name_of(images) == "float64" else "float32"
    # The size of the filter has to be known when the function is traced.
    size = int(6 * float(sigma)) | 1
    moves = normal([n, height, width, 2], 0.0, float(sigma), wide, seed)
    moves = gaussian_blur(moves, (size, size), (float(sigma), float(sigma)), "channels_last")
    down, right = tf.unstack(moves * cast(convert_to_tensor(alpha), wide), axis=-1)
    y, x = _grid(height, width, wide)
    return back(_sampled(images, y + down, x + right, AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], fill_mode,
                         fill_value))
