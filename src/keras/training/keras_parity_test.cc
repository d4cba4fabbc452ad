// Layers, losses and masks against Keras' own numbers, which
// conformance/fixtures/make_keras_surface.py writes.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "berth/berth.h"
#include "keras/layers/fixtures_testing.h"

namespace berth::keras {
namespace {

using nlohmann::json;

const json& surface() {
  static const auto& all = *new json([] {
    std::ifstream file(BERTH_SOURCE_DIR
                       "/conformance/fixtures/keras_surface.json");
    return json::parse(file);
  }());
  return all;
}

Tensors tensors_of(const json& list) {
  Tensors all;
  for (const json& t : list) all.push_back(tensor_of(t));
  return all;
}

const std::map<std::string, std::function<Layer()>>& layers_here() {
  static const auto& all = *new std::map<std::string, std::function<Layer()>>{
      {"ConvLSTM1D",
       [] {
         return ConvLSTM1D(2, 3, {.padding = "same", .return_sequences = true});
       }},
      {"ConvLSTM2D",
       [] {
         return ConvLSTM2D(3, {2, 3});
       }},
      {"ConvLSTM2D/options",
       [] {
         return ConvLSTM2D(2, 3,
                           {.strides = 2,
                            .padding = "same",
                            .activation = "relu",
                            .recurrent_activation = "hard_sigmoid",
                            .use_bias = false,
                            .return_sequences = true,
                            .return_state = true,
                            .go_backwards = true});
       }},
      {"ConvLSTM3D", [] { return ConvLSTM3D(1, 2); }},
      {"BatchNormalization/axis",
       [] { return BatchNormalization({.axis = 1}); }},
      {"BatchNormalization/training",
       [] { return BatchNormalization({.momentum = 0.9, .axis = 2}); }},
      {"LayerNormalization/axis",
       [] { return LayerNormalization({.axis = {1}}); }},
      {"LayerNormalization/axes",
       [] {
         return LayerNormalization({.axis = {1, 3}});
       }},
      {"GroupNormalization/axis",
       [] { return GroupNormalization({.groups = 2, .axis = 2}); }},
      {"SpectralNormalization", [] {
         return SpectralNormalization(Dense(3), {.power_iterations = 2});
       }}};
  return all;
}

TEST(Surface, LayersComputeWhatKerasDoes) {
  for (const json& c : surface()["layers"]) {
    const auto name = c["name"].get<std::string>();
    SCOPED_TRACE(name);
    const Layer layer = layers_here().at(name)();
    const bool training = c.contains("after");
    const Tensors x = tensors_of(c["inputs"]);
    layer(x, false);
    Tensors weights = tensors_of(c["weights"]);
    const bool spectral = name == "SpectralNormalization";
    if (spectral) std::swap(weights[0], weights[1]);  // its own first
    layer.set_weights(weights);
    GradientTape tape;
    tape.watch(x[0]);
    const Tensors y = layer(x, training);
    ASSERT_EQ(y.size(), c["outputs"].size());
    Tensor loss;
    for (size_t i = 0; i < y.size(); ++i) {
      expect_like(y[i], c["outputs"][i]);
      const Tensor part = math::reduce_sum(math::square(y[i])) / 2;
      loss = loss.defined() ? loss + part : part;
    }
    if (c.contains("gradients")) {
      std::vector<Source> sources{x[0]};
      for (const Variable& v : layer.trainable_variables()) {
        sources.emplace_back(v);
      }
      const Tensors g = tape.gradient(loss, sources);
      ASSERT_EQ(g.size(), c["gradients"].size());
      for (size_t i = 0; i < g.size(); ++i) {
        SCOPED_TRACE(i);
        expect_like(g[i], c["gradients"][i], 1e-4);
      }
    }
    if (spectral) expect_like(layer.weights()[0].value(), c["after"][0]);
    if (name == "BatchNormalization/training") {
      // The variance is that of a sample here, as in TensorFlow.
      expect_like(layer.non_trainable_variables()[0].value(), c["after"][0]);
    }
  }
}

// The layer on the transposed input.
TEST(Surface, RMSNormalizationAlongAnotherAxis) {
  const Tensor x = random::normal({2, 3, 4}, {.seed = 1});
  const Layer along = RMSNormalization({.axis = 1}), last = RMSNormalization();
  const Tensor y = along(x);
  const Tensor other = transpose(last(transpose(x, {0, 2, 1})), {0, 2, 1});
  EXPECT_EQ(along.weights()[0].shape(), (Shape{3}));
  EXPECT_EQ(y.to_vector<float>(), other.to_vector<float>());
  EXPECT_THROW(BatchNormalization({.axis = 3})(x), errors::InvalidArgument);
  EXPECT_THROW(LayerNormalization({.axis = {1, 1}})(x),
               errors::InvalidArgument);
}

TEST(Surface, LongConvLSTMsAreLoops) {
  const Tensor x = random::normal({1, 70, 3, 1}, {.seed = 1});
  const Layer layer = ConvLSTM1D(2, 3, {.padding = "same"});
  const Tensor all = layer(x);
  auto traced = function([&](const Tensor& t) { return layer(t); });
  const auto a = all.to_vector<float>(), b = traced(x).to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
  // One that sees no state gives the same for the last steps alone, unrolled.
  const Layer forgets = ConvLSTM1D(2, 3, {.padding = "same"});
  forgets(x);
  auto weights = forgets.get_weights();
  weights[1] = zeros_like(weights[1]);
  weights[2] = constant({0.f, 0.f, -90.f, -90.f, 0.f, 0.f, 0.f, 0.f});
  forgets.set_weights(weights);
  const auto long_one = forgets(x).to_vector<float>();
  const auto short_one =
      forgets(slice(x, {0, 30, 0, 0}, {1, 40, 3, 1})).to_vector<float>();
  for (size_t i = 0; i < long_one.size(); ++i) {
    EXPECT_NEAR(long_one[i], short_one[i], 1e-6);
  }
}

TEST(Surface, AttentionAndPoolingReadMasks) {
  const std::map<std::string, std::function<KerasTensor(const KerasTensor&)>>
      heads{
          {"MultiHeadAttention",
           [](const KerasTensor& x) {
             return MultiHeadAttention(2, 3)(KerasTensors{x, x});
           }},
          {"Attention",
           [](const KerasTensor& x) {
             return Attention()(KerasTensors{x, x});
           }},
          {"AdditiveAttention",
           [](const KerasTensor& x) {
             return AdditiveAttention({.use_scale = false})(KerasTensors{x, x});
           }},
          {"GlobalAveragePooling1D",
           [](const KerasTensor& x) { return GlobalAveragePooling1D()(x); }}};
  for (const json& c : surface()["attention"]) {
    const auto name = c["name"].get<std::string>();
    SCOPED_TRACE(name);
    const KerasTensor in = Input({4, 3});
    Model model(in, heads.at(name)(Masking()(in)));
    model.set_weights(tensors_of(c["weights"]));
    const Tensor x = tensor_of(c["inputs"][0]);
    Tensor y = model(x);
    if (y.rank() == 3) {
      const Tensor seen = math::reduce_any(
          math::not_equal(x, zeros_like(x)),
          {.axis = std::vector<int64_t>{-1}, .keepdims = true});
      y = y * math::cast(seen, float32);
    }
    expect_like(y, c["outputs"][0]);
  }
}

TEST(Surface, MasksReachLossesAndMetrics) {
  const json& c = surface()["masks"];
  const KerasTensor in = Input({4}, {.dtype = int64});
  const KerasTensor h = Embedding(5, 3, {.mask_zero = true})(in);
  Model model(in, Dense(2)(h));
  model.compile({.optimizer = "sgd",
                 .loss = "mse",
                 .metrics = {"mae"},
                 .weighted_metrics = {"mse"}});
  model.set_weights(tensors_of(c["weights"]));
  const Tensor x = tensor_of(c["x"]), y = tensor_of(c["y"]);
  const auto expect = [&](const Logs& logs, const json& want) {
    EXPECT_NEAR(logs.at("loss"), want["loss"].get<double>(), 1e-5);
    EXPECT_NEAR(logs.at("mae"), want["mae"].get<double>(), 1e-5);
    EXPECT_NEAR(logs.at("mse"), want["mse"].get<double>(), 1e-5);
  };
  expect(model.evaluate(x, y), c["plain"]);
  expect(model.evaluate(x, y, {.sample_weight = tensor_of(c["sample_weight"])}),
         c["weighted"]);
  // A loss outside of a model, where a scope keeps masks.
  const MaskScope masks;
  const double loss = losses::MeanSquaredError()(y, model(x)).item<float>();
  EXPECT_NEAR(loss, c["plain"]["loss"].get<double>(), 1e-5);
}

TEST(Surface, FunctionsOfLossesAndMetricsGiveKerasValues) {
  const json& c = surface()["functions"];
  const Tensor y = tensor_of(c["y"]), p = tensor_of(c["p"]),
               labels = tensor_of(c["labels"]), e = tensor_of(c["embeddings"]);
  using namespace losses;
  const std::map<std::string, std::function<Tensor()>> all{
      {"binary_focal_crossentropy",
       [&] { return losses::binary_focal_crossentropy(y, p); }},
      {"binary_focal_crossentropy/balanced",
       [&] {
         return losses::binary_focal_crossentropy(
             y, p,
             {.apply_class_balancing = true,
              .gamma = 1.5,
              .label_smoothing = 0.1});
       }},
      {"binary_focal_crossentropy/logits",
       [&] {
         return losses::binary_focal_crossentropy(y, p, {.from_logits = true});
       }},
      {"categorical_focal_crossentropy",
       [&] {
         return losses::categorical_focal_crossentropy(
             y, p, {.label_smoothing = 0.1});
       }},
      {"categorical_focal_crossentropy/logits",
       [&] {
         return losses::categorical_focal_crossentropy(
             y, p, {.gamma = 1, .from_logits = true});
       }},
      {"categorical_generalized_cross_entropy",
       [&] { return categorical_generalized_cross_entropy(labels, p, 0.7); }},
      {"dice", [&] { return dice(y, p); }},
      {"dice/axis", [&] { return dice(y, p, {.axis = {1}}); }},
      {"tversky", [&] { return tversky(y, p, {.alpha = 0.3, .beta = 0.8}); }},
      {"tversky/axis", [&] { return tversky(y, p, {.axis = {1}}); }},
      {"circle", [&] { return circle(labels, e); }},
      {"Circle",
       [&] { return Circle({.gamma = 8, .margin = 0.3})(labels, e); }},
      {"mean_squared_error", [&] { return losses::mean_squared_error(y, p); }},
      {"log_cosh", [&] { return losses::log_cosh(y, p); }},
      {"huber", [&] { return losses::huber(y, p, 0.2); }},
      {"hinge", [&] { return losses::hinge(y, p); }},
      {"poisson", [&] { return losses::poisson(y, p); }},
      {"kl_divergence", [&] { return losses::kl_divergence(y, p); }},
      {"cosine_similarity", [&] { return losses::cosine_similarity(y, p); }},
      {"binary_crossentropy",
       [&] { return losses::binary_crossentropy(y, p); }},
      {"categorical_crossentropy",
       [&] { return losses::categorical_crossentropy(y, p); }},
      {"sparse_categorical_crossentropy",
       [&] { return losses::sparse_categorical_crossentropy(labels, p); }},
      {"binary_accuracy", [&] { return metrics::binary_accuracy(y, p, 0.4); }},
      {"categorical_accuracy",
       [&] { return metrics::categorical_accuracy(y, p); }},
      {"sparse_categorical_accuracy",
       [&] { return metrics::sparse_categorical_accuracy(labels, p); }},
      {"top_k_categorical_accuracy",
       [&] { return metrics::top_k_categorical_accuracy(y, p, 2); }},
      {"sparse_top_k_categorical_accuracy",
       [&] {
         return metrics::sparse_top_k_categorical_accuracy(labels, p, 2);
       }},
      {"pearson_correlation",
       [&] { return metrics::pearson_correlation(y, p); }},
      {"concordance_correlation",
       [&] { return metrics::concordance_correlation(y, p); }}};
  for (const auto& [name, want] : c["values"].items()) {
    SCOPED_TRACE(name);
    expect_like(all.at(name)(), want, 1e-5);
  }
  EXPECT_THROW(CategoricalGeneralizedCrossEntropy(1), errors::InvalidArgument);
  EXPECT_EQ(Loss("dice").name(), "dice");
}

// ---- what Keras has other numbers for, or none

class Scaled : public LayerBase {
 public:
  Scaled() : LayerBase("scaled") {}
  Tensors call(const Tensors& x, bool) override {
    add_metric(x[0], "input_mean");
    return {dense_(x[0])};
  }

