#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

// Rows of log(p) and p itself.
const Floats kP{0.7f, 0.2f, 0.1f, 0.25f, 0.25f, 0.5f};
Tensor probabilities() { return constant(kP, {2, 3}); }
Tensor logits() {
  // Any shift leaves the probabilities as they are.
  return math::log(probabilities()) + 3.0;
}
const double kLoss = -(std::log(0.2) + std::log(0.5)) / 2;

TEST(Losses, MeanSquaredErrorOfEachSample) {
  const Tensor y = constant({{0.f, 1.f}, {2.f, 2.f}});
  const Tensor p = constant({{1.f, 1.f}, {0.f, 5.f}});
  const Loss loss = "mse";
  EXPECT_EQ(loss.per_sample(y, p).to_vector<float>(), (Floats{0.5, 6.5}));
  EXPECT_FLOAT_EQ(loss(y, p).item<float>(), 3.5f);
}

TEST(Losses, TargetsOfOneAxisLessAreNotBroadcast) {
  const Tensor y = constant({1.f, 2.f});
  const Tensor p = constant({{1.f}, {4.f}});
  EXPECT_FLOAT_EQ(Loss("mse")(y, p).item<float>(), 2.f);
  EXPECT_THROW(Loss("mse")(constant({1.f, 2.f, 3.f}), p),
               errors::InvalidArgument);
}

TEST(Losses, SparseCrossentropyOfLogitsAndProbabilities) {
  const Loss of_logits =
      losses::SparseCategoricalCrossentropy({.from_logits = true});
  const Loss of_p = "sparse_categorical_crossentropy";
  for (const Tensor& y :
       {constant({1, 2}), constant({{1}, {2}}), constant({1.f, 2.f}),
        math::cast(constant({1, 2}), uint8)}) {
    EXPECT_NEAR(of_logits(y, logits()).item<float>(), kLoss, 1e-6);
    EXPECT_NEAR(of_p(y, probabilities()).item<float>(), kLoss, 1e-6);
  }
}

TEST(Losses, CategoricalCrossentropyOfLogitsAndProbabilities) {
  const Tensor y = constant({{0, 1, 0}, {0, 0, 1}});
  EXPECT_NEAR(
      Loss("categorical_crossentropy")(y, probabilities()).item<float>(), kLoss,
      1e-6);
  EXPECT_NEAR(
      losses::CategoricalCrossentropy({.from_logits = true})(y, logits())
          .item<float>(),
      kLoss, 1e-6);
}

TEST(Losses, OfImpossibleAndCertainProbabilitiesAreFinite) {
  const Tensor p = constant({{0.f, 1.f}});
  const float loss =
      Loss("sparse_categorical_crossentropy")(constant({0}), p).item<float>();
  EXPECT_NEAR(loss, -std::log(1e-7), 0.2);
  EXPECT_NEAR(
      Loss("categorical_crossentropy")(constant({{1, 0}}), p).item<float>(),
      -std::log(1e-7), 0.2);
}

TEST(Losses, OneHotTargetsOfASparseLossAreRefused) {
  try {
    Loss("sparse_categorical_crossentropy")(constant({{0, 1, 0}, {0, 0, 1}}),
                                            probabilities());
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("categorical_crossentropy)"),
              std::string::npos)
        << e.what();
  }
}

TEST(Losses, UnknownNamesSayTheKnownOnes) {
  EXPECT_THROW(Loss("hinge"), errors::InvalidArgument);
  EXPECT_THROW(Metric("f1"), errors::InvalidArgument);
  EXPECT_THROW(Optimizer("lion"), errors::InvalidArgument);
}

TEST(Losses, OneOfYourOwn) {
  const Loss l1(
      "l1", [](const Tensor& y, const Tensor& p) { return math::abs(y - p); });
  EXPECT_FLOAT_EQ(l1(constant({1.f, 2.f}), constant({3.f, 1.f})).item<float>(),
                  1.5f);
}

}  // namespace
}  // namespace berth::keras
