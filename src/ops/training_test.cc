#include "ops/training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/variable.h"
#include "op/op_registry.h"

namespace berth {
namespace {

using Doubles = std::vector<double>;

Variable variable(const Doubles& values) {
  return Variable(constant(values, {static_cast<int64_t>(values.size())}));
}
Doubles values(const Variable& v) { return v.value().to_vector<double>(); }

void expect_near(const Doubles& got, const Doubles& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12);
}

TEST(GradientDescent, StepsAgainstTheGradient) {
  const Variable w = variable({1, 2});
  training::apply_gradient_descent(w.handle(), constant(0.5),
                                   constant({2.0, -4.0}));
  EXPECT_EQ(values(w), (Doubles{0, 4}));
}

TEST(Momentum, AccumulatesGradients) {
  for (const bool nesterov : {false, true}) {
    const Variable w = variable({1}), accum = variable({2});
    training::apply_momentum(w.handle(), accum.handle(), constant(0.1),
                             constant({3.0}), constant(0.5), nesterov);
    EXPECT_EQ(values(accum), Doubles{4});
    expect_near(values(w), {nesterov ? 1 - 0.1 * (3 + 0.5 * 4) : 1 - 0.1 * 4});
  }
}

TEST(Momentum, KerasFormKeepsTheRateInside) {
  for (const bool nesterov : {false, true}) {
    const Variable w = variable({1}), accum = variable({2});
    training::apply_keras_momentum(w.handle(), accum.handle(), constant(0.1),
                                   constant({3.0}), constant(0.5), nesterov);
    expect_near(values(accum), {0.7});
    expect_near(values(w), {nesterov ? 1 + 0.5 * 0.7 - 0.3 : 1.7});
  }
}

// The first step of Adam has the length of the learning rate, whatever the
// gradient.
TEST(Adam, FirstStepIsTheLearningRate) {
  const Variable w = variable({1, 1}), m = variable({0, 0}),
                 v = variable({0, 0});
  const training::AdamScalars s{constant(0.9), constant(0.999), constant(0.01),
                                constant(0.9), constant(0.999), constant(0.0)};
  training::apply_adam(w.handle(), m.handle(), v.handle(), s,
                       constant({5.0, -0.002}), false);
  expect_near(values(w), {0.99, 1.01});
  expect_near(values(m), {0.5, -0.0002});
  expect_near(values(v), {0.025, 4e-9});
}

TEST(Adam, NesterovLooksAhead) {
  const Variable w = variable({0}), m = variable({0}), v = variable({0});
  const training::AdamScalars s{constant(0.5), constant(0.75), constant(1.0),
                                constant(0.5), constant(0.75), constant(0.0)};
  training::apply_adam(w.handle(), m.handle(), v.handle(), s, constant({2.0}),
                       true);
  // m = 1, v = 1, alpha = sqrt(.25) / .5 = 1, top = .5 * 1 + .5 * 2.
  expect_near(values(w), {-1.5});
}

TEST(Training, RefusesShapesAndDtypesThatDoNotFit) {
  const Variable w = variable({1, 2}), other = variable({1});
  const Tensor rate = constant(0.5), grad = constant({1.0, 1.0});
  const auto refused = [](auto&& fn) {
    EXPECT_THROW(fn(), errors::InvalidArgument);
  };
  using training::apply_gradient_descent;
  refused([&] { apply_gradient_descent(w.handle(), grad, grad); });
  refused([&] { apply_gradient_descent(w.handle(), rate, rate); });
  refused([&] {
    apply_gradient_descent(w.handle(), constant(0.5f), constant({1.f, 1.f}));
  });
  refused([&] {
    training::apply_momentum(w.handle(), other.handle(), rate, grad, rate,
                             false);
  });
  EXPECT_EQ(values(w), (Doubles{1, 2}));
}

TEST(Training, VariablesAndGradientAreCutAlike) {
  const OpDef& op = op_named("ResourceApplyMomentum");
  const Shape var{6, 2}, scalar;
  const SpecView in[] = {{resource, &var, float32},
                         {resource, &var, float32},
                         {float32, &scalar},
                         {float32, &var},
                         {float32, &scalar}};
  const auto rules = op.split()(InferContext(op, nullptr, in, {}));
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].inputs, (std::vector<int8_t>{0, 0, -1, 0, -1}));
  EXPECT_TRUE(rules[0].outputs.empty());
}

}  // namespace
}  // namespace berth
