// Layers of the core: weights, names, calls.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

void expect_near(const Tensor& got, const Floats& want, double tolerance) {
  const Floats values = got.to_vector<float>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(values[i], want[i], tolerance) << "element " << i;
  }
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Dense, IsActivationOfKernelAndBias) {
  const auto layer = Dense(2, {.activation = "relu"});
  const Tensor x = constant({{1.f, 2.f, 3.f}, {-1.f, 0.f, 1.f}});
  EXPECT_TRUE(layer.weights().empty());
  layer(x);
  layer.set_weights({constant({{1.f, 0.f}, {0.f, 1.f}, {1.f, -1.f}}),
                     constant({0.5f, -0.25f})});
  // x k + b = {4.5, -1.25}, {0.5, -1.25}
  EXPECT_EQ(layer(x).to_vector<float>(), (Floats{4.5f, 0, 0.5f, 0}));
  EXPECT_EQ(layer.count_params(), 8);
}

TEST(Dense, WithoutBiasHasOneWeight) {
  const auto layer =
      Dense(3, {.use_bias = false, .kernel_initializer = "ones"});
  EXPECT_EQ(layer(constant({{1.f, 2.f}})).to_vector<float>(),
            (Floats{3, 3, 3}));
  EXPECT_EQ(layer.weights().size(), 1u);
}

TEST(Dense, KeepsLeadingAxes) {
  const auto layer = Dense(5);
  EXPECT_EQ(layer(ones({2, 3, 4})).shape(), (Shape{2, 3, 5}));
  EXPECT_EQ(layer(ones({4})).shape(), (Shape{5}));
}

TEST(Dense, RefusesAnotherWidthNamingLayerAndLine) {
  const auto layer = Dense(2, {.name = "head"});
  layer(ones({1, 3}));
  const std::string text = message_of([&] { layer(ones({1, 4})); });
  expect_has(text, "[1,4]");
  expect_has(text, "last axis of 3");
  expect_has(text, "layer \"head\", layers_test.cc:");
}

TEST(Layer, OfANullPointerIsAnError) {
  EXPECT_THROW(Layer(nullptr), errors::InvalidArgument);
  EXPECT_THROW(Model(nullptr), errors::InvalidArgument);
}

TEST(Layers, RefuseBadOptionsWhereTheyAreMade) {
  expect_has(message_of([] { Dense(0); }), "units is 0");
  expect_has(message_of([] { Dense(1, {.activation = "rellu"}); }), "softmax");
  expect_has(message_of([] { Dropout(1.0); }), "rate is 1");
  expect_has(message_of([] { Conv2D(1, 3, {.padding = "full"}); }), "\"full\"");
  expect_has(message_of([] { MaxPooling2D({0, 2}); }), "pool_size is 0");
  expect_has(message_of([] { Dense(1, {.kernel_initializer = "on"}); }),
             "glorot_uniform");
  expect_has(message_of([] {
               Sequential({Conv2D(1, 3)})(ones({4, 4}));
             }),
             "[batch, height, width, channels]");
}

TEST(Layers, NamesCountPerType) {
  clear_session();
  EXPECT_EQ(Dense(1).name(), "dense");
  EXPECT_EQ(Dense(1).name(), "dense_1");
  EXPECT_EQ(MaxPooling2D().name(), "max_pooling2d");
  EXPECT_EQ(Conv2D(1, 3).name(), "conv2d");
  EXPECT_EQ(BatchNormalization().name(), "batch_normalization");
  EXPECT_EQ(Dense(1, {.name = "mine"}).name(), "mine");
  EXPECT_EQ(Dense(1).name(), "dense_2");
  clear_session();
  EXPECT_EQ(Dense(1).name(), "dense");
}

TEST(Conv2D, SumsWindowsWithPaddingAndStrides) {
  const Tensor x = reshape(range(1, 10, 1, float32), {1, 3, 3, 1});
  const auto valid = Conv2D(1, {2, 2}, {.kernel_initializer = "ones"});
  EXPECT_EQ(valid(x).to_vector<float>(), (Floats{12, 16, 24, 28}));
  const auto same =
      Conv2D(1, 3, {.padding = "same", .kernel_initializer = "ones"});
  EXPECT_EQ(same(x).to_vector<float>(),
            (Floats{12, 21, 16, 27, 45, 33, 24, 39, 28}));
  const auto strided =
      Conv2D(1, 1,
             {.strides = 2,
              .kernel_initializer = "ones",
              .bias_initializer = initializers::Constant(0.5)});
  EXPECT_EQ(strided(x).to_vector<float>(), (Floats{1.5, 3.5, 7.5, 9.5}));
}

