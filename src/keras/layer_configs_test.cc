// Every layer of the public headers is made again from its config.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "berth/berth.h"

namespace berth::keras {
namespace {

struct ConfigCase {
  Layer layer;
  Tensors inputs;
};

Tensor numbers(const Shape& shape) {
  const int64_t n = shape.num_elements();
  return reshape(math::sin(range(0, n, 1, float32)), shape);
}

// One per class; options away from their defaults.
std::vector<ConfigCase> config_cases() {
  const Tensor row = numbers({2, 4}), steps = numbers({2, 6, 4}),
               image = numbers({2, 6, 6, 4});
  const Initializer half = initializers::Constant(0.5);
  const Conv2DOptions conv{.activation = "tanh",
                           .padding = "same",
                           .strides = 2,
                           .bias_initializer = half};
  return {
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
      {ZeroPadding2D({1, 2}, Margin(0, 3)), {image}},
      {ZeroPadding1D({2, 1}), {steps}},
      {Cropping2D({1, 2}, Margin(0, 3)), {image}},
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
      {InputLayer({4}), {row}},
      {Sequential({Dense(3), Dense(2)}), {row}},
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
      ++found;
      EXPECT_TRUE(known.count(m[1])) << m[1] << " has no config: give it "
                                     << "fields, see src/keras/fields.h";
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
  for (const auto& keras : keras_configs()["layers"]) {
    SCOPED_TRACE(keras["class_name"].get<std::string>());
    const Layer layer = layers::deserialize(Config::parse(keras.dump()));
    const auto ours = nlohmann::json::parse(layer.get_config().str());
    EXPECT_EQ(class_name_of(layer), keras["class_name"].get<std::string>());
    for (const auto& field : ours.items()) {
      if (is_own_field(field.key())) continue;
      ASSERT_TRUE(keras["config"].contains(field.key())) << field.key();
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
  for (const auto& m : keras_configs()["models"]) {
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
