// Layer normalisation rows; included once per instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_LAYER_NORM_H_
#define BERTH_BACKENDS_CPU_ISA_LAYER_NORM_H_

#include "backends/cpu/isa/reduce.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline void layer_norm(const float* x, const float* scale, const float* offset,
                       float* y, float* mean, float* rstd, int64_t rows,
                       int64_t d, float epsilon) {
  const float share = 1.0f / static_cast<float>(d);
  for (int64_t r = 0; r < rows; ++r, x += d, y += d) {
    const float* in = x;
    float* out = y;
    const float center = share * sum_terms(d, [=](int64_t i, auto part) {
                           return part.load(in + i);
                         });
    const F middle = A::set(center);
    const float squares = sum_terms(d, [=](int64_t i, auto part) {
      const F away = part.load(in + i, center) - middle;
      return away * away;
    });
    const float inverse = 1.0f / __builtin_sqrtf(squares * share + epsilon);
    const F factor = A::set(inverse);
    for_vectors(d, [=](int64_t i, auto part) {
      const F h = (part.load(in + i) - middle) * factor;
      part.store(out + i,
                 A::madd(h, part.load(scale + i), part.load(offset + i)));
    });
    mean[r] = center;
    rstd[r] = inverse;
  }
}

// Computes one row: dx = rstd (k - mean(k) - h mean(k h)), with k = dy scale
// and h = (x - mean) rstd; adds dy h to dscale and dy to doffset.
BERTH_INLINE void layer_norm_row_grad(const float* dy, const float* x,
                                      const float* scale, float mean,
                                      float rstd, float* dx, float* dscale,
                                      float* doffset, int64_t d) {
  const F middle = A::set(mean), factor = A::set(rstd);
  const float share = 1.0f / static_cast<float>(d);
  F k_sum = {}, kh_sum = {};
  for_vectors(
      d, [&](int64_t i, auto part) __attribute__((always_inline)) {
        const F grad = part.load(dy + i), k = grad * part.load(scale + i);
        const F h = (part.load(x + i, mean) - middle) * factor;
        k_sum += k;
        kh_sum = A::madd(k, h, kh_sum);
        part.store(dscale + i, A::madd(grad, h, part.load(dscale + i)));
        part.store(doffset + i, part.load(doffset + i) + grad);
      });
  const F k_mean = A::set(sum_lanes(k_sum) * share);
  const F kh_mean = A::set(sum_lanes(kh_sum) * share);
  for_vectors(d, [=](int64_t at, auto part) {
    const F h = (part.load(x + at) - middle) * factor;
    const F away = A::madd(part.load(dy + at), part.load(scale + at), -k_mean);
    part.store(dx + at, factor * A::madd(-h, kh_mean, away));
  });
}

// Returns the floats from `room` to the first line half a page away from x.
BERTH_INLINE int64_t half_page_from(const float* x, const float* room) {
  const auto want = reinterpret_cast<uintptr_t>(x) + 2048;
  const auto have = reinterpret_cast<uintptr_t>(room);
  return static_cast<int64_t>((want - have) % 4096 / 64 * 16);
}

inline void layer_norm_grad(const float* dy, const float* x, const float* scale,
                            const float* mean, const float* rstd, float* dx,
                            float* dscale, float* doffset, int64_t rows,
                            int64_t d) {
  fill(0.0f, dscale, d);
  fill(0.0f, doffset, d);
  // Sums blocks of rows, so that long sums keep their low digits; wide rows are
  // summed all at once. The sums are half a page from x, because loads of x
  // would otherwise wait for stores to the same page offsets.
  constexpr int64_t kBlock = 256, kWidest = 2048, kPage = 1024;
  alignas(64) float room[2 * (kWidest + kPage)];
  const bool blocks = d <= kWidest;
  const int64_t shift = half_page_from(x, room);
  float* for_scale = blocks ? room + shift : dscale;
  float* for_offset = blocks ? for_scale + kWidest + kPage / 4 : doffset;
  for (int64_t at = 0; at < rows; at += kBlock) {
    const int64_t end = at + kBlock < rows ? at + kBlock : rows;
    if (blocks) {
      fill(0.0f, for_scale, d);
      fill(0.0f, for_offset, d);
    }
    for (int64_t r = at; r < end; ++r) {
      layer_norm_row_grad(dy + r * d, x + r * d, scale, mean[r], rstd[r],
                          dx + r * d, for_scale, for_offset, d);
    }
    if (!blocks) continue;
    Binary<Plus>::same(dscale, for_scale, dscale, d);
    Binary<Plus>::same(doffset, for_offset, doffset, d);
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_LAYER_NORM_H_
