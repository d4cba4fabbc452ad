#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace berth {
namespace {

// The published Random123 vectors: counter, key, result.
TEST(Philox, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, UniformsLieInTheUnitIntervalWithTheRightMoments) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(0xffffffff), 1.0f);
  RandomStream stream(42, 7, 3);
  const int n = 200000;
  double sum = 0, squares = 0, lagged = 0, last = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform(i) - 0.5;
    sum += u;
    squares += u * u;
    lagged += u * last;
    last = u;
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1.0 / 180 / n));
  EXPECT_NEAR(lagged / n, 0, 5 * std::sqrt(1.0 / 144 / n));
}

TEST(RandomStream, NormalsHaveTheRightMomentsAndTails) {
  RandomStream stream(1234567890123ull, 1, 0);
  const int n = 200000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  int beyond2 = 0;
  for (int i = 0; i < n; ++i) {
    const double x = stream.normal(i);
    ASSERT_TRUE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    if (std::fabs(x) > 2) ++beyond2;
  }
  EXPECT_NEAR(m1 / n, 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m3 / n, 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96.0 / n));
  EXPECT_NEAR(beyond2 / double(n), 0.0455, 0.0025);
}

TEST(RandomStream, NormalPairIsBoxMullerAndFiniteAtTheEnds) {
  for (uint32_t a : {0u, 1u, 77777777u, 0x80000000u, 0xffffffffu}) {
    for (uint32_t b : {0u, 0x1fffffffu, 0x20000000u, 0x3fffffffu, 0x40000000u,
                       0x60000000u, 0x9abcdef0u, 0xe0000000u, 0xffffffffu}) {
      const double u = (double(a >> 8) + 1) / (1 << 24);
      const double turn = double(b >> 8) / (1 << 24);
      const double r = std::sqrt(-2 * std::log(u));
      const auto got = normal_pair(a, b);
      EXPECT_NEAR(got[0], r * std::cos(2 * M_PI * turn), 2e-6);
      EXPECT_NEAR(got[1], r * std::sin(2 * M_PI * turn), 2e-6);
    }
  }
}

TEST(RandomStream, DiffersBySeedOpStepAndIndex) {
  const RandomStream base(1, 2, 3);
  EXPECT_EQ(base.word(9), RandomStream(1, 2, 3).word(9));
  EXPECT_NE(base.word(9), base.word(10));
  EXPECT_NE(base.word(9), RandomStream(2, 2, 3).word(9));
  EXPECT_NE(base.word(9), RandomStream(1ull << 32 | 1, 2, 3).word(9));
  EXPECT_NE(base.word(9), RandomStream(1, 3, 3).word(9));
  EXPECT_NE(base.word(9), RandomStream(1, 2, 4).word(9));
  EXPECT_NE(base.word(9), RandomStream(1, 2, 1ull << 32 | 3).word(9));
  EXPECT_NE(base.word(9), base.word((1ull << 34) + 9));
}

// Distance in representable floats; both of one sign.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  const float next = std::nextafter(std::fabs(rounded), INFINITY);
  return std::fabs(got - want) / (next - std::fabs(rounded));
}

template <class Got, class Want>
double worst(double from, double to, Got got, Want want) {
  double most = 0;
  const int n = 200000;
  for (int i = 0; i <= n; ++i) {
    const float x = static_cast<float>(from + (to - from) * i / n);
    most = std::max(most, ulps(got(x), want(static_cast<double>(x))));
  }
  return most;
}

TEST(Polynomial, StaysWithinItsStatedErrors) {
  using S = ScalarArch;
  auto exp = [](float x) { return poly::exp<S>(x); };
  auto log = [](float x) { return poly::log<S>(x); };
  auto tanh = [](float x) { return poly::tanh<S>(x); };
  auto erf = [](float x) { return poly::erf<S>(x); };
  auto sigmoid = [](float x) { return poly::sigmoid<S>(x); };
  const double e = worst(-87, 88.7, exp, [](double x) { return std::exp(x); });
  const double l = worst(1e-6, 10, log, [](double x) { return std::log(x); });
  const double l2 = worst(0.5, 2, log, [](double x) { return std::log(x); });
  const double t = worst(-9, 9, tanh, [](double x) { return std::tanh(x); });
  const double t2 =
      worst(-1e-3, 1e-3, tanh, [](double x) { return std::tanh(x); });
  const double f = worst(-5, 5, erf, [](double x) { return std::erf(x); });
  const double s =
      worst(-80, 80, sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); });
  EXPECT_LT(e, 1.5);
  EXPECT_LT(l, 1.5);
  EXPECT_LT(l2, 1.5);
  EXPECT_LT(t, 6);
  EXPECT_LT(t2, 5);
  EXPECT_LT(f, 6);
  EXPECT_LT(s, 3);
}

TEST(Polynomial, HandlesInfinitiesNanAndDenormals) {
  using S = ScalarArch;
  const float inf = INFINITY;
  EXPECT_EQ(poly::exp<S>(-inf), 0.0f);
  EXPECT_EQ(poly::exp<S>(inf), inf);
  EXPECT_EQ(poly::exp<S>(89.0f), inf);
  EXPECT_EQ(poly::exp<S>(0.0f), 1.0f);
  EXPECT_FLOAT_EQ(poly::exp<S>(-100.0f), std::exp(-100.0f));
  EXPECT_TRUE(std::isnan(poly::exp<S>(NAN)));
  EXPECT_EQ(poly::log<S>(0.0f), -inf);
  EXPECT_EQ(poly::log<S>(1.0f), 0.0f);
  EXPECT_EQ(poly::log<S>(inf), inf);
  EXPECT_TRUE(std::isnan(poly::log<S>(-1.0f)));
  EXPECT_TRUE(std::isnan(poly::log<S>(NAN)));
  EXPECT_FLOAT_EQ(poly::log<S>(1e-41f), std::log(1e-41f));
  EXPECT_FLOAT_EQ(poly::log<S>(3e38f), std::log(3e38f));
  for (float sign : {-1.0f, 1.0f}) {
    EXPECT_EQ(poly::tanh<S>(sign * inf), sign);
    EXPECT_EQ(poly::erf<S>(sign * inf), sign);
    EXPECT_EQ(poly::tanh<S>(sign * 1e-30f), sign * 1e-30f);
  }
  EXPECT_TRUE(std::isnan(poly::tanh<S>(NAN)));
  EXPECT_TRUE(std::isnan(poly::erf<S>(NAN)));
  EXPECT_EQ(poly::sigmoid<S>(-inf), 0.0f);
  EXPECT_EQ(poly::sigmoid<S>(inf), 1.0f);
}

}  // namespace
}  // namespace berth
