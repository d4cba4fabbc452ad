// Models: layers, names, summaries, shapes.

#include <gtest/gtest.h>

#include <sstream>

#include "berth/berth.h"
#include "keras/callbacks/progress_bar.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

DenseOptions all_ones() { return {.kernel_initializer = "ones"}; }

TEST(Model, FunctionalWithTwoInputsAndOutputs) {
  const auto a = Input({2}), b = Input({3});
  const auto both = Concatenate()({a, b});
  const auto sum = Dense(1, all_ones())(both);
  Model model({a, b}, {sum, both});
  const Tensors y =
      model({constant({{1.f, 2.f}}), constant({{3.f, 4.f, 5.f}})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{15}));
  EXPECT_EQ(y[1].to_vector<float>(), (Floats{1, 2, 3, 4, 5}));
  EXPECT_EQ(sum.shape(), (Shape{-1, 1}));
  EXPECT_EQ(model.count_params(), 6);
  EXPECT_THROW(model(Tensors{ones({1, 2})}), errors::InvalidArgument);
  EXPECT_THROW(model({ones({1, 3}), ones({1, 3})}), errors::InvalidArgument);
}

TEST(Model, ALayerUsedTwiceHasItsWeightsOnce) {
  const auto x = Input({2});
  const auto shared = Dense(2, all_ones());
  Model model(x, shared(shared(x)));
  EXPECT_EQ(model.count_params(), 6);
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_EQ(model(constant({{1.f, 2.f}})).to_vector<float>(), (Floats{6, 6}));
}

TEST(Model, FunctionalRefusesAnOutputOfAnotherInput) {
  const auto a = Input({2}), b = Input({2}, {.name = "other"});
  try {
    Model model(a, Add()({a, b}));
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    expect_has(e.what(), "\"other\"");
    expect_has(e.what(), "models_test.cc:");
  }
}

TEST(Model, ModelsNest) {
  auto inner = Sequential({Dense(2, all_ones())});
  const auto x = Input({2});
  Model outer(x, Dense(1, all_ones())(inner(x)));
  EXPECT_EQ(outer.count_params(), 6 + 3);
  EXPECT_EQ(outer(constant({{1.f, 2.f}})).to_vector<float>(), (Floats{6}));
}

class Residual : public LayerBase {
 public:
  Residual() : LayerBase("Residual") {}
  Tensors call(const Tensors& x, bool training) override {
    return {x[0] + dense_(dropout_(x[0], training))};
  }

 private:
  Layer dense_ = track(Dense(2, {.kernel_initializer = "zeros"}));
  Layer dropout_ = track(Dropout(0.5));
};

TEST(Model, OneOfYourOwnTrains) {
  auto model = Model::make<Residual>();
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  const Tensor x = random::normal({32, 2});
  const Tensor y = x + 1.0;
  const History h =
      model.fit(x, y, {.epochs = 100, .batch_size = 32, .verbose = 0});
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_NEAR(h.history.at("loss")[0], 1, 1e-5);
  EXPECT_LT(h.history.at("loss").back(), 0.2);
  EXPECT_EQ(model.num_train_traces(), 1);
}

TEST(Model, TwoOutputsHaveTwoLosses) {
  const auto x = Input({1});
  const auto a = Dense(1)(x), b = Dense(1)(x);
  Model model({x}, {a, b});
  model.compile({.optimizer = SGD(0.2), .losses = {"mse", "mse"}});
  const Tensor in = constant({{0.f}, {1.f}});
  const Tensors targets{in * 2.0, in - 1.0};
  double loss = 0;
  for (int i = 0; i < 200; ++i) {
    loss = model.train_on_batch({in}, targets).item<double>();
  }
  EXPECT_LT(loss, 1e-4);
  const Tensors got = model(Tensors{constant({{3.f}})});
  EXPECT_NEAR(got[0].item<float>(), 6, 0.1);
  EXPECT_NEAR(got[1].item<float>(), 2, 0.1);
  EXPECT_THROW(model.train_on_batch(in, in), errors::InvalidArgument);
}

