// Layers in 16 bits: what is cast, what stays float32, and that it trains.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

using Halves = std::vector<float>;

struct WithPolicy {
  explicit WithPolicy(const char* name) {
    mixed_precision::set_global_policy(name);
  }
  ~WithPolicy() { mixed_precision::set_global_policy("float32"); }
};

std::string policy_error(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "nothing thrown";
}

Tensor to16(const Tensor& x) { return math::cast(x, bfloat16); }
Halves floats_of(const Tensor& x) {
  return math::cast(x, float32).to_vector<float>();
}

TEST(MixedPrecision, ComputesIn16BitsWithFloat32Weights) {
  const WithPolicy mixed("mixed_bfloat16");
  const Dense layer(3, {.bias_initializer = "ones"});
  EXPECT_EQ(layer.dtype_policy().name(), "mixed_bfloat16");
  EXPECT_EQ(layer.compute_dtype(), bfloat16);
  EXPECT_EQ(layer.variable_dtype(), float32);
  const Tensor x = numbers({4, 5});
  const auto run = [&](const Tensor& in) {
    GradientTape tape;
    const Tensor y = layer(in);
    Tensors all = {y};
    for (const Tensor& g :
         tape.gradient(math::cast(y, float32), layer.trainable_variables())) {
      all.push_back(g);
    }
    return all;
  };
  const Tensors eager = run(x), traced = function(run)(x);
  const Tensor w = layer.weights()[0].value();
  EXPECT_EQ(w.dtype(), float32);
  const Tensor want = math::add(matmul(to16(x), to16(w)), ones({3}, bfloat16));
  for (const Tensors& got : {eager, traced}) {
    EXPECT_EQ(got[0].dtype(), bfloat16);
    EXPECT_EQ(got[1].dtype(), float32);
    EXPECT_EQ(got[2].dtype(), float32);
    EXPECT_EQ(floats_of(got[2]), Halves(3, 4));  // of the bias: 4 rows
    const Halves y = floats_of(got[0]), z = floats_of(want);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], z[i], 0.01);
  }
}

TEST(MixedPrecision, PolicyOfALayerWinsOverTheGlobalOne) {
  const WithPolicy mixed("mixed_bfloat16");
  const auto model = Sequential(
      {Dense(4), BatchNormalization(), Dense(2).set_dtype_policy("float32")});
  const Tensor x = numbers({4, 5});
  EXPECT_EQ(model(x).dtype(), float32);
  mixed_precision::set_dtype_policy("float32");
  EXPECT_EQ(mixed_precision::dtype_policy().name(), "float32");
  EXPECT_EQ(Dense(2)(x).dtype(), float32);
  EXPECT_EQ(Dense(2).set_dtype_policy("mixed_float16")(x).dtype(), float16);
  // A functional model knows it as well.
  const KerasTensor in = Input({5});
  EXPECT_EQ(Dense(2).set_dtype_policy("mixed_float16")(in).dtype(), float16);
  // The policy of a model is that of all its layers.
  const auto whole = Sequential({Dense(4), Dense(2)});
  whole.set_dtype_policy("mixed_bfloat16");
  EXPECT_EQ(whole(x).dtype(), bfloat16);
}

TEST(MixedPrecision, UnknownPoliciesAreRefusedWithTheList) {
  for (const char* bad : {"mixed_float8", "", "half"}) {
    const std::string e =
        policy_error([&] { mixed_precision::set_global_policy(bad); });
    expect_has(e, std::string("\"") + bad + "\"");
    expect_has(e, "\"float32\", \"mixed_bfloat16\", \"mixed_float16\"");
  }
  EXPECT_EQ(mixed_precision::global_policy().name(), "float32");
}