TEST(Pooling, TakesLargestOrMean) {
  const Tensor x = reshape(range(0, 16, 1, float32), {1, 4, 4, 1});
  EXPECT_EQ(MaxPooling2D({2, 2})(x).to_vector<float>(), (Floats{5, 7, 13, 15}));
  EXPECT_EQ(AveragePooling2D(2)(x).to_vector<float>(),
            (Floats{2.5, 4.5, 10.5, 12.5}));
  EXPECT_EQ(MaxPooling2D(3, {.strides = 1})(x).to_vector<float>(),
            (Floats{10, 11, 14, 15}));
}

TEST(Flatten, AndReshapeKeepTheBatch) {
  EXPECT_EQ(Flatten()(ones({2, 3, 4})).shape(), (Shape{2, 12}));
  EXPECT_EQ(Flatten()(ones({2})).shape(), (Shape{2, 1}));
  EXPECT_EQ(Flatten()(ones({0, 3, 4})).shape(), (Shape{0, 12}));
  EXPECT_EQ(Reshape({2, -1})(ones({5, 6})).shape(), (Shape{5, 2, 3}));
  EXPECT_THROW(Reshape({4})(ones({5, 6})), errors::InvalidArgument);
  EXPECT_EQ(Reshape({2, -1})(Input({6})).shape(), (Shape{-1, 2, 3}));
  EXPECT_EQ(Flatten()(Input({6, 2})).shape(), (Shape{-1, 12}));
}

TEST(Activation, FollowsItsFormula) {
  const Tensor x = constant({{-1.f, 0.f, 2.f}});
  expect_near(Activation("sigmoid")(x), {0.268941f, 0.5f, 0.880797f}, 1e-5);
  expect_near(Activation("tanh")(x), {-0.761594f, 0, 0.964028f}, 1e-5);
  // exp(-3), exp(-2), 1 over their sum 1.1851223
  expect_near(Activation("softmax")(x), {0.0420101f, 0.1141952f, 0.8437947f},
              1e-5);
  expect_near(Activation("linear")(x), {-1, 0, 2}, 0);
}

TEST(Rescaling, CastsAndScales) {
  const Tensor x = math::cast(constant({{0, 51, 255}}), uint8);
  expect_near(Rescaling(1 / 255.0)(x), {0, 0.2f, 1}, 1e-6);
  expect_near(Rescaling(2, {.offset = -1})(constant({{0.5f}})), {0}, 0);
}

TEST(Dropout, ActsInTrainingOnly) {
  const auto layer = Dropout(0.25);
  const Tensor x = ones({100, 100});
  EXPECT_EQ(layer(x).to_vector<float>(), x.to_vector<float>());
  int zero = 0;
  for (float v : layer(x, true).to_vector<float>()) {
    if (v == 0) {
      ++zero;
    } else {
      EXPECT_FLOAT_EQ(v, 1 / 0.75f);
    }
  }
  // 2500 with a standard deviation of 43.
  EXPECT_NEAR(zero, 2500, 260);
}

TEST(BatchNormalization, NormalisesByTheBatchAndMovesItsAverages) {
  const auto layer = BatchNormalization({.momentum = 0.9, .epsilon = 0.001});
  // Columns: mean 2, 10; biased variance 2/3, 0.
  const Tensor x = constant({{1.f, 10.f}, {2.f, 10.f}, {3.f, 10.f}});
  const float d = 1 / std::sqrt(2 / 3.f + 0.001f);
  expect_near(layer(x, true), {-d, 0, 0, 0, d, 0}, 1e-5);
  const Tensors w = layer.get_weights();  // gamma, beta, mean, variance
  ASSERT_EQ(w.size(), 4u);
  expect_near(w[2], {0.2f, 1.0f}, 1e-6);
  // As Keras 3 has it, without Bessel's correction.
  expect_near(w[3], {0.9f + 0.1f * 2 / 3, 0.9f}, 1e-6);
  EXPECT_EQ(layer.trainable_variables().size(), 2u);
  EXPECT_EQ(layer.non_trainable_variables().size(), 2u);
  // Inference reads the averages and leaves them.
  const float s0 = 1 / std::sqrt(0.9f + 0.2f / 3 + 0.001f),
              s1 = 1 / std::sqrt(0.901f);
  expect_near(layer(constant({{1.2f, 3.f}})), {s0, 2 * s1}, 1e-5);
  expect_near(layer.get_weights()[2], {0.2f, 1.0f}, 1e-6);
}

