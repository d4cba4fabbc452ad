// Converts between 16-bit elements and float, rounding to nearest even.

#ifndef BERTH_BACKENDS_CPU_ISA_HALF_H_
#define BERTH_BACKENDS_CPU_ISA_HALF_H_

#include "backends/cpu/isa/arch.h"
#include "berth/half.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline void widen_bfloat16(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    y[i] = __builtin_bit_cast(float, uint32_t{x[i]} << 16);
  }
}

inline void round_bfloat16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto u = __builtin_bit_cast(uint32_t, x[i]);
    const uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    y[i] = static_cast<uint16_t>(nan ? u >> 16 | 0x40 : rounded);
  }
}

#if defined(__F16C__)

inline void widen_float16(const uint16_t* x, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto* at = reinterpret_cast<const __m128i*>(x + i);
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(at)));
  }
  for (; i < n; ++i) y[i] = _cvtsh_ss(x[i]);
}

inline void round_float16(const float* x, uint16_t* y, int64_t n) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i r = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), kNearest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), r);
  }
  for (; i < n; ++i) {
    y[i] = static_cast<uint16_t>(_cvtss_sh(x[i], kNearest));
  }
}

#else  // the oldest level may use inline functions of other headers

inline void widen_float16(const uint16_t* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float16_t h;
    h.bits = x[i];
    y[i] = h;
  }
}

inline void round_float16(const float* x, uint16_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = float16_t(x[i]).bits;
}

#endif

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_HALF_H_
