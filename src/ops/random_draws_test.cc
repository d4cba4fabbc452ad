// Categorical, bernoulli, shuffle, and draws by their own seeds.

#include <algorithm>
#include <cmath>

#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/random.h"
#include "op/kernel.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Categorical, DrawsClassesByTheirProbabilities) {
  random::set_seed(11);
  // Row 0: probabilities 1/7, 2/7, 4/7; row 1: only class 1 can be.
  const Tensor logits = constant(
      {{0.f, std::log(2.f), std::log(4.f)}, {-INFINITY, -500.f, -INFINITY}});
  const int64_t n = 7000;
  const Tensor drawn = random::categorical(logits, n);
  EXPECT_EQ(drawn.shape(), Shape({2, n}));
  EXPECT_EQ(drawn.dtype(), int64);
  const Ints v = ints(drawn);
  double seen[3] = {};
  for (int64_t i = 0; i < n; ++i) ++seen[v[static_cast<size_t>(i)]];
  for (int k = 0; k < 3; ++k) {
    const double p = (1 << k) / 7.0;
    // 4 standard errors.
    EXPECT_NEAR(seen[k] / n, p, 4 * std::sqrt(p * (1 - p) / n)) << k;
  }
  for (int64_t i = n; i < 2 * n; ++i) ASSERT_EQ(v[static_cast<size_t>(i)], 1);
  expect_invalid(
      [] {
        ints(random::categorical(constant({{1.f, NAN}}), 1));
      },
      "the largest logit of row 0 is nan");
  expect_invalid([] { random::categorical(constant({1.f}), 1); }, "[1]");
}

TEST(Categorical, RowsAndSamplesAreIndependent) {
  random::set_seed(12);
  const int64_t n = 4000;
  const Ints v = ints(random::categorical(zeros({2, 2}), n));
  double between_rows = 0, neighbours = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i), below = static_cast<size_t>(n + i);
    between_rows += v[at] == v[below] ? 1 : -1;
    if (i > 0) neighbours += v[at] == v[at - 1] ? 1 : -1;
  }
  EXPECT_LT(std::abs(between_rows), 4 * std::sqrt(n));
  EXPECT_LT(std::abs(neighbours), 4 * std::sqrt(n));
}

TEST(Bernoulli, IsOneWithTheGivenProbability) {
  random::set_seed(13);
  const Ints v = ints(random::bernoulli(fill({4000}, 0.3)));
  const auto ones = std::count(v.begin(), v.end(), 1);
  EXPECT_NEAR(static_cast<double>(ones) / 4000, 0.3,
              4 * std::sqrt(.3 * .7 / 4000));
  EXPECT_EQ(ints(random::bernoulli(constant({0.f, 1.f}))), (Ints{0, 1}));
  EXPECT_EQ(random::bernoulli(constant({0.5f}), {.dtype = bool_}).dtype(),
            bool_);
}

TEST(Shuffle, KeepsEveryRowOnce) {
  random::set_seed(14);
  const Tensor x = counted({50, 2});
  const Floats v = floats(random::shuffle(x));
  EXPECT_NE(v, floats(x));
  Floats firsts;
  for (size_t i = 0; i < v.size(); i += 2) {
    EXPECT_EQ(v[i + 1], v[i] + 1);  // rows stay together
    firsts.push_back(v[i]);
  }
  std::sort(firsts.begin(), firsts.end());
  for (size_t i = 0; i < firsts.size(); ++i) {
    EXPECT_EQ(firsts[i], static_cast<float>(2 * i));
  }
}

TEST(Shuffle, PutsEachElementAtEachPlaceEquallyOften) {
  random::set_seed(15);
  const int n = 2000;
  double at[4][4] = {};
  for (int i = 0; i < n; ++i) {
    const Ints v = ints(random::shuffle(constant({0, 1, 2, 3})));
    for (size_t p = 0; p < 4; ++p) ++at[v[p]][p];
  }
  for (const auto& row : at) {
    for (const double count : row) {
      EXPECT_NEAR(count / n, 0.25, 4 * std::sqrt(.25 * .75 / n));
    }
  }
}

TEST(Shuffle, GradientFindsItsWayBack) {
  const Tensor x = counted({6});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = random::stateless_shuffle(x, {1, 2});
  const Tensor dx = tape.gradient(math::reduce_sum(y * y), {x})[0];
  EXPECT_EQ(floats(dx), (Floats{0, 2, 4, 6, 8, 10}));
}

TEST(Stateless, SameSeedsSameNumbersEverywhere) {
  using namespace random;
  const Floats a = floats(stateless_normal({4}, {1, 2}));
  set_seed(99);
  floats(normal({3}));
  EXPECT_EQ(floats(stateless_normal({4}, {1, 2})), a);
  EXPECT_NE(floats(stateless_normal({4}, {2, 1})), a);
  EXPECT_NE(floats(stateless_normal({4}, {1, 3})), a);
  const auto step = function([](const Tensor& x) {
    return Tensors{x + stateless_normal({4}, {1, 2}), uniform({4})};
  });
  const Tensors first = step(zeros({4})), second = step(zeros({4}));
  EXPECT_EQ(floats(first[0]), a);
  EXPECT_EQ(floats(second[0]), a);
  EXPECT_NE(floats(second[1]), floats(first[1]));
  EXPECT_EQ(ints(stateless_categorical(zeros({1, 5}), 6, {3, 4})),
            ints(stateless_categorical(zeros({1, 5}), 6, {3, 4})));
  EXPECT_EQ(ints(stateless_bernoulli(fill({9}, .5), {3, 4})),
            ints(stateless_bernoulli(fill({9}, .5), {3, 4})));
  EXPECT_EQ(floats(stateless_uniform({3}, {5, 6})),
            floats(stateless_uniform({3}, {5, 6})));
  EXPECT_EQ(floats(stateless_truncated_normal({3}, {5, 6})),
            floats(stateless_truncated_normal({3}, {5, 6})));
}

}  // namespace
}  // namespace berth::test
