// AugmentBase: batches, dtypes and draws.

#include "keras/layers/augment.h"

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "keras/layers/image_resize.h"

namespace berth::keras {

Tensors AugmentBase::call(const Tensors& inputs, bool training) {
  const Tensor& x = one_input(state(), inputs);
  const bool single = x.rank() == 3;
  if (x.rank() != 4 && !single) {
    fail_in(state(), "{}: the input is {}; expected [n, h, w, c] or [h, w, c]",
            state().type, x.shape().str());
  }
  Tensor y = math::cast(x, float32, site());
  if (single) y = expand_dims(y, 0, site());
  check_known_pixels(state(), y);
  y = change(y, training);
  return {single ? squeeze(y, {0}, site()) : y};
}

AugmentBase::Range AugmentBase::range_of(const char* what, const Factor& f,
                                         double least, double most) const {
  const Range r{f.lower.value_or(std::max(-f.upper, least)), f.upper};
  if (r.low >= least && r.high <= most && r.low <= r.high) return r;
  fail_in(state(), "{}: {} is [{}, {}]; expected it in [{}, {}]", state().type,
          what, r.low, r.high, least, most);
}

Tensor AugmentBase::draw(const Tensor& x, Range r, int rank) const {
  const int64_t n = x.shape()[0];
  if (n < 0) {
    fail_in(state(),
            "{}: the input is {}; expected a known number of images "
            "in training",
            state().type, x.shape().str());
  }
  Shape shape{n, 1};
  while (shape.rank() < rank) shape.push_back(1);
  if (r.low == r.high) return fill(shape, r.low, float32, site());
  return random::uniform(
      shape, {.minval = r.low, .maxval = r.high, .seed = seed_}, site());
}

Tensor AugmentBase::signs(const Tensor& x, int rank) const {
  const Tensor u = draw(x, {0, 1}, rank);
  return 1.0 - math::cast(u > 0.5, float32, site()) * 2.0;
}

Tensor AugmentBase::cut(const Tensor& x, const ValueRange& r) const {
  return clip_by_value(x, r.low, r.high, site());
}

void AugmentBase::check_range(const ValueRange& r) const {
  if (r.low < r.high && r.high - r.low < 1e30) return;
  fail_in(state(),
          "{}: value_range is [{}, {}]; expected two finite numbers "
          "that ascend",
          state().type, r.low, r.high);
}

Tensor AugmentBase::moved(const Tensor& x, const ValueRange& from,
                          const ValueRange& to) const {
  if (from.low == to.low && from.high == to.high) return x;
  const double scale = (to.high - to.low) / (from.high - from.low);
  return (x - from.low) * scale + to.low;
}

Tensor AugmentBase::centered(const Tensor& x, int64_t height,
                             int64_t width) const {
  const int64_t h = x.shape()[1], w = x.shape()[2];
  auto part = [&](int64_t ph, int64_t pw) {
    return slice(x, {0, (h - ph) / 2, (w - pw) / 2, 0}, {-1, ph, pw, -1},
                 site());
  };
  if (h >= height && w >= width) return part(height, width);
  // The largest part of that aspect ratio.
  const int64_t ph = std::clamp<int64_t>(w * height / width, 1, h);
  const int64_t pw = std::clamp<int64_t>(h * width / height, 1, w);
  return resized(part(ph, pw), height, width, Interpolation::kBilinear, false,
                 site());
}

Tensor AugmentBase::grey(const Tensor& x) const {
  if (x.shape()[3] != 3) {
    fail_in(state(), "{}: the input is {}; expected three channels",
            state().type, x.shape().str());
  }
  const Tensor shares =
      constant(std::vector<float>{0.2989f, 0.5870f, 0.1140f}, {3}, site());
  return math::reduce_sum(
      x * shares, {.axis = std::vector<int64_t>{-1}, .keepdims = true}, site());
}

}  // namespace berth::keras
