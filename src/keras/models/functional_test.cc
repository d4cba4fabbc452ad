// Functional models of several inputs and outputs, and residual ones.

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "keras/models/weight_paths.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

// Sum and difference of two inputs, each through a layer.
Model sum_and_difference() {
  const auto a = Input({2}), b = Input({2});
  const auto one = [](const char* name) {
    return Dense(2, {.use_bias = false,
                     .kernel_initializer = initializers::Constant(0.5),
                     .name = name});
  };
  const auto sum = one("left")(Add()(KerasTensors{a, b}));
  const auto difference = one("right")(Subtract()(KerasTensors{a, b}));
  return Model(KerasTensors{a, b}, KerasTensors{sum, difference});
}

TEST(Functional, HasSeveralInputsAndOutputs) {
  const Model model = sum_and_difference();
  const Tensor a = constant({{1.f, 2.f}}), b = constant({{3.f, 5.f}});
  const Tensors y = model(Tensors{a, b});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{5.5, 5.5}));
  EXPECT_EQ(y[1].to_vector<float>(), (Floats{-2.5, -2.5}));
  EXPECT_THROW(model(a), errors::InvalidArgument);
}

TEST(Functional, PredictsAllOutputsInBatches) {
  Model model = sum_and_difference();
  const Tensor a = ones({5, 2}), b = ones({5, 2}) * 2.0;
  const Tensors y = model.predict(Tensors{a, b}, {.batch_size = 2});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].shape(), (Shape{5, 2}));
  EXPECT_EQ(y[0].to_vector<float>(), Floats(10, 3));
  EXPECT_EQ(y[1].to_vector<float>(), Floats(10, -1));
  EXPECT_THROW(model.predict(Tensors{}), errors::InvalidArgument);
  EXPECT_THROW(model.predict(Tensors{a, ones({4, 2})}),
               errors::InvalidArgument);
}

TEST(Functional, TrainsAllOutputs) {
  Model model = sum_and_difference();
  model.compile({.optimizer = SGD(0.05), .losses = {"mse", "mse"}});
  const Tensor a = constant({{1.f, 2.f}, {0.f, 1.f}});
  const Tensor b = constant({{3.f, 5.f}, {2.f, 1.f}});
  const auto data =
      data::Dataset::from_tensor_slices({a, b, a + b, a - b}).batch(2);
  const History h = model.fit(data, {.epochs = 300, .verbose = 0});
  EXPECT_LT(h.history.at("loss").back(), 1e-3);
  EXPECT_GT(h.history.at("loss").front(), 1);
}

// A model of several outputs is a layer of another.
TEST(Functional, OutputsOfAModelAreInputsOfAnother) {
  const auto a = Input({2}), b = Input({2});
  const Model inner = sum_and_difference();
  EXPECT_THROW(inner(KerasTensors{a, b}), errors::InvalidArgument);
  const KerasTensors both = inner.outputs_of({a, b});
  ASSERT_EQ(both.size(), 2u);
  const auto y = Concatenate()(both);
  const Model model(KerasTensors{a, b}, KerasTensors{y});
  EXPECT_EQ(model(Tensors{ones({1, 2}), ones({1, 2})})[0].to_vector<float>(),
            (Floats{2, 2, 0, 0}));
  EXPECT_EQ(model.weights().size(), 2u);
}

// Keras prints this order for the same program, and its files number by it.
TEST(Functional, LayersComeInTheOrderOfKeras) {
  const auto in = Input({4}, {.name = "in"});
  const auto unused = Input({1}, {.name = "unused"});
  const auto kept = [](const char* name) { return Dense(4, {.name = name}); };
  const auto s = kept("short")(in);
  const auto h = kept("long2")(kept("long1")(in));
  const Model model(KerasTensors{in, unused},
                    KerasTensors{Add({.name = "add"})(KerasTensors{s, h})});
  std::vector<std::string> names;
  for (const Layer& l : model.layers()) names.push_back(l.name());
  EXPECT_EQ(names, (std::vector<std::string>{"in", "long1", "short", "long2",
                                             "unused", "add"}));
}

