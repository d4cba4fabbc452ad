// Powers of float32, computed in double; included once per instruction set.
//
// Infinities, NaN, zeros and negative bases behave as in the C library; other
// results have an error below 0.6 units in the last place.

#ifndef BERTH_BACKENDS_CPU_ISA_POWER_H_
#define BERTH_BACKENDS_CPU_ISA_POWER_H_

#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline constexpr int kDoubles = kLanes / 2;
typedef double Doubles __attribute__((vector_size(8 * kDoubles)));
typedef int64_t Longs __attribute__((vector_size(8 * kDoubles)));
typedef uint64_t UnsignedLongs __attribute__((vector_size(8 * kDoubles)));
typedef float NarrowFloats __attribute__((vector_size(4 * kDoubles)));

// Adding 1.5 * 2^52 rounds to an integer, which ends up in the low bits.
inline constexpr double kRoundWide = 6755399441055744.0;
inline constexpr int64_t kOneBits = int64_t{1023} << 52;
inline constexpr int64_t kRootHalfBits = 0x3fe6a09e667f3bcd;

BERTH_INLINE Doubles wide(double x) { return x - Doubles{}; }
BERTH_INLINE Doubles madd_wide(Doubles a, Doubles b, double c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, wide(c));
#elif defined(__AVX2__)
  return _mm256_fmadd_pd(a, b, wide(c));
#else
  return a * b + c;
#endif
}

// For x > 0, normal: the exponent counts from sqrt(1/2) on; the rest is a
// series of atanh, accurate to 2^-36. The bits are unsigned, since those of a
// NaN overflow an int64.
BERTH_INLINE Doubles log2_wide(Doubles x) {
  const UnsignedLongs from_root =
      (UnsignedLongs)x + uint64_t{kOneBits - kRootHalfBits};
  // The bits of 2^52 + the biased exponent.
  const Doubles exponent = (Doubles)((from_root >> 52) | 0x4330000000000000) -
                           (4503599627370496.0 + 1023.0);
  const auto m =
      (Doubles)((from_root & 0x000fffffffffffff) + uint64_t{kRootHalfBits});
  const Doubles s = (m - 1.0) / (m + 1.0);
  const Doubles z = s * s;
  Doubles p = madd_wide(z, wide(1.0 / 13), 1.0 / 11);
  p = madd_wide(p, z, 1.0 / 9);
  p = madd_wide(p, z, 1.0 / 7);
  p = madd_wide(p, z, 1.0 / 5);
  p = madd_wide(p, z, 1.0 / 3);
  p = madd_wide(p, z, 1.0);
  return s * p * 2.8853900817779268 + exponent;  // 2 / ln 2
}

// Clamps beyond the range of float32 on both sides. NaN stays.
BERTH_INLINE Doubles exp2_wide(Doubles t) {
  t = t < -200.0 ? wide(-200) : t;
  t = t > 200.0 ? wide(200) : t;
  const Doubles shifted = t + kRoundWide;
  const Doubles r = (t - (shifted - kRoundWide)) * 0.69314718055994531;
  Doubles p = madd_wide(r, wide(1.0 / 40320), 1.0 / 5040);
  p = madd_wide(p, r, 1.0 / 720);
  p = madd_wide(p, r, 1.0 / 120);
  p = madd_wide(p, r, 1.0 / 24);
  p = madd_wide(p, r, 1.0 / 6);
  p = madd_wide(p, r, 0.5);
  p = madd_wide(p, r, 1.0);
  p = madd_wide(p, r, 1.0);
  return p * (Doubles)(((UnsignedLongs)shifted + 1023) << 52);
}

inline constexpr float kMostFloat = 3.40282347e38f;

// For bases above 0 and below infinity; 1 to any power is 1.
BERTH_INLINE Doubles power_of_positive(Doubles a, Doubles b) {
  const Doubles log = log2_wide(a);
  return exp2_wide(log == 0.0 ? wide(0) : log * b);
}

BERTH_INLINE Doubles power_of_any(Doubles a, Doubles b) {
  const auto sign = (Longs)((UnsignedLongs)(Longs)a & (uint64_t{1} << 63));
  const auto size = (Doubles)((Longs)a ^ sign);
  // Logarithms of 0 and infinity become finite, so that times 0 they give 0.
  Doubles log = log2_wide(size);
  log = size > double{kMostFloat} ? wide(1e300) : log;
  log = size == 0.0 ? wide(-1e300) : log;
  Doubles y = exp2_wide(log == 0.0 ? wide(0) : log * b);
  y = (a != a) & (b != 0.0) ? a : y;
  // A negative base has a real power when the exponent is whole. All floats
  // from 2^25 on are even.
  const Longs even = (b >= 33554432.0) | (b <= -33554432.0);
  const Doubles rounded = b + kRoundWide;
  const Longs whole = even | (rounded - kRoundWide == b);
  const Longs odd = whole & ~even & (((Longs)rounded & 1) == 1);
  y = (Doubles)((Longs)y ^ (odd & sign));
  const Longs no_number = (a < 0.0) & (size <= double{kMostFloat}) & ~whole;
  return no_number ? wide(__builtin_nan("")) : y;
}

// Computes n <= kDoubles elements.
template <bool kPositive>
BERTH_INLINE void power_part(const float* a, const float* b, float* y,
                             size_t n) {
  NarrowFloats base = NarrowFloats{} + 1.0f, exponent = base;
  __builtin_memcpy(&base, a, n * sizeof(float));
  __builtin_memcpy(&exponent, b, n * sizeof(float));
  const Doubles p = __builtin_convertvector(base, Doubles);
  const Doubles q = __builtin_convertvector(exponent, Doubles);
  const auto result = __builtin_convertvector(
      kPositive ? power_of_positive(p, q) : power_of_any(p, q), NarrowFloats);
  __builtin_memcpy(y, &result, n * sizeof(float));
}

template <bool kPositive>
void power_block(const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kDoubles <= n; i += kDoubles) {
    power_part<kPositive>(a + i, b + i, y + i, kDoubles);
  }
  if (i < n) {
    power_part<kPositive>(a + i, b + i, y + i, static_cast<size_t>(n - i));
  }
}

// Both paths give ordinary bases the same bits.
inline void powers(const void* a, const void* b, const void*, void* y,
                   int64_t n) {
  constexpr int64_t kBlock = 256;
  const auto *p = static_cast<const float*>(a),
             *q = static_cast<const float*>(b);
  auto* out = static_cast<float*>(y);
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t size = n - at < kBlock ? n - at : kBlock;
    int others = 0;
    for (int64_t i = at; i < at + size; ++i) {
      others += (p[i] > 0) & (p[i] <= kMostFloat) ? 0 : 1;
    }
    const auto block = others == 0 ? power_block<true> : power_block<false>;
    block(p + at, q + at, out + at, size);
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_POWER_H_
