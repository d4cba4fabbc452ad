// Every layer of the public headers is made again from its config.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "berth/berth.h"
#include "keras/models/layer_state.h"

namespace berth::keras {
namespace {

struct ConfigCase {
  Layer layer;
  Tensors inputs;
};

Tensor counted(const Shape& shape) {
  const int64_t n = shape.num_elements();
  return reshape(math::sin(range(0, n, 1, float32)), shape);
}

// One per class; options away from their defaults.
std::vector<ConfigCase> config_cases() {
  const Tensor row = counted({2, 4}), steps = counted({2, 6, 4}),
               image = counted({2, 6, 6, 4}), volume = counted({2, 3, 4, 5, 2});
  const Tensor ids = constant({{0, 3, 2}, {1, 2, 0}}),
               words = constant({"a", "b", "a b"});
  const Initializer half = initializers::Constant(0.5);
  const Conv2DOptions conv{.activation = "tanh",
                           .padding = "same",
                           .strides = 2,
                           .bias_initializer = half};
  return {
      {ConvLSTM1D(3, 2, {.strides = 2, .bias_initializer = half}),
       {counted({2, 3, 6, 4})}},
      {ConvLSTM2D(2, {2, 3},
                  {.padding = "same",
                   .recurrent_activation = "hard_sigmoid",
                   .return_sequences = true}),
       {counted({2, 2, 5, 5, 2})}},
      {ConvLSTM3D(2, 2, {.use_bias = false, .go_backwards = true}),
       {counted({1, 2, 3, 3, 3, 2})}},
      {SpectralNormalization(Dense(3, {.name = "inside"}),
                             {.power_iterations = 2}),
       {row}},
      {AutoContrast({.value_range = {0, 1}}), {image}},
      {RandomErasing({0.2, 0.5}, {.scale = {0.1, 0.3}, .fill_value = 7}),
       {image}},
      {RandomGaussianBlur({0.2, 0.5}, {.kernel_size = {3, 5}}), {image}},
      {RandomColorJitter(
           {.brightness_factor = Factor(0.1), .hue_factor = Factor(0.1, 0.2)}),
       {image}},
      {Dense(3, {.activation = "relu",
                 .bias_initializer = half,
                 .kernel_regularizer = regularizers::L1L2(.1, .2),
                 .bias_regularizer =
                     regularizers::OrthogonalRegularizer({.mode = "columns"}),
                 .kernel_constraint = "unit_norm",
                 .bias_constraint = constraints::MaxNorm(3)}),
       {row}},
      {Conv2D(4, {3, 2}, {.strides = {1, 2}, .groups = 2}), {image}},
      {Conv2DTranspose(3, 3, conv), {image}},
      {Conv1D(4, 3, {.padding = "causal", .groups = 2}), {steps}},
      {Conv1DTranspose(3, 3, {.strides = 2}), {steps}},
      {Masking(1), {steps}},
      {ReversibleEmbedding(5, 3), {ids}},
      {PositionEmbedding(7), {steps}},
      {TimeDistributed(Dense(2)), {steps}},
      {SimpleRNNCell(3), {row, counted({2, 3})}},
      {GRUCell(3, {.reset_after = false}), {row, counted({2, 3})}},
      {LSTMCell(3, {.unit_forget_bias = false}),
       {row, counted({2, 3}), counted({2, 3})}},
      {StackedRNNCells({GRUCell(3), SimpleRNNCell(2)}),
       {row, counted({2, 3}), counted({2, 2})}},
      {DepthwiseConv2D(3, {.depth_multiplier = 2}), {image}},
      {SeparableConv2D(5, 3, {.use_bias = false}), {image}},
      {MaxPooling2D({2, 3}, {.strides = 1, .padding = "same"}), {image}},
      {AveragePooling2D(2), {image}},
      {MaxPooling1D(3, {.strides = 1}), {steps}},
      {AveragePooling1D(2, {.padding = "same"}), {steps}},
      {GlobalMaxPooling1D({.keepdims = true}), {steps}},
      {GlobalMaxPooling2D(), {image}},
      {GlobalAveragePooling1D(), {steps}},
      {GlobalAveragePooling2D({.keepdims = true}), {image}},
      {ZeroPadding2D({{1, 2}, {0, 3}}), {image}},
      {ZeroPadding1D({2, 1}), {steps}},
      {Cropping2D({{1, 2}, {0, 3}}), {image}},
      {Cropping1D({2, 1}), {steps}},
      {UpSampling2D({2, 3}), {image}},
      {UpSampling1D(3), {steps}},
      {Flatten(), {steps}},
      {Reshape({2, -1}), {steps}},
      {Activation("softplus"), {row}},
      {Rescaling(0.5, {.offset = 2}), {row}},
      {Dropout(0.5, {.seed = 3}), {row}},
      {SpatialDropout1D(0.5), {steps}},
      {SpatialDropout2D(0.25), {image}},
      {GaussianNoise(0.5), {row}},
      {GaussianDropout(0.25), {row}},
      {BatchNormalization({.epsilon = 0.1, .beta_initializer = half}), {row}},
      {LayerNormalization({.epsilon = 0.1, .scale = false}), {row}},
      {GroupNormalization({.groups = 2}), {image}},
      {Embedding(5, 3), {constant({{0, 4, 2}})}},
      {MultiHeadAttention(
           2, 3, {.value_dim = 2, .use_causal_mask = true, .output_dim = 5}),
       {steps, steps}},
      {Add(), {row, row}},
      {Subtract(), {row, row}},
      {Multiply(), {row, row}},
      {Average(), {row, row, row}},
      {Maximum(), {row, -row}},
      {Minimum(), {row, -row}},
      {Concatenate({.axis = 0}), {row, row}},
      {ReLU({.max_value = 0.5, .negative_slope = 0.1}), {row}},
      {LeakyReLU(0.1), {row}},
      {ELU(0.5), {row}},
      {PReLU({.alpha_initializer = half}), {row}},
      {Softmax({.axis = 0}), {row}},
      {Softmax({.axis = {1, 2}}), {image}},
      {InputLayer({4}), {row}},
      {Sequential({Dense(3), Dense(2)}), {row}},
      {Conv3D(2, {2, 1, 3}, {.strides = {1, 2, 1}, .kernel_regularizer = "l2"}),
       {volume}},
      {Conv3DTranspose(2, 2, {.padding = "same", .strides = 2}), {volume}},
      {MaxPooling3D({1, 2, 2}, {.strides = Size3D(1)}), {volume}},
      {AveragePooling3D(2), {volume}},
      {GlobalMaxPooling3D(), {volume}},
      {GlobalAveragePooling3D({.keepdims = true}), {volume}},
      {ZeroPadding3D({1, {0, 2}, 1}), {volume}},
      {Cropping3D({1, {0, 2}, 1}), {volume}},
      {UpSampling3D({1, 2, 3}), {volume}},
      {SpatialDropout3D(0.5), {volume}},
      {AdaptiveMaxPooling1D(4), {steps}},
      {AdaptiveMaxPooling2D({4, 5}), {image}},
      {AdaptiveMaxPooling3D({1, 2, 3}), {volume}},
      {AdaptiveAveragePooling1D(4), {steps}},
      {AdaptiveAveragePooling2D({4, 5}), {image}},
      {AdaptiveAveragePooling3D({1, 2, 3}), {volume}},
      {DepthwiseConv1D(3, {.padding = "same", .strides = 2}), {steps}},
      {SeparableConv1D(5, 3, {.pointwise_constraint = "non_neg"}), {steps}},
      {Identity(), {row}},
      {Permute({2, 1}), {steps}},
      {RepeatVector(3), {row}},
      {EinsumDense("abc,cd->abd", {-1, 5}, {.bias_axes = "d"}), {steps}},
      {Dot({2, 1}, {.normalize = true}), {steps, counted({2, 4, 3})}},
      {UnitNormalization({1, 2}), {steps}},
      {RMSNormalization({.epsilon = 0.1}), {row}},
      {ActivityRegularization({.l1 = 0.1, .l2 = 0.2}), {row}},
      {AlphaDropout(0.5), {row}},
      {Attention({.use_scale = true, .use_causal_mask = true}), {steps, steps}},
      {AdditiveAttention({.dropout = 0.5}), {steps, steps}},
      {GroupQueryAttention(2, 4, 2, {.sliding_window = 3, .use_gate = true}),
       {steps, steps}},
      {Normalization({.mean = {2}, .variance = {9}, .invert = true}), {row}},
      {Discretization({.bin_boundaries = {-.5, .5}, .output_mode = "count"}),
       {row}},
      {CategoryEncoding(4, {.output_mode = "count"}), {ids}},
      {Hashing(7, {.mask_value = "b", .salt = Salt{3, 4}}), {words}},
      {HashedCrossing(7, {.output_mode = "one_hot"}), {words, words}},
      {IntegerLookup({.mask_token = 1, .vocabulary = {2, 0}}), {ids}},
      {StringLookup({.vocabulary = {"a", "c"},
                     .idf_weights = {1, 2},
                     .output_mode = "tf_idf"}),
       {words}},
      {TextVectorization({.ngrams = 2,
                          .output_sequence_length = 3,
                          .vocabulary = {"a", "b"}}),
       {words}},
      {Resizing(3, 5, {.interpolation = "bicubic"}), {image}},
      {CenterCrop(3, 4), {image}},
      {RandomCrop(3, 4, {.seed = 5}), {image}},
      {RandomFlip("vertical"), {image}},
      {RandomRotation({-0.5, 0.1}, {.fill_mode = "wrap"}), {image}},
      {RandomTranslation(0.5, {0.1, 0.2}), {image}},
      {RandomZoom(0.5, Factor{0.1, 0.2}), {image}},
      {RandomShear(0.5, 0.5), {image}},
      {RandomBrightness(0.5, {.value_range = {0, 1}}), {image}},
      {RandomContrast(0.5), {image}},
      {RandomGrayscale(0.25), {image}},
      {RandomColorDegeneration(0.5), {image}},
      {RandomSaturation(0.5), {image}},
      {RandomHue({0.1, 0.5}, {.seed = 4}), {image}},
      {RandomInvert(0.5), {image}},
      {RandomPosterization(3), {image}},
      {RandomSharpness(0.5), {image}},
      {Solarization({.addition_factor = 0.5}), {image}},
  };
}

std::string class_name_of(const Layer& layer) {
  return layers::serialize(layer).at("class_name").as_string();
}

TEST(LayerConfig, MakesEveryLayerAgain) {
  for (const ConfigCase& c : config_cases()) {
    SCOPED_TRACE(class_name_of(c.layer));
    const Tensors want = c.layer(c.inputs);
    const Config config = c.layer.get_config();
    const Layer twin = c.layer.from_config(config);
    EXPECT_EQ(twin.get_config(), config) << twin.get_config().str();
    EXPECT_EQ(twin.name(), c.layer.name());
    // As text, and built by it.
    const std::string text = layers::serialize(c.layer).str();
    const Layer read = layers::deserialize(Config::parse(text));
    EXPECT_EQ(layers::serialize(read).str(), text);
    EXPECT_TRUE(read.built());
    read.set_weights(c.layer.get_weights());
    const Tensors got = read(c.inputs);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(got[0].to_vector<float>(), want[0].to_vector<float>());
  }
}

// What a layer that trains does under a policy; `full` computes in float32.
void expect_16_bits(const ConfigCase& c, const ConfigCase& full) {
  const Layer& layer = c.layer;
  const LayerState& state = layer.base()->state();
  // In training colours need pictures of three channels.
  const bool training = state.type.rfind("Random", 0) != 0;
  GradientTape tape;
  const Tensors y = layer(c.inputs, training),
                want = full.layer(c.inputs, training);
  ASSERT_EQ(y.size(), want.size());
  for (size_t k = 0; k < y.size(); ++k) {
    // Integers and words stay what they are.
    const bool casts = is_floating(want[k].dtype()) && !state.on_host &&
                       state.type != "InputLayer";
    EXPECT_EQ(y[k].dtype(), casts ? layer.compute_dtype() : want[k].dtype());
    EXPECT_EQ(y[k].shape(), want[k].shape());
  }
  const Config config = layer.get_config();
  EXPECT_EQ(layer.from_config(config).get_config(), config);
  const std::vector<Variable> weights = layer.trainable_variables();
  if (weights.empty()) return;
  for (const Tensor& g : tape.gradient(y[0], weights)) {
    if (!g.defined()) continue;
    EXPECT_EQ(g.dtype(), float32);
    EXPECT_TRUE(math::reduce_all(math::is_finite(g)).item<bool>());
  }
}

TEST(MixedPrecision, EveryLayerComputesTrainsAndIsMadeAgain) {
  const std::vector<ConfigCase> full = config_cases();
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    mixed_precision::set_global_policy(policy);
    const std::vector<ConfigCase> cases = config_cases();
    mixed_precision::set_global_policy("float32");
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(class_name_of(cases[i].layer));
      EXPECT_NO_THROW(expect_16_bits(cases[i], full[i]));
    }
  }
}

