// Rotation: for each pixel of the result, the pixels it lies between.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/image.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "preprocess/draws.h"
#include "preprocess/image_util.h"

namespace berth::image {

namespace {

// The pixel that stands for `at` outside of 0 ... n - 1; -1: the fill value.
int64_t folded(int64_t at, int64_t n, const std::string& mode) {
  if (at >= 0 && at < n) return at;
  if (mode == "constant") return -1;
  if (mode == "nearest") return std::clamp<int64_t>(at, 0, n - 1);
  if (mode == "wrap") return ((at % n) + n) % n;
  const int64_t period = 2 * n;  // reflect: edges are repeated
  const int64_t p = ((at % period) + period) % period;
  return p < n ? p : period - 1 - p;
}

// Sums of up to four pixels; the pixel after the last is the fill value.
struct Sampling {
  std::vector<int32_t> pixels[4];
  std::vector<float> weights[4];
  int parts = 4;
};

Sampling sampling_of(const ImageLayout& l, double radians,
                     const RotateOptions& o) {
  Sampling s;
  s.parts = o.interpolation == "nearest" ? 1 : 4;
  const double cosine = std::cos(radians), sine = std::sin(radians);
  const double my = static_cast<double>(l.height - 1) / 2;
  const double mx = static_cast<double>(l.width - 1) / 2;
  const auto pixel = [&](int64_t y, int64_t x) {
    y = folded(y, l.height, o.fill_mode);
    x = folded(x, l.width, o.fill_mode);
    return static_cast<int32_t>(y < 0 || x < 0 ? l.height * l.width
                                               : y * l.width + x);
  };
  for (int64_t i = 0; i < l.height * l.width; ++i) {
    const double dy = static_cast<double>(i / l.width) - my;
    const double dx = static_cast<double>(i % l.width) - mx;
    const double y = my + sine * dx + cosine * dy;
    const double x = mx + cosine * dx - sine * dy;
    if (s.parts == 1) {
      s.pixels[0].push_back(pixel(std::llround(y), std::llround(x)));
      continue;
    }
    const auto fy = static_cast<int64_t>(std::floor(y));
    const auto fx = static_cast<int64_t>(std::floor(x));
    const auto wy = static_cast<float>(y - static_cast<double>(fy));
    const auto wx = static_cast<float>(x - static_cast<double>(fx));
    for (int part = 0; part < 4; ++part) {
      const int down = part / 2, right = part % 2;
      s.pixels[part].push_back(pixel(fy + down, fx + right));
      s.weights[part].push_back((down ? wy : 1 - wy) * (right ? wx : 1 - wx));
    }
  }
  return s;
}

}  // namespace

Tensor rotate(const Tensor& images, double radians, const RotateOptions& o,
              Site site) {
  const char* name = "rotate";
  const ImageLayout l = known_layout_of(images, name, site);
  if (o.interpolation != "bilinear" && o.interpolation != "nearest") {
    refuse(name, site,
           fmt::format("interpolation is \"{}\"; expected bilinear "
                       "or nearest",
                       o.interpolation));
  }
  if (o.fill_mode != "constant" && o.fill_mode != "nearest" &&
      o.fill_mode != "reflect" && o.fill_mode != "wrap") {
    refuse(name, site,
           fmt::format("fill_mode is \"{}\"; expected constant, "
                       "nearest, reflect or wrap",
                       o.fill_mode));
  }
  if (!std::isfinite(radians) || l.height * l.width > int64_t{1} << 30) {
    refuse(name, site, "an angle that is not finite, or more than 2^30 pixels");
  }
  const Sampling s = sampling_of(l, radians, o);
  const int64_t pixels = l.height * l.width;
  const bool nearest = s.parts == 1;
  // [n, pixels, channels], and after them one of the fill value.
  Tensor flat = reshape(nearest ? images : math::cast(images, float32, site),
                        {l.n, pixels, l.channels}, site);
  flat = pad(flat, {0, 0, 0, 1, 0, 0}, {.constant_values = o.fill_value}, site);
  Tensor sum;
  for (int part = 0; part < s.parts; ++part) {
    Tensor one =
        gather(flat, constant(s.pixels[part], {pixels}, site), 1, site);
    if (!nearest) {
      one = one * constant(s.weights[part], {pixels, 1}, site);
    }
    sum = part == 0 ? one : sum + one;
  }
  return reshape(sum, l.sized(l.height, l.width), site);
}

Tensor random_rotation(const Tensor& images, double factor,
                       const RotateOptions& options,
                       std::optional<int64_t> seed, Site site) {
  const char* name = "random_rotation";
  if (!(factor >= 0 && factor <= 1)) {
    refuse(name, site,
           fmt::format("factor is {}; expected 0 to 1 whole turns", factor));
  }
  if (images.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(
        "random_rotation: the picture belongs to a traced function; call this "
        "in the map of a dataset");
  }
  const double turns =
      Drawn(seed).numbers({}, -1, 1, site).item<double>() * factor;
  return rotate(images, turns * 2 * std::numbers::pi, options, site);
}

}  // namespace berth::image
