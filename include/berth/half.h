// bfloat16_t, float16_t: the 16-bit elements of tensors.
//
// Storage formats: they convert to float exactly and from float to nearest
// even; arithmetic happens in float. Values; thread-safe.

#ifndef BERTH_HALF_H_
#define BERTH_HALF_H_

#include <bit>
#include <cstdint>

namespace berth {

// The upper half of a float: 8 exponent bits, 7 fraction bits.
struct bfloat16_t {
  uint16_t bits = 0;

  bfloat16_t() = default;
  explicit bfloat16_t(float v) {
    const uint32_t u = std::bit_cast<uint32_t>(v);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>(u >> 16 | 0x40);  // a quiet NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
  }
  operator float() const {  // NOLINT: exact
    return std::bit_cast<float>(uint32_t{bits} << 16);
  }
};

// IEEE 754 binary16: 5 exponent bits, 10 fraction bits.
struct float16_t {
  uint16_t bits = 0;

  float16_t() = default;
  explicit float16_t(float v) : bits(round(v)) {}
  operator float() const {  // NOLINT: exact
    const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
    const uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00) {  // infinity, NaN
      return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    }
    if (rest < 0x400) {  // zero, subnormal: rest * 2^-24
      const float v = static_cast<float>(rest) * 0x1p-24f;
      return std::bit_cast<float>(std::bit_cast<uint32_t>(v) | sign);
    }
    return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
  }

 private:
  static uint16_t round(float v) {
    const uint32_t u = std::bit_cast<uint32_t>(v);
    const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000u);
    const uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00);
    if (a >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00);
    if (a < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
      // Adding 0.5 puts the last bit kept at 2^-24.
      const float r = std::bit_cast<float>(a) + 0.5f;
      return static_cast<uint16_t>(
          sign | (std::bit_cast<uint32_t>(r) - std::bit_cast<uint32_t>(0.5f)));
    }
    const uint32_t r = a + 0xfff + (a >> 13 & 1) - (112u << 23);
    return static_cast<uint16_t>(sign | r >> 13);
  }
};

}  // namespace berth

#endif  // BERTH_HALF_H_