// Fails for a new layer until it has fields and a case above.
TEST(LayerConfig, KnowsEveryLayerOfThePublicHeaders) {
  std::set<std::string> tested;
  for (const ConfigCase& c : config_cases()) {
    tested.insert(class_name_of(c.layer));
  }
  const std::vector<std::string> list = saving::layer_classes();
  const std::set<std::string> known(list.begin(), list.end());
  const std::regex layer(R"(^struct (\w+) : (Layer|Model) \{)");
  int found = 0;
  for (const auto& file : std::filesystem::directory_iterator(
           BERTH_SOURCE_DIR "/include/berth/keras")) {
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch m;
      if (!std::regex_search(line, m, layer)) continue;
      // A function has no name that a config could hold.
      if (m[1] == "Lambda") continue;
      if (m[1] == "RecurrentLayer") continue;  // what others derive from
      ++found;
      EXPECT_TRUE(known.count(m[1])) << m[1] << " has no config: give it "
                                     << "fields, see src/keras/config/fields.h";
      EXPECT_TRUE(tested.count(m[1]))
          << m[1] << " has no case in layer_configs_test.cc";
    }
  }
  EXPECT_GE(found, 48);
}

nlohmann::json keras_configs() {
  std::ifstream file(BERTH_SOURCE_DIR
                     "/conformance/fixtures/keras_configs.json");
  return nlohmann::json::parse(file);
}

