// Small matrix products and filter gradients; included once per instruction
// set.

#ifndef BERTH_BACKENDS_CPU_ISA_GEMM_H_
#define BERTH_BACKENDS_CPU_ISA_GEMM_H_

#include "backends/cpu/isa/elementwise.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// Gives op(a) as element (i, p) = data[i * row + p * col] or, tiled, as the
// tiles of gemm_rows one after the other, with each column's rows side by side.
// kAhead also prefetches a line from `ahead` on, per column and tile.
enum class LeftAccess { kStrided, kTiled, kAhead };
struct Left {
  const float* data;
  int64_t row, col;
  const float* ahead = nullptr;
};

// Rows of the next tile of `rest`. The accumulators leave space for b in 16
// registers, 32 with AVX-512. Short tiles stall on their own sums, so the last
// rows are split evenly.
template <int kVecs>
struct TileRows {
  static constexpr int kMost =
      kLanes == 16 ? (kVecs == 1 ? 16 : 12) : (kVecs == 1 ? 12 : 6);
  static constexpr int kSecond = kMost == 6 ? 4 : 8;
  static int of(int64_t rest) {
    if (rest == kMost || rest >= 2 * kMost) return kMost;
    return rest >= kSecond ? kSecond : rest >= 2 ? 2 : 1;
  }
};

