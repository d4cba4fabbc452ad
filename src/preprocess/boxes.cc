// Pictures through transforms and boxes: places between pixels are weighted
// means of up to four.

#include <fmt/format.h>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/image_boxes.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "ops/named_call.h"
#include "preprocess/image_util.h"

namespace berth::image {

namespace {

// Places float32 [m, height, width] in pictures, first[i] [m, 1, 1] of which is
// the first pixel of the picture of row i.
struct Places {
  Tensor y, x, first;
};

Tensor float_of(double v) { return constant(static_cast<float>(v)); }

// Numbers from 0 on along the height or the width of [1, height, width].
Tensor grid(int64_t n, bool down) {
  const Tensor row = math::cast(range(0, n, 1, int32), float32);
  return reshape(row, down ? Shape{1, n, 1} : Shape{1, 1, n});
}

// Pixels at whole places; `fill` outside of the picture and where a place is
// no number.
Tensor pixels_at(const Tensor& flat, const ImageLayout& l, const Tensor& y,
                 const Tensor& x, const Tensor& first, double fill) {
  const Tensor zero = float_of(0);
  const Tensor bottom = float_of(static_cast<double>(l.height - 1));
  const Tensor right = float_of(static_cast<double>(l.width - 1));
  const Tensor inside =
      math::logical_and(math::logical_and(math::greater_equal(y, zero),
                                          math::less_equal(y, bottom)),
                        math::logical_and(math::greater_equal(x, zero),
                                          math::less_equal(x, right)));
  const Tensor row = math::cast(where(inside, y, zero), int32);
  const Tensor column = math::cast(where(inside, x, zero), int32);
  const Tensor width = constant(static_cast<int>(l.width));
  const Tensor value = gather(flat, first + row * width + column, 0);
  return where(expand_dims(inside, -1), value, float_of(fill));
}

Tensor half_away(const Tensor& v) {
  return math::sign(v) * math::floor(math::abs(v) + 0.5);
}

// float32 [m, height, width, channels].
Tensor sampled(const Tensor& images, const ImageLayout& l, const Places& p,
               bool nearest, double fill) {
  const Tensor flat = reshape(math::cast(images, float32), {-1, l.channels});
  if (nearest) {
    return pixels_at(flat, l, half_away(p.y), half_away(p.x), p.first, fill);
  }
  const Tensor top = math::floor(p.y), left = math::floor(p.x);
  const Tensor down = expand_dims(p.y - top, -1);
  const Tensor right = expand_dims(p.x - left, -1);
  const auto row = [&](const Tensor& y) {
    return pixels_at(flat, l, y, left, p.first, fill) * (1.0 - right) +
           pixels_at(flat, l, y, left + 1.0, p.first, fill) * right;
  };
  return row(top) * (1.0 - down) + row(top + 1.0) * down;
}

// Where the pixel that stands for one outside of 0 ... n - 1 is.
Tensor mapped(const Tensor& at, int64_t length, const std::string& mode) {
  if (mode == "CONSTANT") return at;
  const auto n = static_cast<double>(length);
  Tensor in = at;
  if (length > 1 && mode == "REFLECT") {
    const Tensor part = math::floormod(at, float_of(2 * n));
    in = where(math::greater_equal(part, float_of(n)), 2 * n - 1 - part, part);
  } else if (length > 1 && mode == "WRAP") {
    const auto turns = [&](const Tensor& v) {
      return math::floor(v / (n - 1));
    };
    in = where(
        math::less(at, float_of(0)), at + (turns(-at) + 1.0) * n,
        where(math::greater(at, float_of(n - 1)), at - turns(at) * n, at));
  }
  return clip_by_value(in, 0, n - 1);
}

ImageLayout batch_layout(const Tensor& images, const char* name, Site site) {
  const ImageLayout l = known_layout_of(images, name, site);
  if (!l.batched || l.height < 1 || l.width < 1) {
    refuse(name, site,
           fmt::format("the images are {}; expected [n, height, width, "
                       "channels] with pixels",
                       images.shape().str()));
  }
  return l;
}

}  // namespace

Tensor projective_transform(const Tensor& images, const Tensor& transforms,
                            Size size, const ProjectiveOptions& o, Site site) {
  const char* name = "projective_transform";
  set_site(site);
  const ImageLayout l = batch_layout(images, name, site);
  const Shape& t = transforms.shape();
  if (t.rank() != 2 || t[1] != 8 || size.height < 1 || size.width < 1) {
    refuse(name, site,
           fmt::format("transforms are {}, output_shape is {} x {}; expected "
                       "[n, 8] or [1, 8] and 1 or more",
                       t.str(), size.height, size.width));
  }
  const bool nearest = o.interpolation == "NEAREST";
  if (!nearest && o.interpolation != "BILINEAR") {
    refuse(name, site,
           fmt::format("interpolation is \"{}\"; expected BILINEAR or NEAREST",
                       o.interpolation));
  }
  if (o.fill_mode != "CONSTANT" && o.fill_mode != "NEAREST" &&
      o.fill_mode != "REFLECT" && o.fill_mode != "WRAP") {
    refuse(name, site,
           fmt::format("fill_mode is \"{}\"; expected CONSTANT, NEAREST, "
                       "REFLECT or WRAP",
                       o.fill_mode));
  }
  const Tensors k = unstack(math::cast(transforms, float32), 1);
  const auto of = [&](int i) {
    return expand_dims(expand_dims(k[static_cast<size_t>(i)], -1), -1);
  };
  const Tensor y = grid(size.height, true), x = grid(size.width, false);
  const Tensor by = of(6) * x + of(7) * y + 1.0;
  // One transform may serve every picture.
  const Tensor first =
      reshape(math::cast(range(0, l.n, 1, int32), int32) *
                  constant(static_cast<int>(l.height * l.width)),
              {l.n, 1, 1});
  const Tensor rows = math::cast(first * constant(0), float32);
  Places p;
  p.first = first;
  p.x =
      mapped((of(0) * x + of(1) * y + of(2)) / by, l.width, o.fill_mode) + rows;
  p.y = mapped((of(3) * x + of(4) * y + of(5)) / by, l.height, o.fill_mode) +
        rows;
  return math::cast(sampled(images, l, p, nearest, o.fill_value),
                    images.dtype(), site);
}

Tensor crop_and_resize(const Tensor& image, const Tensor& boxes,
                       const Tensor& box_indices, Size size,
                       const CropOptions& o, Site site) {
  const char* name = "crop_and_resize";
  set_site(site);
  const ImageLayout l = batch_layout(image, name, site);
  const Shape& s = boxes.shape();
  if (s.rank() != 2 || s[1] != 4 || box_indices.rank() != 1 ||
      size.height < 1 || size.width < 1 ||
      (o.method != "bilinear" && o.method != "nearest")) {
    refuse(name, site,
           fmt::format("boxes are {}, box_indices {}, crop_size is {} x {}, "
                       "method \"{}\"; expected [m, 4], [m], 1 or more, and "
                       "bilinear or nearest",
                       s.str(), box_indices.shape().str(), size.height,
                       size.width, o.method));
  }
  const Tensors k = unstack(math::cast(boxes, float32), 1);
  // From `from` to `to`, parts of the pixels of an axis less one.
  const auto line = [&](int from, int to, int64_t pixels, int64_t n,
                        bool down) {
    const auto at = [&](int i) {
      return expand_dims(expand_dims(k[static_cast<size_t>(i)], -1), -1) *
             static_cast<double>(pixels - 1);
    };
    if (n == 1) return (at(from) + at(to)) * 0.5;
    return at(from) +
           grid(n, down) * ((at(to) - at(from)) / static_cast<double>(n - 1));
  };
  const Tensor none = math::cast(zeros({1, size.height, size.width}), float32);
  const Tensor y = line(0, 2, l.height, size.height, true) + none;
  const Tensor x = line(1, 3, l.width, size.width, false) + none;
  Places p{y, x, {}};
  p.first = expand_dims(
      expand_dims(math::cast(box_indices, int32) *
                      constant(static_cast<int>(l.height * l.width)),
                  -1),
      -1);
  // The whole place, not each of its four pixels, is inside or not.
  const Tensor inside = math::logical_and(
      math::equal(y, clip_by_value(y, 0, static_cast<double>(l.height - 1))),
      math::equal(x, clip_by_value(x, 0, static_cast<double>(l.width - 1))));
  const Tensor value = sampled(image, l, p, o.method == "nearest", 0);
  return where(expand_dims(inside, -1), value, float_of(o.extrapolation_value),
               site);
}

Suppressed non_max_suppression_padded(const Tensor& boxes, const Tensor& scores,
                                      int64_t max_output_size,
                                      const SuppressionOptions& o, Site site) {
  set_site(site);
  (void)boxes.dtype();
  const Tensors r = call_many(op_of<"NonMaxSuppression">(), {&boxes, &scores},
                              AttrsRef({{"max_output_size", max_output_size},
                                        {"iou_threshold", o.iou_threshold},
                                        {"score_threshold", o.score_threshold}})
                                  .get());
  return {r[0], r[1]};
}

Tensor non_max_suppression(const Tensor& boxes, const Tensor& scores,
                           int64_t max_output_size, const SuppressionOptions& o,
                           Site site) {
  set_site(site);
  if (boxes.is_symbolic() || tracing()) {
    throw Untraceable<errors::InvalidArgument>(fmt::format(
        "non_max_suppression: the length of the result depends on values, "
        "which a traced function does not have{}; expected "
        "non_max_suppression_padded",
        where_text()));
  }
  const Suppressed r =
      non_max_suppression_padded(boxes, scores, max_output_size, o, site);
  return slice(r.selected_indices, {0}, {r.valid_outputs.item<int32_t>()},
               site);
}

Tensor sobel_edges(const Tensor& image, Site site) {
  const ImageLayout l = known_layout_of(image, "sobel_edges", site);
  if (!l.batched) {
    refuse("sobel_edges", site,
           fmt::format("the image is {}; expected [n, height, width, channels]",
                       image.shape().str()));
  }
  const std::vector<float> pair = {-1, -1, -2, 0, -1, 1, 0, -2, 0,
                                   0,  0,  2,  1, -1, 2, 0, 1,  1};
  const Tensor filters =
      tile(math::cast(constant(pair, {3, 3, 1, 2}), image.dtype()),
           {1, 1, l.channels, 1});
  const Tensor padded =
      pad(image, {0, 0, 1, 1, 1, 1, 0, 0}, {.mode = "REFLECT"}, site);
  const Shape& s = image.shape();
  return reshape(nn::depthwise_conv2d(padded, filters, {}, site),
                 {s[0], s[1], s[2], s[3], 2}, site);
}

}  // namespace berth::image
