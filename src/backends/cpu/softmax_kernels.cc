// Softmax and cross-entropies: rows over the last axis.

#include <algorithm>
#include <array>
#include <limits>

#include "backends/cpu/half.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"

namespace berth::cpu {

namespace {

template <bool kLog>
void softmax(const KernelCall& c) {
  const Shape& shape = *c.in[0].shape;
  const int64_t n = c.in[0].size();
  if (n == 0) return;
  const int64_t cols = shape[shape.rank() - 1];
  auto* loop = kLog ? loops().log_softmax : loops().softmax;
  loop(c.in[0].as<float>(), c.out[0].as<float>(), n / cols, cols);
}

// Finds the mask's part for each row of scores; the mask broadcasts.
class MaskRows {
 public:
  MaskRows(const Shape& mask, const Shape& scores)
      : shape_(scores), rank_(scores.rank()) {
    int64_t stride = 1;
    for (int i = mask.rank() - 1, d = rank_ - 1; i >= 0; --i, --d) {
      stride_[d] = mask[i] == 1 ? 0 : stride;
      stride *= mask[i];
    }
  }
  int64_t step() const { return stride_[rank_ - 1]; }
  int64_t offset(int64_t row) const {
    int64_t at = 0;
    for (int d = rank_ - 2; d >= 0; --d) {
      at += row % shape_[d] * stride_[d];
      row /= shape_[d];
    }
    return at;
  }

 private:
  const Shape& shape_;
  const int rank_;
  std::array<int64_t, kMaxRank> stride_{};
};

// y = x * scale + mask for one row; returns whether any element remains.
bool score_row(const float* x, const float* mask, int64_t step, float scale,
               float* y, int64_t n) {
  if (mask == nullptr) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale;
  } else if (step == 0) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + *mask;
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale + mask[i];
  }
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    if (y[i] != kNothing) return true;
  }
  return false;
}

// Calls row(begin, columns, columns seen, start of its mask, step of the mask)
// for each row of scores.
template <class Row>
void for_each_score_row(const KernelCall& c, Row&& row) {
  const Shape& shape = *c.in[0].shape;
  if (c.in[0].size() == 0) return;
  const int64_t cols = shape[shape.rank() - 1];
  const int64_t queries = shape[shape.rank() - 2];
  const int64_t rows = c.in[0].size() / cols;
  const bool causal = c.attr<bool>("is_causal");
  const MaskRows mask(c.num_in == 2 ? *c.in[1].shape : Shape{}, shape);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t n = causal ? std::min(cols, r % queries + 1) : cols;
    row(r * cols, cols, n, mask.offset(r), mask.step());
  }
}

void masked_softmax_row(const float* x, const float* mask, int64_t step,
                        float scale, float* y, int64_t n, int64_t cols) {
  const bool some = score_row(x, mask, step, scale, y, n);
  if (some) loops().softmax(y, y, 1, n);
  std::fill(y + (some ? n : 0), y + cols, 0.f);
}

void masked_softmax(const KernelCall& c) {
  const auto scale = static_cast<float>(c.attr<double>("scale"));
  for_each_score_row(c, [&](int64_t at, int64_t cols, int64_t n, int64_t mask,
                            int64_t step) {
    const float* added = c.num_in == 2 ? c.in[1].as<float>() + mask : nullptr;
    masked_softmax_row(c.in[0].as<float>() + at, added, step, scale,
                       c.out[0].as<float>() + at, n, cols);
  });
}

// Computes one row at a time in float32.
void masked_softmax_of_halves(const KernelCall& c) {
  if (c.in[0].size() == 0) return;
  const DType dtype = c.in[0].dtype;
  const Shape& shape = *c.in[0].shape;
  const auto scale = static_cast<float>(c.attr<double>("scale"));
  const HalfFloats room(2 * shape[shape.rank() - 1]);
  float *const y = room.get(), *const added = y + shape[shape.rank() - 1];
  for_each_score_row(
      c, [&](int64_t at, int64_t cols, int64_t n, int64_t mask, int64_t step) {
        widen_half(dtype, c.in[0].as<uint16_t>() + at, y, n);
        if (c.num_in == 2) {
          widen_half(dtype, c.in[1].as<uint16_t>() + mask, added,
                     step == 0 ? 1 : n);
        }
        masked_softmax_row(y, c.num_in == 2 ? added : nullptr, step, scale, y,
                           n, cols);
        round_half(dtype, y, c.out[0].as<uint16_t>() + at, cols);
      });
}

void cross_entropy(const KernelCall& c) {
  loops().xent_dense(c.in[0].as<float>(), c.in[1].as<float>(),
                     c.out[0].as<float>(), c.out[1].as<float>(), c.in[0].dim(0),
                     c.in[0].dim(1));
}

template <class T>
bool all_below(const T* labels, int64_t n, int64_t classes) {
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] < 0 || labels[i] >= classes) return false;
  }
  return true;
}

template <class T, class Loop>
void sparse(const KernelCall& c, Loop* loop) {
  const int64_t rows = c.in[0].dim(0), cols = c.in[0].dim(1);
  const T* labels = c.in[1].as<T>();
  // The reference kernel throws the error that names the label.
  if (!all_below(labels, rows, cols)) return run_reference(c);
  loop(c.in[0].as<float>(), labels, c.out[0].as<float>(), c.out[1].as<float>(),
       rows, cols);
}

void sparse_cross_entropy(const KernelCall& c) {
  if (c.in[1].dtype == int32) {
    sparse<int32_t>(c, loops().xent_i32);
  } else {
    sparse<int64_t>(c, loops().xent_i64);
  }
}

}  // namespace

void add_softmax(KernelTable& t) {
  t.direct("Softmax", kFloat32, &softmax<false>, "loops", true);
  t.direct("LogSoftmax", kFloat32, &softmax<true>, "loops", true);
  t.direct("MaskedSoftmax", kFloat32, &masked_softmax, "loops");
  t.direct("MaskedSoftmax", kHalfTypes, &masked_softmax_of_halves,
           "loops in float32");
  t.direct("SoftmaxCrossEntropyWithLogits", kFloat32, &cross_entropy, "loops");
  t.direct("SparseSoftmaxCrossEntropyWithLogits", kFloat32,
           &sparse_cross_entropy, "loops");
}

}  // namespace berth::cpu
