// Images of another size.

#include "keras/layers/image_resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"

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
    mix->matrix[row * mix->from + j] = static_cast<float>(w / sum);
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
    at.push_back(std::min<int64_t>(static_cast<int64_t>(center), from - 1));
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
  fail_in(s,
          "{}: interpolation is \"{}\"; expected nearest, "
          "bilinear, bicubic, lanczos3, lanczos5 or area",
          s.type, name);
}

void check_known_pixels(const LayerState& s, const Tensor& x) {
  if (x.rank() == 4 && x.shape()[1] > 0 && x.shape()[2] > 0) return;
  fail_in(s,
          "{}: the input is {}; expected [n, h, w, c], h and w known and not 0",
          s.type, x.shape().str());
}

Tensor resized(const Tensor& x, int64_t height, int64_t width,
               Interpolation kind, bool antialias, Site site) {
  return along(along(x, 1, height, kind, antialias, site), 2, width, kind,
               antialias, site);
}

}  // namespace berth::keras