 private:
  Layer dense_ = track(Dense(1));
};

TEST(Surface, AddMetricLogsMeansOverTheEpoch) {
  auto model = Sequential({make_layer<Scaled>()});
  model.compile({.optimizer = SGD(0.0), .loss = "mse"});
  const Tensor x = constant({{1.f}, {2.f}, {3.f}, {4.f}, {11.f}});
  const auto h = model.fit(x, x, {.batch_size = 2, .verbose = 0});
  EXPECT_NEAR(h.history.at("input_mean")[0], 21.0 / 5, 1e-6);
  EXPECT_NEAR(model.evaluate(x, x, {.batch_size = 3}).at("input_mean"),
              21.0 / 5, 1e-6);
  const auto names = model.metrics_names();
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "input_mean"}));
}

TEST(Surface, LayersHavePoliciesOfTheirOwn) {
  const Layer a = Dense(3, {.dtype = "mixed_bfloat16"});
  const Layer b = Conv2D(2, 3, {.name = "c", .dtype = "mixed_float16"});
  const Layer c = LSTM(2, {.dtype = "mixed_bfloat16"});
  EXPECT_EQ(a.compute_dtype(), bfloat16);
  EXPECT_EQ(a(ones({2, 4})).dtype(), bfloat16);
  EXPECT_EQ(b.compute_dtype(), float16);
  EXPECT_EQ(c.compute_dtype(), bfloat16);
  mixed_precision::set_global_policy("mixed_bfloat16");
  const Layer head = Dense(3, {.dtype = float32});
  mixed_precision::set_global_policy("float32");
  EXPECT_EQ(head(ones({2, 4})).dtype(), float32);
  EXPECT_EQ(a.from_config(a.get_config()).compute_dtype(), bfloat16);
  EXPECT_THROW(Dense(3, {.dtype = bfloat16}), errors::InvalidArgument);
  const KerasTensor in = Input({3});
  EXPECT_THROW(Model(in, Dense(1)(in), {.dtype = "mixed_bfloat16"}),
               errors::InvalidArgument);
}

