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

// What a row's gradient needs: dx = rstd (k - share_k - h share_kh), with
// k = dy scale and h = (x - mean) rstd.
struct RowGrad {
  const float *dy, *x;
  float* dx;
  F mean, rstd, share_k, share_kh;
};

BERTH_INLINE RowGrad row_grad(const float* dy, const float* x,
                              const float* scale, float mean, float rstd,
                              float* dx, int64_t d) {
  const F middle = A::set(mean), factor = A::set(rstd);
  const float share = 1.0f / static_cast<float>(d);
  F k_sum[2] = {}, kh_sum[2] = {};
  const auto add = [&](int64_t i, auto part, int j) {
    const F k = part.load(dy + i) * part.load(scale + i);
    k_sum[j] += k;
    kh_sum[j] = A::madd(k, part.load(x + i) - middle, kh_sum[j]);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= d; i += 2 * kLanes) {
    add(i, Full{}, 0);
    add(i + kLanes, Full{}, 1);
  }
  for_vectors(d - i, [&](int64_t j, auto part) { add(i + j, part, 0); });
  const float k = sum_lanes(k_sum[0] + k_sum[1]) * share;
  const float kh = sum_lanes(kh_sum[0] + kh_sum[1]) * rstd * share;
  return {dy, x, dx, middle, factor, A::set(k), A::set(kh)};
}

// Writes dx of kRows rows and adds their parts of dscale and doffset.
template <int kRows>
BERTH_INLINE void finish_rows(const RowGrad* rows, const float* scale,
                              float* dscale, float* doffset, int64_t d) {
  for_vectors(d, [=](int64_t i, auto part) {
    const F factor = part.load(scale + i);
    F for_scale = part.load(dscale + i), for_offset = part.load(doffset + i);
    for (int r = 0; r < kRows; ++r) {
      const RowGrad& row = rows[r];
      const F dy = part.load(row.dy + i);
      const F h = (part.load(row.x + i) - row.mean) * row.rstd;
      for_scale = A::madd(dy, h, for_scale);
      for_offset += dy;
      const F away = A::madd(dy, factor, -row.share_k);
      part.store(row.dx + i, row.rstd * A::madd(-h, row.share_kh, away));
    }
    part.store(dscale + i, for_scale);
    part.store(doffset + i, for_offset);
  });
}

inline void layer_norm_grad(const float* dy, const float* x, const float* scale,
                            const float* mean, const float* rstd, float* dx,
                            float* dscale, float* doffset, int64_t rows,
                            int64_t d) {
  constexpr int kRows = 4;
  // Sums of blocks of rows, so that many rows do not lose their tail; blocks
  // of wide rows are added directly.
  constexpr int64_t kBlock = 256, kWidest = 2048;
  float own_scale[kWidest], own_offset[kWidest];
  const bool blocks = rows > kBlock && d <= kWidest;
  fill(0.0f, dscale, d);
  fill(0.0f, doffset, d);
  for (int64_t at = 0; at < rows; at += kBlock) {
    const int64_t end = at + kBlock < rows ? at + kBlock : rows;
    float* for_scale = blocks ? own_scale : dscale;
    float* for_offset = blocks ? own_offset : doffset;
    if (blocks) {
      fill(0.0f, for_scale, d);
      fill(0.0f, for_offset, d);
    }
    RowGrad group[kRows];
    int64_t r = at;
    const auto take = [&](int j) {
      const int64_t row = r + j;
      group[j] = row_grad(dy + row * d, x + row * d, scale, mean[row],
                          rstd[row], dx + row * d, d);
    };
    for (; r + kRows <= end; r += kRows) {
      for (int j = 0; j < kRows; ++j) take(j);
      finish_rows<kRows>(group, scale, for_scale, for_offset, d);
    }
    for (; r < end; ++r) {
      take(0);
      finish_rows<1>(group, scale, for_scale, for_offset, d);
    }
    if (!blocks) continue;
    Binary<Add>::same(dscale, own_scale, dscale, d);
    Binary<Add>::same(doffset, own_offset, doffset, d);
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_LAYER_NORM_H_
