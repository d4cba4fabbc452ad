// Regularizers, constraints and losses of layers.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"
#include "keras/layers/layers_testing.h"
#include "keras/models/layer_state.h"

namespace berth::keras {
namespace {

const Tensor& matrix() {
  static const auto& m = *new Tensor(constant({{3.f, -1.f}, {4.f, 2.f}}));
  return m;
}

TEST(Regularizers, AreSums) {
  using namespace regularizers;
  EXPECT_FLOAT_EQ(L1(0.5)(matrix()).item<float>(), 5);
  EXPECT_FLOAT_EQ(L2(0.1)(matrix()).item<float>(), 3);
  EXPECT_FLOAT_EQ(L1L2(0.5, 0.1)(matrix()).item<float>(), 8);
  EXPECT_FLOAT_EQ(Regularizer("l2")(matrix()).item<float>(), 0.3f);
  EXPECT_FLOAT_EQ(Regularizer("l1_l2")(matrix()).item<float>(), 0.4f);
  EXPECT_FALSE(Regularizer(""));
  EXPECT_THROW(Regularizer("l3"), errors::InvalidArgument);
  EXPECT_THROW(L1(-1), errors::InvalidArgument);
  EXPECT_THROW(L2(NAN), errors::InvalidArgument);
}

// Rows (3, -1), (4, 2): cosine 10 / (sqrt 10 sqrt 20). Columns (3, 4), (-1, 2):
// 5 / (5 sqrt 5).
TEST(Regularizers, OrthogonalIsTheMeanCosine) {
  using regularizers::OrthogonalRegularizer;
  EXPECT_NEAR(OrthogonalRegularizer()(matrix()).item<float>(),
              0.01 / std::sqrt(2), 1e-8);
  EXPECT_NEAR(OrthogonalRegularizer({.factor = 2, .mode = "columns"})(matrix())
                  .item<float>(),
              2 / std::sqrt(5), 1e-6);
  EXPECT_THROW(OrthogonalRegularizer({.mode = "both"}),
               errors::InvalidArgument);
  EXPECT_THROW(OrthogonalRegularizer()(ones({2, 2, 2})),
               errors::InvalidArgument);
}

TEST(Constraints, KeepNormsAndSigns) {
  using namespace constraints;
  const float s5 = std::sqrt(5.f);
  expect_near(MaxNorm(2.5)(matrix()), {1.5f, -1, 2, 2}, 1e-5);
  expect_near(NonNeg()(matrix()), {3, 0, 4, 2}, 0);
  expect_near(UnitNorm()(matrix()), {0.6f, -1 / s5, 0.8f, 2 / s5}, 1e-5);
  expect_near(UnitNorm({0, 1})(matrix() / 2.0),
              {3 / std::sqrt(30.f), -1 / std::sqrt(30.f), 4 / std::sqrt(30.f),
               2 / std::sqrt(30.f)},
              1e-5);
  // Norms 5, sqrt 5 are moved half way to [3, 4]: 4.5, (3 + sqrt 5) / 2.
  const float up = (3 + s5) / 2 / s5;
  expect_near(
      MinMaxNorm({.min_value = 3, .max_value = 4, .rate = 0.5})(matrix()),
      {2.7f, -up, 3.6f, 2 * up}, 1e-5);
  expect_near(Constraint("non_neg")(matrix()), {3, 0, 4, 2}, 0);
  EXPECT_THROW(Constraint("norm"), errors::InvalidArgument);
  EXPECT_THROW(MaxNorm(-1), errors::InvalidArgument);
  EXPECT_THROW(MinMaxNorm({.rate = 2}), errors::InvalidArgument);
}

TEST(Layer, KnowsItsLossesAndConstraints) {
  const auto inner = Dense(2, {.kernel_initializer = "ones",
                               .bias_initializer = "ones",
                               .kernel_regularizer = "l2",
                               .bias_regularizer = regularizers::L1(1),
                               .bias_constraint = "non_neg"});
  const auto model = Sequential({inner, inner, Dense(3)});
  model(ones({1, 2}));
  const Tensors losses = model.losses();
  ASSERT_EQ(losses.size(), 2u);  // the shared layer counts once
  EXPECT_FLOAT_EQ(losses[0].item<float>(), 0.04f);
  EXPECT_FLOAT_EQ(losses[1].item<float>(), 2);
  ASSERT_EQ(model.constraints().size(), 1u);
  EXPECT_EQ(model.constraints()[0].first.name(), inner.name() + "/bias");
  inner.set_trainable(false);
  EXPECT_TRUE(model.losses().empty());
}

TEST(Layer, GathersLossesOfItsOutputs) {
  const auto layer = Dense(2, {.kernel_initializer = "ones",
                               .activity_regularizer = regularizers::L2(0.5)});
  const auto model = Sequential({layer, layer});
  const CallLosses outer;
  model(ones({1, 2}));
  ASSERT_EQ(outer.all().size(), 2u);
  {
    const CallLosses losses;
    model(ones({5, 2}));  // rows (2, 2), then (4, 4)
    ASSERT_EQ(losses.all().size(), 2u);
    EXPECT_FLOAT_EQ(losses.all()[0].item<float>(), 4);
    EXPECT_FLOAT_EQ(losses.all()[1].item<float>(), 16);
  }
  EXPECT_EQ(outer.all().size(), 2u);
}

class Adder final : public LayerBase {
 public:
  Adder() : LayerBase("Adder") {
    add_loss([] { return constant(3.f); });
  }
  Tensors call(const Tensors& x, bool) override {
    add_loss(math::reduce_sum(x[0]));
    return x;
  }
};

TEST(Layer, AddsLossesOfItsOwn) {
  const Layer layer = make_layer<Adder>();
  const CallLosses losses;
  layer(ones({2, 2}));
  ASSERT_EQ(losses.all().size(), 1u);
  EXPECT_FLOAT_EQ(losses.all()[0].item<float>(), 4);
  ASSERT_EQ(layer.losses().size(), 1u);
  EXPECT_FLOAT_EQ(layer.losses()[0].item<float>(), 3);
}

}  // namespace
}  // namespace berth::keras