// What ours says and Keras does not, in any class.
bool is_own_field(const std::string& name) {
  return name == "use_causal_mask" || name == "statistics_groups";
}

TEST(LayerConfig, HasTheFieldsAndValuesThatKerasWrites) {
  const nlohmann::json configs = keras_configs();
  for (const auto& keras : configs.at("layers")) {
    SCOPED_TRACE(keras["class_name"].get<std::string>());
    const Layer layer = layers::deserialize(Config::parse(keras.dump()));
    const auto ours = nlohmann::json::parse(layer.get_config().str());
    EXPECT_EQ(class_name_of(layer), keras["class_name"].get<std::string>());
    for (const auto& field : ours.items()) {
      if (is_own_field(field.key())) continue;
      const bool left_out = !keras["config"].contains(field.key());
      if (left_out && field.key() == "trainable") continue;  // SpatialDropout
      ASSERT_FALSE(left_out) << field.key();
      nlohmann::json theirs = keras["config"][field.key()];
      if (theirs.is_object()) {  // an initializer, with fields of no meaning
        theirs["config"].erase("input_axes");
        theirs["config"].erase("output_axes");
      }
      EXPECT_EQ(field.value(), theirs) << field.key();
    }
  }
}

Tensor fixture_tensor(const nlohmann::json& j) {
  Shape shape;
  for (int64_t d : j[0]) shape.insert(shape.rank(), d);
  const auto values = j[1].get<std::vector<float>>();
  return constant(values, shape);
}

