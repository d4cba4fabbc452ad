// The transforms of Winograd's F(4x4, 3x3), vectorised over channels; included
// once per instruction set.
//
// With points p = 0, a, -a, b, -b and infinity, an axis is transformed by rows
// of B' (coefficients of the product of (x - q) over the other finite points
// q), of G (powers of p over the product of p - q), and of A' (powers of p).
// Each function does one axis of kStep vectors, then the other.

#ifndef BERTH_BACKENDS_CPU_ISA_WINOGRAD_H_
#define BERTH_BACKENDS_CPU_ISA_WINOGRAD_H_

#include "backends/cpu/isa/elementwise.h"
#include "backends/cpu/winograd_loops.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// All squares and their product are exact in float.
inline constexpr float kA = 0.625f, kB = 1.5f;
inline constexpr float kA2 = kA * kA, kB2 = kB * kB;
inline constexpr float kA3 = kA2 * kA, kB3 = kB2 * kB;
// 1 / prod(p - q) for p = 0, +-a, +-b.
inline constexpr float kN0 = 1 / (kA2 * kB2);
inline constexpr float kNa = 1 / (2 * kA2 * (kA2 - kB2));
inline constexpr float kNb = 1 / (2 * kB2 * (kB2 - kA2));

BERTH_INLINE F times(F x, float k) { return x * A::set(k); }
BERTH_INLINE F madd(F x, float k, F y) { return A::madd(x, A::set(k), y); }

// y = B' x
template <class In, class Out>
BERTH_INLINE void image_axis(In x, Out y) {
  const F x0 = x(0), x1 = x(1), x2 = x(2), x3 = x(3), x4 = x(4), x5 = x(5);
  const F even_a = madd(x2, -kB2, x4), odd_a = times(madd(x1, -kB2, x3), kA);
  const F even_b = madd(x2, -kA2, x4), odd_b = times(madd(x1, -kA2, x3), kB);
  y(0, madd(x0, kA2 * kB2, madd(x2, -(kA2 + kB2), x4)));
  y(1, even_a + odd_a);
  y(2, even_a - odd_a);
  y(3, even_b + odd_b);
  y(4, even_b - odd_b);
  y(5, madd(x1, kA2 * kB2, madd(x3, -(kA2 + kB2), x5)));
}

// y = G x
template <class In, class Out>
BERTH_INLINE void filter_axis(In x, Out y) {
  const F x0 = x(0), x1 = x(1), x2 = x(2);
  const F even_a = times(madd(x2, kA2, x0), kNa), odd_a = times(x1, kA * kNa);
  const F even_b = times(madd(x2, kB2, x0), kNb), odd_b = times(x1, kB * kNb);
  y(0, times(x0, kN0));
  y(1, even_a + odd_a);
  y(2, even_a - odd_a);
  y(3, even_b + odd_b);
  y(4, even_b - odd_b);
  y(5, x2);
}

// y = A' x
template <class In, class Out>
BERTH_INLINE void result_axis(In x, Out y) {
  const F x1 = x(1), x2 = x(2), x3 = x(3), x4 = x(4);
  const F sum_a = x1 + x2, odd_a = x1 - x2, sum_b = x3 + x4, odd_b = x3 - x4;
  y(0, x(0) + sum_a + sum_b);
  y(1, madd(odd_b, kB, times(odd_a, kA)));
  y(2, madd(sum_b, kB2, times(sum_a, kA2)));
  y(3, madd(odd_b, kB3, madd(odd_a, kA3, x(5))));
}

// y = A x
template <class In, class Out>
BERTH_INLINE void result_grad_axis(In x, Out y) {
  const F x0 = x(0), x1 = x(1), x2 = x(2), x3 = x(3);
  const F even_a = madd(x2, kA2, x0), odd_a = madd(x3, kA3, times(x1, kA));
  const F even_b = madd(x2, kB2, x0), odd_b = madd(x3, kB3, times(x1, kB));
  y(0, x0);
  y(1, even_a + odd_a);
  y(2, even_a - odd_a);
  y(3, even_b + odd_b);
  y(4, even_b - odd_b);
  y(5, x3);
}

