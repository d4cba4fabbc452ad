// Layers of elements: merges, noise, activations.

#include "berth/keras/element_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"
#include "keras/layers/layers_testing.h"

namespace berth::keras {
namespace {

TEST(Merge, CombinesElementByElement) {
  const Tensor a = constant({{1.f, 5.f}}), b = constant({{3.f, 4.f}});
  const auto of = [&](const Layer& layer) {
    return layer(Tensors{a, b})[0].to_vector<float>();
  };
  EXPECT_EQ(of(Subtract()), (Floats{-2, 1}));
  EXPECT_EQ(of(Multiply()), (Floats{3, 20}));
  EXPECT_EQ(of(Average()), (Floats{2, 4.5}));
  EXPECT_EQ(of(Maximum()), (Floats{3, 5}));
  EXPECT_EQ(of(Minimum()), (Floats{1, 4}));
  EXPECT_EQ(Average()(Tensors{a, a, b, b})[0].to_vector<float>(),
            (Floats{2, 4.5}));
  EXPECT_THROW(Subtract()(Tensors{a, b, a}), errors::InvalidArgument);
  EXPECT_THROW(Multiply()(Tensors{a, ones({1, 3})}), errors::InvalidArgument);
  EXPECT_THROW(Multiply()(Tensors{a, ones({2})}), errors::InvalidArgument);
  // Axes of 1 go with any.
  EXPECT_EQ(
      Multiply()(Tensors{a, constant({{2.f}, {3.f}})})[0].to_vector<float>(),
      (Floats{2, 10, 3, 15}));
}

TEST(Rectifiers, FollowTheirFormulas) {
  const Tensor x = constant({-2.f, 0.f, 0.5f, 3.f});
  expect_near(ReLU()(x), {0, 0, 0.5, 3}, 0);
  expect_near(ReLU({.max_value = 1, .negative_slope = 0.5})(x), {-1, 0, 0.5, 1},
              0);
  expect_near(LeakyReLU()(x), {-0.6f, 0, 0.5, 3}, 1e-6);
  expect_near(ELU(2)(x), {2 * std::expm1(-2.f), 0, 0.5, 3}, 1e-6);
  expect_near(ELU()(constant({200.f})), {200}, 0);  // exp(200) is infinite
  EXPECT_THROW(LeakyReLU(-1), errors::InvalidArgument);
  EXPECT_THROW(ELU(std::nan("")), errors::InvalidArgument);
}

// tf.keras.activations at -2, 0, 3, to five digits.
TEST(Activation, HasTensorFlowsValues) {
  const Tensor x = constant({-2.f, 0.f, 3.f});
  const std::vector<std::pair<const char*, Floats>> all = {
      {"elu", {-0.864665f, 0, 3}},
      {"selu", {-1.520166f, 0, 3.152103f}},
      {"relu6", {0, 0, 3}},
      {"leaky_relu", {-0.4f, 0, 3}},
      {"softplus", {0.126928f, 0.693147f, 3.048587f}},
      {"softsign", {-0.666667f, 0, 0.75f}},
      {"silu", {-0.238406f, 0, 2.857722f}},
      {"swish", {-0.238406f, 0, 2.857722f}},
      {"hard_sigmoid", {0.166667f, 0.5f, 1}},
      {"hard_silu", {-0.333333f, 0, 3}},
      {"mish", {-0.252501f, 0, 2.986535f}},
      {"exponential", {0.135335f, 1, 20.085537f}},
      {"gelu_tanh", {-0.045402f, 0, 2.996363f}},
      {"log_softmax", {-5.054985f, -3.054985f, -0.054985f}},
  };
  for (const auto& [name, want] : all) {
    SCOPED_TRACE(name);
    expect_near(Activation(name)(x), want, 2e-6 * std::abs(want[2]) + 2e-6);
  }
  const Tensor far = constant({-1e4f, 1e4f});
  for (const char* name : {"elu", "selu", "softplus", "silu", "mish"}) {
    for (float v : Activation(name)(far).to_vector<float>()) {
      EXPECT_TRUE(std::isfinite(v)) << name;
    }
  }
}

TEST(PReLU, LearnsASlopePerElement) {
  const auto layer = PReLU({.alpha_initializer = "ones"});
  layer(ones({1, 2}));
  layer.set_weights({constant({0.5f, 2.f})});
  const Tensor x = constant({{-1.f, -1.f}, {4.f, 4.f}});
  expect_near(layer(x), {-0.5f, -2, 4, 4}, 0);
  EXPECT_EQ(layer.count_params(), 2);
}

TEST(Softmax, RunsAlongItsAxis) {
  const Tensor x = constant({{0.f, 1.f}, {0.f, 1.f}});
  expect_near(Softmax({.axis = 0})(x), {0.5, 0.5, 0.5, 0.5}, 1e-6);
  const float p = 1 / (1 + std::exp(1.f));
  expect_near(Softmax()(x), {p, 1 - p, p, 1 - p}, 1e-6);
  const float q = p / 2;  // both axes: all four add up to 1
  expect_near(Softmax({.axis = {0, 1}})(x), {q, 0.5f - q, q, 0.5f - q}, 1e-6);
}

TEST(SpatialDropout, DropsWholeChannels) {
  random::set_seed(1);
  const Floats y =
      SpatialDropout2D(0.5)(ones({4, 3, 3, 8}), true).to_vector<float>();
  int dropped = 0;
  for (int n = 0; n < 4; ++n) {
    for (int c = 0; c < 8; ++c) {
      const float first = y[static_cast<size_t>(n * 72 + c)];
      EXPECT_TRUE(first == 0 || first == 2) << first;
      dropped += first == 0;
      for (int p = 1; p < 9; ++p) {
        EXPECT_EQ(y[static_cast<size_t>(n * 72 + p * 8 + c)], first);
      }
    }
  }
  EXPECT_GT(dropped, 4);
  EXPECT_LT(dropped, 28);
  EXPECT_THROW(SpatialDropout1D(0.5)(ones({2, 3}), true),
               errors::InvalidArgument);
  EXPECT_EQ(SpatialDropout1D(0.5)(Input({4, 6})).shape(), (Shape{-1, 4, 6}));
}

TEST(GaussianNoise, ActsInTrainingOnly) {
  random::set_seed(2);
  const Tensor x = ones({100, 100});
  expect_near(GaussianNoise(1)(x), x.to_vector<float>(), 0);
  const auto deviation = [&](const Layer& layer) {
    double sum = 0, squares = 0;
    for (float v : layer(x, true).to_vector<float>()) {
      sum += v;
      squares += double{v} * v;
    }
    EXPECT_NEAR(sum / 1e4, 1, 0.04);
    return std::sqrt(squares / 1e4 - sum / 1e4 * sum / 1e4);
  };
  EXPECT_NEAR(deviation(GaussianNoise(0.5)), 0.5, 0.02);
  // sqrt(0.2 / 0.8)
  EXPECT_NEAR(deviation(GaussianDropout(0.2)), 0.5, 0.02);
}

TEST(Layer, FrozenWeightsDoNotTrain) {
  const auto dense = Dense(1, {.kernel_initializer = "ones"});
  const auto head = Dense(1, {.kernel_initializer = "ones"});
  auto model = Sequential({dense, head});
  model.build({-1, 2});
  EXPECT_TRUE(model.trainable());
  EXPECT_EQ(model.trainable_variables().size(), 4u);
  dense.set_trainable(false);
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_EQ(model.non_trainable_variables().size(), 2u);
  EXPECT_EQ(model.weights().size(), 4u);
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  model.train_on_batch(constant({{1.f, 2.f}}), constant({{0.f}}));
  EXPECT_EQ(dense.get_weights()[0].to_vector<float>(), (Floats{1, 1}));
  EXPECT_NE(head.get_weights()[0].to_vector<float>(), Floats{1});
  model.set_trainable(false);
  EXPECT_FALSE(head.trainable());
}

TEST(BatchNormalization, FrozenUsesItsAverages) {
  const auto layer = BatchNormalization({.epsilon = 1e-9});
  const Tensor x = constant({{1.f}, {3.f}});
  layer(x);
  layer.set_trainable(false);
  expect_near(layer(x, true), {1, 3}, 1e-6);
  expect_near(layer.get_weights()[2], {0}, 0);
}

}  // namespace
}  // namespace berth::keras