TEST(MixedPrecision, ConfigsHoldThePolicyWhereItIsNotFloat32) {
  const Layer half = Dense(2).set_dtype_policy("mixed_bfloat16");
  EXPECT_FALSE(Dense(2).get_config().contains("dtype"));
  EXPECT_EQ(half.get_config().at("dtype").at("config").at("name").as_string(),
            "mixed_bfloat16");
  EXPECT_EQ(half.from_config(half.get_config()).compute_dtype(), bfloat16);
  const auto model = Sequential({InputLayer({3}), half, Dense(1)});
  const std::string json = model.to_json();
  const WithPolicy other("mixed_float16");
  const Model again = model_from_json(json);
  EXPECT_EQ(again(numbers({2, 3})).dtype(), float32);
  EXPECT_EQ(again.to_json(), json);
  Config bad = half.get_config();
  bad.set("dtype", "mixed_int4");
  expect_has(policy_error([&] { half.from_config(bad); }), "mixed_int4");
}

struct Affine : LayerBase {
  explicit Affine(bool autocast) : LayerBase("Affine") {
    set_autocast(autocast);
  }
  void build(const std::vector<Shape>&) override {
    w = add_weight("w", {}, "ones");
  }
  Tensors call(const Tensors& x, bool) override {
    seen = {x[0].dtype(), w.value().dtype()};
    return {x[0] * w.value()};
  }
  Variable w;
  std::vector<DType> seen;
};

TEST(MixedPrecision, LayersOfYourOwnAreCastForUnlessTheySayNo) {
  const WithPolicy mixed("mixed_float16");
  const auto with = std::make_shared<Affine>(true);
  EXPECT_EQ(Layer(with)(ones({2})).dtype(), float16);
  EXPECT_EQ(with->seen, (std::vector<DType>{float16, float16}));
  EXPECT_EQ(with->w.value().dtype(), float32);  // outside of the call
  const auto without = std::make_shared<Affine>(false);
  EXPECT_EQ(Layer(without)(ones({2})).dtype(), float32);
  EXPECT_EQ(without->seen, (std::vector<DType>{float32, float32}));
}

// As Keras: a layer's inputs become its compute dtype, here float32.
TEST(MixedPrecision, FloatsOf16BitsAreCastForAFloat32Layer) {
  for (const DType half : {bfloat16, float16}) {
    const Tensor x = math::cast(numbers({8, 5}), half);
    const Tensor x32 = math::cast(x, float32);
    const Dense layer(3);
    const Tensor y = layer(x);
    ASSERT_EQ(y.dtype(), float32) << name_of(half);
    EXPECT_EQ(y.to_vector<float>(),
              matmul(x32, layer.weights()[0].value()).to_vector<float>());
    EXPECT_EQ(function([&](const Tensor& in) { return layer(in); })(x)
                  .to_vector<float>(),
              y.to_vector<float>());

    const KerasTensor in = Input({5}, {.dtype = half});
    const KerasTensor out = layer(in);
    EXPECT_EQ(out.dtype(), float32);
    EXPECT_EQ(Model(in, out)(x).to_vector<float>(), y.to_vector<float>());

    // Two functional models of the same start learn the same.
    const auto learned = [&](DType declared, const Tensor& data) {
      random::set_seed(5);
      clear_session();
      const KerasTensor given = Input({5}, {.dtype = declared});
      Model model(given, Dense(2)(Dense(4, {.activation = "relu"})(given)));
      model.compile({.optimizer = SGD(0.1), .loss = "mse"});
      model.fit(data, ones({8, 2}),
                {.epochs = 2, .batch_size = 4, .verbose = 0, .shuffle = false});
      std::vector<float> all;
      for (const Variable& v : model.weights()) {
        EXPECT_EQ(v.dtype(), float32);
        for (const float w : v.value().to_vector<float>()) all.push_back(w);
      }
      return all;
    };
    EXPECT_EQ(learned(half, x), learned(float32, x32)) << name_of(half);
  }
}

