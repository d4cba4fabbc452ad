// MaskedSoftmax.

#include <cmath>
#include <limits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

// Turns one row of scores, already scaled and masked, into weights; zeros when
// no score remains.
template <class T>
void softmax_row(const Scratch<double>& scores, T* y) {
  double max = -std::numeric_limits<double>::infinity();
  bool nan = false;
  for (double v : scores) {
    max = v > max ? v : max;
    nan = nan || v != v;
  }
  const bool nothing = !nan && max == -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (double v : scores) sum += std::exp(v - max);
  for (size_t i = 0; i < scores.size(); ++i) {
    y[i] = nothing ? T{0} : static_cast<T>(std::exp(scores[i] - max) / sum);
  }
}

void masked_softmax(const KernelCall& c) {
  const Shape& shape = *c.in[0].shape;
  const int64_t cols = shape[shape.rank() - 1];
  const int64_t seen_rows = shape[shape.rank() - 2];
  const double scale = c.attr<double>("scale");
  const bool causal = c.attr<bool>("is_causal");
  const bool masked = c.num_in == 2;
  const auto strides =
      broadcast_strides(masked ? *c.in[1].shape : Shape{}, shape);
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    const T* mask = masked ? c.in[1].as<T>() : nullptr;
    T* y = c.out[0].as<T>();
    Scratch<double> row;
    for_each_strided(shape, strides, 0, [&](int64_t i, int64_t at) {
      const int64_t col = i % cols;
      const int64_t last = causal ? (i / cols) % seen_rows : cols - 1;
      if (col <= last) {
        row.push_back(x[i] * scale + (masked ? double{mask[at]} : 0.0));
      }
      y[i] = T{0};
      if (col == cols - 1) {
        softmax_row(row, y + i - col);
        row.clear();
      }
    });
  });
}

}  // namespace

void add_attention(KernelTable& t) {
  t.direct("MaskedSoftmax", kFloatingTypes, &masked_softmax, "reference");
}

}  // namespace berth::reference
