// The loops of resize: rows first, then columns of one row at a time. Compiled
// with -O3, and for what newer processors have where that can be chosen.

#include <algorithm>
#include <vector>

#include "preprocess/spans.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BERTH_RESAMPLE_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define BERTH_RESAMPLE_CLONES
#endif

namespace berth::image {
namespace {

// to += w * from
BERTH_RESAMPLE_CLONES void add_row(const uint8_t* __restrict from, float w,
                                   int64_t n, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] += w * static_cast<float>(from[i]);
}
BERTH_RESAMPLE_CLONES void add_row(const float* __restrict from, float w,
                                   int64_t n, float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] += w * from[i];
}
BERTH_RESAMPLE_CLONES void blend_rows(const uint8_t* __restrict a,
                                      const uint8_t* __restrict b, float wa,
                                      float wb, int64_t n,
                                      float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    to[i] = wa * static_cast<float>(a[i]) + wb * static_cast<float>(b[i]);
  }
}
BERTH_RESAMPLE_CLONES void blend_rows(const float* __restrict a,
                                      const float* __restrict b, float wa,
                                      float wb, int64_t n,
                                      float* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] = wa * a[i] + wb * b[i];
}

template <int kChannels>
void columns(const float* row, int64_t channels, const Spans& x, float* to) {
  const int64_t c = kChannels == 0 ? channels : kChannels;
  const auto n = static_cast<int64_t>(x.starts.size());
  const float* w = x.weights.data();
  for (int64_t i = 0; i < n; ++i, w += x.width, to += c) {
    const float* from = row + x.starts[static_cast<size_t>(i)] * c;
    for (int64_t j = 0; j < c; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < x.width; ++k) sum += w[k] * from[k * c + j];
      to[j] = sum;
    }
  }
}

template <int kChannels>
void columns_of_two(const float* row, int64_t channels, const Spans& x,
                    float* to) {
  const int64_t c = kChannels == 0 ? channels : kChannels;
  const auto n = static_cast<int64_t>(x.starts.size());
  const float* w = x.weights.data();
  for (int64_t i = 0; i < n; ++i, w += 2, to += c) {
    const float* from = row + x.starts[static_cast<size_t>(i)] * c;
    for (int64_t j = 0; j < c; ++j) to[j] = w[0] * from[j] + w[1] * from[c + j];
  }
}

void all_columns(const float* row, int64_t channels, const Spans& x,
                 float* to) {
  const bool two = x.width == 2;
  switch (channels) {
    case 1:
      return two ? columns_of_two<1>(row, 1, x, to) : columns<1>(row, 1, x, to);
    case 3:
      return two ? columns_of_two<3>(row, 3, x, to) : columns<3>(row, 3, x, to);
    case 4:
      return two ? columns_of_two<4>(row, 4, x, to) : columns<4>(row, 4, x, to);
    default:
      return two ? columns_of_two<0>(row, channels, x, to)
                 : columns<0>(row, channels, x, to);
  }
}

template <class T>
void resample_any(const T* from, int64_t width, int64_t channels,
                  const Spans& y, const Spans& x, float* to) {
  const int64_t n = width * channels;
  std::vector<float> row(static_cast<size_t>(n));
  const auto rows = static_cast<int64_t>(y.starts.size());
  const auto stride = static_cast<int64_t>(x.starts.size()) * channels;
  for (int64_t i = 0; i < rows; ++i, to += stride) {
    const float* w = y.weights.data() + i * y.width;
    const T* first = from + y.starts[static_cast<size_t>(i)] * n;
    if (y.width == 2) {
      blend_rows(first, first + n, w[0], w[1], n, row.data());
    } else {
      std::fill(row.begin(), row.end(), 0.0f);
      for (int64_t k = 0; k < y.width; ++k) {
        if (w[k] != 0) add_row(first + k * n, w[k], n, row.data());
      }
    }
    all_columns(row.data(), channels, x, to);
  }
}

}  // namespace

void resample(const uint8_t* from, int64_t width, int64_t channels,
              const Spans& y, const Spans& x, float* to) {
  resample_any(from, width, channels, y, x, to);
}
void resample(const float* from, int64_t width, int64_t channels,
              const Spans& y, const Spans& x, float* to) {
  resample_any(from, width, channels, y, x, to);
}

}  // namespace berth::image
