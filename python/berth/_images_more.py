"""tf.image: likeness of pictures, boxes drawn, glimpses, distorted crops."""
from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor, float32, int32

_ops, _m, _i = _core.ops, _core.ops.math, _core.ops.image
_np = Lazy("numpy")


def _pictures(what, img1, img2, max_val):
    a, b = convert_to_tensor(img1), convert_to_tensor(img2)
    if len(a.shape) < 3 or a.shape[-3:].as_list() != b.shape[-3:].as_list():
        raise ValueError(f"{what}: the pictures are {a.shape} and {b.shape}; expected [..., height, width, channels] of one size")
    top = convert_to_tensor(max_val, a.dtype)
    return [_i.convert_image_dtype(v, float32) for v in (a, b, top)]


def _likeness(a, b, top, size, sigma, k1, k2):
    """By windows and channels: the likeness of brightness, and that of contrast and structure."""
    if min(a.shape[-3], a.shape[-2]) < size:
        raise _core.InvalidArgumentError(f"ssim: the pictures are {a.shape}; expected at least filter_size, {size}, pixels "
                                         "along each side")
    at = _np.exp(-0.5 * _np.square((_np.arange(size) - (size - 1) / 2) / sigma))
    window = _np.outer(at, at) / at.sum() ** 2
    channels = a.shape[-1]
    window = convert_to_tensor(_np.tile(window[:, :, None, None], [1, 1, channels, 1]).astype("float32"))

    def mean(x):
        lead = x.shape.as_list()[:-3]
        y = _ops.nn.depthwise_conv2d(_ops.reshape(x, [-1, *x.shape.as_list()[-3:]]), window, 1, "VALID")
        return _ops.reshape(y, [*lead, *y.shape.as_list()[1:]])
    ma, mb = mean(a), mean(b)
    both, squares = 2.0 * ma * mb, ma * ma + mb * mb
    c1, c2 = _m.square(k1 * top), _m.square(k2 * top)
    bright = (both + c1) / (squares + c1)
    return bright, (2.0 * mean(a * b) - both + c2) / (mean(a * a + b * b) - squares + c2)


def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03, return_index_map=False):
    """The structural similarity of pictures [..., height, width, channels]: [...], or with return_index_map of each window."""
    bright, rest = _likeness(*_pictures("ssim", img1, img2, max_val), int(filter_size), float(filter_sigma), k1, k2)
    out = bright * rest
    return _m.reduce_mean(out, -1) if return_index_map else _m.reduce_mean(_m.reduce_mean(out, [-3, -2]), -1)


def ssim_multiscale(img1, img2, max_val, power_factors=(0.0448, 0.2856, 0.3001, 0.2363, 0.1333), filter_size=11, filter_sigma=1.5,
                    k1=0.01, k2=0.03):
    """The structural similarity of pictures at several scales, each half the one before, weighted by power_factors: [...]."""
    a, b, top = _pictures("ssim_multiscale", img1, img2, max_val)
    factors = []
    for scale, power in enumerate(power_factors):
        if scale:
            a, b = (_halved(v) for v in (a, b))
        bright, rest = _likeness(a, b, top, int(filter_size), float(filter_sigma), k1, k2)
        part = bright * rest if scale == len(power_factors) - 1 else rest
        factors.append(_m.pow(_ops.nn.relu(_m.reduce_mean(part, [-3, -2])), power))
    return _m.reduce_mean(_m.reduce_prod(_ops.stack(factors), 0), -1)


def _halved(x):
    lead, (height, width, channels) = x.shape.as_list()[:-3], x.shape.as_list()[-3:]
    flat = _ops.reshape(x, [-1, height, width, channels])
    if height % 2 or width % 2:
        flat = _ops.pad(flat, [0, 0, 0, height % 2, 0, width % 2, 0, 0], mode="SYMMETRIC")
    y = _ops.nn.avg_pool2d(flat, 2, 2, "VALID")
    return _ops.reshape(y, [*lead, *y.shape.as_list()[1:]])


