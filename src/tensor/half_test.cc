#include "berth/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "berth/dtype.h"

namespace berth {
namespace {

// A 16-bit format read by its definition: sign, exponent, fraction.
template <int kFraction>
double value_of(uint16_t bits) {
  constexpr int kExponent = 15 - kFraction;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  constexpr int kTop = (1 << kExponent) - 1;
  const double sign = bits >> 15 ? -1 : 1;
  const int exponent = bits >> kFraction & kTop;
  const double fraction = bits & ((1 << kFraction) - 1);
  const double unit = std::ldexp(1.0, -kFraction);
  if (exponent == kTop) {
    return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  }
  if (exponent == 0) {
    return sign * std::ldexp(fraction * unit, 1 - kBias);
  }
  return sign * std::ldexp(1 + fraction * unit, exponent - kBias);
}

// The pattern nearest to v, of two the even one, found by search among the
// values of the format; infinity takes the place of 2^(largest exponent + 1).
template <int kFraction>
uint16_t nearest(double v) {
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::fabs(v);
  constexpr uint16_t kInfinity = 0x7fff >> kFraction << kFraction;
  if (a == HUGE_VAL) return sign | kInfinity;
  uint16_t low = 0, high = kInfinity;  // value(low) <= a < value(high)
  while (high - low > 1) {
    const auto mid = static_cast<uint16_t>((low + high) / 2);
    (value_of<kFraction>(mid) <= a ? low : high) = mid;
  }
  const double below = value_of<kFraction>(low);
  // What the next value would be if the exponents went on.
  const double above =
      high == kInfinity ? 2 * value_of<kFraction>(kInfinity - (1 << kFraction))
                        : value_of<kFraction>(high);
  const double to_low = a - below, to_high = above - a;
  const bool up = to_high < to_low || (to_high == to_low && low % 2 == 1);
  return sign | (up ? high : low);
}

template <class Half, int kFraction>
void expect_nearest(float v) {
  const Half h(v);
  if (std::isnan(v)) {
    ASSERT_TRUE(std::isnan(static_cast<float>(h)));
    return;
  }
  ASSERT_EQ(h.bits, nearest<kFraction>(v)) << v;
}

template <class Half, int kFraction>
void check_every_pattern() {
  for (uint32_t i = 0; i < 65536; ++i) {
    Half h;
    h.bits = static_cast<uint16_t>(i);
    const float f = h;
    const double want = value_of<kFraction>(h.bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(f)) << i;
      ASSERT_TRUE(std::isnan(static_cast<float>(Half(f)))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(f), want) << i;
    ASSERT_EQ(std::signbit(f), i >> 15) << i;
    ASSERT_EQ(Half(f).bits, h.bits) << i;
  }
}

// Every value, every point halfway between two, and what lies beside them.
template <class Half, int kFraction>
void check_rounding() {
  for (uint32_t i = 0; i < 0x7fff >> kFraction << kFraction; ++i) {
    const double a = value_of<kFraction>(static_cast<uint16_t>(i));
    const double b = value_of<kFraction>(static_cast<uint16_t>(i + 1));
    const double halfway = b == HUGE_VAL ? a : (a + b) / 2;
    for (const double at : {a, halfway}) {
      const auto v = static_cast<float>(at);
      for (const float x :
           {v, std::nextafter(v, 0.f), std::nextafter(v, HUGE_VALF)}) {
        expect_nearest<Half, kFraction>(x);
        expect_nearest<Half, kFraction>(-x);
      }
    }
  }
}

TEST(BFloat16, EveryPatternSurvivesTheWayThroughFloat) {
  check_every_pattern<bfloat16_t, 7>();
}
TEST(Float16, EveryPatternSurvivesTheWayThroughFloat) {
  check_every_pattern<float16_t, 10>();
}
TEST(BFloat16, RoundsToNearestEven) { check_rounding<bfloat16_t, 7>(); }
TEST(Float16, RoundsToNearestEven) { check_rounding<float16_t, 10>(); }

TEST(Float16, AgreesWithTheCompilerOnASweepOfAllFloats) {
  // Every 4093rd pattern (a prime), of all exponents and signs.
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 4093) {
    const auto v = std::bit_cast<float>(static_cast<uint32_t>(u));
    if (std::isnan(v)) continue;
    const auto builtin = static_cast<_Float16>(v);
    uint16_t want;
    std::memcpy(&want, &builtin, sizeof want);
    ASSERT_EQ(float16_t(v).bits, want) << v;
  }
}

TEST(Float16, OverflowsToInfinityFromHalfAboveTheLargest) {
  EXPECT_EQ(float16_t(65504.f).bits, 0x7bff);
  EXPECT_EQ(float16_t(65519.99f).bits, 0x7bff);
  EXPECT_EQ(float16_t(65520.f).bits, 0x7c00);
  EXPECT_EQ(float16_t(-1e30f).bits, 0xfc00);
}

TEST(Float16, KeepsSubnormals) {
  EXPECT_EQ(float16_t(0x1p-24f).bits, 1);
  EXPECT_EQ(float16_t(0x1p-25f).bits, 0);  // half of it: to even
  EXPECT_EQ(float16_t(0x1.1p-25f).bits, 1);
  EXPECT_EQ(static_cast<float>(float16_t(0x1p-24f)), 0x1p-24f);
}

TEST(BFloat16, OverflowsToInfinity) {
  EXPECT_EQ(bfloat16_t(std::numeric_limits<float>::max()).bits, 0x7f80);
}

TEST(Halves, NaNStaysNaNWhateverItsBits) {
  for (const uint32_t u : {0x7f800001u, 0xffffffffu, 0x7fc00000u}) {
    const auto nan = std::bit_cast<float>(u);
    EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16_t(nan)))) << u;
    EXPECT_TRUE(std::isnan(static_cast<float>(float16_t(nan)))) << u;
  }
}

}  // namespace
}  // namespace berth
