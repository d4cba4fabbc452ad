#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "berth/gradient_tape.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"

namespace berth {
namespace {

using test::Doubles;
using test::doubles;
using testing::expect_gradients;
using testing::numbers;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MaskedSoftmax, ScalesMasksAndLooksBack) {
  // Scores 0, ln 3 after scaling.
  const double l = 2 * std::log(3.0);
  const Tensor x = constant(Doubles{0, l, 0, l}, {2, 2});
  EXPECT_NEAR(doubles(nn::masked_softmax(x, {}, {.scale = 0.5}))[0], 0.25,
              1e-15);
  const Doubles causal =
      doubles(nn::masked_softmax(x, {}, {.scale = 0.5, .is_causal = true}));
  EXPECT_EQ(causal[0], 1);
  EXPECT_EQ(causal[1], 0);
  EXPECT_NEAR(causal[3], 0.75, 1e-15);
  const Tensor mask = constant(Doubles{0, -kInfinity}, {2});
  EXPECT_EQ(doubles(nn::masked_softmax(x, mask)), (Doubles{1, 0, 1, 0}));
}

// Padding rows must not make NaN of what is learned.
TEST(MaskedSoftmax, OfARowWithNothingLeftIsZeroWithZeroGradient) {
  const Tensor x = numbers({2, 3});
  const Tensor mask = constant(Doubles{0, -kInfinity}, {2, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = nn::masked_softmax(x, mask);
  const Doubles d = doubles(tape.gradient(y * y, x));
  for (size_t i = 3; i < 6; ++i) {
    EXPECT_EQ(doubles(y)[i], 0);
    EXPECT_EQ(d[i], 0);
  }
  EXPECT_NE(d[0], 0);
}

TEST(MaskedSoftmax, RefusesWhatDoesNotFit) {
  const Tensor x = numbers({2, 3});
  test::expect_invalid([&] { nn::masked_softmax(numbers({3})); },
                       "[..., s, t]");
  test::expect_invalid(
      [&] {
        nn::masked_softmax(x, numbers({4, 2, 3}));
      },
      "mask is [4,2,3]");
  test::expect_invalid([&] { nn::masked_softmax(x, {}, {.scale = kInfinity}); },
                       "scale is inf");
}

// Expected values come from exponentials written out.
TEST(Attention, WeighsValuesByTheSoftmaxOfScores) {
  const Tensor q = numbers({2, 3, 4}), k = numbers({2, 5, 4}, 1);
  const Tensor v = numbers({2, 5, 2}, 2);
  const Doubles y = doubles(nn::scaled_dot_product_attention(q, k, v));
  const Doubles dq = doubles(q), dk = doubles(k), dv = doubles(v);
  for (size_t n = 0; n < 2; ++n) {
    for (size_t i = 0; i < 3; ++i) {
      double sum = 0, want[2] = {0, 0};
      for (size_t j = 0; j < 5; ++j) {
        double score = 0;
        for (size_t d = 0; d < 4; ++d) {
          score += dq[(n * 3 + i) * 4 + d] * dk[(n * 5 + j) * 4 + d];
        }
        const double w = std::exp(score / 2);
        sum += w;
        for (size_t e = 0; e < 2; ++e) want[e] += w * dv[(n * 5 + j) * 2 + e];
      }
      for (size_t e = 0; e < 2; ++e) {
        EXPECT_NEAR(y[(n * 3 + i) * 2 + e], want[e] / sum, 1e-14);
      }
    }
  }
}

TEST(Attention, MasksOfBothKindsAgree) {
  const Tensor q = numbers({2, 3, 4}), k = numbers({2, 3, 4}, 1);
  const Tensor causal = constant(Doubles{1, 0, 0, 1, 1, 0, 1, 1, 1}, {3, 3});
  const Tensor seen = math::equal(causal, ones({3, 3}, float64));
  const Doubles want =
      doubles(nn::scaled_dot_product_attention(q, k, k, {.is_causal = true}));
  EXPECT_EQ(doubles(nn::scaled_dot_product_attention(q, k, k, {.mask = seen})),
            want);
  const Tensor added =
      where(seen, zeros({3, 3}, float64), fill({3, 3}, -kInfinity, float64));
  EXPECT_EQ(doubles(nn::scaled_dot_product_attention(q, k, k, {.mask = added})),
            want);
}

TEST(Attention, GradientsOfBothOrdersFollowDifferences) {
  for (const bool causal : {false, true}) {
    expect_gradients(
        [&](const Tensors& x) {
          return nn::scaled_dot_product_attention(
              x[0], x[1], x[2], {.mask = x[3], .is_causal = causal});
        },
        {numbers({1, 2, 3, 2}), numbers({1, 2, 3, 2}, 1),
         numbers({1, 2, 3, 2}, 2), numbers({3, 3}, 3)});
  }
}

TEST(Attention, DropsWeights) {
  const Tensor x = numbers({4, 16, 2});
  const nn::AttentionOptions half{.dropout = 0.5, .seed = 1};
  random::set_seed(1);
  const Doubles a = doubles(nn::scaled_dot_product_attention(x, x, x, half));
  random::set_seed(1);
  EXPECT_EQ(doubles(nn::scaled_dot_product_attention(x, x, x, half)), a);
  EXPECT_NE(doubles(nn::scaled_dot_product_attention(x, x, x)), a);
  test::expect_invalid(
      [&] { nn::scaled_dot_product_attention(numbers({3}), x, x); }, "[3]");
}

TEST(Dropout, SharesDrawsAlongAxesOfOne) {
  random::set_seed(4);
  const Doubles y = doubles(
      nn::dropout(ones({8, 3, 8}, float64), 0.5, {.noise_shape = {-1, 1, 8}}));
  int dropped = 0;
  for (size_t n = 0; n < 8; ++n) {
    for (size_t c = 0; c < 8; ++c) {
      dropped += y[n * 24 + c] == 0;
      EXPECT_EQ(y[n * 24 + 8 + c], y[n * 24 + c]);
      EXPECT_EQ(y[n * 24 + 16 + c], y[n * 24 + c]);
    }
  }
  EXPECT_GT(dropped, 12);
  EXPECT_LT(dropped, 52);
  test::expect_invalid(
      [] {
        nn::dropout(ones({2, 3}), 0.5, {.noise_shape = {2, 2}});
      },
      "noise_shape is [2, 2]");
  test::expect_invalid(
      [] {
        nn::dropout(ones({2, 3}), 0.5, {.noise_shape = {1}});
      },
      "noise_shape is [1]");
}

TEST(GroupNorm, NormalisesPixelsAndChannelsOfAGroup) {
  const Tensor x = constant(Doubles{1, 4, 9, 16, 25, 36, 49, 64}, {1, 2, 4});
  const Tensor w = constant(Doubles{1, 2, 3, 4}, {4});
  const Tensor b = constant(Doubles{0, 0, 1, -1}, {4});
  const Doubles y = doubles(nn::group_norm(x, 2, w, b));
  // Group {1, 4, 25, 36}: mean 16.5, variance 212.25.
  const double r = 1 / std::sqrt(212.25 + 1e-3);
  EXPECT_NEAR(y[0], -15.5 * r, 1e-14);
  EXPECT_NEAR(y[1], -12.5 * r * 2, 1e-14);
  EXPECT_NEAR(y[4], 8.5 * r, 1e-14);
  // Group {9, 16, 49, 64}: mean 34.5, variance 518.25.
  const double s = 1 / std::sqrt(518.25 + 1e-3);
  EXPECT_NEAR(y[7], 29.5 * s * 4 - 1, 1e-14);
}

TEST(GroupNorm, RefusesGroupsThatDoNotDivide) {
  const Tensor x = numbers({2, 3, 4}), w = numbers({4});
  test::expect_invalid([&] { nn::group_norm(x, 3, w, w); }, "num_groups is 3");
  test::expect_invalid([&] { nn::group_norm(x, 0, w, w); }, "num_groups is 0");
  test::expect_invalid([&] { nn::group_norm(x, 2, numbers({3}), w); },
                       "scale is [3]");
}

// One channel apart, radius 1, in numbers.
TEST(Lrn, DividesByNeighbours) {
  const Tensor x = constant(Doubles{1, 2, 3}, {1, 1, 1, 3});
  const Doubles y = doubles(nn::local_response_normalization(
      x, {.depth_radius = 1, .bias = 1, .alpha = 1, .beta = 0.5}));
  EXPECT_NEAR(y[0], 1 / std::sqrt(6.0), 1e-15);
  EXPECT_NEAR(y[1], 2 / std::sqrt(15.0), 1e-15);
  EXPECT_NEAR(y[2], 3 / std::sqrt(14.0), 1e-15);
}

}  // namespace
}  // namespace berth
