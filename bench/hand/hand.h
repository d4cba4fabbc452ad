// Loops fused by hand, one per training pattern: what the engine's fused
// kernels are measured against. One thread; compiled per instruction set.

#ifndef BERTH_BENCH_HAND_HAND_H_
#define BERTH_BENCH_HAND_HAND_H_

#include <cstdint>

namespace berth_bench {

struct HandLoops {
  const char* isa;
  // y[rows, cols] = gelu(x + bias[cols]) * mask + residual, gelu by tanh
  void (*gelu)(const float* x, const float* bias, const float* mask,
               const float* residual, float* y, int64_t rows, int64_t cols);
  void (*layer_norm)(const float* x, const float* scale, const float* offset,
                     float* y, float* mean, float* rstd, int64_t rows,
                     int64_t cols);
  void (*layer_norm_grad)(const float* dy, const float* x, const float* scale,
                          const float* mean, const float* rstd, float* dx,
                          float* dscale, float* doffset, int64_t rows,
                          int64_t cols);
  // loss[rows] and its gradient of logits[rows, cols]
  void (*xent)(const float* logits, const int32_t* labels, float* loss,
               float* grad, int64_t rows, int64_t cols);
  void (*adam)(float* w, const float* g, float* m, float* v, int64_t n,
               float rate);
  // Copies past the caches.
  void (*copy)(const float* x, float* y, int64_t n);
};

// The best level that this processor and BERTH_ISA allow.
const HandLoops& hand_loops();

}  // namespace berth_bench

#endif  // BERTH_BENCH_HAND_HAND_H_