_COLORS = [[1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [.5, 0, .5, 1], [.5, .5, 0, 1], [.5, 0, 0, 1], [0, 0, .5, 1],
           [0, 1, 1, 1], [1, 0, 1, 1]]


def draw_bounding_boxes(images, boxes, colors, name=None):
    """Pictures [n, height, width, channels] with the outlines of boxes [n, boxes, (top, left, bottom, right)], shares of the
    sides.

    colors [count, channels] come in turn; None: ten of their own.
    """
    x, boxes = convert_to_tensor(images), convert_to_tensor(boxes)
    if len(x.shape) != 4 or len(boxes.shape) != 3 or boxes.shape[-1] != 4 or boxes.shape[0] != x.shape[0]:
        raise _core.InvalidArgumentError(f"draw_bounding_boxes: images are {x.shape}, boxes {boxes.shape}; expected [n, "
                                         "height, width, channels] and [n, boxes, 4]")
    _, height, width, channels = x.shape.as_list()
    if colors is None:
        colors = _np.asarray(_COLORS, "float32")
        colors = _np.ones([1, 1], "float32") if channels == 1 else colors[:, :channels]
    colors = _m.cast(convert_to_tensor(colors), x.dtype)
    if colors.shape[-1] > channels:
        colors = colors[:, :channels]
    sides = convert_to_tensor(_np.asarray([height - 1, width - 1] * 2, "float32"))
    edges = _m.cast(_m.cast(boxes, float32) * sides, int32)  # toward 0
    rows = _ops.reshape(_ops.range(0, height, 1, int32), [1, -1, 1, 1])
    columns = _ops.reshape(_ops.range(0, width, 1, int32), [1, 1, -1, 1])
    for b in range(boxes.shape[1]):
        top, left, bottom, right = (_ops.reshape(edges[:, b, k], [-1, 1, 1, 1]) for k in range(4))
        down = _m.logical_and(_m.greater_equal(rows, top), _m.less_equal(rows, bottom))
        across = _m.logical_and(_m.greater_equal(columns, left), _m.less_equal(columns, right))
        line = _m.logical_or(_m.logical_and(_m.logical_or(_m.equal(rows, top), _m.equal(rows, bottom)), across),
                             _m.logical_and(_m.logical_or(_m.equal(columns, left), _m.equal(columns, right)), down))
        x = _ops.where(line, colors[b % colors.shape[0]], x)
    return x


def extract_glimpse(input, size, offsets, centered=True, normalized=True, noise="uniform", name=None):
    """Windows of a size [height, width] of pictures [n, height, width, channels] at offsets [n, (y, x)]; outside of them is
    noise.

    normalized: offsets are shares of the sides, else pixels; centered: from the middle, from -1 to 1. The offsets say where
    windows
    begin; with both, where their middles are. noise: "uniform", "gaussian" or "zero".
    """
    x = convert_to_tensor(input)
    offsets = _m.cast(convert_to_tensor(offsets), float32)
    high, wide = (int(v) for v in (size if isinstance(size, (list, tuple)) else convert_to_tensor(size).numpy()))
    if noise not in ("uniform", "gaussian", "zero"):
        raise ValueError(f"extract_glimpse: noise is {noise!r}; expected 'uniform', 'gaussian' or 'zero'")
    n, height, width, channels = x.shape.as_list()
    at = []
    for k, (length, part) in enumerate(((height, high), (width, wide))):
        start = offsets[:, k] * (float(length) if normalized else 1.0)
        if centered:  # of shares the middle of the window is there, of pixels its first
            start = (start - part) / 2.0 + length / 2.0 if normalized else start + length / 2.0
        start = _m.cast(start, int32)
        at.append(_ops.expand_dims(start, 1) + _ops.range(0, part, 1, int32))
    rows, columns = (_m.minimum(_m.maximum(v, 0), length - 1) for v, length in zip(at, (height, width)))
    inside = [_m.equal(v, cut) for v, cut in zip(at, (rows, columns))]
    y = _picked(x, rows, columns)
    known = _m.logical_and(_ops.reshape(inside[0], [n, high, 1, 1]), _ops.reshape(inside[1], [n, 1, wide, 1]))
    shape = [n, high, wide, channels]
    other = {"uniform": lambda: _m.cast(_ops.random.uniform(shape, 0, 1, float32), x.dtype),
             "gaussian": lambda: _m.cast(_ops.random.normal(shape), x.dtype), "zero": lambda: _ops.zeros(shape, x.dtype)}[noise]()
    return _ops.where(known, y, other)


def _picked(x, rows, columns):
    """x[n, rows[n], columns[n]]."""
    y = _ops.gather(x, rows, axis=1, batch_dims=1)
    y = _ops.transpose(y, [0, 2, 1, 3])
    return _ops.transpose(_ops.gather(y, columns, axis=1, batch_dims=1), [0, 2, 1, 3])


def _distorted(what, image_size, bounding_boxes, rng, covered, aspect, area, attempts, whole):
    """(begin, size, box) of a random crop that covers enough of a box; of the whole picture when none is found."""
    height, width = (int(v) for v in convert_to_tensor(image_size).numpy()[:2])
    boxes = convert_to_tensor(bounding_boxes).numpy().reshape(-1, 4).astype("float64")
    aspect, area = aspect or (0.75, 1.33), area or (0.05, 1.0)
    if not 0 <= covered <= 1 or not 0 < aspect[0] <= aspect[1] or not 0 < area[0] <= area[1] <= 1:
        raise _core.InvalidArgumentError(f"{what}: min_object_covered is {covered}, aspect_ratio_range {aspect}, area_range "
                                         f"{area}; expected shares from 0 to 1 and ranges in order, above 0")
    if not len(boxes):
        if not whole:
            raise _core.InvalidArgumentError(f"{what}: there are no bounding boxes; expected one, or "
                                             "use_image_if_no_bounding_boxes=True")
        boxes = _np.asarray([[0.0, 0.0, 1.0, 1.0]])
    pixels = boxes * [height, width, height, width]
    top = left = 0
    rows, columns = height, width
    for _ in range(int(attempts or 100)):
        ratio = rng.uniform(*aspect)
        # The least and greatest height at which the area fits.
        most = min(height, width / ratio, _np.sqrt(area[1] * height * width / ratio))
        least = _np.sqrt(area[0] * height * width / ratio)
        if least > most:
            continue
        h = int(round(rng.uniform(least, most)))
        w = int(round(h * ratio))
        if not 0 < h <= height or not 0 < w <= width or not area[0] <= h * w / (height * width) <= area[1] + 1e-9:
            continue
        y, x = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - w + 1))
        shared = (_np.maximum(0, _np.minimum(pixels[:, 2], y + h) - _np.maximum(pixels[:, 0], y))
                  * _np.maximum(0, _np.minimum(pixels[:, 3], x + w) - _np.maximum(pixels[:, 1], x)))
        full = (pixels[:, 2] - pixels[:, 0]) * (pixels[:, 3] - pixels[:, 1])
        if ((full > 0) & (shared >= covered * full)).any():
            top, left, rows, columns = y, x, h, w
            break
    kind = convert_to_tensor(image_size).numpy().dtype
    box = _np.asarray([[[top / height, left / width, (top + rows) / height, (left + columns) / width]]], "float32")
    return tuple(convert_to_tensor(v) for v in (_np.asarray([top, left, 0], kind), _np.asarray([rows, columns, -1], kind), box))


