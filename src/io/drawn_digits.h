// Digits that the program draws itself, for machines without MNIST.
//
// Pen strokes under a random hand: shape, slant, size, place, pen width,
// blur, noise and stray marks, so that a network has something to learn.
// Image i is a pure function of (seed, i). Thread-safe.

#ifndef BERTH_IO_DRAWN_DIGITS_H_
#define BERTH_IO_DRAWN_DIGITS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace berth::io {

constexpr int kDigitSide = 28;
constexpr int kDigitPixels = kDigitSide * kDigitSide;

struct DrawnDigits {
  std::vector<uint8_t> images;  // [count, 28, 28], ink 255 on 0
  std::vector<uint8_t> labels;  // [count], 0 to 9
};

// Draws image `index` of the endless series `seed` into `image` and returns
// its label.
uint8_t draw_digit(uint64_t seed, uint64_t index,
                   std::span<uint8_t, kDigitPixels> image);

// Draws images 0 to `count` - 1 of the series `seed`; other seeds give other
// images, as for a test set. Throws InvalidArgument unless 0 <= count <= 10^7.
DrawnDigits draw_digits(int64_t count, uint64_t seed);

}  // namespace berth::io

#endif  // BERTH_IO_DRAWN_DIGITS_H_