// Two groups of a batch: each by its own moments; the averages move by the mean
// of the two.
TEST(BatchNormalization, GroupsHaveStatisticsOfTheirOwn) {
  const auto layer = BatchNormalization(
      {.momentum = 0.9, .epsilon = 0.001, .statistics_groups = 2});
  // Means 2 and 20, variances 1 and 4.
  const Tensor x = constant({{1.f}, {3.f}, {18.f}, {22.f}});
  const float d = 1 / std::sqrt(1.001f), e = 2 / std::sqrt(4.001f);
  expect_near(layer(x, true), {-d, d, -e, e}, 1e-5);
  expect_near(layer.get_weights()[2], {1.1f}, 1e-6);
  expect_near(layer.get_weights()[3], {0.9f + 0.25f}, 1e-6);
  expect_has(message_of([&] {
               layer(ones({3, 1}), true);
             }),
             "statistics_groups is 2");
  expect_has(message_of([] { BatchNormalization({.statistics_groups = -1}); }),
             "expected 0 or more");
}

TEST(Merge, AddsAndConcatenates) {
  const Tensor a = constant({{1.f, 2.f}}), b = constant({{3.f, 4.f}});
  EXPECT_EQ(Add()(Tensors{a, b})[0].to_vector<float>(), (Floats{4, 6}));
  EXPECT_EQ(Concatenate()(Tensors{a, b})[0].to_vector<float>(),
            (Floats{1, 2, 3, 4}));
  EXPECT_THROW(Add()(Tensors{a, ones({1, 3})}), errors::InvalidArgument);
}

TEST(Initializers, HaveTheirVarianceAndRange) {
  random::set_seed(5);
  const Shape shape{200, 100};
  auto moments = [](const Tensor& t) {
    double sum = 0, squares = 0, top = 0;
    const Floats v = t.to_vector<float>();
    for (float x : v) {
      sum += x;
      squares += double{x} * x;
      top = std::max(top, std::abs(double{x}));
    }
    const double n = static_cast<double>(v.size());
    return std::array<double, 3>{sum / n, squares / n, top};
  };
  const auto glorot = moments(Initializer("glorot_uniform")(shape));
  EXPECT_NEAR(glorot[0], 0, 0.003);
  EXPECT_NEAR(glorot[1], 2.0 / 300, 2e-4);
  EXPECT_LE(glorot[2], std::sqrt(6.0 / 300));
  EXPECT_NEAR(glorot[2], std::sqrt(6.0 / 300), 1e-3);
  const auto cut = moments(initializers::GlorotNormal()(shape));
  EXPECT_NEAR(cut[1], 2.0 / 300, 3e-4);
  EXPECT_LE(cut[2], 2 * std::sqrt(2.0 / 300) / 0.8796 + 1e-6);
  const auto flat = moments(initializers::HeUniform()(shape));
  EXPECT_NEAR(flat[1], 2.0 / 200, 3e-4);
  EXPECT_LE(flat[2], std::sqrt(6.0 / 200));
  EXPECT_NEAR(flat[2], std::sqrt(6.0 / 200), 1e-3);
  const auto he = moments(Initializer("he_normal")(shape));
  EXPECT_NEAR(he[1], 2.0 / 200, 3e-4);
  EXPECT_LE(he[2], 2 * std::sqrt(0.01) / 0.8796 + 1e-6);
  EXPECT_NEAR(moments(Initializer("random_normal")(shape))[1], 0.0025, 1e-4);
  // Fans of a convolution count the window: 9 * 4 in, 9 * 8 out.
  const auto conv = moments(Initializer("glorot_uniform")({3, 3, 4, 8}));
  EXPECT_LE(conv[2], std::sqrt(6.0 / 108));
  EXPECT_GT(conv[2], 0.9 * std::sqrt(6.0 / 108));
}

TEST(Initializers, FollowTheSeed) {
  auto draw = [](int64_t seed) {
    random::set_seed(seed);
    const auto layer = Sequential({Dense(4), Dense(3)});
    layer(ones({1, 5}));
    Floats all;
    for (const Tensor& t : layer.get_weights()) {
      for (float v : t.to_vector<float>()) all.push_back(v);
    }
    return all;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(Layer, IsBuiltOutsideATraceAndATape) {
  const auto layer = Dense(2, {.kernel_initializer = "ones"});
  auto f = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor y = math::reduce_sum(layer(x));
    return tape.gradient(y, layer.trainable_variables())[0];
  });
  EXPECT_EQ(f(constant({{1.f, 2.f}})).to_vector<float>(), (Floats{1, 1, 2, 2}));
  EXPECT_EQ(layer.get_weights()[0].to_vector<float>(), (Floats{1, 1, 1, 1}));
  EXPECT_EQ(layer(constant({{1.f, 2.f}})).to_vector<float>(), (Floats{3, 3}));
}

TEST(Layer, IsBuiltOnceByManyThreads) {
  for (int round = 0; round < 20; ++round) {
    const auto layer = Dense(3);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { layer(ones({2, 2})); });
    }
    for (auto& t : threads) t.join();
    EXPECT_EQ(layer.weights().size(), 2u);
  }
}