TEST(Surface, WeightedMetricsOfOutputsByName) {
  const KerasTensor in = Input({2});
  Model model(KerasTensors{in}, KerasTensors{Dense(1, {.name = "a"})(in),
                                             Dense(1, {.name = "b"})(in)});
  model.compile({.optimizer = SGD(0.0),
                 .loss = "mse",
                 .metrics_by_output = {{"b", {"mae"}}},
                 .weighted_metrics_by_output = {{"b", {"mae", "mse"}}}});
  const Tensor x = random::normal({6, 2}, {.seed = 1}), y = ones({6, 1});
  const Tensor w = constant({1.f, 0.f, 2.f, 0.f, 3.f, 0.f});
  const Logs logs =
      model.evaluate(Tensors{x}, Tensors{y, y}, {.sample_weight = w});
  const Tensors p = model(Tensors{x});
  const auto e = math::abs(p[1] - y).to_vector<float>();
  EXPECT_NEAR(logs.at("b_mae"), (e[0] + e[1] + e[2] + e[3] + e[4] + e[5]) / 6,
              1e-5);
  EXPECT_NEAR(logs.at("weighted_b_mae"), (e[0] + 2 * e[2] + 3 * e[4]) / 6,
              1e-5);
  EXPECT_EQ(logs.count("b_mse"), 1u);
  // As a config, and back.
  const Config config = model.get_compile_config();
  model.compile_from_config(config);
  EXPECT_EQ(model.get_compile_config(), config);
}

