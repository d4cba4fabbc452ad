#include "keras/layers/pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

double reach_of(Interpolation kind) {
  switch (kind) {
    case Interpolation::kBilinear:
      return 1;
    case Interpolation::kBicubic:
      return 2;
    case Interpolation::kLanczos3:
      return 3;
    case Interpolation::kLanczos5:
      return 5;
    default:
      return 0.5;
  }
}

double kernel_at(Interpolation kind, double x) {
  x = std::abs(x);
  const double reach = reach_of(kind);
  if (x >= reach) return 0;
  switch (kind) {
    case Interpolation::kBilinear:
      return 1 - x;
    case Interpolation::kBicubic:  // Keys 1981, a = -1/2
      return x < 1 ? (1.5 * x - 2.5) * x * x + 1
                   : ((-0.5 * x + 2.5) * x - 4) * x + 2;
    default: {
      if (x < 1e-9) return 1;
      constexpr double kPi = 3.14159265358979323846;
      return reach * std::sin(kPi * x) * std::sin(kPi * x / reach) /
             (kPi * kPi * x * x);
    }
  }
}

// Which pixels along an axis of `from` make each of `to`, in which shares.
struct Mix {
  int64_t from, to;
  std::vector<float> matrix;  // [to, from]
  int64_t most = 0;           // pixels that make one
};

void add_weights(Mix* mix, int64_t row, int64_t first, int64_t last,
                 const std::vector<double>& weights) {
  double sum = 0;
  for (double w : weights) sum += w;
  for (int64_t j = first; j <= last; ++j) {
    const double w = weights[static_cast<size_t>(j - first)];
    mix->matrix[static_cast<size_t>(row * mix->from + j)] =
        static_cast<float>(w / sum);
  }
  mix->most = std::max(mix->most, last - first + 1);
}

Mix mix_of(int64_t from, int64_t to, Interpolation kind, bool antialias) {
  Mix mix{from, to, std::vector<float>(static_cast<size_t>(from * to)), 0};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double wide = antialias ? std::max(scale, 1.0) : 1.0;
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    double reach = reach_of(kind) * wide;
    if (kind == Interpolation::kArea) reach = scale / 2;
    const int64_t first = std::clamp<int64_t>(
        static_cast<int64_t>(std::floor(center - reach)), 0, from - 1);
    const int64_t last = std::clamp<int64_t>(
        static_cast<int64_t>(std::ceil(center + reach)) - 1, first, from - 1);
    std::vector<double> weights;
    for (int64_t j = first; j <= last; ++j) {
      const double at = static_cast<double>(j);
      weights.push_back(kind == Interpolation::kArea
                            ? std::min(at + 1, center + reach) -
                                  std::max(at, center - reach)
                            : kernel_at(kind, (at + 0.5 - center) / wide));
    }
    add_weights(&mix, i, first, last, weights);
  }
  return mix;
}

Tensor nearest_along(const Tensor& x, int axis, int64_t to, Site site) {
  const int64_t from = x.shape()[axis];
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  std::vector<int32_t> at;
  for (int64_t i = 0; i < to; ++i) {
    const float center = (static_cast<float>(i) + 0.5f) * scale;
    at.push_back(static_cast<int32_t>(
        std::min<int64_t>(static_cast<int64_t>(center), from - 1)));
  }
  return gather(x, constant(at, {to}, site), axis, site);
}