TEST(Model, SummaryShowsShapesParametersAndDevices) {
  clear_session();
  const auto on = device("/CPU:0");
  auto model = Sequential(
      {InputLayer({28, 28, 1}), Conv2D(32, {3, 3}), BatchNormalization(),
       MaxPooling2D({2, 2}), Flatten(), Dense(10)},
      {.name = "reader"});
  std::ostringstream out;
  model.summary(out);
  const std::string text = out.str();
  expect_has(text, "Model: \"reader\"");
  expect_has(text, "Device\n");
  expect_has(text, "conv2d (Conv2D)");
  expect_has(text, "(None, 26, 26, 32)");
  expect_has(text, "(None, 5408)");
  expect_has(text, "54,090  CPU:0\n");       // 5408 * 10 + 10
  expect_has(text, "Total params: 54,538");  // + 9 * 32 + 32 + 4 * 32
  expect_has(text, "Trainable params: 54,474");
  expect_has(text, "Non-trainable params: 64");
  std::ostringstream described;
  const KerasTensor in = Input({6}, {.name = "ids"});
  Model(in, Dense(2)(in)).summary(described);
  expect_has(described.str(), "ids (InputLayer)  (None, 6)           0  CPU:0");
  std::ostringstream unbuilt;
  Sequential({Dense(1)}).summary(unbuilt);
  expect_has(unbuilt.str(), "unbuilt");
}

TEST(Model, AnInputInFrontOfASequentialBuildsIt) {
  const KerasTensor in = Input({3}, {.name = "pixels"});
  auto model = Sequential({in, Dense(4)});
  EXPECT_EQ(model.count_params(), 16);
  EXPECT_EQ(model.layers().front().name(), "pixels");
  EXPECT_EQ(model(zeros({2, 3})).shape(), Shape({2, 4}));
  EXPECT_THROW(model(zeros({2, 5})), errors::InvalidArgument);
  // This input serves a functional model too.
  EXPECT_EQ(Model(in, Dense(2)(in)).count_params(), 8);
  const KerasTensor computed = Dense(2)(in);
  EXPECT_THROW(Sequential({computed}), errors::InvalidArgument);
}

TEST(Model, BuildMakesTheWeights) {
  auto model = Sequential({Dense(4), Dense(2)});
  model.build({-1, 3});
  EXPECT_EQ(model.count_params(), 16 + 10);
  EXPECT_THROW(Sequential({Dense(4)}).build({-1, -1}), errors::InvalidArgument);
}

TEST(Model, PredictJoinsBatches) {
  auto model = Sequential({Dense(1, all_ones())});
  const Tensor x = reshape(range(0, 10, 1, float32), {10, 1});
  const Tensor y = model.predict(x, {.batch_size = 4});
  EXPECT_EQ(y.shape(), (Shape{10, 1}));
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
}

TEST(Model, WeightsMoveBetweenModels) {
  auto a = Sequential({Dense(3), BatchNormalization(), Dense(2)});
  auto b = Sequential({Dense(3), BatchNormalization(), Dense(2)});
  const Tensor x = random::normal({4, 5});
  a(x);
  b(x);
  EXPECT_NE(a(x).to_vector<float>(), b(x).to_vector<float>());
  b.set_weights(a.get_weights());
  EXPECT_EQ(a(x).to_vector<float>(), b(x).to_vector<float>());
}

TEST(ProgressBar, DrawsLikeKeras) {
  EXPECT_EQ(bar_text(10, 20, 2.0, {{"loss", 0.5}}),
            "10/20 [==============>...............] - ETA: 2s 200ms/step - "
            "loss: 0.5000");
  EXPECT_EQ(bar_text(5, 200, 1.0, {}).substr(0, 9), "  5/200 [");
  EXPECT_EQ(bar_text(20, 20, 2.0, {{"loss", 0.5}, {"accuracy", 0.25}}),
            "20/20 [==============================] - 2s 100ms/step - "
            "loss: 0.5000 - accuracy: 0.2500");
  expect_has(bar_text(1, 1000, 2.0, {}), "ETA: 33:18");
  expect_has(bar_text(7, -1, 2.0, {}), "7/Unknown");
  EXPECT_EQ(metrics_text({{"loss", 0.00012}}), "loss: 1.2000e-04");
}

TEST(ProgressBar, FitsTheLine) {
  const NamedValues values = {{"loss", 0.5}, {"accuracy", 0.25}};
  EXPECT_EQ(bar_text(10, 20, 2.0, values, 65),
            "10/20 [=========>...........] - ETA: 2s 200ms/step - "
            "loss: 0.5000");
  for (size_t columns = 1; columns < 120; ++columns) {
    EXPECT_LE(bar_text(10, 20, 2.0, values, columns).size(), columns);
  }
  EXPECT_EQ(bar_text(10, 20, 2.0, values, 1000), bar_text(10, 20, 2.0, values));
}

}  // namespace
}  // namespace berth::keras