TEST(Layer, AFailedBuildLeavesNothingBehind) {
  int tries = 0;
  const Initializer fails([&](const Shape& s, DType d) -> Tensor {
    if (++tries == 1) throw errors::Internal("once");
    return zeros(s, d);
  });
  const auto layer = Dense(2, {.bias_initializer = fails});
  EXPECT_THROW(layer(ones({1, 2})), errors::Internal);
  EXPECT_TRUE(layer.weights().empty());
  layer(ones({1, 2}));
  EXPECT_EQ(layer.weights().size(), 2u);
}

TEST(Layer, GraphNodesSayTheLayer) {
  const auto layer = Dense(2, {.name = "reader"});
  auto f = function([&](const Tensor& x) { return layer(x); });
  f(ones({1, 2}));
  expect_has(f.text("trace"), "reader/MatMul");
}

TEST(Layer, TheScopeWhereItWasMadeIsInnermost) {
  std::unique_ptr<Layer> layer;
  with_device("/CPU:0", [&] { layer = std::make_unique<Layer>(Dense(2)); });
  EXPECT_NE(layer->requested_device().find("CPU:0"), std::string::npos);
  // No such device: the call would fail in this scope.
  auto on = device("/GPU:7");
  const Tensor x = with_device("/CPU:0", [] { return ones({1, 2}); });
  EXPECT_EQ((*layer)(x).shape(), (Shape{1, 2}));
  EXPECT_NE(layer->weights()[0].device().find("CPU:0"), std::string::npos);
}

class Doubles : public LayerBase {
 public:
  Doubles() : LayerBase("Doubles") {}
  void build(const std::vector<Shape>& in) override {
    factor_ = add_weight("factor", {in[0][1]}, initializers::Constant(2));
  }
  Tensors call(const Tensors& x, bool training) override {
    seen.insert(training);
    return {inner_(x[0]) * factor_};
  }
  std::set<bool> seen;

 private:
  Layer inner_ = track(Dense(3, {.kernel_initializer = "ones"}));
  Variable factor_;
};

TEST(Layer, ALayerOfYourOwnCountsItsParts) {
  clear_session();
  const Layer layer = make_layer<Doubles>();
  EXPECT_EQ(layer.name(), "doubles");
  EXPECT_EQ(layer(constant({{1.f, 2.f, 3.f}})).to_vector<float>(),
            (Floats{12, 12, 12}));
  EXPECT_EQ(layer.weights().size(), 3u);
  EXPECT_EQ(layer.weights()[0].name(), "doubles/factor");
  // What encloses a layer says whether it trains.
  Sequential({layer})(ones({1, 3}), true);
  EXPECT_EQ(static_cast<Doubles&>(*layer.base()).seen,
            (std::set<bool>{false, true}));
}

TEST(Layer, SetWeightsChecksCountAndShapes) {
  const auto layer = Dense(2);
  expect_has(message_of([&] {
               layer.set_weights({ones({2, 2})});
             }),
             "build the layer first");
  layer(ones({1, 2}));
  expect_has(message_of([&] {
               layer.set_weights({ones({2, 3}), ones({2})});
             }),
             "expected [2,2]");
}

TEST(Input, AShapeThatNothingCanHoldIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  for (const Shape& shape : {Shape{kHuge, kHuge}, Shape{kHuge, kHuge, -1},
                             Shape{-2}, Shape{int64_t{1} << 61}}) {
    expect_has(message_of([&] { Input(shape); }), "fewer than 2^62 bytes");
  }
  EXPECT_EQ(Input({-1, 3}).shape(), Shape({-1, -1, 3}));
}

TEST(Reshape, ATargetThatTheInputCannotFillIsRefused) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  expect_has(message_of([] {
               Reshape({kHuge, kHuge, -1});
             }),
             "fewer than 2^62 bytes");
  // 3 times what is open is never 16, though it may be 12.
  expect_has(message_of([] {
               Reshape({4, 4})(Input({3, -1}));
             }),
             "a multiple of 3 values each");
  EXPECT_EQ(Reshape({4, 3})(Input({3, -1})).shape(), Shape({-1, 4, 3}));
}

TEST(Dense, OfFloat32CastsAnInputOf16BitsByItsPolicy) {
  const Tensor x = math::cast(constant({{1.f, 2.f}}), bfloat16);
  const Layer layer = Dense(1, {.kernel_initializer = "ones"});
  const Tensor y = layer(x);
  EXPECT_EQ(y.dtype(), float32);
  EXPECT_EQ(y.to_vector<float>(), (Floats{3}));
  const auto model = Sequential({InputLayer({2}, {.dtype = bfloat16}),
                                 Dense(1, {.kernel_initializer = "ones"})});
  EXPECT_EQ(model(x).to_vector<float>(), (Floats{3}));
}

}  // namespace
}  // namespace berth::keras