def sample_distorted_bounding_box(image_size, bounding_boxes, seed=0, min_object_covered=0.1, aspect_ratio_range=None,
                                  area_range=None,
                                  max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """A random crop of a picture that covers enough of one of the boxes [1, n, 4]: (begin, size, box [1, 1, 4])."""
    drawn = int(seed) if seed else int(_ops.random.uniform([], 0, 2**31 - 1, int32))
    return _distorted("sample_distorted_bounding_box", image_size, bounding_boxes, _np.random.default_rng(drawn),
                      min_object_covered,
                      aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)


def stateless_sample_distorted_bounding_box(image_size, bounding_boxes, seed, min_object_covered=0.1, aspect_ratio_range=None,
                                            area_range=None, max_attempts=None, use_image_if_no_bounding_boxes=None, name=None):
    """sample_distorted_bounding_box() that is the same for the same seed [2]."""
    drawn = [int(v) & (2**64 - 1) for v in convert_to_tensor(seed).numpy()]
    return _distorted("stateless_sample_distorted_bounding_box", image_size, bounding_boxes, _np.random.default_rng(drawn),
                      min_object_covered, aspect_ratio_range, area_range, max_attempts, use_image_if_no_bounding_boxes)


def stateless_random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed):
    """The picture after JPEG of a random quality, which is the same for the same seed [2]."""
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise ValueError(f"stateless_random_jpeg_quality: the qualities are {min_jpeg_quality} and {max_jpeg_quality}; expected "
                         "0 <= min_jpeg_quality < max_jpeg_quality <= 100")
    return _i.adjust_jpeg_quality(image, int(_ops.random.stateless_uniform([], seed, min_jpeg_quality, max_jpeg_quality, int32)))
