#include <algorithm>
#include <cmath>

#include "berth/function.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

constexpr int64_t kDraws = 40000;
const random::StatelessSeed kSeed{11, 5};

Tensor number(double v) { return constant(v); }
Doubles drawn(const Tensor& t) {
  return math::cast(t, float64).to_vector<double>();
}

// Mean and variance within five standard errors; the fourth moment of all that
// is drawn here is below 12 times the square of the variance.
void expect_moments(const Doubles& v, double mean, double variance,
                    const char* what) {
  const auto n = static_cast<double>(v.size());
  double sum = 0, squares = 0;
  for (const double x : v) sum += x, squares += (x - mean) * (x - mean);
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n) + 1e-9) << what;
  EXPECT_NEAR(squares / n, variance, 5 * variance * std::sqrt(12 / n) + 1e-9)
      << what;
}

double share_below(const Doubles& v, double x) {
  return static_cast<double>(std::count_if(v.begin(), v.end(),
                                           [&](double y) { return y <= x; })) /
         static_cast<double>(v.size());
}

TEST(Gamma, HasItsMoments) {
  for (const double alpha : {0.3, 1.0, 4.5, 200.0}) {
    const Doubles v =
        drawn(random::stateless_gamma({kDraws}, kSeed, number(alpha),
                                      {.beta = number(2.0), .dtype = float64}));
    expect_moments(v, alpha / 2, alpha / 4, "gamma");
  }
  // alpha 1 is the exponential distribution.
  const Doubles v = drawn(random::stateless_gamma({kDraws}, kSeed, number(1)));
  for (const double x : {0.1, 0.7, 2.0}) {
    EXPECT_NEAR(share_below(v, x), 1 - std::exp(-x), 0.0125);
  }
}

TEST(Beta, HasItsMoments) {
  const Doubles v =
      drawn(random::stateless_beta({kDraws}, kSeed, number(2), number(3)));
  expect_moments(v, 0.4, 0.04, "beta");
}

TEST(Poisson, HasItsMomentsAndProbabilities) {
  for (const double mean : {0.4, 6.0, 12.0, 300.0}) {
    const Doubles v =
        drawn(random::stateless_poisson({kDraws}, kSeed, number(mean), int64));
    expect_moments(v, mean, mean, "poisson");
    double p = std::exp(-mean), below = p;
    const double at = std::floor(mean);
    for (double k = 1; k <= at; ++k) below += p *= mean / k;
    EXPECT_NEAR(share_below(v, at), below, 0.0125) << mean;
  }
  EXPECT_EQ(drawn(random::stateless_poisson({2}, kSeed, number(0))),
            (Doubles{0, 0}));
}

TEST(Binomial, HasItsMomentsAndProbabilities) {
  struct Trial {
    double n, p;
  };
  for (const Trial t : {Trial{5, 0.3}, {60, 0.4}, {60, 0.9}, {1000, 0.002}}) {
    const Doubles v = drawn(
        random::stateless_binomial({kDraws}, kSeed, number(t.n), number(t.p)));
    expect_moments(v, t.n * t.p, t.n * t.p * (1 - t.p), "binomial");
    double p = std::pow(1 - t.p, t.n), below = p;
    const double at = std::floor(t.n * t.p);
    for (double k = 1; k <= at; ++k) {
      below += p *= (t.n - k + 1) / k * t.p / (1 - t.p);
    }
    EXPECT_NEAR(share_below(v, at), below, 0.0125) << t.n << "," << t.p;
  }
  EXPECT_EQ(drawn(random::stateless_binomial({1}, kSeed, number(7), number(1))),
            (Doubles{7}));
}

TEST(TruncatedNormal, BetweenBoundsOfItsOwn) {
  const Doubles v = drawn(random::stateless_parameterized_truncated_normal(
      {kDraws}, kSeed, number(1), number(2), number(1), number(4)));
  EXPECT_GE(*std::min_element(v.begin(), v.end()), 1);
  EXPECT_LE(*std::max_element(v.begin(), v.end()), 4);
  // Half of the bell up to 1.5 deviations is left.
  const auto phi = [](double x) { return std::erfc(-x * std::sqrt(.5)) / 2; };
  const double want = (phi(0.5) - 0.5) / (phi(1.5) - 0.5);
  EXPECT_NEAR(share_below(v, 2), want, 0.0125);
}

TEST(Draws, FollowTheirSeedAndShapes) {
  const Tensor alpha = constant({1.f, 2.f, 3.f});
  EXPECT_EQ(random::gamma({4}, alpha).shape(), (Shape{4, 3}));
  EXPECT_EQ(random::poisson({4}, alpha).dtype(), float32);
  const auto draw = [&](int64_t seed) {
    return drawn(random::stateless_gamma({4, 3}, {seed, 1}, alpha));
  };
  EXPECT_EQ(draw(3), draw(3));
  EXPECT_NE(draw(3), draw(4));
  random::set_seed(5);
  const Doubles first = drawn(random::gamma({4}, alpha));
  EXPECT_NE(first, drawn(random::gamma({4}, alpha)));
  random::set_seed(5);
  EXPECT_EQ(first, drawn(random::gamma({4}, alpha)));
}

// A key that is read when the op runs gives the numbers of the same two seeds.
TEST(Draws, TakeTheirSeedsFromATensor) {
  const random::StatelessSeed known{3, 8};
  const Tensor alpha = constant({1.f, 2.f, 3.f});
  const auto draws = [&](const random::StatelessSeed& seed) {
    return Tensors{
        random::stateless_gamma({4, 3}, seed, alpha),
        random::stateless_beta({4, 3}, seed, alpha, alpha),
        random::stateless_poisson({4, 3}, seed, alpha),
        random::stateless_binomial({4, 3}, seed, alpha * 9, number(.3))};
  };
  const auto f =
      function([&](const Tensor& pair) { return draws({.pair = pair}); });
  for (const Tensor& pair : {constant({int64_t{3}, int64_t{8}}),
                             math::cast(constant({3, 8}), int32)}) {
    const Tensors traced = f(pair), at_once = draws(known);
    for (size_t i = 0; i < traced.size(); ++i) {
      EXPECT_EQ(drawn(traced[i]), drawn(at_once[i])) << i;
    }
  }
}

}  // namespace
}  // namespace berth::test