TEST(ModelConfig, ReadsAModelOfKerasThatGivesItsOutputs) {
  const nlohmann::json configs = keras_configs();
  for (const auto& m : configs.at("models")) {
    const Model model = model_from_json(m["json"].get<std::string>());
    SCOPED_TRACE(model.name());
    EXPECT_EQ(model.count_params(), m["params"].get<int64_t>());
    Tensors weights, inputs;
    size_t i = 0;
    for (const Variable& v : model.weights()) {
      const auto values = m["weights"][i++].get<std::vector<float>>();
      ASSERT_EQ(static_cast<int64_t>(values.size()), v.shape().num_elements());
      weights.push_back(constant(values, v.shape()));
    }
    model.set_weights(weights);
    for (const auto& x : m["inputs"]) inputs.push_back(fixture_tensor(x));
    const Tensors outputs = model(inputs);
    ASSERT_EQ(outputs.size(), m["outputs"].size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      const auto want = m["outputs"][k].get<std::vector<float>>();
      const auto got = outputs[k].to_vector<float>();
      ASSERT_EQ(got.size(), want.size());
      for (size_t e = 0; e < want.size(); ++e) {
        EXPECT_NEAR(got[e], want[e], 2e-5) << e;
      }
    }
    // And our text is read like theirs.
    const Model again = model_from_json(model.to_json());
    EXPECT_EQ(again.to_json(), model.to_json());
    again.set_weights(weights);
    EXPECT_EQ(again(inputs)[0].to_vector<float>(),
              outputs[0].to_vector<float>());
  }
}

}  // namespace
}  // namespace berth::keras
