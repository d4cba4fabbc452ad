// Layers of sequences: embeddings, attention, masks.

#include "berth/keras/sequence_layers.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"
#include "keras/layers/layers_testing.h"

namespace berth::keras {
namespace {

TEST(Embedding, TakesRowsByIdsOfAnyNumberType) {
  const auto layer = Embedding(3, 2);
  layer(constant({0, 1}));
  layer.set_weights({constant({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}})});
  const Floats want{5, 6, 1, 2};
  EXPECT_EQ(layer(constant({2, 0})).to_vector<float>(), want);
  EXPECT_EQ(layer(constant({2.f, 0.f})).to_vector<float>(), want);
  EXPECT_EQ(layer(math::cast(constant({2, 0}), uint8)).to_vector<float>(),
            want);
  EXPECT_EQ(layer(reshape(constant({2, 0}), {1, 2})).shape(), (Shape{1, 2, 2}));
  // Other devices report it later.
  with_device("/CPU:0", [] {
    EXPECT_THROW(Embedding(3, 2)(constant({3})), errors::InvalidArgument);
  });
}

TEST(Embedding, TrainsOnlyTheRowsThatAreUsed) {
  const auto layer = Embedding(3, 1, {.embeddings_initializer = "ones"});
  layer(constant({0}));
  GradientTape tape;
  const Tensor loss = math::reduce_sum(layer(constant({1, 1, 2})));
  const Tensor d = tape.gradient(loss, layer.trainable_variables())[0];
  EXPECT_EQ(d.to_vector<float>(), (Floats{0, 2, 1}));
}

TEST(LayerNormalization, NormalisesRows) {
  const auto layer = LayerNormalization({.epsilon = 0.5});
  const Tensor x = constant({{1.f, 3.f}, {10.f, 10.f}});
  const float d = 1 / std::sqrt(1.5f);
  expect_near(layer(x), {-d, d, 0, 0}, 1e-6);
  layer.set_weights({constant({2.f, 3.f}), constant({1.f, -1.f})});
  expect_near(layer(x), {1 - 2 * d, 3 * d - 1, 1, -1}, 1e-6);
  EXPECT_THROW(layer(ones({2, 3})), errors::InvalidArgument);
}

TEST(GroupNormalization, NormalisesEachGroupOfEachExample) {
  const auto layer = GroupNormalization({.groups = 2, .epsilon = 0.5});
  // Two pixels of four channels; groups {0, 1}, {2, 3}.
  const Tensor x = constant(Floats{1, 3, 5, 5, 3, 1, 5, 5}, {1, 2, 4});
  const float d = 1 / std::sqrt(1.5f);
  expect_near(layer(x), {-d, d, 0, 0, d, -d, 0, 0}, 1e-6);
  EXPECT_THROW(GroupNormalization({.groups = 3})(x), errors::InvalidArgument);
  EXPECT_THROW(GroupNormalization({.groups = 0}), errors::InvalidArgument);
  // One group per channel: the mean over the pixels is taken away.
  expect_near(GroupNormalization({.groups = -1})(x),
              {-0.9995f, 0.9995f, 0, 0, 0.9995f, -0.9995f, 0, 0}, 1e-3);
}

// One head whose projections are the identity is plain attention.
TEST(MultiHeadAttention, WithIdentitiesIsAttention) {
  const auto layer =
      MultiHeadAttention(1, 2, {.use_bias = false, .use_causal_mask = true});
  const Tensor x = constant(Floats{1, 0, 0, 1}, {1, 2, 2});
  layer(x);
  const Tensor one = constant(Floats{1, 0, 0, 1}, {2, 1, 2});
  layer.set_weights({one, one, one, reshape(one, {1, 2, 2})});
  // Row 1 sees keys 0, 1 with scores 0, 1 / sqrt(2).
  const float e = std::exp(1 / std::sqrt(2.f));
  expect_near(layer(x), {1, 0, 1 / (1 + e), e / (1 + e)}, 1e-6);
}

TEST(MultiHeadAttention, HasTensorFlowsWeights) {
  const auto layer = MultiHeadAttention(3, 4, {.value_dim = 5});
  EXPECT_EQ(layer(Tensors{ones({2, 6, 7}), ones({2, 8, 9})})[0].shape(),
            (Shape{2, 6, 7}));
  std::vector<Shape> shapes;
  for (const Tensor& t : layer.get_weights()) shapes.push_back(t.shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{7, 3, 4},
                                        {3, 4},
                                        {9, 3, 4},
                                        {3, 4},
                                        {9, 3, 5},
                                        {3, 5},
                                        {3, 5, 7},
                                        {7}}));
}

TEST(MultiHeadAttention, MaskedKeysDoNotMatter) {
  random::set_seed(3);
  const auto layer = MultiHeadAttention(2, 3);
  const Tensor q = random::normal({2, 4, 5}), v = random::normal({2, 3, 5});
  const Tensor mask = reshape(
      math::not_equal(constant({1, 1, 0}), constant({0, 0, 0})), {1, 1, 1, 3});
  const Tensor masked = layer(Tensors{q, v, v, mask})[0];
  const Tensor first = v[{slice(), slice(0, 2)}];
  expect_near(masked, layer(Tensors{q, first})[0].to_vector<float>(), 1e-5);
}

TEST(MultiHeadAttention, TakesSequencesOfUnknownBatch) {
  const KerasTensor x = Input({4, 6});
  EXPECT_EQ(MultiHeadAttention(2, 3)(x).shape(), (Shape{-1, 4, 6}));
}

// Dropout of attention acts in training only.
TEST(MultiHeadAttention, DropsWeightsInTraining) {
  const auto layer = MultiHeadAttention(1, 2, {.dropout = 0.5});
  const Tensor x = random::normal({1, 8, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), layer(x).to_vector<float>());
  EXPECT_NE(layer(x, true).to_vector<float>(), layer(x).to_vector<float>());
}

}  // namespace
}  // namespace berth::keras
