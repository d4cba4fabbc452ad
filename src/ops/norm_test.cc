#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"
#include "ops/op_call.h"
#include "ops/unknown_dims_testing.h"

namespace berth {
namespace {

using testing::expect_gradient;
using testing::expect_gradients;
using testing::numbers;
using Doubles = std::vector<double>;

TEST(BatchNorm, NormalisesEachChannelByTheBatch) {
  // Channel 0 has mean 2 and variance 1, channel 1 mean 10 and variance 4.
  const Tensor x = constant(Doubles{1, 8, 3, 12}, {2, 2});
  const nn::FusedBatchNorm r = nn::fused_batch_norm(
      x, constant({1.0, 3.0}), constant({0.0, 5.0}), {.epsilon = 0});
  EXPECT_EQ(r.y.to_vector<double>(), (Doubles{-1, 2, 1, 8}));
  EXPECT_EQ(r.batch_mean.to_vector<double>(), (Doubles{2, 10}));
  EXPECT_EQ(r.batch_variance.to_vector<double>(), (Doubles{2, 8}));
}

TEST(BatchNorm, UsesGivenStatisticsWhenNotTraining) {
  const Tensor x = constant(Doubles{1, 8, 3, 12}, {2, 2});
  const nn::FusedBatchNorm r =
      nn::fused_batch_norm(x, constant({1.0, 1.0}), constant({0.0, 0.0}),
                           {.epsilon = 0.5,
                            .is_training = false,
                            .mean = constant({1.0, 2.0}),
                            .variance = constant({3.5, 0.5})});
  EXPECT_EQ(r.y.to_vector<double>(), (Doubles{0, 6, 1, 10}));
  EXPECT_EQ(r.batch_mean.to_vector<double>(), (Doubles{1, 2}));
  EXPECT_EQ(r.batch_variance.to_vector<double>(), (Doubles{3.5, 0.5}));
}

TEST(BatchNorm, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        return nn::fused_batch_norm(x[0], x[1], x[2], {.epsilon = 0.1}).y;
      },
      {numbers({2, 2, 1, 2}), numbers({2}, 1), numbers({2}, 2)});
}

TEST(BatchNorm, GradientsWithGivenStatisticsFollowDifferences) {
  const Tensor mean = numbers({2}, 3), variance = numbers({2}, 4) + 1.0;
  expect_gradients(
      [&](const Tensors& x) {
        return nn::fused_batch_norm(
                   x[0], x[1], x[2],
                   {.is_training = false, .mean = mean, .variance = variance})
            .y;
      },
      {numbers({3, 2}), numbers({2}, 1), numbers({2}, 2)});
}

// All three results of the gradient op at once.
TEST(BatchNorm, GradientOpIsDifferentiableThroughEachResult) {
  const OpDef& op = op_named("FusedBatchNormGradV3");
  const AttrsRef attrs({{"epsilon", 0.1}});
  for (size_t result = 0; result < 3; ++result) {
    expect_gradient(
        [&](const Tensors& t) {
          const auto [mean, variance] = nn::moments(t[1], {0});
          return call_many(op, {&t[0], &t[1], &t[2], &mean, &variance},
                           attrs.get())[result];
        },
        {numbers({4, 2}), numbers({4, 2}, 1), numbers({2}, 2)});
  }
}

Tensor rows(const Tensor& x, int64_t begin, int64_t count) {
  Shape size = x.shape();
  size[0] = count;
  std::vector<int64_t> from(static_cast<size_t>(x.rank()), 0);
  from[0] = begin;
  return slice(x, from, {size.begin(), size.end()});
}