TEST(MixedPrecision, LoopsOfRecurrentLayersAndMasksAreCastToo) {
  const WithPolicy mixed("mixed_bfloat16");
  for (const Layer& rnn :
       {Layer(SimpleRNN(3)), Layer(GRU(3)), Layer(LSTM(3))}) {
    const auto model =
        Sequential({Embedding(7, 4, {.mask_zero = true}), rnn, Dense(1)});
    const auto run = function([&](const Tensor& ids) {
      GradientTape tape;
      const Tensor y = math::cast(model(ids), float32);
      Tensors all = {y};
      for (const Tensor& g : tape.gradient(y, model.trainable_variables())) {
        all.push_back(g);
      }
      return all;
    });
    std::vector<int32_t> ids(100, 0);  // more steps than are unrolled
    for (int i = 0; i < 5; ++i) ids[static_cast<size_t>(i)] = i + 1;
    const auto of = [&](int64_t n) {
      return run(
          constant(std::span<const int32_t>(ids).first(static_cast<size_t>(n)),
                   Shape{1, n}));
    };
    const Tensors padded = of(100), alone = of(5);
    EXPECT_NEAR(floats_of(padded[0])[0], floats_of(alone[0])[0], 0.02)
        << rnn.name();
    for (size_t i = 1; i < padded.size(); ++i) {
      EXPECT_EQ(padded[i].dtype(), float32);
    }
  }
}

Tensor labels(int64_t n, int of) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<int32_t>(i * 7 % static_cast<size_t>(of));
  }
  return constant(std::span<const int32_t>(v), Shape{n});
}

Sequential cnn() {
  return Sequential({Conv2D(6, 3, {.use_bias = false}), BatchNormalization(),
                     Activation("relu"), MaxPooling2D(), Flatten(),
                     Dropout(0.1, {.seed = 3}), Dense(3)});
}

Model transformer() {
  const KerasTensor in = Input({6}, {.dtype = int32});
  const KerasTensor e = Embedding(9, 8)(in);
  const KerasTensor a = MultiHeadAttention(2, 4)({e, e});
  const KerasTensor n = LayerNormalization()(Add()({e, a}));
  const KerasTensor f = Dense(8)(Dense(16, {.activation = "gelu"})(n));
  return {
      in,
      Dense(3)(GlobalAveragePooling1D()(LayerNormalization()(Add()({n, f}))))};
}

// The loss of the first epoch and of the last.
std::pair<double, double> trained(const char* policy,
                                  const std::function<Model()>& make,
                                  const Tensor& x, int epochs) {
  const WithPolicy with(policy);
  random::set_seed(5);
  clear_session();
  Model model = make();
  model.compile(
      {.optimizer = Adam(0.01),
       .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
       .metrics = {"accuracy"}});
  const History h = model.fit(
      x, labels(24, 3),
      {.epochs = epochs, .batch_size = 8, .verbose = 0, .shuffle = false});
  for (const Variable& v : model.weights()) {
    EXPECT_TRUE(v.dtype() == float32 || !is_floating(v.dtype())) << v.name();
    if (v.dtype() != float32) continue;
    for (float f : v.value().to_vector<float>()) EXPECT_TRUE(std::isfinite(f));
  }
  const auto& loss = h.history.at("loss");
  return {loss.front(), loss.back()};
}

TEST(MixedPrecision, TrainsAConvolutionalModelLikeFloat32) {
  std::vector<float> pixels;
  for (int i = 0; i < 24; ++i) {
    for (int k = 0; k < 128; ++k) {
      const bool lit = k % 3 == i * 7 % 3;
      pixels.push_back(static_cast<float>(lit) +
                       0.1f * std::sin(static_cast<float>(i * 128 + k)));
    }
  }
  const Tensor x = constant(std::span<const float>(pixels), {24, 8, 8, 2});
  const auto make = [] { return Model(cnn()); };
  const auto full = trained("float32", make, x, 50);
  ASSERT_LT(full.second, full.first / 2);
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    const auto got = trained(policy, make, x, 50);
    EXPECT_NEAR(got.first, full.first, 0.05 * full.first) << policy;
    EXPECT_NEAR(got.second, full.second, 0.1 * full.first) << policy;
  }
}

