// One pixel in RGB and HSV, all from 0 to 1. Pure.

#ifndef BERTH_PREPROCESS_PIXEL_COLOURS_H_
#define BERTH_PREPROCESS_PIXEL_COLOURS_H_

#include <algorithm>
#include <cmath>

namespace berth::image {

struct Rgb {
  float r, g, b;
};
struct Hsv {
  float h, s, v;  // hue in turns
};

inline Hsv hsv_of(const Rgb& c) {
  const float v = std::max({c.r, c.g, c.b});
  const float range = v - std::min({c.r, c.g, c.b});
  if (!(range > 0)) return {0, 0, v};
  const float norm = 1 / (6 * range);
  float h = c.r == v   ? norm * (c.g - c.b)
            : c.g == v ? norm * (c.b - c.r) + 2.0f / 6
                       : norm * (c.r - c.g) + 4.0f / 6;
  if (h < 0) h += 1;
  return {h, v > 0 ? range / v : 0, v};
}

inline Rgb rgb_of(const Hsv& c) {
  const float h = 6 * c.h;
  const auto part = [&](float pure) {
    return ((1 - c.s) + c.s * std::clamp(pure, 0.0f, 1.0f)) * c.v;
  };
  return {part(std::abs(h - 3) - 1), part(2 - std::abs(h - 2)),
          part(2 - std::abs(h - 4))};
}

// The fractional part of a turn.
inline float turn_of(float h) { return h - std::floor(h); }

}  // namespace berth::image

#endif  // BERTH_PREPROCESS_PIXEL_COLOURS_H_
