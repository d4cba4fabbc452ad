// Small matrix products and filter gradients; included once per instruction
// set.

#ifndef BERTH_BACKENDS_CPU_ISA_GEMM_H_
#define BERTH_BACKENDS_CPU_ISA_GEMM_H_

#include "backends/cpu/isa/elementwise.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// op(a) as element (i, p) = data[i * row + p * col].
struct Strided {
  const float* data;
  int64_t row, col;
};

// c[kRows, <= kVecs vectors] (+)= alpha a[kRows, k] b[k, width]; b and c are
// row-major. The last vector has `tail` lanes (kLanes: whole).
template <int kRows, int kVecs, bool kTail>
BERTH_INLINE void gemm_tile(const Strided& a, const float* b, int64_t ldb,
                            int64_t k, int64_t tail, float alpha, float beta,
                            float* c, int64_t ldc) {
  F acc[kRows][kVecs] = {};
  for (int64_t p = 0; p < k; ++p) {
    F line[kVecs];
    for (int v = 0; v < kVecs; ++v) {
      const float* at = b + p * ldb + v * kLanes;
      line[v] = kTail && v == kVecs - 1 ? A::load(at, tail) : A::load(at);
    }
    for (int r = 0; r < kRows; ++r) {
      const F left = A::set(a.data[r * a.row + p * a.col]);
      for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = A::madd(left, line[v], acc[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVecs; ++v) {
      float* at = c + r * ldc + v * kLanes;
      const bool part = kTail && v == kVecs - 1;
      F y = acc[r][v] * alpha;
      if (beta != 0.0f) y += (part ? A::load(at, tail) : A::load(at)) * beta;
      part ? A::store(at, y, tail) : A::store(at, y);
    }
  }
}

// All m rows of kVecs vectors of columns. An element is summed in the same
// order whatever tile it falls into.
template <int kVecs, bool kTail>
void gemm_rows(int64_t m, const Strided& a, const float* b, int64_t ldb,
               int64_t k, int64_t tail, float alpha, float beta, float* c,
               int64_t ldc) {
  // Accumulators leave room for b in 16 registers, 32 with AVX-512.
  constexpr int kMost =
      kLanes == 16 ? (kVecs == 1 ? 16 : 12) : (kVecs == 1 ? 12 : 6);
  constexpr int kSecond = kMost == 6 ? 4 : 8;
  for (int64_t i = 0; i < m;) {
    const Strided rows = {a.data + i * a.row, a.row, a.col};
    float* out = c + i * ldc;
    // Short tiles wait for their own sums, so the rest is cut evenly.
    const int64_t rest = m - i;
    if (rest == kMost || rest >= 2 * kMost) {
      gemm_tile<kMost, kVecs, kTail>(rows, b, ldb, k, tail, alpha, beta, out,
                                     ldc);
      i += kMost;
    } else if (rest >= kSecond) {
      gemm_tile<kSecond, kVecs, kTail>(rows, b, ldb, k, tail, alpha, beta, out,
                                       ldc);
      i += kSecond;
    } else if (rest >= 2) {
      gemm_tile<2, kVecs, kTail>(rows, b, ldb, k, tail, alpha, beta, out, ldc);
      i += 2;
    } else {
      gemm_tile<1, kVecs, kTail>(rows, b, ldb, k, tail, alpha, beta, out, ldc);
      i += 1;
    }
  }
}

// All of c for a row-major b[k, n].
inline void gemm_panel(int64_t m, int64_t n, int64_t k, const Strided& a,
                       const float* b, int64_t ldb, float alpha, float beta,
                       float* c, int64_t ldc) {
  constexpr int64_t kWide = 2 * kLanes;
  int64_t j = 0;
  for (; j + kWide <= n; j += kWide) {
    gemm_rows<2, false>(m, a, b + j, ldb, k, 0, alpha, beta, c + j, ldc);
  }
  if (n - j > kLanes) {
    gemm_rows<2, true>(m, a, b + j, ldb, k, n - j - kLanes, alpha, beta, c + j,
                       ldc);
  } else if (n - j == kLanes) {
    gemm_rows<1, false>(m, a, b + j, ldb, k, 0, alpha, beta, c + j, ldc);
  } else if (n > j) {
    gemm_rows<1, true>(m, a, b + j, ldb, k, n - j, alpha, beta, c + j, ldc);
  }
}

// Rows [0, deep) of columns [0, cols) of op(b), as rows of `wide` floats.
BERTH_INLINE void pack_panel(bool transpose_b, const float* b, int64_t ldb,
                             int64_t deep, int64_t cols, int64_t wide,
                             float* packed) {
  if (transpose_b) {
    transpose(b, cols, deep, ldb, packed, wide);
    return;
  }
  for (int64_t p = 0; p < deep; ++p) {
    for_vectors(cols, [=](int64_t j, auto part) {
      part.store(packed + p * wide + j, part.load(b + p * ldb + j));
    });
  }
}

// Sums of kDeep products each are added up one after the other, whatever way
// the operands take, so that bits do not depend on how a product is cut.
inline void small_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                       int64_t k, float alpha, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c,
                       int64_t ldc) {
  constexpr int64_t kDeep = 256, kFloats = 32 * kDeep;
  // Rows of a that stay in the second-level cache for all panels of b.
  constexpr int64_t kRows = 264;
  // Short vectors read b more often.
  constexpr int64_t kWorthPacking = kLanes == 16 ? 1 << 18 : 1 << 14;
  const bool pack = transpose_b || (m >= 32 && n > 32 && n * k > kWorthPacking);
  float packed[kFloats];
  const int64_t wide = pack ? (k <= 16 ? 256 : 32) : n;
  const int64_t row_step = k > kDeep || n > 256 ? kRows : m;
  for (int64_t i = 0; i < m; i += row_step) {
    const int64_t rows = m - i < row_step ? m - i : row_step;
    int64_t p = 0;
    do {
      const int64_t deep = k - p < kDeep ? k - p : kDeep;
      const float scale = p == 0 ? beta : 1.0f;
      const int64_t row = transpose_a ? 1 : lda, col = transpose_a ? lda : 1;
      const Strided left = {a + i * row + p * col, row, col};
      for (int64_t j = 0; j < n; j += wide) {
        const int64_t cols = n - j < wide ? n - j : wide;
        const float* from = b + (transpose_b ? j * ldb + p : p * ldb + j);
        if (pack) {
          pack_panel(transpose_b, from, ldb, deep, cols, wide, packed);
          from = packed;
        }
        gemm_panel(rows, cols, deep, left, from, pack ? wide : ldb, alpha,
                   scale, c + i * ldc + j, ldc);
      }
      p += kDeep;
    } while (p < k);
  }
}

// kTaps accumulators of one vector of output channels over all pixels.
template <int kTaps, class Where>
BERTH_INLINE void taps_tile(const float* image, int64_t step_y, int64_t step_x,
                            const int32_t* offsets, const float* dy,
                            int64_t out_h, int64_t out_w, int64_t out_c,
                            Where part, float* filter) {
  F acc[kTaps] = {};
  int64_t offset[kTaps];
  for (int t = 0; t < kTaps; ++t) offset[t] = offsets[t];
  for (int64_t oy = 0; oy < out_h; ++oy) {
    const float* from = image + oy * step_y;
    for (int64_t ox = 0; ox < out_w; ++ox, from += step_x, dy += out_c) {
      const F grad = part.load(dy);
      for (int t = 0; t < kTaps; ++t) {
        acc[t] = A::madd(grad, A::set(from[offset[t]]), acc[t]);
      }
    }
  }
  for (int t = 0; t < kTaps; ++t) {
    float* at = filter + t * out_c;
    part.store(at, part.load(at) + acc[t]);
  }
}

inline void conv_taps(const float* image, int64_t step_y, int64_t step_x,
                      const int32_t* offsets, int taps, const float* dy,
                      int64_t out_h, int64_t out_w, int64_t out_c,
                      float* filter) {
  for_vectors(out_c, [=](int64_t c, auto part) {
    int t = 0;
    for (; t + 9 <= taps; t += 9) {
      taps_tile<9>(image, step_y, step_x, offsets + t, dy + c, out_h, out_w,
                   out_c, part, filter + t * out_c + c);
    }
    for (; t + 4 <= taps; t += 4) {
      taps_tile<4>(image, step_y, step_x, offsets + t, dy + c, out_h, out_w,
                   out_c, part, filter + t * out_c + c);
    }
    for (; t < taps; ++t) {
      taps_tile<1>(image, step_y, step_x, offsets + t, dy + c, out_h, out_w,
                   out_c, part, filter + t * out_c + c);
    }
  });
}

// y[kPixels, kVecs vectors] = sum over taps of pixel value times filter row.
template <int kPixels, int kVecs, class Where>
BERTH_INLINE void pixels_tile(const float* from, int64_t step_x,
                              const int32_t* offsets, int taps,
                              const float* filter, const float* bias, bool relu,
                              int64_t out_c, Where part, float* y) {
  F acc[kPixels][kVecs] = {};
  for (int t = 0; t < taps; ++t) {
    const float* pixel = from + offsets[t];
    F row[kVecs];
    for (int v = 0; v < kVecs; ++v) {
      row[v] = part.load(filter + t * out_c + v * kLanes);
    }
    for (int p = 0; p < kPixels; ++p) {
      const F value = A::set(pixel[p * step_x]);
      for (int v = 0; v < kVecs; ++v) {
        acc[p][v] = A::madd(value, row[v], acc[p][v]);
      }
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    const F add = bias != nullptr ? part.load(bias + v * kLanes) : F{};
    for (int p = 0; p < kPixels; ++p) {
      F out = acc[p][v] + add;
      if (relu) out = Relu::apply(out);
      part.store(y + p * out_c + v * kLanes, out);
    }
  }
}

template <int kVecs, class Where>
BERTH_INLINE void pixels_line(const float* from, int64_t step_x,
                              const int32_t* offsets, int taps,
                              const float* filter, const float* bias, bool relu,
                              int64_t out_w, int64_t out_c, Where part,
                              float* y) {
  constexpr int kPixels = kLanes == 16 ? 8 : 6;
  int64_t x = 0;
  for (; x + kPixels <= out_w; x += kPixels) {
    pixels_tile<kPixels, kVecs>(from + x * step_x, step_x, offsets, taps,
                                filter, bias, relu, out_c, part, y + x * out_c);
  }
  for (; x + 2 <= out_w; x += 2) {
    pixels_tile<2, kVecs>(from + x * step_x, step_x, offsets, taps, filter,
                          bias, relu, out_c, part, y + x * out_c);
  }
  if (x < out_w) {
    pixels_tile<1, kVecs>(from + x * step_x, step_x, offsets, taps, filter,
                          bias, relu, out_c, part, y + x * out_c);
  }
}

inline void conv_pixels(const float* image, int64_t step_y, int64_t step_x,
                        const int32_t* offsets, int taps, const float* filter,
                        const float* bias, bool relu, int64_t out_h,
                        int64_t out_w, int64_t out_c, float* y) {
  auto at = [bias](int64_t c) { return bias != nullptr ? bias + c : nullptr; };
  for (int64_t oy = 0; oy < out_h; ++oy) {
    const float* from = image + oy * step_y;
    float* line = y + oy * out_w * out_c;
    int64_t done = 0;
    for (; done + 2 * kLanes <= out_c; done += 2 * kLanes) {
      pixels_line<2>(from, step_x, offsets, taps, filter + done, at(done), relu,
                     out_w, out_c, Full{}, line + done);
    }
    for_vectors(out_c - done, [=](int64_t i, auto part) {
      const int64_t c = done + i;
      pixels_line<1>(from, step_x, offsets, taps, filter + c, at(c), relu,
                     out_w, out_c, part, line + c);
    });
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_GEMM_H_