// In float16 the first steps are left out until the scale fits.
TEST(MixedPrecision, TrainsATransformerLikeFloat32) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 24; ++i) {
    for (int k = 0; k < 6; ++k) ids.push_back(i * 7 % 3 * 3 + (i + 5 * k) % 3);
  }
  const Tensor x = constant(std::span<const int32_t>(ids), Shape{24, 6});
  const auto full = trained("float32", transformer, x, 20);
  ASSERT_LT(full.second, full.first / 2);
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    const auto got = trained(policy, transformer, x, 20);
    EXPECT_NEAR(got.second, full.second, 0.1 * full.first) << policy;
  }
}

TEST(MixedPrecision, Float16SkipsAStepThatOverflowsAndHalvesTheScale) {
  const WithPolicy mixed("mixed_float16");
  const auto compiled = [](const Optimizer& optimizer, bool scales = true) {
    auto model = Sequential(
        {InputLayer({1}),
         Dense(1, {.use_bias = false, .kernel_initializer = "ones"})});
    model.compile(
        {.optimizer = optimizer, .loss = "mse", .auto_scale_loss = scales});
    return model;
  };
  const auto scale_of = [](const Model& m) {
    return m.optimizer().scale_loss(constant(1.f)).item<float>();
  };
  const Tensor x = ones({1, 1}), y = zeros({1, 1});
  // d/dw (w - 0)^2 = 2, times the scale: beyond 65504 from 2^15 on.
  auto model = compiled(SGD(0.25));
  EXPECT_EQ(scale_of(model), 32768);
  model.train_on_batch(x, y);
  EXPECT_EQ(scale_of(model), 16384);
  EXPECT_EQ(model.get_weights()[0].item<float>(), 1);
  model.train_on_batch(x, y);
  EXPECT_EQ(scale_of(model), 16384);
  EXPECT_EQ(model.get_weights()[0].item<float>(), 0.5f);
  // A wrapper that is there already stays; without auto_scale_loss none is
  // made.
  auto own = compiled(LossScaleOptimizer(SGD(0.25), {.initial_scale = 64}));
  EXPECT_EQ(scale_of(own), 64);
  EXPECT_EQ(scale_of(compiled(SGD(0.25), false)), 1);
  mixed_precision::set_global_policy("mixed_bfloat16");
  EXPECT_EQ(scale_of(compiled(SGD(0.25))), 1);
}

void replicas_equal_one(const char* policy,
                        const std::vector<std::string>& names) {
  const auto run = [&](const distribute::Strategy& strategy) {
    const WithPolicy with(policy);
    random::set_seed(7);
    clear_session();
    const auto scope = strategy.scope();
    Sequential model({Conv2D(4, 3, {.activation = "relu"}), Flatten(),
                      Dense(8, {.activation = "tanh"}), Dense(3)});
    model.compile(
        {.optimizer = SGD(0.05, {.momentum = 0.9}),
         .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
         .slices = 4});
    model.fit(numbers({16, 6, 6, 2}), labels(16, 3),
              {.epochs = 3, .batch_size = 8, .verbose = 0, .shuffle = false});
    Halves all;
    for (const Tensor& w : model.get_weights()) {
      const Halves v = w.to_vector<float>();
      all.insert(all.end(), v.begin(), v.end());
    }
    return all;
  };
  const Halves one = run(distribute::OneDeviceStrategy(names[0]));
  const Halves two = run(distribute::MirroredStrategy({.devices = names}));
  fresh_process::check(one == two, "weights differ");
}

void replicas_equal_one() {
  const auto names = cpus(2);
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    replicas_equal_one(policy, names);
  }
}

TEST(MixedPrecision, TwoReplicasEqualOne) {
  IN_A_FRESH_PROCESS(replicas_equal_one());
}

}  // namespace
}  // namespace berth::keras