void expect_close(const Tensor& got, const Tensor& want) {
  const Doubles a = got.to_vector<double>(), b = want.to_vector<double>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

// Results and gradients are those of a call per group.
TEST(BatchNorm, GroupsHaveTheirOwnStatistics) {
  const Tensor x = numbers({6, 2, 2}), u = numbers({6, 2, 2}, 5);
  const Tensor scale = numbers({2}, 1), offset = numbers({2}, 2);
  GradientTape tape({.persistent = true});
  for (const Tensor& t : {x, scale, offset}) tape.watch(t);
  const nn::FusedBatchNorm all =
      nn::fused_batch_norm(x, scale, offset, {.statistics_groups = 3});
  std::vector<nn::FusedBatchNorm> each;
  Tensors y;
  for (int64_t g = 0; g < 3; ++g) {
    each.push_back(nn::fused_batch_norm(rows(x, 2 * g, 2), scale, offset));
    y.push_back(each.back().y);
  }
  const Tensor joined = concat(y, 0);
  expect_close(all.y, joined);
  const auto mean = [&](Tensor nn::FusedBatchNorm::*of) {
    return (each[0].*of + each[1].*of + each[2].*of) / 3.0;
  };
  expect_close(all.batch_mean, mean(&nn::FusedBatchNorm::batch_mean));
  expect_close(all.batch_variance, mean(&nn::FusedBatchNorm::batch_variance));
  const Tensors got = tape.gradient(all.y * u, {x, scale, offset});
  const Tensors want = tape.gradient(joined * u, {x, scale, offset});
  for (size_t i = 0; i < 3; ++i) expect_close(got[i], want[i]);
}

TEST(BatchNorm, GradientsOfGroupsFollowDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        return nn::fused_batch_norm(x[0], x[1], x[2],
                                    {.epsilon = 0.1, .statistics_groups = 2})
            .y;
      },
      {numbers({4, 2, 2}), numbers({2}, 1), numbers({2}, 2)});
}

TEST(BatchNorm, GroupsPassUnknownDimensions) {
  test::expect_gradient_shapes(
      {"groups", {{4, 2, 3}, {3}, {3}}, [](const Tensors& x) {
         // The channels must be known.
         const Tensor known = ensure_shape(x[0], {-1, -1, 3});
         return nn::fused_batch_norm(known, x[1], x[2],
                                     {.epsilon = 0.1, .statistics_groups = 2})
             .y;
       }});
}

TEST(BatchNorm, GroupsMustDivideTheBatch) {
  const Tensor x = numbers({6, 2}), c = numbers({2});
  for (const int64_t groups : {-1, 4, 12}) {
    EXPECT_THROW(nn::fused_batch_norm(x, c, c, {.statistics_groups = groups}),
                 errors::InvalidArgument);
  }
  // Given statistics are the same for all.
  EXPECT_NO_THROW(nn::fused_batch_norm(x, c, c,
                                       {.is_training = false,
                                        .mean = c,
                                        .variance = c,
                                        .statistics_groups = 2}));
}

TEST(BatchNorm, OfNothingIsNothing) {
  const Tensor x = constant(Doubles{}, {0, 2});
  GradientTape tape;
  const Tensor scale = constant({1.0, 1.0});
  tape.watch(scale);
  const Tensor y = nn::fused_batch_norm(x, scale, scale).y;
  EXPECT_EQ(y.shape(), (Shape{0, 2}));
  EXPECT_EQ(tape.gradient(y, scale).to_vector<double>(), (Doubles{0, 0}));
}

TEST(BatchNorm, TakesThreeToFiveInputs) {
  const Tensor x = numbers({3, 2}), c = numbers({2});
  const OpDef& op = op_named("FusedBatchNormV3");
  EXPECT_EQ(call_many(op, {&x, &c, &c}).size(), 5u);
  EXPECT_EQ(call_many(op, {&x, &c, &c, &c, &c}).size(), 5u);
  EXPECT_THROW(call_many(op, {&x, &c}), errors::InvalidArgument);
  EXPECT_THROW(call_many(op, {&x, &c, &c, &c, &c, &c}),
               errors::InvalidArgument);
}

TEST(BatchNorm, RefusesShapesAndOptionsThatDoNotFit) {
  const Tensor x = numbers({3, 2}), two = numbers({2}), three = numbers({3});
  const auto refused = [](auto&& fn) {
    EXPECT_THROW(fn(), errors::InvalidArgument);
  };
  refused([&] { nn::fused_batch_norm(x, three, two); });
  refused([&] { nn::fused_batch_norm(x, two, x); });
  refused([&] { nn::fused_batch_norm(two, two, two); });
  refused([&] { nn::fused_batch_norm(x, two, two, {.epsilon = -1}); });
  refused([&] { nn::fused_batch_norm(x, two, two, {.is_training = false}); });
}

TEST(Moments, AreMeanAndBiasedVariance) {
  const Tensor x = constant(Doubles{1, 8, 3, 12}, {2, 2});
  const auto [mean, variance] = nn::moments(x, {0});
  EXPECT_EQ(mean.to_vector<double>(), (Doubles{2, 10}));
  EXPECT_EQ(variance.to_vector<double>(), (Doubles{1, 4}));
  EXPECT_EQ(nn::moments(x, {1}, true).second.shape(), (Shape{2, 1}));
}

}  // namespace
}  // namespace berth
