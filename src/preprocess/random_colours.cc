// Colours changed by numbers that are drawn, and read at once: not in a trace.

#include <fmt/format.h>

#include <cmath>

#include "base/needs_values.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/image.h"
#include "berth/ops/math.h"
#include "preprocess/draws.h"
#include "preprocess/image_util.h"

namespace berth::image {

namespace {

void check_range(const char* name, double low, double high, Site site) {
  if (std::isfinite(low) && std::isfinite(high) && low <= high) return;
  refuse(name, site,
         fmt::format("numbers from {} to {}; expected a range", low, high));
}

// A number of the range.
double number(const char* name, const Tensor& image, const Drawn& drawn,
              double low, double high, Site site) {
  layout_of(image, name, site);
  check_range(name, low, high, site);
  if (image.is_symbolic()) {
    throw Untraceable<errors::FailedPrecondition>(fmt::format(
        "{}: the picture belongs to a traced function; call this in "
        "the map of a dataset",
        call_text(name, site)));
  }
  if (low == high) return low;
  return drawn.numbers({}, low, high, site).item<double>();
}

Tensor by_brightness(const char* name, const Tensor& image, double most,
                     const Drawn& drawn, Site site) {
  return adjust_brightness(image, number(name, image, drawn, -most, most, site),
                           site);
}
Tensor by_contrast(const char* name, const Tensor& image, double low,
                   double high, const Drawn& drawn, Site site) {
  if (low < 0) refuse(name, site, "lower is below 0; expected 0 or more");
  return adjust_contrast(image, number(name, image, drawn, low, high, site),
                         site);
}
Tensor by_hue(const char* name, const Tensor& image, double most,
              const Drawn& drawn, Site site) {
  if (!(most >= 0 && most <= 0.5)) {
    refuse(name, site, fmt::format("max_delta is {}; expected 0 to 0.5", most));
  }
  return adjust_hue(image, number(name, image, drawn, -most, most, site), site);
}
Tensor by_saturation(const char* name, const Tensor& image, double low,
                     double high, const Drawn& drawn, Site site) {
  if (low < 0) refuse(name, site, "lower is below 0; expected 0 or more");
  return adjust_saturation(image, number(name, image, drawn, low, high, site),
                           site);
}

}  // namespace

Tensor random_brightness(const Tensor& image, double max_delta,
                         std::optional<int64_t> seed, Site site) {
  return by_brightness("random_brightness", image, max_delta, Drawn(seed),
                       site);
}
Tensor random_contrast(const Tensor& image, double lower, double upper,
                       std::optional<int64_t> seed, Site site) {
  return by_contrast("random_contrast", image, lower, upper, Drawn(seed), site);
}
Tensor random_hue(const Tensor& image, double max_delta,
                  std::optional<int64_t> seed, Site site) {
  return by_hue("random_hue", image, max_delta, Drawn(seed), site);
}
Tensor random_saturation(const Tensor& image, double lower, double upper,
                         std::optional<int64_t> seed, Site site) {
  return by_saturation("random_saturation", image, lower, upper, Drawn(seed),
                       site);
}
Tensor random_jpeg_quality(const Tensor& image, int min_jpeg_quality,
                           int max_jpeg_quality, std::optional<int64_t> seed,
                           Site site) {
  const char* name = "random_jpeg_quality";
  if (min_jpeg_quality < 0 || max_jpeg_quality > 100 ||
      min_jpeg_quality >= max_jpeg_quality) {
    refuse(name, site,
           fmt::format("quality from {} to {}; expected a range "
                       "within 0 to 100",
                       min_jpeg_quality, max_jpeg_quality));
  }
  const double q = number(name, image, Drawn(seed), min_jpeg_quality,
                          max_jpeg_quality, site);
  return adjust_jpeg_quality(image, static_cast<int>(q), site);
}
Tensor stateless_random_brightness(const Tensor& image, double max_delta,
                                   StatelessSeed seed, Site site) {
  return by_brightness("stateless_random_brightness", image, max_delta,
                       Drawn(seed), site);
}
Tensor stateless_random_contrast(const Tensor& image, double lower,
                                 double upper, StatelessSeed seed, Site site) {
  return by_contrast("stateless_random_contrast", image, lower, upper,
                     Drawn(seed), site);
}
Tensor stateless_random_hue(const Tensor& image, double max_delta,
                            StatelessSeed seed, Site site) {
  return by_hue("stateless_random_hue", image, max_delta, Drawn(seed), site);
}
Tensor stateless_random_saturation(const Tensor& image, double lower,
                                   double upper, StatelessSeed seed,
                                   Site site) {
  return by_saturation("stateless_random_saturation", image, lower, upper,
                       Drawn(seed), site);
}

}  // namespace berth::image
