"""Boxes of which only the best stay: tf.image.combined_non_max_suppression and its kin. They work on the host."""
import collections
import heapq

from berth import _core
from berth._lazy import Lazy
from berth._tensor import convert_to_tensor

_np, _ops = Lazy("numpy"), _core.ops
CombinedNonMaxSuppression = collections.namedtuple(
    "CombinedNonMaxSuppression", "nmsed_boxes nmsed_scores nmsed_classes valid_detections")


def _overlap(boxes, i, others):
    """Shared area over common area of a box and others, in float32."""
    low, high = _np.minimum(boxes[:, :2], boxes[:, 2:]), _np.maximum(boxes[:, :2], boxes[:, 2:])
    area = _np.prod(high - low, 1)
    shared = _np.prod(_np.maximum(_np.minimum(high[i], high[others]) - _np.maximum(low[i], low[others]), 0), 1)
    whole = area[i] + area[others] - shared
    return _np.where((area[i] > 0) & (area[others] > 0), shared / _np.where(whole > 0, whole, 1), 0)


def _best(scores, overlap, most, threshold, score_threshold, sigma=0.0):
    """The places of the best that overlap no better one, and their scores; with sigma scores fall by what overlaps."""
    queue = [(-float(s), i, 0) for i, s in enumerate(scores) if s > score_threshold]
    heapq.heapify(queue)
    found, values = [], []
    while queue and len(found) < most:
        score, i, seen = heapq.heappop(queue)
        value, begin = -score, -score
        gone = False
        if found[seen:]:
            for like in overlap(i, found[seen:])[::-1].tolist():
                if sigma == 0 and like > threshold:
                    gone = True
                    break
                if sigma > 0:
                    value = float(_np.float32(value * _np.exp(-0.5 * like * like / sigma)))
                    if value <= score_threshold:
                        break
        if gone:
            continue
        if value == begin:
            found.append(i)
            values.append(value)
        elif value > score_threshold:
            heapq.heappush(queue, (-value, i, len(found)))
    return found, values


def _both(what, boxes, scores, size):
    b, s = convert_to_tensor(boxes).numpy(), convert_to_tensor(scores).numpy()
    if s.ndim != 1 or b.shape != (len(s), size or len(s)):
        raise _core.InvalidArgumentError(f"{what}: boxes or overlaps are {list(b.shape)}, scores {list(s.shape)}; expected "
                                         f"[n, {size or 'n'}] and [n]")
    return b, s


def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                                    soft_nms_sigma=0.0, name=None):
    """The places of the best boxes [n, 4] that overlap no better one, and their scores, (places, scores).

    With soft_nms_sigma > 0 boxes that overlap stay, with lower scores.
    """
    b, s = _both("non_max_suppression_with_scores", boxes, scores, 4)
    found, values = _best(s, lambda i, others: _overlap(b, i, others), int(max_output_size), float(iou_threshold),
                          float(score_threshold), float(soft_nms_sigma))
    return convert_to_tensor(_np.asarray(found, "int32")), convert_to_tensor(_np.asarray(values, s.dtype))


def non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold=0.5, score_threshold=float("-inf"),
                                 name=None):
    """The places of the best of which no better one overlaps more than overlap_threshold: overlaps [n, n]."""
    o, s = _both("non_max_suppression_overlaps", overlaps, scores, None)
    found, _ = _best(s, lambda i, others: o[i, others], int(max_output_size), float(overlap_threshold), float(score_threshold))
    return convert_to_tensor(_np.asarray(found, "int32"))


def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold=0.5,
                                 score_threshold=float("-inf"), pad_per_class=False, clip_boxes=True, name=None):
    """The best boxes of pictures, by classes: boxes [n, count, classes or 1, 4], scores [n, count, classes].

    (boxes [n, size, 4], scores, classes, how many there are), filled up with zeros to max_total_size; with pad_per_class to
    max_output_size_per_class * classes at most.
    """
    b, s = convert_to_tensor(boxes).numpy(), convert_to_tensor(scores).numpy()
    if b.ndim != 4 or s.ndim != 3 or b.shape[:2] != s.shape[:2] or b.shape[2] not in (1, s.shape[2]) or b.shape[3] != 4:
        raise _core.InvalidArgumentError(f"combined_non_max_suppression: boxes are {list(b.shape)}, scores {list(s.shape)}; "
                                         "expected [n, count, classes or 1, 4] and [n, count, classes]")
    per_class, size = int(max_output_size_per_class), int(max_total_size)
    size = min(size, per_class * s.shape[2]) if pad_per_class else size
    out = _np.zeros([len(b), size, 4], "float32"), _np.zeros([len(b), size], "float32"), _np.zeros([len(b), size], "float32")
    valid = _np.zeros(len(b), "int32")
    for n in range(len(b)):
        rows = []
        for c in range(s.shape[2]):
            own = b[n, :, min(c, b.shape[2] - 1)]
            found, values = _best(s[n, :, c], lambda i, others: _overlap(own, i, others), min(per_class, len(own)),
                                  float(iou_threshold), float(score_threshold))
            rows += [(v, own[i], c) for i, v in zip(found, values)]
        rows.sort(key=lambda row: -row[0])
        valid[n] = min(len(rows), size)
        for k, (value, box, c) in enumerate(rows[:size]):
            out[0][n, k], out[1][n, k], out[2][n, k] = _np.clip(box, 0, 1) if clip_boxes else box, value, c
    return CombinedNonMaxSuppression(*[convert_to_tensor(v) for v in (*out, valid)])


def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                               pad_to_max_output_size=False, name=None, sorted_input=False, canonicalized_coordinates=False,
                               tile_size=512):
    """(indices of the boxes that overlap no better one, how many): as many, or with zeros max_output_size; of a batch the latter.

    sorted_input, canonicalized_coordinates, tile_size: what the engine does is right for any boxes.
    """
    boxes, scores = convert_to_tensor(boxes), convert_to_tensor(scores)
    limits = (int(max_output_size), float(iou_threshold), float(score_threshold))
    batch = boxes.shape.as_list()[:-2]
    if not batch:
        found, count = _ops.image.non_max_suppression_padded(boxes, scores, *limits)
        return (found, count) if pad_to_max_output_size or sorted_input or canonicalized_coordinates else (found[:int(count)], count)
    if not pad_to_max_output_size:
        raise ValueError("non_max_suppression_padded: a batch has results of one length; expected pad_to_max_output_size=True")
    flat = zip(_ops.unstack(_ops.reshape(boxes, [-1, *boxes.shape[-2:]])), _ops.unstack(_ops.reshape(scores, [-1, scores.shape[-1]])))
    found, count = zip(*[_ops.image.non_max_suppression_padded(b, s, *limits) for b, s in flat])
    return _ops.reshape(_ops.stack(found), [*batch, limits[0]]), _ops.reshape(_ops.stack(count), batch)
