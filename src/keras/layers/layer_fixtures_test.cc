// Layers against Keras' own: outputs and gradients of
// conformance/fixtures/keras_layers.json, which keras_layers.py writes.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "berth/berth.h"
#include "keras/layers/fixtures_testing.h"

namespace berth::keras {
namespace {

using nlohmann::json;
using Make = std::function<Layer()>;

// The layers of the cases that are a layer and its inputs.
const std::map<std::string, Make>& layers_of_cases() {
  static const auto& all = *new std::map<std::string, Make>{
      {"Conv3D",
       [] {
         return Conv3D(3, {2, 3, 2}, {.activation = "tanh"});
       }},
      {"Conv3D/same",
       [] {
         return Conv3D(2, 3, {.padding = "same", .strides = {2, 1, 2}});
       }},
      {"Conv3D/groups",
       [] {
         return Conv3D(4, {3, 1, 2}, {.groups = 2, .use_bias = false});
       }},
      {"Conv3D/dilated",
       [] {
         return Conv3D(2, 2, {.dilation_rate = {3, 2, 1}});
       }},
      {"Conv3DTranspose",
       [] {
         return Conv3DTranspose(2, {3, 2, 2}, {.strides = {2, 1, 3}});
       }},
      {"Conv3DTranspose/same",
       [] { return Conv3DTranspose(2, 3, {.padding = "same", .strides = 2}); }},
      {"MaxPooling3D",
       [] {
         return MaxPooling3D({2, 2, 1});
       }},
      {"MaxPooling3D/same",
       [] {
         return MaxPooling3D(3,
                             {.strides = Size3D{1, 2, 2}, .padding = "same"});
       }},
      {"AveragePooling3D",
       [] {
         return AveragePooling3D({2, 2, 3}, {.strides = Size3D{1, 2, 1}});
       }},
      {"AveragePooling3D/same",
       [] { return AveragePooling3D(3, {.strides = 2, .padding = "same"}); }},
      {"GlobalMaxPooling3D", [] { return GlobalMaxPooling3D(); }},
      {"GlobalAveragePooling3D",
       [] { return GlobalAveragePooling3D({.keepdims = true}); }},
      {"ZeroPadding3D",
       [] {
         return ZeroPadding3D({{1, 0}, {0, 2}, {1, 1}});
       }},
      {"Cropping3D",
       [] {
         return Cropping3D({{1, 0}, {0, 1}, {1, 1}});
       }},
      {"UpSampling3D",
       [] {
         return UpSampling3D({1, 2, 2});
       }},
      {"AdaptiveAveragePooling1D", [] { return AdaptiveAveragePooling1D(3); }},
      {"AdaptiveAveragePooling2D",
       [] {
         return AdaptiveAveragePooling2D({3, 2});
       }},
      {"AdaptiveAveragePooling3D",
       [] {
         return AdaptiveAveragePooling3D({2, 3, 1});
       }},
      {"AdaptiveMaxPooling1D", [] { return AdaptiveMaxPooling1D(3); }},
      {"AdaptiveMaxPooling2D",
       [] {
         return AdaptiveMaxPooling2D({3, 2});
       }},
      {"AdaptiveMaxPooling3D",
       [] {
         return AdaptiveMaxPooling3D({2, 3, 1});
       }},
      {"DepthwiseConv1D",
       [] {
         return DepthwiseConv1D(
             3, {.depth_multiplier = 2, .padding = "same", .strides = 2});
       }},
      {"SeparableConv1D",
       [] {
         return SeparableConv1D(4, 2,
                                {.activation = "relu", .dilation_rate = 2});
       }},
      {"RepeatVector", [] { return RepeatVector(3); }},
      {"Permute",
       [] {
         return Permute({3, 1, 2});
       }},
      {"PReLU/shared", [] { return PReLU({.shared_axes = {1}}); }},
      {"ReLU/threshold",
       [] {
         return ReLU(
             {.max_value = 1.5, .negative_slope = 0.5, .threshold = 0.75});
       }},
      {"UnitNormalization", [] { return UnitNormalization(); }},
      {"UnitNormalization/axes",
       [] {
         return UnitNormalization({1, 2});
       }},
      {"RMSNormalization", [] { return RMSNormalization({.epsilon = 0.01}); }},
      {"EinsumDense",
       [] {
         return EinsumDense("abc,cd->abd", {-1, 5},
                            {.activation = "relu", .bias_axes = "d"});
       }},
      {"EinsumDense/heads",
       [] {
         return EinsumDense("abc,cde->abde", {-1, 2, 3}, {.bias_axes = "de"});
       }},
      {"EinsumDense/dots",
       [] { return EinsumDense("...x,xy->...y", {4}, {.bias_axes = "y"}); }},
      {"EinsumDense/bias",
       [] {
         return EinsumDense("abc,bd->adc", {5, 3}, {.bias_axes = "d"});
       }},
      {"Dot", [] { return Dot(1); }},
      {"Dot/axes",
       [] {
         return Dot({2, 1});
       }},
      {"Dot/cosine", [] { return Dot(-1, {.normalize = true}); }},
      {"Dot/mixed",
       [] {
         return Dot({1, 2});
       }},
      {"Attention", [] { return Attention(); }},
      {"Attention/scale", [] { return Attention({.use_scale = true}); }},
      {"Attention/concat",
       [] { return Attention({.use_scale = true, .score_mode = "concat"}); }},
      {"Attention/causal", [] { return Attention({.use_causal_mask = true}); }},
      {"Attention/scores",
       [] { return Attention({.return_attention_scores = true}); }},
      {"Attention/mask", [] { return Attention(); }},
      {"AdditiveAttention", [] { return AdditiveAttention(); }},
      {"AdditiveAttention/plain",
       [] { return AdditiveAttention({.use_scale = false}); }},
      {"GroupQueryAttention", [] { return GroupQueryAttention(3, 4, 2); }},
      {"GroupQueryAttention/gate",
       [] {
         return GroupQueryAttention(2, 2, 1,
                                    {.use_bias = false, .use_gate = true});
       }},
      {"GroupQueryAttention/window",
       [] {
         return GroupQueryAttention(
             2, 4, 4, {.sliding_window = 2, .use_causal_mask = true});
       }},
  };
  return all;
}

bool is_layer_case(const std::string& name) {
  return layers_of_cases().count(name) > 0 || name.starts_with("activation/");
}

Layer layer_of(const std::string& name) {
  if (name.starts_with("activation/")) return Activation(name.substr(11));
  return layers_of_cases().at(name)();
}

class KerasLayer : public testing::TestWithParam<std::string> {};

TEST_P(KerasLayer, HasKerasOutputsAndGradients) {
  const json c = layer_case(GetParam());
  const Layer layer = layer_of(GetParam());
  Tensors x;
  for (const json& t : c["inputs"]) x.push_back(tensor_of(t));
  layer(x);
  Tensors weights;
  for (const json& t : c["weights"]) weights.push_back(tensor_of(t));
  layer.set_weights(weights);
  GradientTape tape;
  for (const Tensor& t : x) {
    if (is_floating(t.dtype())) tape.watch(t);
  }
  const Tensors y = layer(x);
  ASSERT_EQ(y.size(), c["outputs"].size());
  for (size_t i = 0; i < y.size(); ++i) expect_like(y[i], c["outputs"][i]);
  if (!c.contains("gradients")) return;
  Tensor loss;
  for (const Tensor& t : y) {
    const Tensor one = math::reduce_sum(math::square(t)) * 0.5;
    loss = loss.defined() ? loss + one : one;
  }
  std::vector<Source> sources(x.begin(), x.end());
  for (const Variable& v : layer.trainable_variables()) {
    sources.push_back(v);
  }
  const Tensors gradients = tape.gradient(loss, sources);
  ASSERT_EQ(gradients.size(), c["gradients"].size());
  double scale = 1;  // of what the gradients are sums of
  for (const json& v : c["gradients"][0]["values"]) {
    scale = std::max(scale, std::abs(v.get<double>()));
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    SCOPED_TRACE("gradient " + std::to_string(i));
    expect_like(gradients[i], c["gradients"][i], 2e-5 * scale);
  }
}

std::vector<std::string> layer_cases() {
  std::vector<std::string> names;
  for (const std::string& name : case_names()) {
    if (is_layer_case(name)) names.push_back(name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (char c : info.param) name += std::isalnum(c) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, KerasLayer, testing::ValuesIn(layer_cases()),
                         test_name);

TEST(Activations, HaveKerasValuesWithOptions) {
  namespace a = activations;
  const std::map<std::string, std::function<Tensor(const Tensor&)>> all{
      {"glu", [](const Tensor& x) { return a::glu(x); }},
      {"celu", [](const Tensor& x) { return a::celu(x, 0.5); }},
      {"elu", [](const Tensor& x) { return a::elu(x, 0.5); }},
      {"relu",
       [](const Tensor& x) {
         return a::relu(
             x, {.negative_slope = 0.1, .max_value = 4, .threshold = 1.2});
       }},
      {"threshold", [](const Tensor& x) { return a::threshold(x, 1, -2); }},
      {"soft_shrink", [](const Tensor& x) { return a::soft_shrink(x, 1.5); }},
      {"squareplus", [](const Tensor& x) { return a::squareplus(x, 2); }},
      {"sparsemax", [](const Tensor& x) { return a::sparsemax(x, 0); }},
      {"gelu", [](const Tensor& x) { return a::gelu(x, true); }},
  };
  for (const auto& [name, fn] : all) {
    SCOPED_TRACE(name);
    const json c = layer_case("activations/" + name);
    expect_like(fn(tensor_of(c["inputs"][0])), c["outputs"][0]);
  }
  EXPECT_THROW(a::glu(ones({2, 3})), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::keras
