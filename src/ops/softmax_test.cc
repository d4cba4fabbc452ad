#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/nn.h"
#include "ops/gradient_check_testing.h"

namespace berth {
namespace {

using testing::expect_gradient;
using testing::expect_gradients;
using testing::numbers;
using Doubles = std::vector<double>;

TEST(Softmax, OfLogarithmsIsTheirProportions) {
  const Tensor x =
      constant(Doubles{std::log(1), std::log(2), std::log(5), 0, 0, 0}, {2, 3});
  const Doubles p = nn::softmax(x).to_vector<double>();
  const Doubles want{0.125, 0.25, 0.625, 1 / 3., 1 / 3., 1 / 3.};
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], want[i], 1e-15);
}

TEST(Softmax, StaysFiniteForLargeLogits) {
  const Tensor x = constant({1000.f, 999.f, -1000.f});
  EXPECT_NEAR(nn::softmax(x).to_vector<float>()[0], 1 / (1 + std::exp(-1.)),
              1e-6);
  EXPECT_NEAR(nn::log_softmax(x).to_vector<float>()[2],
              -2000 - std::log1p(std::exp(-1.)), 1e-3);
}

TEST(Softmax, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients([](const Tensors& x) { return nn::softmax(x[0]); },
                   {numbers({2, 3})});
  expect_gradients([](const Tensors& x) { return nn::log_softmax(x[0]); },
                   {numbers({2, 3})});
}

TEST(Softmax, AlongAnInnerAxisIsThatOfTheColumns) {
  const Tensor x = numbers({3, 2});
  const Doubles v = x.to_vector<double>();
  const Doubles p = nn::softmax(x, 0).to_vector<double>();
  const Doubles log_p = nn::log_softmax(x, 0).to_vector<double>();
  for (size_t c : {0, 1}) {
    double sum = 0;
    for (size_t r = 0; r < 3; ++r) sum += std::exp(v[2 * r + c]);
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_NEAR(p[2 * r + c], std::exp(v[2 * r + c]) / sum, 1e-15);
      EXPECT_NEAR(log_p[2 * r + c], v[2 * r + c] - std::log(sum), 1e-15);
    }
  }
  expect_gradient([](const Tensors& t) { return nn::softmax(t[0], 0); }, {x});
}

TEST(Softmax, RefusesScalars) {
  EXPECT_THROW(nn::softmax(constant(1.f)), errors::InvalidArgument);
}

TEST(CrossEntropy, OfEqualLogitsIsLogOfTheClasses) {
  const Tensor logits = constant(Doubles(8, 3.0), {2, 4});
  const Tensor sparse =
      nn::sparse_softmax_cross_entropy_with_logits(constant({0, 3}), logits);
  const Tensor dense = nn::softmax_cross_entropy_with_logits(
      constant(Doubles{1, 0, 0, 0, .1, .2, .3, .4}, {2, 4}), logits);
  for (const Tensor& loss : {sparse, dense}) {
    EXPECT_EQ(loss.shape(), Shape{2});
    for (double v : loss.to_vector<double>()) {
      EXPECT_NEAR(v, std::log(4), 1e-15);
    }
  }
}

TEST(CrossEntropy, GradientsOfBothOrdersFollowDifferences) {
  expect_gradients(
      [](const Tensors& x) {
        return nn::softmax_cross_entropy_with_logits(x[0], x[1]);
      },
      {nn::softmax(numbers({2, 3}, 2)), numbers({2, 3})});
  expect_gradients(
      [](const Tensors& x) {
        return nn::sparse_softmax_cross_entropy_with_logits(constant({2, 0}),
                                                            x[0]);
      },
      {numbers({2, 3})});
}

TEST(CrossEntropy, OfHigherRanksIsThatOfTheRows) {
  const Tensor logits = numbers({2, 3, 4});
  const std::vector<int64_t> labels{0, 1, 2, 3, 0, 1};
  const Tensor loss = nn::sparse_softmax_cross_entropy_with_logits(
      constant(labels, {2, 3}), logits);
  EXPECT_EQ(loss.shape(), (Shape{2, 3}));
  const Doubles log_p = nn::log_softmax(logits).to_vector<double>();
  Doubles hot(24, 0.0);
  const Doubles got = loss.to_vector<double>();
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(got[i], -log_p[4 * i + labels[i]], 1e-15);
    hot[4 * i + labels[i]] = 1;
  }
  const Tensor dense =
      nn::softmax_cross_entropy_with_logits(constant(hot, {2, 3, 4}), logits);
  EXPECT_EQ(dense.shape(), (Shape{2, 3}));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(dense.to_vector<double>()[i], got[i], 1e-14);
  }
}

TEST(CrossEntropy, NamesALabelOutOfRange) {
  const Tensor logits = numbers({2, 3});
  for (const int bad : {-1, 3}) {
    try {
      nn::sparse_softmax_cross_entropy_with_logits(constant({0, bad}), logits)
          .to_vector<double>();
      FAIL() << bad;
    } catch (const errors::InvalidArgument& e) {
      const std::string want = "label " + std::to_string(bad) + " in row 1";
      EXPECT_NE(std::string(e.what()).find(want), std::string::npos)
          << e.what();
    }
  }
}

TEST(CrossEntropy, RefusesLabelsOfOtherShapes) {
  const Tensor logits = numbers({2, 3});
  EXPECT_THROW(nn::softmax_cross_entropy_with_logits(numbers({2, 4}), logits),
               errors::InvalidArgument);
  EXPECT_THROW(
      nn::sparse_softmax_cross_entropy_with_logits(constant({0, 1, 2}), logits),
      errors::InvalidArgument);
  EXPECT_THROW(
      nn::sparse_softmax_cross_entropy_with_logits(constant(1), logits),
      errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
