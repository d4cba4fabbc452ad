#include "berth/custom_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth {
namespace {

// log(1 + e^x) with twice its gradient, from its saved result.
Tensor twice_softplus(const Tensor& x) {
  return custom_gradient(
      [](const Tensors& in) {
        const Tensor e = math::exp(in[0]);
        return WithGradient{{math::log(1.f + e)}, [e](const Tensors& dy) {
                              return Tensors{2.f * dy[0] * e / (1.f + e)};
                            }};
      },
      {x})[0];
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Tensor slope(const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(twice_softplus(x), x);
}

TEST(CustomGradient, TapesUseTheRule) {
  EXPECT_NEAR(slope(constant(0.3f)).item<double>(), 2 * sigmoid(0.3), 1e-6);
  EXPECT_NEAR(twice_softplus(constant(0.3f)).item<double>(),
              std::log1p(std::exp(0.3)), 1e-6);
}

TEST(CustomGradient, TheRuleIsDifferentiatedAgain) {
  const Tensor x = constant(0.3f);
  GradientTape tape;
  tape.watch(x);
  const Tensor dx = slope(x);
  const double s = sigmoid(0.3);
  EXPECT_NEAR(tape.gradient(dx, x).item<double>(), 2 * s * (1 - s), 1e-6);
}

TEST(CustomGradient, TapesInsideAndOutsideOfTracedFunctionsUseTheRule) {
  const auto inside = function([](const Tensor& x) { return slope(x); });
  EXPECT_NEAR(inside(constant(0.3f)).item<double>(), 2 * sigmoid(0.3), 1e-6);
  const auto traced =
      function([](const Tensor& x) { return twice_softplus(x) * 3.f; });
  for (const float at : {0.3f, -1.f}) {  // the second call is not traced
    const Tensor x = constant(at);
    GradientTape tape;
    tape.watch(x);
    EXPECT_NEAR(tape.gradient(traced(x), x).item<double>(), 6 * sigmoid(at),
                1e-6);
  }
}

TEST(CustomGradient, AnArgumentMayHaveNone) {
  const Tensor x = constant(2.f), y = constant(3.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(y);
  const Tensor z = custom_gradient(
      [](const Tensors& in) {
        return WithGradient{{in[0] * in[1]}, [](const Tensors& dy) {
                              return Tensors{dy[0] * 10.f, Tensor()};
                            }};
      },
      {x, y})[0];
  EXPECT_EQ(z.item<float>(), 6);
  EXPECT_EQ(tape.gradient(z, x).item<float>(), 10);
  EXPECT_FALSE(tape.gradient(z, y).defined());
}

TEST(CustomGradient, AWrongNumberOfGradientsIsAnError) {
  const Tensor x = constant(2.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = custom_gradient(
      [](const Tensors& in) {
        return WithGradient{{in[0]}, [](const Tensors&) { return Tensors(); }};
      },
      {x})[0];
  EXPECT_THROW(tape.gradient(y, x), errors::InvalidArgument);
}

TEST(CustomGradient, WhatTheRuleHoldsGoesWithTheTape) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> left = held;
  {
    GradientTape tape;
    const Tensor x = constant(1.f);
    tape.watch(x);
    const Tensor y = custom_gradient(
        [held = std::move(held)](const Tensors& in) {
          return WithGradient{{in[0] * 2.f}, [held](const Tensors& dy) {
                                return Tensors{dy[0] * float(*held)};
                              }};
        },
        {x})[0];
    EXPECT_EQ(tape.gradient(y, x).item<float>(), 1.f);
  }
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace berth