// y = G' x
template <class In, class Out>
BERTH_INLINE void filter_grad_axis(In x, Out y) {
  const F x1 = x(1), x2 = x(2), x3 = x(3), x4 = x(4);
  const F sum_a = times(x1 + x2, kNa), odd_a = x1 - x2;
  const F sum_b = times(x3 + x4, kNb), odd_b = x3 - x4;
  y(0, madd(x(0), kN0, sum_a + sum_b));
  y(1, madd(odd_b, kB * kNb, times(odd_a, kA * kNa)));
  y(2, madd(sum_b, kB2, madd(sum_a, kA2, x(5))));
}

// [kIn, kIn] -> [kOut, kOut]: applies the function `axis` to both axes.
template <int kFrom, int kTo, class Axis, class Load, class Store>
BERTH_INLINE void both_axes(Axis axis, Load load, Store store) {
  F half[kTo][kFrom];
  for (int j = 0; j < kFrom; ++j) {
    axis([&](int i) { return load(i, j); },
         [&](int i, F y) { half[i][j] = y; });
  }
  for (int i = 0; i < kTo; ++i) {
    axis([&](int j) { return half[i][j]; },
         [&](int j, F y) { store(i, j, y); });
  }
}

inline void winograd_image(const float* const* at, int64_t channels, float* v,
                           int64_t stride) {
  for_vectors(channels, [=](int64_t c, auto part) {
    both_axes<6, 6>([](auto x, auto y) { image_axis(x, y); },
                    [&](int i, int j) { return part.load(at[i * 6 + j] + c); },
                    [&](int i, int j, F y) {
                      part.store(v + (i * 6 + j) * stride + c, y);
                    });
  });
}

inline void winograd_filter(const float* w, int64_t tap, int64_t ldw,
                            bool turned, int64_t rows, int64_t cols, float* u,
                            int64_t ldu, int64_t stride) {
  const float* first = turned ? w + 8 * tap : w;
  const int64_t step = turned ? -tap : tap;
  for (int64_t r = 0; r < rows; ++r) {
    for_vectors(cols, [=](int64_t c, auto part) {
      const float* from = first + r * ldw + c;
      float* to = u + r * ldu + c;
      both_axes<3, 6>(
          [](auto x, auto y) { filter_axis(x, y); },
          [&](int i, int j) { return part.load(from + (i * 3 + j) * step); },
          [&](int i, int j, F y) { part.store(to + (i * 6 + j) * stride, y); });
    });
  }
}

inline void winograd_result(const float* m, int64_t stride, int64_t channels,
                            const float* bias, bool relu, float* const* to) {
  for_vectors(channels, [=](int64_t c, auto part) {
    const F add = bias != nullptr ? part.load(bias + c) : F{};
    both_axes<6, 4>(
        [](auto x, auto y) { result_axis(x, y); },
        [&](int i, int j) { return part.load(m + (i * 6 + j) * stride + c); },
        [&](int i, int j, F y) {
          float* at = to[i * 4 + j];
          if (at == nullptr) return;
          y += add;
          if (relu) y = Relu::apply(y);
          part.store(at + c, y);
        });
  });
}

inline void winograd_result_grad(const float* const* at, int64_t channels,
                                 float* z, int64_t stride) {
  for_vectors(channels, [=](int64_t c, auto part) {
    both_axes<4, 6>([](auto x, auto y) { result_grad_axis(x, y); },
                    [&](int i, int j) { return part.load(at[i * 4 + j] + c); },
                    [&](int i, int j, F y) {
                      part.store(z + (i * 6 + j) * stride + c, y);
                    });
  });
}

inline void winograd_filter_grad(const float* m, int64_t ldm, int64_t stride,
                                 int64_t rows, int64_t cols, float* w,
                                 int64_t tap, int64_t ldw) {
  for (int64_t r = 0; r < rows; ++r) {
    for_vectors(cols, [=](int64_t c, auto part) {
      const float* from = m + r * ldm + c;
      float* to = w + r * ldw + c;
      both_axes<6, 3>(
          [](auto x, auto y) { filter_grad_axis(x, y); },
          [&](int i, int j) { return part.load(from + (i * 6 + j) * stride); },
          [&](int i, int j, F y) { part.store(to + (i * 3 + j) * tap, y); });
    });
  }
}

const WinogradLoops& winograd_table() {
  static constexpr WinogradLoops kTable = {
      .image = winograd_image,
      .filter = winograd_filter,
      .result = winograd_result,
      .result_grad = winograd_result_grad,
      .filter_grad = winograd_filter_grad,
  };
  return kTable;
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_WINOGRAD_H_
