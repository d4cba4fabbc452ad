// Spans: which pixels of an axis make each pixel of a resized one.
//
// Pixel x of the result is the sum of weights[x * width + k] times pixel
// starts[x] + k. Pure; thread-safe.

#ifndef BERTH_PREPROCESS_SPANS_H_
#define BERTH_PREPROCESS_SPANS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace berth::image {

struct Spans {
  int64_t width = 1;  // weights per pixel
  std::vector<int32_t> starts;
  std::vector<float> weights;
};

// Returns the spans of an axis of `in` pixels that becomes `out` ones; false
// in *known for a method that is none ("nearest" is not a sum: its spans name
// the one pixel).
Spans make_spans(int64_t in, int64_t out, const std::string& method,
                 bool antialias, bool* known);

// from [height, width, channels] to [spans of y, spans of x, channels].
void resample(const uint8_t* from, int64_t width, int64_t channels,
              const Spans& y, const Spans& x, float* to);
void resample(const float* from, int64_t width, int64_t channels,
              const Spans& y, const Spans& x, float* to);

}  // namespace berth::image

#endif  // BERTH_PREPROCESS_SPANS_H_