// ---- utilities

TEST(Utils, WindowsOverSeries) {
  const Tensor data = constant({0.f, 1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f});
  const Tensor targets = data * 10.0;
  const auto windows = [&](utils::TimeseriesOptions o, int64_t length) {
    std::vector<std::vector<float>> all;
    for (const Tensors& e :
         utils::timeseries_dataset_from_array(data, targets, length, o)) {
      all.push_back(e[0].to_vector<float>());
      all.push_back(e[1].to_vector<float>());
    }
    return all;
  };
  using Rows = std::vector<std::vector<float>>;
  // As the rule says: window i begins at i * stride, its steps are rate apart.
  EXPECT_EQ(windows({.sequence_stride = 2, .sampling_rate = 2}, 3),
            (Rows{{0, 2, 4, 2, 4, 6}, {0, 20}}));
  EXPECT_EQ(windows({.batch_size = 2, .start_index = 3, .end_index = 7}, 2),
            (Rows{{3, 4, 4, 5}, {30, 40}, {5, 6}, {50}}));
  EXPECT_THROW(windows({}, 9), errors::InvalidArgument);
  double sum = 0;
  for (const Tensors& e : utils::timeseries_dataset_from_array(
           data, {}, 2, {.shuffle = true, .seed = 1})) {
    ASSERT_EQ(e.size(), 1u);
    for (const float v : e[0].to_vector<float>()) sum += v;
  }
  EXPECT_EQ(sum, 2 * 28 - 7);  // all but the ends stand in two windows
}