// c[kRows, <= kVecs vectors] (+)= alpha a[kRows, k] b[k, width]; b and c are
// row-major. The last vector has `tail` lanes (kLanes: a whole vector).
template <int kRows, int kVecs, bool kTail, LeftAccess kAccess>
BERTH_INLINE void gemm_tile(const Left& a, const float* b, int64_t ldb,
                            int64_t k, int64_t tail, float alpha, float beta,
                            float* c, int64_t ldc) {
  F acc[kRows][kVecs] = {};
  for (int64_t p = 0; p < k; ++p) {
    F line[kVecs];
    if (kAccess == LeftAccess::kAhead)
      __builtin_prefetch(a.ahead + p * 16, 0, 2);
    for (int v = 0; v < kVecs; ++v) {
      const float* at = b + p * ldb + v * kLanes;
      line[v] = kTail && v == kVecs - 1 ? A::load(at, tail) : A::load(at);
    }
    for (int r = 0; r < kRows; ++r) {
      const F left =
          A::set(a.data[kAccess == LeftAccess::kTiled ? p * kRows + r
                                                      : r * a.row + p * a.col]);
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

// Computes all m rows of kVecs vectors of columns. An element is summed in the
// same order in whatever tile it falls.
template <int kVecs, bool kTail, LeftAccess kAccess>
void gemm_rows(int64_t m, Left a, const float* b, int64_t ldb, int64_t k,
               int64_t tail, float alpha, float beta, float* c, int64_t ldc) {
  constexpr bool kTiled = kAccess == LeftAccess::kTiled;
  using Rows = TileRows<kTiled ? 2 : kVecs>;
  for (int64_t i = 0; i < m;) {
    const Left rows = {a.data + i * (kTiled ? k : a.row), a.row, a.col,
                       a.ahead};
    float* out = c + i * ldc;
    const int count = Rows::of(m - i);
    if (count == Rows::kMost) {
      gemm_tile<Rows::kMost, kVecs, kTail, kAccess>(rows, b, ldb, k, tail,
                                                    alpha, beta, out, ldc);
    } else if (count == Rows::kSecond) {
      gemm_tile<Rows::kSecond, kVecs, kTail, kAccess>(rows, b, ldb, k, tail,
                                                      alpha, beta, out, ldc);
    } else if (count == 2) {
      gemm_tile<2, kVecs, kTail, kAccess>(rows, b, ldb, k, tail, alpha, beta,
                                          out, ldc);
    } else {
      gemm_tile<1, kVecs, kTail, kAccess>(rows, b, ldb, k, tail, alpha, beta,
                                          out, ldc);
    }
    i += count;
    if (kAccess == LeftAccess::kAhead) a.ahead += k * 16;
  }
}

// Computes all of c for a row-major b[k, n].
template <LeftAccess kAccess>
void gemm_panel(int64_t m, int64_t n, int64_t k, const Left& a, const float* b,
                int64_t ldb, float alpha, float beta, float* c, int64_t ldc) {
  constexpr int64_t kWide = 2 * kLanes;
  int64_t j = 0;
  for (; j + kWide <= n; j += kWide) {
    gemm_rows<2, false, kAccess>(m, a, b + j, ldb, k, 0, alpha, beta, c + j,
                                 ldc);
  }
  const int64_t rest = n - j;
  if (rest > kLanes) {
    gemm_rows<2, true, kAccess>(m, a, b + j, ldb, k, rest - kLanes, alpha, beta,
                                c + j, ldc);
  } else if (rest == kLanes) {
    gemm_rows<1, false, kAccess>(m, a, b + j, ldb, k, 0, alpha, beta, c + j,
                                 ldc);
  } else if (rest > 0) {
    gemm_rows<1, true, kAccess>(m, a, b + j, ldb, k, rest, alpha, beta, c + j,
                                ldc);
  }
}

// Packs the tiles of op(a)[rows, deep].
BERTH_INLINE void pack_rows(bool transpose_a, const float* a, int64_t lda,
                            int64_t rows, int64_t deep, float* packed) {
  for (int64_t i = 0; i < rows;) {
    const int64_t count = TileRows<2>::of(rows - i);
    float* tile = packed + i * deep;
    if (transpose_a) {
      for (int64_t p = 0; p < deep; ++p, tile += count) {
        for_vectors(count, [=](int64_t r, auto part) {
          part.store(tile + r, part.load(a + p * lda + i + r));
        });
      }
    } else {
      transpose(a + i * lda, count, deep, lda, tile, count);
    }
    i += count;
  }
}

// Packs rows [0, deep) of columns [0, cols) of op(b) as rows of `wide` floats.
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

// Sums of kDeep products each are added one after the other, packed or not, so
// that the bits do not depend on how a product is split.
constexpr int64_t kDeep = 256;
// Rows of a that stay in the second-level cache for all panels of b.
constexpr int64_t kTallRows = 264;

// Packs both operands and computes c[m, n] by panels of 32 columns.
inline void packed_gemm(bool transpose_a, bool transpose_b, int64_t m,
                        int64_t n, int64_t k, float alpha, const float* a,
                        int64_t lda, const float* b, int64_t ldb, float beta,
                        float* c, int64_t ldc) {
  constexpr int64_t kWide = 32;
  float tiles[kTallRows * kDeep], panel[kWide * kDeep];
  for (int64_t i = 0; i < m; i += kTallRows) {
    const int64_t rows = m - i < kTallRows ? m - i : kTallRows;
    for (int64_t p = 0; p < k; p += kDeep) {
      const int64_t deep = k - p < kDeep ? k - p : kDeep;
      pack_rows(transpose_a, a + (transpose_a ? p * lda + i : i * lda + p), lda,
                rows, deep, tiles);
      for (int64_t j = 0; j < n; j += kWide) {
        const int64_t cols = n - j < kWide ? n - j : kWide;
        pack_panel(transpose_b, b + (transpose_b ? j * ldb + p : p * ldb + j),
                   ldb, deep, cols, kWide, panel);
        gemm_panel<LeftAccess::kTiled>(rows, cols, deep, {tiles, 0, 0}, panel,
                                       kWide, alpha, p == 0 ? beta : 1.0f,
                                       c + i * ldc + j, ldc);
      }
    }
  }
}

inline void small_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                       int64_t k, float alpha, const float* a, int64_t lda,
                       const float* b, int64_t ldb, float beta, float* c,
                       int64_t ldc) {
  // Shorter vectors read b more often.
  constexpr int64_t kWorthPacking = kLanes == 16 ? 1 << 18 : 1 << 14;
  const bool large = m >= 32 && n > 32 && n * k > kWorthPacking;
  if (large && n >= 128 && k > 16) {
    return packed_gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb,
                       beta, c, ldc);
  }
  const bool pack = transpose_b || large;
  float packed[32 * kDeep];
  const int64_t wide = pack ? (k <= 16 ? 256 : 32) : n;
  const int64_t row_step = k > kDeep || n > 256 ? kTallRows : m;
  for (int64_t i = 0; i < m; i += row_step) {
    const int64_t rows = m - i < row_step ? m - i : row_step;
    int64_t p = 0;
    do {
      const int64_t deep = k - p < kDeep ? k - p : kDeep;
      const float scale = p == 0 ? beta : 1.0f;
      const int64_t row = transpose_a ? 1 : lda, col = transpose_a ? lda : 1;
      const Left left = {a + i * row + p * col, row, col};
      for (int64_t j = 0; j < n; j += wide) {
        const int64_t cols = n - j < wide ? n - j : wide;
        const float* from = b + (transpose_b ? j * ldb + p : p * ldb + j);
        if (pack) {
          pack_panel(transpose_b, from, ldb, deep, cols, wide, packed);
          from = packed;
        }
        gemm_panel<LeftAccess::kStrided>(rows, cols, deep, left, from,
                                         pack ? wide : ldb, alpha, scale,
                                         c + i * ldc + j, ldc);
      }
      p += kDeep;
    } while (p < k);
  }
}

inline void panel_gemm(int64_t m, int64_t k, const float* a, int64_t lda,
                       const float* panel, float* c, int64_t ldc) {
  constexpr int64_t kWide = 32;
  for (int64_t p = 0; p < k; p += kDeep) {
    const int64_t deep = k - p < kDeep ? k - p : kDeep;
    const Left left = {a + p, lda, 1, panel + (p + deep) * kWide};
    gemm_panel<LeftAccess::kAhead>(m, kWide, deep, left, panel + p * kWide,
                                   kWide, 1, p == 0 ? 0.0f : 1.0f, c, ldc);
  }
}

// Keeps kTaps accumulators of one vector of output channels over all pixels.
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
