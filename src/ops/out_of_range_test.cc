// Numbers that a type cannot hold: casts, powers, infinite sums. Expected
// values are written by hand from the rule in berth/ops/math.h.

#include <cmath>

#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

template <class T>
std::vector<T> as(const Tensor& x, DType to) {
  // Alone, and in one loop with another op.
  const std::vector<T> eager = math::cast(x, to).to_vector<T>();
  const auto fused = function(
      [to](const Tensor& t) { return math::cast(t + zeros_like(t), to); });
  const Tensor one_pass = fused(x);
  EXPECT_EQ(one_pass.to_vector<T>(), eager) << name_of(to);
  return eager;
}

TEST(Cast, FractionsBeyondAnIntegerTypeSaturateAndNanIsZero) {
  const std::vector<double> v = {-kInf, -1e30, -3e9, -200.9, -0.9, 0.9,
                                 300.5, 3e9,   1e30, kInf,   NAN};
  constexpr int32_t kLow = INT32_MIN, kHigh = INT32_MAX;
  for (const DType from : {float32, float64}) {
    const Tensor x = math::cast(constant(v, {11}), from);
    EXPECT_EQ(as<int32_t>(x, int32),
              (std::vector<int32_t>{kLow, kLow, kLow, -200, 0, 0, 300, kHigh,
                                    kHigh, kHigh, 0}));
    EXPECT_EQ(as<int64_t>(x, int64),
              (Ints{INT64_MIN, INT64_MIN, -3000000000, -200, 0, 0, 300,
                    3000000000, INT64_MAX, INT64_MAX, 0}));
    EXPECT_EQ(as<uint8_t>(x, uint8),
              (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0}));
    EXPECT_EQ(as<int8_t>(x, int8),
              (std::vector<int8_t>{-128, -128, -128, -128, 0, 0, 127, 127, 127,
                                   127, 0}));
  }
}

TEST(Cast, IntegersWrapAndLargeFractionsBecomeInfinite) {
  const Tensor x = constant(Ints{-1, 256, 300, int64_t{1} << 40}, {4});
  EXPECT_EQ(as<uint8_t>(x, uint8), (std::vector<uint8_t>{255, 0, 44, 0}));
  EXPECT_EQ(as<int32_t>(x, int32), (std::vector<int32_t>{-1, 256, 300, 0}));
  EXPECT_EQ(as<float>(constant(1e300), float32), Floats{INFINITY});
  EXPECT_EQ(as<float>(constant(1e5), float16), Floats{INFINITY});
}

TEST(Pow, ANegativeExponentOfWholeNumbersIsAnErrorThatNamesOpAndLine) {
  for (const DType type : {int32, int64, int8}) {
    const Tensor x = math::cast(constant({2, 1, -1}), type);
    const Tensor y = math::cast(constant({3, -1, 2}), type);
    expect_invalid([&] { math::pow(x, y); }, "Pow: the exponent of a whole");
    expect_invalid([&] { math::pow(x, y); }, "out_of_range_test.cc:");
  }
  const auto traced = function(
      [](const Tensor& x, const Tensor& y) { return math::pow(x, y); });
  expect_invalid([&] { traced(constant(2), constant(-1)); },
                 "out_of_range_test.cc:");
  EXPECT_EQ(ints(traced(constant({2, -1}), constant({3, 0}))), (Ints{8, 1}));
  EXPECT_EQ(floats(math::pow(constant(2.f), constant(-1.f))), Floats{0.5f});
}

TEST(CumulativeLogsumexp, TakesInfinitiesAsTheyAre) {
  const Floats in = {1, INFINITY, 2, -INFINITY, 5};
  EXPECT_EQ(floats(math::cumulative_logsumexp(constant(in, {5}))),
            (Floats{1, INFINITY, INFINITY, INFINITY, INFINITY}));
  EXPECT_EQ(floats(math::cumulative_logsumexp(
                constant(Floats{INFINITY, -INFINITY}, {2}))),
            (Floats{INFINITY, INFINITY}));
  EXPECT_TRUE(std::isnan(floats(
      math::cumulative_logsumexp(constant(Floats{INFINITY, NAN}, {2})))[1]));
}

// exp(x_i - y_j) of a finite x_i is 0 where y_j is infinite.
TEST(CumulativeLogsumexp, NothingFiniteHasAShareInAnInfiniteSum) {
  const Tensor x = constant(Floats{1, INFINITY, 2}, {3});
  const Floats d =
      floats(adjoint(x, constant(Floats{4, 8, 16}, {3}), [](const Tensor& t) {
        return math::cumulative_logsumexp(t);
      }));
  EXPECT_EQ(d[0], 4);  // of itself alone
  EXPECT_EQ(d[2], 0);
}

}  // namespace
}  // namespace berth::test