// A few shifted copies, each with its shares, instead of a product with a
// matrix that is nearly all zeros.
Tensor taps_along(const Tensor& x, int axis, const Mix& mix, Site site) {
  Tensor sum;
  for (int64_t k = 0; k < mix.most; ++k) {
    std::vector<int32_t> at;
    std::vector<float> share;
    for (int64_t i = 0; i < mix.to; ++i) {
      const float* row = &mix.matrix[static_cast<size_t>(i * mix.from)];
      int64_t first = 0;
      while (first + 1 < mix.from && row[first] == 0) ++first;
      const int64_t j = std::min(first + k, mix.from - 1);
      at.push_back(static_cast<int32_t>(j));
      share.push_back(first + k < mix.from ? row[j] : 0);
    }
    Shape side{1, 1, 1, 1};
    side[axis] = mix.to;
    const Tensor part =
        gather(x, constant(at, {mix.to}, site), axis, site) *
        math::cast(constant(share, side, site), x.dtype(), site);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

Tensor along(const Tensor& x, int axis, int64_t to, Interpolation kind,
             bool antialias, Site site) {
  const int64_t from = x.shape()[axis];
  if (from == to) return x;
  if (kind == Interpolation::kNearest) return nearest_along(x, axis, to, site);
  const Mix mix = mix_of(from, to, kind, antialias);
  if (mix.most <= 4) return taps_along(x, axis, mix, site);
  const Tensor matrix =
      math::cast(constant(mix.matrix, {to, from}, site), x.dtype(), site);
  return einsum(axis == 1 ? "oh,nhwc->nowc" : "ow,nhwc->nhoc", {matrix, x},
                site);
}

// Coordinates that are inside, for those that are not.
Tensor mapped(const Tensor& at, int64_t length, FillMode mode, Site site) {
  const double n = static_cast<double>(length);
  Tensor in = at;
  if (mode == FillMode::kConstant) return in;
  if (length == 1) return at * 0.0;
  if (mode == FillMode::kReflect) {
    const Tensor turn = fill({}, 2 * n, at.dtype(), site);
    const Tensor t = math::floormod(at + 0.5, turn, site);
    in = math::minimum(t, 2 * n - t, site) - 0.5;
  } else if (mode == FillMode::kWrap) {
    const Tensor laps = math::floor(at / (n - 1), site);
    const Tensor back = math::floor(-at / (n - 1), site);
    in = where(at < 0.0, at + (back + 1.0) * n,
               where(at > n - 1, at - laps * n, at, site), site);
  }
  return clip_by_value(in, 0, n - 1, site);
}

// Pixels of flat [n, h * w, c] at whole coordinates [n, h * w].
Tensor pixels_at(const Tensor& flat, const Tensor& x, const Tensor& y,
                 int64_t h, int64_t w, const TransformOptions& o, Site site) {
  const double right = static_cast<double>(w - 1);
  const double bottom = static_cast<double>(h - 1);
  const Tensor cx = clip_by_value(x, 0, right, site);
  const Tensor cy = clip_by_value(y, 0, bottom, site);
  const Tensor at = math::cast(cy * static_cast<double>(w) + cx, int32, site);
  const Tensor v =
      gather(flat, at, GatherOptions{.axis = 1, .batch_dims = 1}, site);
  if (o.fill_mode != FillMode::kConstant) return v;
  const Tensor inside = math::logical_and(math::equal(x, cx, site),
                                          math::equal(y, cy, site), site);
  return where(expand_dims(inside, -1, site), v,
               fill({}, o.fill_value, v.dtype(), site), site);
}

}  // namespace

Interpolation interpolation_of(const LayerState& s, const std::string& name) {
  constexpr std::pair<const char*, Interpolation> kAll[] = {
      {"nearest", Interpolation::kNearest},
      {"bilinear", Interpolation::kBilinear},
      {"bicubic", Interpolation::kBicubic},
      {"lanczos3", Interpolation::kLanczos3},
      {"lanczos5", Interpolation::kLanczos5},
      {"area", Interpolation::kArea},
  };
  for (const auto& [n, kind] : kAll) {
    if (name == n) return kind;
  }
  fail_in(s, fmt::format("{}: interpolation is \"{}\"; expected nearest, "
                         "bilinear, bicubic, lanczos3, lanczos5 or area",
                         s.type, name));
}

FillMode fill_mode_of(const LayerState& s, const std::string& name) {
  if (name == "reflect") return FillMode::kReflect;
  if (name == "wrap") return FillMode::kWrap;
  if (name == "nearest") return FillMode::kNearest;
  if (name == "constant") return FillMode::kConstant;
  fail_in(s, fmt::format("{}: fill_mode is \"{}\"; expected reflect, wrap, "
                         "nearest or constant",
                         s.type, name));
}

void check_known_pixels(const LayerState& s, const Tensor& x) {
  if (x.rank() == 4 && x.shape()[1] > 0 && x.shape()[2] > 0) return;
  fail_in(s, fmt::format("{}: the input is {}; expected [n, h, w, c], h and w "
                         "known and not 0",
                         s.type, x.shape().str()));
}

Tensor resized(const Tensor& x, int64_t height, int64_t width,
               Interpolation kind, bool antialias, Site site) {
  return along(along(x, 1, height, kind, antialias, site), 2, width, kind,
               antialias, site);
}

Tensor transformed(const Tensor& x, const PlaneTransform& t,
                   const TransformOptions& o, Site site) {
  set_site(site);
  const int64_t n = x.shape()[0], h = x.shape()[1], w = x.shape()[2];
  const int64_t c = x.shape()[3];
  std::vector<float> px, py;
  for (int64_t i = 0; i < h * w; ++i) {
    px.push_back(static_cast<float>(i % w));
    py.push_back(static_cast<float>(i / w));
  }
  const Tensor gx = constant(px, {1, h * w}, site);
  const Tensor gy = constant(py, {1, h * w}, site);
  auto plane = [&](const Tensor& a, const Tensor& b, const Tensor& d) {
    Tensor sum = a * gx;
    if (b.defined()) sum = sum + b * gy;
    return d.defined() ? sum + d : sum;
  };
  Tensor in_x = plane(t[0], t[1], t[2]);
  Tensor in_y = t[3].defined() ? plane(t[3], t[4], t[5]) : t[4] * gy;
  if (!t[3].defined() && t[5].defined()) in_y = in_y + t[5];
  if (t[6].defined()) {
    const Tensor k = plane(t[6], t[7], Tensor()) + 1.0;
    in_x = in_x / k;
    in_y = in_y / k;
  }
  in_x = mapped(in_x, w, o.fill_mode, site);
  in_y = mapped(in_y, h, o.fill_mode, site);
  const Tensor flat = reshape(x, {n < 0 ? kUnknownDim : n, h * w, c}, site);
  auto at = [&](const Tensor& ix, const Tensor& iy) {
    return pixels_at(flat, ix, iy, h, w, o, site);
  };
  Tensor y;
  if (o.bilinear) {
    const Tensor x0 = math::floor(in_x, site), y0 = math::floor(in_y, site);
    const Tensor x1 = x0 + 1.0, y1 = y0 + 1.0;
    const Tensor fx = math::cast(expand_dims(in_x - x0, -1, site), x.dtype());
    const Tensor fy = math::cast(expand_dims(in_y - y0, -1, site), x.dtype());
    const Tensor top = at(x0, y0) * (1.0 - fx) + at(x1, y0) * fx;
    const Tensor bottom = at(x0, y1) * (1.0 - fx) + at(x1, y1) * fx;
    y = top * (1.0 - fy) + bottom * fy;
  } else {
    y = at(math::round(in_x, site), math::round(in_y, site));
  }
  return reshape(y, {n < 0 ? kUnknownDim : n, h, w, c}, site);
}

}  // namespace berth::keras
