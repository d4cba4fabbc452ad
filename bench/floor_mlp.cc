// Floor of the MLP step: 784-128-10, batch 64, Adam, in three forks per step.
// A worker owns columns of the first layer: their weights and moments stay in
// its cache from step to step.
#include <algorithm>

#include "bench/floor_common.h"

namespace berth_bench {
namespace {

constexpr int kIn = 784;
constexpr int kHidden = 128;

class Mlp {
 public:
  explicit Mlp(Pool& pool)
      : pool_(pool),
        w1_(kIn * kHidden, .1f, 50),
        b1_(kHidden, .1f, 1),
        w2_(kClasses * kHidden, .2f, 60),
        b2_(kLogitStride, .1f, 1),
        hidden_(zeros(kBatch * kHidden)),
        dhidden_(zeros(kBatch * kHidden)),
        logits_(zeros(kBatch * kLogitStride)) {}

  float step(int batch) {
    const float* x = batches_.images[batch].get();
    const int* labels = batches_.labels[batch];
    const int k = pool_.workers();
    pool_.run([&](int i) {
      const auto [begin, end] = part(kHidden / 16, i, k);
      hidden_columns(x, begin * 16, end * 16);
    });
    pool_.run([&](int i) {
      const auto [begin, end] = part(kBatch, i, k);
      for (int r = begin; r < end; ++r) output_row(r, labels[r]);
    });
    pool_.run([&](int i) {
      const auto [begin, end] = part(kHidden / 16, i, k);
      update_first_layer(x, begin * 16, end * 16);
      for (int q = begin * 2; q < end * 2; ++q) update_columns(q * 8);
      if (i == k - 1) update_dense_bias(logits_.get(), b2_);
    });
    float sum = 0;
    for (const float loss : losses_) sum += loss;
    return sum / kBatch;
  }

 private:
  // hidden[:, begin:end] = relu(x * w1 + b1)
  void hidden_columns(const float* x, int begin, int end) {
    product(kBatch, end - begin, kIn, x, kIn, 1, w1_.value.get() + begin,
            kHidden, hidden_.get() + begin, kHidden);
    const float* bias = b1_.value.get();
    for (int r = 0; r < kBatch; ++r) {
      float* h = hidden_.get() + r * kHidden;
      for (int j = begin; j < end; ++j) h[j] = std::max(0.f, h[j] + bias[j]);
    }
  }

  // One row: logits, loss, dlogits, and the gradient before the relu.
  void output_row(int r, int label) {
    const float* h = hidden_.get() + r * kHidden;
    const float* w2 = w2_.value.get();
    float* l = logits_.get() + r * kLogitStride;
    float* dh = dhidden_.get() + r * kHidden;
    dense_row(h, w2, b2_.value.get(), kHidden, l);
    losses_[r] = cross_entropy(l, label);
    for (int i = 0; i < kHidden; i += 8) {
      __m256 sum = _mm256_setzero_ps();
      for (int j = 0; j < kClasses; ++j) {
        sum = _mm256_fmadd_ps(_mm256_broadcast_ss(l + j),
                              _mm256_loadu_ps(w2 + j * kHidden + i), sum);
      }
      const __m256 open = _mm256_cmp_ps(_mm256_loadu_ps(h + i),
                                        _mm256_setzero_ps(), _CMP_GT_OQ);
      _mm256_storeu_ps(dh + i, _mm256_and_ps(sum, open));
    }
  }

  // Columns [begin, end) of w1: gradient and update, some rows at a time.
  void update_first_layer(const float* x, int begin, int end) {
    constexpr int kRows = 24;
    for (int row = 0; row < kIn; row += kRows) {
      const int rows = std::min(kRows, kIn - row);
      const int at = row * kHidden + begin;
      product(rows, end - begin, kBatch, x + row, 1, kIn,
              dhidden_.get() + begin, kHidden, w1_.grad.get() + at, kHidden);
      for (int r = 0; r < rows; ++r) {
        w1_.adam(size_t(at + r * kHidden), size_t(end - begin));
      }
    }
  }

  // Eight hidden units from `i`: gradients and updates of b1 and w2.
  void update_columns(int i) {
    dense_weight_grad(hidden_.get(), logits_.get(), kHidden, i, w2_.grad.get());
    __m256 sum = _mm256_setzero_ps();
    for (int r = 0; r < kBatch; ++r) {
      sum =
          _mm256_add_ps(sum, _mm256_loadu_ps(dhidden_.get() + r * kHidden + i));
    }
    _mm256_storeu_ps(b1_.grad.get() + i, sum);
    for (int j = 0; j < kClasses; ++j) w2_.adam(j * kHidden + i, 8);
    b1_.adam(i, 8);
  }

  Pool& pool_;
  Batches batches_;
  Parameter w1_, b1_, w2_, b2_;  // w1 [784,128], w2 [10,128]
  Floats hidden_, dhidden_;      // [64,128]
  Floats logits_;                // [64,16], becomes dlogits
  float losses_[kBatch] = {};
};

}  // namespace
}  // namespace berth_bench

__attribute__((target("no-avx"))) int main(int argc, char** argv) {
  using namespace berth_bench;
  if (!cpu_is_able("floor_mlp")) return kSkipStatus;
  return floor_main<Mlp>(argc, argv, "floor_mlp", 16);
}