TEST(Utils, SplitsDatasetsAndPacksTheirElements) {
  const auto numbers = data::Dataset::range(10);
  const auto values = [](const data::Dataset& d) {
    std::vector<int64_t> all;
    for (const Tensors& e : d) all.push_back(e[0].item<int64_t>());
    return all;
  };
  using Ints = std::vector<int64_t>;
  const auto [a, b] = utils::split_dataset(numbers, {.left_size = 0.7});
  EXPECT_EQ(values(a), (Ints{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values(b), (Ints{7, 8, 9}));
  const auto [c, d] =
      utils::split_dataset(numbers, {.left_size = 2, .right_size = 3});
  EXPECT_EQ(values(c), (Ints{0, 1}));
  EXPECT_EQ(values(d), (Ints{2, 3, 4}));
  const auto [e, f] =
      utils::split_dataset(numbers, {.right_size = 4, .shuffle = true});
  Ints all = values(e), rest = values(f);
  EXPECT_EQ(all.size(), 6u);
  all.insert(all.end(), rest.begin(), rest.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, values(numbers));
  EXPECT_THROW(utils::split_dataset(numbers, {.left_size = 11}),
               errors::InvalidArgument);
  const Tensor x = ones({2}), y = zeros({2});
  EXPECT_EQ(utils::pack_x_y_sample_weight(x, y).size(), 2u);
  EXPECT_FALSE(utils::unpack_x_y_sample_weight({x, y}).sample_weight.defined());
  EXPECT_THROW(utils::unpack_x_y_sample_weight({}), errors::InvalidArgument);
}

TEST(Augmentation, StretchesErasesBlursAndJitters) {
  const Tensor x =
      constant(std::vector<float>{50, 100, 75, 60, 7, 7, 7, 7}, {2, 2, 2, 1});
  EXPECT_EQ(AutoContrast()(x).to_vector<float>(),
            (std::vector<float>{0, 255, 127.5f, 51, 7, 7, 7, 7}));
  // All of it: scale 1 is the whole height and width.
  const Tensor filled =
      RandomErasing({1, 1}, {.scale = {1, 1}, .fill_value = 9})(x, true);
  EXPECT_EQ(filled.to_vector<float>(), std::vector<float>(8, 9));
  EXPECT_EQ(RandomErasing()(x, false).to_vector<float>(), x.to_vector<float>());
  // A quarter of 8 x 8 pixels: 4 x 4 of them, somewhere.
  const Tensor big = ones({3, 8, 8, 2});
  const auto erased =
      RandomErasing({1, 1}, {.scale = {0.25, 0.25}, .fill_value = 0})(big, true)
          .to_vector<float>();
  const auto kept = std::count(erased.begin(), erased.end(), 1.f);
  EXPECT_GE(kept, 3 * 2 * (64 - 25));
  EXPECT_LE(kept, 3 * 2 * (64 - 9));
  // A blur keeps what is even, inside, and the sum around a point.
  std::vector<float> point(11 * 11, 0);
  point[60] = 100;
  const Tensor blurred =
      RandomGaussianBlur({1, 1}, {.kernel_size = 5, .sigma = {1, 1}})(
          constant(point, {1, 11, 11, 1}), true);
  const auto b = blurred.to_vector<float>();
  EXPECT_NEAR(std::accumulate(b.begin(), b.end(), 0.f), 100, 1e-3);
  EXPECT_NEAR(b[61] / b[60], std::exp(-0.5), 1e-5);
  EXPECT_NEAR(b[62] / b[60], std::exp(-2.0), 1e-5);
  EXPECT_THROW(RandomGaussianBlur({1, 1}, {.kernel_size = 4}),
               errors::InvalidArgument);
  // Brightness alone, by a known factor.
  const Tensor brighter =
      RandomColorJitter({.brightness_factor = Factor(0.1, 0.1)})(x, true);
  EXPECT_NEAR(brighter.to_vector<float>()[0], 50 + 25.5, 1e-4);
}

// ---- remat

Sequential deep(const std::string& mode, RematOptions options = {}) {
  std::optional<RematScope> remat;
  if (!mode.empty()) remat.emplace(mode, std::move(options));
  random::set_seed(7);
  std::vector<Layer> layers{InputLayer({32})};
  for (int i = 0; i < 6; ++i) {
    layers.push_back(Dense(
        32, {.activation = "gelu",
             .kernel_initializer = initializers::GlorotUniform({.seed = i}),
             .activity_regularizer = "l2",
             .name = "d" + std::to_string(i)}));
    layers.push_back(Dropout(0.2, {.seed = i}));
  }
  return Sequential(layers);
}

std::vector<float> trained(Sequential& model) {
  random::set_seed(1);
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  const Tensor x = random::normal({256, 32}, {.seed = 1});
  for (int i = 0; i < 3; ++i) model.train_on_batch(x, x * 0.5);
  return model.get_weights()[0].to_vector<float>();
}

TEST(Remat, ScopesTrainTheSameWithLessMemory) {
  auto plain = deep("");
  const auto expected = trained(plain);
  const size_t bytes = plain.train_plan_info().peak_bytes;
  const std::map<std::string, RematOptions> modes{
      {"full", {}},
      {"activations", {}},
      {"larger_than", {.output_size_threshold = 31}},
      {"list_of_layers", {.layer_names = {"d1", "d2", "d3", "d4"}}}};
  for (const auto& [mode, options] : modes) {
    SCOPED_TRACE(mode);
    auto model = deep(mode, options);
    const auto got = trained(model);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-6) << i;
    }
    const size_t now = model.train_plan_info().peak_bytes;
    // The gradient of gelu needs no more than its input.
    if (mode == "activations") {
      EXPECT_LE(now, bytes);
    } else {
      EXPECT_LT(now, bytes);
    }
  }
  auto small = deep("larger_than", {.output_size_threshold = 32});
  trained(small);
  EXPECT_EQ(small.train_plan_info().peak_bytes, bytes);
  EXPECT_THROW(RematScope("some"), errors::InvalidArgument);
}

