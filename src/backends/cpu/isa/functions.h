// Sine and cosine of float32, left to the compiler to vectorise; included once
// per instruction set.
//
// Arguments are reduced in double; the largest error is 1.5 units in the last
// place.

#ifndef BERTH_BACKENDS_CPU_ISA_FUNCTIONS_H_
#define BERTH_BACKENDS_CPU_ISA_FUNCTIONS_H_

#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

inline constexpr int kFunctionBlock = 256;
// Adding 1.5 * 2^52 rounds to an integer, which ends up in the low bits.
inline constexpr double kRoundDouble = 6755399441055744.0;

BERTH_INLINE float mul_add(float a, float b, float c) {
#if defined(__FMA__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// Sine of x + `kQuarter` quarter turns for |x| <= kMostTurned.
inline constexpr float kMostTurned = 1048576.0f;

template <int kQuarter>
BERTH_INLINE float turned_sine(float x) {
  // pi/2 in two pieces, the first short enough for exact products.
  constexpr double kHigh = 0x1.921fb544p+0, kLow = 0x1.0b4611a626331p-34;
  const double d = x;
  const double shifted = d * 0.63661977236758134308 + kRoundDouble;
  const double turns = shifted - kRoundDouble;
  const auto r = static_cast<float>((d - turns * kHigh) - turns * kLow);
  const int32_t quarter = static_cast<int32_t>(turns) + kQuarter;
  const float z = r * r;
  float s = mul_add(z, -1.9515295891e-4f, 8.3321608736e-3f);
  // "+ 0" keeps the sign of an angle of -0.
  s = mul_add(mul_add(mul_add(s, z, -1.6666654611e-1f), z, 0.0f), r, r);
  float c = mul_add(z, 2.443315711809948e-5f, -1.388731625493765e-3f);
  c = mul_add(c, z, 4.166664568298827e-2f) * z;
  c = mul_add(mul_add(c, 1.0f, -0.5f), z, 1.0f);
  // By masks: GCC does not vectorise the choice for AVX2.
  const uint32_t odd = 0u - static_cast<uint32_t>(quarter & 1);
  const uint32_t y = (__builtin_bit_cast(uint32_t, c) & odd) |
                     (__builtin_bit_cast(uint32_t, s) & ~odd);
  const uint32_t sign = static_cast<uint32_t>(quarter & 2) << 30;
  return __builtin_bit_cast(float, y ^ sign);
}

template <int kQuarter>
void sine(const float* x, float* y, int64_t n) {
  float in[kFunctionBlock], out[kFunctionBlock];
  for (int64_t at = 0; at < n; at += kFunctionBlock) {
    const int64_t size = n - at < kFunctionBlock ? n - at : kFunctionBlock;
    int far = 0;
    for (int64_t i = 0; i < size; ++i) {
      const float v = x[at + i];
      const bool near = __builtin_fabsf(v) <= kMostTurned;
      in[i] = near ? v : 0.0f;
      far += !near;
    }
    for (int64_t i = 0; i < size; ++i) out[i] = turned_sine<kQuarter>(in[i]);
    for (int64_t i = 0; far != 0 && i < size; ++i) {
      const float v = x[at + i];
      if (__builtin_fabsf(v) <= kMostTurned) continue;
      const double exact = kQuarter == 0 ? __builtin_sin(v) : __builtin_cos(v);
      out[i] = static_cast<float>(exact);
    }
    __builtin_memcpy(y + at, out, static_cast<size_t>(size) * sizeof(float));
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_FUNCTIONS_H_
