// Vectors of the instruction set this translation unit is compiled for.
//
// Everything in isa/ lives in a namespace named after the level and is either a
// template over Arch or inline here, so that no symbol compiled for a newer
// processor can stand in for an older one. For the same reason isa/ calls no
// inline functions of the standard library.

#ifndef BERTH_BACKENDS_CPU_ISA_ARCH_H_
#define BERTH_BACKENDS_CPU_ISA_ARCH_H_

#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "backends/cpu/loops.h"
#include "base/polynomial.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef float LooseFloats
    __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

struct Arch {
  using F = Floats;
  using I = Ints;

  BERTH_INLINE F set(float x) { return x - F{}; }
  BERTH_INLINE F load(const float* p) {
    return *reinterpret_cast<const LooseFloats*>(p);
  }
  BERTH_INLINE void store(float* p, F x) {
    *reinterpret_cast<LooseFloats*>(p) = x;
  }
  BERTH_INLINE I as_int(F x) { return (I)x; }
  BERTH_INLINE F as_float(I x) { return (F)x; }
  BERTH_INLINE F to_float(I x) { return __builtin_convertvector(x, F); }
  BERTH_INLINE F select(I mask, F a, F b) { return mask ? a : b; }

#if defined(__AVX512F__)
  BERTH_INLINE F madd(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  BERTH_INLINE F sqrt(F x) { return _mm512_maskz_sqrt_ps(0xffff, x); }
  // Loads the first n lanes, n < kLanes; the others become `rest`.
  BERTH_INLINE F load(const float* p, int64_t n, float rest = 0) {
    return _mm512_mask_loadu_ps(set(rest), first(n), p);
  }
  BERTH_INLINE void store(float* p, F x, int64_t n) {
    _mm512_mask_storeu_ps(p, first(n), x);
  }
  // Keeps the first n lanes of x and sets the others to zero.
  BERTH_INLINE F keep(F x, int64_t n) {
    return _mm512_maskz_mov_ps(first(n), x);
  }

 private:
  BERTH_INLINE __mmask16 first(int64_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
  }
#elif defined(__AVX2__)
  BERTH_INLINE F madd(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  BERTH_INLINE F sqrt(F x) { return _mm256_sqrt_ps(x); }
  BERTH_INLINE F load(const float* p, int64_t n, float rest = 0) {
    const I mask = first(n);
    return select(mask, _mm256_maskload_ps(p, (__m256i)mask), set(rest));
  }
  BERTH_INLINE void store(float* p, F x, int64_t n) {
    _mm256_maskstore_ps(p, (__m256i)first(n), x);
  }
  BERTH_INLINE F keep(F x, int64_t n) { return select(first(n), x, F{}); }

 private:
  BERTH_INLINE I first(int64_t n) {
    return I{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(n);
  }
#else
  BERTH_INLINE F madd(F a, F b, F c) { return a * b + c; }
#if defined(__x86_64__)
  BERTH_INLINE F sqrt(F x) { return _mm_sqrt_ps(x); }
#else
  BERTH_INLINE F sqrt(F x) {
    for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
  }
#endif
  BERTH_INLINE F load(const float* p, int64_t n, float rest = 0) {
    F x = set(rest);
    for (int64_t i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  BERTH_INLINE void store(float* p, F x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) p[i] = x[i];
  }
  BERTH_INLINE F keep(F x, int64_t n) {
    return select(I{0, 1, 2, 3} < static_cast<int32_t>(n), x, F{});
  }
#endif
};

using A = Arch;
using F = Arch::F;
using I = Arch::I;

inline constexpr float kInfinity = __builtin_inff();

// NumPy's maximum and minimum: NaN wins.
BERTH_INLINE F max_nan(F a, F b) { return A::select((a > b) | (a != a), a, b); }
BERTH_INLINE F min_nan(F a, F b) { return A::select((a < b) | (a != a), a, b); }
BERTH_INLINE float max_nan(float a, float b) { return a > b || a != a ? a : b; }

BERTH_INLINE I lane_numbers() {
  I index;
  for (int i = 0; i < kLanes; ++i) index[i] = i;
  return index;
}

// Lane i of the result is lane i xor `kDistance`.
template <int kDistance, int... kLane>
BERTH_INLINE F swap_lanes(F x, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(x, x, (kLane ^ kDistance)...);
}

// Combines lanes pairwise, halves first: one fixed order.
template <int kWidth, class Combine>
BERTH_INLINE F fold_lanes(F x, Combine combine) {
  if constexpr (kWidth == 0) {
    return x;
  } else {
    const F other =
        swap_lanes<kWidth>(x, std::make_integer_sequence<int, kLanes>());
    return fold_lanes<kWidth / 2>(combine(x, other), combine);
  }
}

BERTH_INLINE float sum_lanes(F x) {
  return fold_lanes<kLanes / 2>(x, [](F a, F b) { return a + b; })[0];
}

BERTH_INLINE float max_lanes(F x) {
  return fold_lanes<kLanes / 2>(x, [](F a, F b) { return max_nan(a, b); })[0];
}

// Calls body(index, Full) for whole vectors and body(index, Part) for the rest.
// Body reads and writes through these, so that one code path serves both.
struct Full {
  BERTH_INLINE F load(const float* p, float = 0) { return A::load(p); }
  BERTH_INLINE void store(float* p, F x) { A::store(p, x); }
  BERTH_INLINE F keep(F x) { return x; }
};
struct Part {
  int64_t n;
  [[gnu::always_inline]] F load(const float* p, float rest = 0) const {
    return A::load(p, n, rest);
  }
  [[gnu::always_inline]] void store(float* p, F x) const { A::store(p, x, n); }
  [[gnu::always_inline]] F keep(F x) const { return A::keep(x, n); }
};

template <class Body>
BERTH_INLINE void for_vectors(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Full{});
  if (i < n) body(i, Part{n - i});
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_ARCH_H_