TEST(Remat, LossesMetricsAndMasksComeOut) {
  class Block : public LayerBase {
   public:
    Block() : LayerBase("block") {}
    Tensors call(const Tensors& x, bool training) override {
      add_loss(math::reduce_mean(x[0]));
      add_metric(x[0], "seen");
      if (training) {
        EXPECT_TRUE(mask_of_input(x[0]).defined());
      }
      return {dense_(x[0])};
    }
    Tensors compute_mask(const Tensors&, const Tensors& masks) override {
      return masks;
    }

   private:
    Layer dense_ = track(Dense(3, {.kernel_initializer = "ones"}));
  };
  const auto logs_of = [](bool remat) {
    std::optional<RematScope> scope;
    if (remat) scope.emplace("full");
    const KerasTensor in = Input({4}, {.dtype = int32});
    const KerasTensor h = Embedding(
        5, 3, {.embeddings_initializer = "ones", .mask_zero = true})(in);
    Model model(in, make_layer<Block>()(h));
    scope.reset();
    model.compile({.optimizer = SGD(0.0), .loss = "mse"});
    const Tensor x = constant({{1, 2, 0, 0}, {1, 0, 0, 0}});
    return model.fit(x, zeros({2, 4, 3}), {.verbose = 0}).history;
  };
  const auto plain = logs_of(false), remat = logs_of(true);
  EXPECT_EQ(plain, remat);
  EXPECT_NEAR(plain.at("loss")[0], 9 + 1, 1e-5);
  EXPECT_NEAR(plain.at("seen")[0], 1, 1e-6);
}