// Berth's own files name weights by the first use of layers.
TEST(Functional, NamesInOwnFilesAreByFirstUse) {
  const auto in = Input({4});
  const Dense s(4), first(4), second(4);
  const auto short_way = s(in);
  const Model model(in, Add()(KerasTensors{short_way, second(first(in))}));
  const WeightPaths paths = weight_paths(model);
  ASSERT_EQ(paths.weights.size(), 6u);
  EXPECT_EQ(paths.weights[0].first, "dense/kernel");
  EXPECT_EQ(paths.weights[0].second.handle().impl(),
            s.weights()[0].handle().impl());
  EXPECT_EQ(paths.weights[2].first, "dense_1/kernel");
  EXPECT_EQ(paths.weights[2].second.handle().impl(),
            first.weights()[0].handle().impl());
}

TEST(Functional, BeginsAtTheOutputOfALayer) {
  const auto in = Input({2});
  const Dense below(3), above(2), beside(2);
  const auto middle = below(in);
  const auto both = Add()(KerasTensors{above(middle), beside(middle)});
  const Model model(middle, both);
  EXPECT_EQ(model.weights().size(), 4u);  // of below there is none
  const Tensor x = random::normal({5, 3});
  EXPECT_EQ(model(x).to_vector<float>(),
            (above(x) + beside(x)).to_vector<float>());
  const Layer twin = layers::deserialize(layers::serialize(model));
  twin.set_weights(model.get_weights());
  EXPECT_EQ(twin(x).to_vector<float>(), model(x).to_vector<float>());
}

TEST(Functional, ResidualBlocksTrain) {
  random::set_seed(3);
  const auto image = Input({8, 8, 3});
  auto x = Conv2D(4, 3, {.padding = "same"})(image);
  for (int i = 0; i < 2; ++i) {
    auto y = BatchNormalization()(
        Conv2D(4, 3, {.padding = "same", .use_bias = false})(x));
    x = Activation("relu")(Add()(KerasTensors{x, y}));
  }
  const auto y = Dense(2)(GlobalAveragePooling2D()(x));
  Model model(image, y);
  EXPECT_EQ(y.shape(), (Shape{-1, 2}));
  model.compile(
      {.optimizer = SGD(0.05, {.momentum = 0.9}),
       .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  const Tensor images = random::normal({16, 8, 8, 3});
  const Tensor labels = math::cast(
      math::reduce_mean(images, {.axis = std::vector<int64_t>{1, 2, 3}}) >
          constant(0.f),
      int32);
  const History h =
      model.fit(images, labels, {.epochs = 40, .batch_size = 16, .verbose = 0});
  EXPECT_LT(h.history.at("loss").back(), 0.5 * h.history.at("loss").front());
}

TEST(Input, RefusesImpossibleShapes) {
  EXPECT_THROW(Input({-2, 3}), errors::InvalidArgument);
  EXPECT_THROW(Input({1, 1, 1, 1, 1, 1, 1, 1}), errors::InvalidArgument);
  EXPECT_THROW(Input({int64_t{1} << 40, int64_t{1} << 40}),
               errors::InvalidArgument);
  EXPECT_THROW(Input({2}, {.dtype = resource}), errors::InvalidArgument);
  EXPECT_EQ(Input({-1, 3}).shape(), (Shape{-1, -1, 3}));
}

TEST(Reshape, RefusesImpossibleTargets) {
  EXPECT_THROW(Reshape({-1, -1}), errors::InvalidArgument);
  EXPECT_THROW(Reshape({-2, 3}), errors::InvalidArgument);
  EXPECT_THROW(Reshape({int64_t{1} << 40, int64_t{1} << 40}),
               errors::InvalidArgument);
  EXPECT_THROW(Reshape({4, -1})(Input({6})), errors::InvalidArgument);
  EXPECT_THROW(Reshape({0, 3})(Input({6})), errors::InvalidArgument);
  EXPECT_THROW(Reshape({2})(ones({3, 0})), errors::InvalidArgument);
  EXPECT_EQ(Reshape({2, -1})(ones({3, 0})).shape(), (Shape{3, 2, 0}));
}

}  // namespace
}  // namespace berth::keras
