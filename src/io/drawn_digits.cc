#include "io/drawn_digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "berth/errors.h"
#include "io/digit_strokes.h"

namespace berth::io {
namespace {

constexpr int64_t kMaxCount = 10'000'000;
constexpr int kPiecesPerSpan = 6;  // straight pieces of a curve
constexpr float kFar = 1e9f;

// Random numbers of one image. The engine and the seeding are fixed by the
// C++ standard; the standard's distributions are not, so they are not used.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t index) {
    std::seed_seq words{
        static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
        static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32)};
    engine_.seed(words);
  }

  uint32_t below(uint32_t n) { return engine_() % n; }
  float between(float low, float high) {
    const float unit = static_cast<float>(engine_() >> 8) * 0x1p-24f;
    return low + (high - low) * unit;
  }
  // Bell-shaped on [-1, 1], standard deviation 1/3.
  float bell() {
    return (between(-1, 1) + between(-1, 1) + between(-1, 1)) / 3;
  }
  uint32_t bits() { return static_cast<uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

// How this image's hand maps stroke coordinates to pixels.
struct Hand {
  float xx, xy, yx, yy, dx, dy;

  static Hand random(Dice& dice) {
    const float angle = 0.45f * dice.bell();
    const float slant = 0.12f + 0.6f * dice.bell();
    const float height = dice.between(7.2f, 10.4f);
    const float width = height * dice.between(0.72f, 1.12f);
    const float c = std::cos(angle), s = std::sin(angle);
    Hand hand;
    hand.xx = c * width;
    hand.xy = -slant * c * height - s * height;
    hand.yx = s * width;
    hand.yy = -slant * s * height + c * height;
    const float middle = 0.5f * (kDigitSide - 1);
    hand.dx = middle + 4 * dice.bell();
    hand.dy = middle + 4 * dice.bell();
    return hand;
  }

  StrokePoint operator()(StrokePoint p) const {
    return {xx * p.x + xy * p.y + dx, yx * p.x + yy * p.y + dy};
  }
};

// Squared distance of every pixel to the nearest piece of a stroke, known
// within `reach`.
struct Canvas {
  std::array<float, kDigitPixels> squared;
  float reach;

  explicit Canvas(float reach) : reach(reach) { squared.fill(kFar); }

  void line(StrokePoint a, StrokePoint b) {
    const float ux = b.x - a.x, uy = b.y - a.y;
    const float length2 = ux * ux + uy * uy;
    const float scale = length2 > 1e-12f ? 1 / length2 : 0;
    const int left = first(std::min(a.x, b.x)),
              right = last(std::max(a.x, b.x));
    const int top = first(std::min(a.y, b.y)), low = last(std::max(a.y, b.y));
    for (int y = top; y <= low; ++y) {
      for (int x = left; x <= right; ++x) {
        const float px = static_cast<float>(x) - a.x;
        const float py = static_cast<float>(y) - a.y;
        const float t = std::clamp((px * ux + py * uy) * scale, 0.0f, 1.0f);
        const float ex = px - t * ux, ey = py - t * uy;
        float& nearest = squared[static_cast<size_t>(y * kDigitSide + x)];
        nearest = std::min(nearest, ex * ex + ey * ey);
      }
    }
  }

  int first(float v) const { return bounded(std::ceil(v - reach), 0); }
  int last(float v) const { return bounded(std::floor(v + reach), -1); }
  // Border cases make an empty range: first == 28 or last == -1.
  static int bounded(float v, int low) {
    return static_cast<int>(std::clamp(v, static_cast<float>(low),
                                       static_cast<float>(kDigitSide + low)));
  }
};

// Catmull-Rom: the curve through b and c whose neighbours are a and d.
StrokePoint on_curve(StrokePoint a, StrokePoint b, StrokePoint c, StrokePoint d,
                     float t) {
  const auto mix = [t](float p, float q, float r, float s) {
    return q +
           0.5f * t *
               (r - p +
                t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {mix(a.x, b.x, c.x, d.x), mix(a.y, b.y, c.y, d.y)};
}

void draw_stroke(Canvas& canvas, bool smooth,
                 std::span<const StrokePoint> points) {
  const size_t count = points.size();
  for (size_t i = 0; i + 1 < count; ++i) {
    if (!smooth) {
      canvas.line(points[i], points[i + 1]);
      continue;
    }
    const StrokePoint before = points[i > 0 ? i - 1 : 0];
    const StrokePoint after = points[std::min(i + 2, count - 1)];
    StrokePoint from = points[i];
    for (int piece = 1; piece <= kPiecesPerSpan; ++piece) {
      const float t = static_cast<float>(piece) / kPiecesPerSpan;
      const StrokePoint to =
          on_curve(before, points[i], points[i + 1], after, t);
      canvas.line(from, to);
      from = to;
    }
  }
}

void draw_manner(Canvas& canvas, const DigitManner& manner, Dice& dice) {
  const Hand hand = Hand::random(dice);
  const float shake = dice.between(0.08f, 0.3f);
  std::vector<StrokePoint> points;
  for (const Stroke& stroke : manner) {
    points.clear();
    for (StrokePoint p : stroke.points) {
      p.x += shake * dice.bell();
      p.y += shake * dice.bell();
      points.push_back(hand(p));
    }
    draw_stroke(canvas, stroke.smooth, points);
  }
}

// A short mark that belongs to no digit.
void draw_stray(Canvas& canvas, Dice& dice) {
  const StrokePoint a = {dice.between(2, kDigitSide - 3),
                         dice.between(2, kDigitSide - 3)};
  canvas.line(a, {a.x + dice.between(-5, 5), a.y + dice.between(-5, 5)});
}

// Turns distances into grey values: ink, a soft edge, grain.
void ink(const Canvas& canvas, float radius, float edge, Dice& dice,
         std::span<uint8_t, kDigitPixels> image) {
  const float dark = dice.between(150, 255);
  const float grain = dice.between(0, 40);
  for (size_t i = 0; i < image.size(); ++i) {
    float value = 0;
    if (canvas.squared[i] < kFar) {
      const float outside = std::sqrt(canvas.squared[i]) - radius;
      value = dark * std::clamp(0.5f - outside / edge, 0.0f, 1.0f);
    }
    const uint32_t bits = dice.bits();
    const float unit = static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f;
    // Grain on the ink everywhere, on the paper here and there.
    if (value > 0 || (bits & 15) == 0) value += 2 * grain * unit;
    image[i] = static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
  }
}

}  // namespace

uint8_t draw_digit(uint64_t seed, uint64_t index,
                   std::span<uint8_t, kDigitPixels> image) {
  Dice dice(seed, index);
  const uint32_t label = dice.below(10);
  const auto manners = digit_manners(static_cast<int>(label));
  const uint32_t manner = dice.below(static_cast<uint32_t>(manners.size()));
  const float radius = dice.between(0.6f, 1.7f);
  const float edge = dice.between(0.8f, 1.8f);
  Canvas canvas(radius + edge);
  draw_manner(canvas, manners[manner], dice);
  if (dice.below(5) == 0) draw_stray(canvas, dice);
  ink(canvas, radius, edge, dice, image);
  return static_cast<uint8_t>(label);
}

DrawnDigits draw_digits(int64_t count, uint64_t seed) {
  if (count < 0 || count > kMaxCount) {
    throw errors::InvalidArgument(fmt::format(
        "draw_digits: count is {}; expected 0 to {}", count, kMaxCount));
  }
  const size_t size = static_cast<size_t>(count);
  DrawnDigits digits;
  digits.images.resize(size * kDigitPixels);
  digits.labels.resize(size);
  for (size_t i = 0; i < size; ++i) {
    const std::span<uint8_t, kDigitPixels> image(
        digits.images.data() + i * kDigitPixels, kDigitPixels);
    digits.labels[i] = draw_digit(seed, i, image);
  }
  return digits;
}

}  // namespace berth::io
