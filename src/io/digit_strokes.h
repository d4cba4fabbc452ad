// The pen strokes of the ten digits, in two or three manners each.
//
// Constant tables; thread-safe.

#ifndef BERTH_IO_DIGIT_STROKES_H_
#define BERTH_IO_DIGIT_STROKES_H_

#include <span>
#include <vector>

namespace berth::io {

// x grows to the right, y down; a digit fills about [-0.6, 0.6] x [-1, 1].
struct StrokePoint {
  float x, y;
};

struct Stroke {
  bool smooth;  // a curve through the points, else straight lines
  std::vector<StrokePoint> points;
};

using DigitManner = std::vector<Stroke>;

// Returns the manners of writing `digit`, 0 to 9.
std::span<const DigitManner> digit_manners(int digit);

}  // namespace berth::io

#endif  // BERTH_IO_DIGIT_STROKES_H_