// ---- what is known of layers

TEST(Surface, LayersTellTheirInputsOutputsAndShapes) {
  auto model = Sequential({InputLayer({8, 8, 3}), Conv2D(4, 3, {.name = "c"}),
                           Flatten(), Dense(2, {.name = "d"})},
                          {.name = "net"});
  EXPECT_EQ(model.layers().size(), 4u);
  EXPECT_EQ(model.get_layer("c").name(), "c");
  EXPECT_EQ(model.get_layer(int64_t{-1}).name(), "d");
  EXPECT_THROW(model.get_layer("x"), errors::NotFound);
  EXPECT_THROW(model.get_layer(int64_t{4}), errors::OutOfRange);
  EXPECT_EQ(model.get_layer("d").path(), "net/d");
  // The first layers share their weights with a model of their own.
  Model features(model.input(), model.get_layer("c").output());
  const Tensor x = random::normal({2, 8, 8, 3}, {.seed = 1});
  EXPECT_EQ(features(x).to_vector<float>(),
            model.get_layer("c")(x).to_vector<float>());
  EXPECT_EQ(model.output().shape(), (Shape{kUnknownDim, 2}));
  EXPECT_EQ(model.compute_output_shape({-1, 8, 8, 3}), (Shape{kUnknownDim, 2}));
  const Layer d = Dense(5);
  EXPECT_EQ(d.compute_output_shape({7, 3}), (Shape{7, 5}));
  EXPECT_TRUE(d.built());
  const Layer again = Dense(5);
  again.build_from_config(d.get_build_config());
  EXPECT_EQ(again.weights()[0].shape(), (Shape{3, 5}));
  EXPECT_EQ(again.trainable_weights().size(), 2u);
  EXPECT_EQ(again.variables().size(), 2u);
  EXPECT_TRUE(again.non_trainable_weights().empty());
  EXPECT_THROW(Dense(2).get_build_config(), errors::FailedPrecondition);
  EXPECT_THROW(d.output(), errors::FailedPrecondition);
  EXPECT_TRUE(d.supports_masking());
  EXPECT_FALSE(Flatten().supports_masking());
  EXPECT_EQ(d.input_dtype(), float32);
}

TEST(Surface, FunctionalModelsTellTheirs) {
  const KerasTensor a = Input({3}, {.name = "a"}),
                    b = Input({3}, {.name = "b"});
  const Layer both = Concatenate({.name = "both"});
  Model model(KerasTensors{a, b}, KerasTensors{Dense(1)(both({a, b}))});
  EXPECT_EQ(model.inputs().size(), 2u);
  EXPECT_THROW(model.input(), errors::InvalidArgument);
  EXPECT_EQ(model.get_layer("both").inputs().size(), 2u);
  EXPECT_EQ(model.get_layer("both").output().shape(), (Shape{kUnknownDim, 6}));
  EXPECT_EQ(model.input_names(), (std::vector<std::string>{"a", "b"}));
  both({a, a});
  EXPECT_NO_THROW(both.inputs());  // the other call is gone
  const KerasTensor kept = both({b, b});
  EXPECT_THROW(both.inputs(), errors::FailedPrecondition);
}

}  // namespace
}  // namespace berth::keras
