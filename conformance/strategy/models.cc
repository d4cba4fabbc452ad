#include "conformance/strategy/models.h"

#include <memory>
#include <optional>

#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth::strategy_suite {

namespace {

using keras::Dense;

keras::Loss sparse() {
  return keras::losses::SparseCategoricalCrossentropy({.from_logits = true});
}

// 5 classes of 12 numbers.
ModelSpec of_rows(std::string name,
                  std::function<keras::Model(const Places&)> make) {
  return {std::move(name), {{{12}}}, {{{}, 5}}, {sparse()}, std::move(make)};
}

ModelSpec of_layers(std::string name,
                    std::function<std::vector<keras::Layer>()> make) {
  return of_rows(std::move(name), [make = std::move(make)](const Places&) {
    return keras::Sequential(make());
  });
}

ModelSpec of_images(std::string name,
                    std::function<std::vector<keras::Layer>()> make) {
  ModelSpec m = of_layers(std::move(name), std::move(make));
  m.inputs = {{{8, 8, 2}}};
  return m;
}

// Layers that see each example alone, and biases whose gradient is not zero by
// itself: what is zero but for rounding would make adaptive rates jump.
ModelSpec dense() {
  return of_layers("dense", [] {
    return std::vector<keras::Layer>{Dense(16, {.activation = "relu"}),
                                     Dense(5)};
  });
}

ModelSpec conv() {
  return of_images("conv", [] {
    return std::vector<keras::Layer>{
        keras::Conv2D(4, 3, {.activation = "relu", .padding = "same"}),
        keras::MaxPooling2D(2),
        keras::Conv2D(6, 3, {.activation = "tanh"}),
        keras::AveragePooling2D(2),
        keras::Flatten(),
        Dense(5)};
  });
}

ModelSpec batch_norm() {
  return of_images("batch_norm", [] {
    return std::vector<keras::Layer>{
        keras::Conv2D(4, 3, {.padding = "same", .use_bias = false}),
        keras::BatchNormalization({.momentum = 0.9}), keras::ReLU(),
        keras::GlobalAveragePooling2D(), Dense(5)};
  });
}

// Two groups of a batch with moments of their own, wherever replicas begin.
ModelSpec batch_norm_groups() {
  ModelSpec m = of_images("batch_norm_groups", [] {
    return std::vector<keras::Layer>{
        keras::Conv2D(4, 3, {.padding = "same", .use_bias = false}),
        keras::BatchNormalization({.momentum = 0.9, .statistics_groups = 2}),
        keras::ReLU(), keras::GlobalAveragePooling2D(), Dense(5)};
  });
  m.special = true;
  return m;
}

ModelSpec batch_norm_rows() {
  return of_layers("batch_norm_rows", [] {
    return std::vector<keras::Layer>{
        Dense(16, {.use_bias = false}),
        keras::BatchNormalization({.momentum = 0.5}), keras::Activation("tanh"),
        Dense(5)};
  });
}

// Smooth: where a relu's input is nearly 0 rounding decides which way the steps
// after it go, and a step of this one's came that near.
ModelSpec dropout() {
  return of_images("dropout", [] {
    return std::vector<keras::Layer>{
        keras::Dropout(0.2),
        keras::Conv2D(4, 3, {.activation = "tanh"}),
        keras::SpatialDropout2D(0.25),
        keras::GaussianNoise(0.1),
        keras::Flatten(),
        Dense(16, {.activation = "tanh"}),
        keras::Dropout(0.5, {.seed = 7}),
        Dense(5)};
  });
}

ModelSpec layer_norm() {
  return of_layers("layer_norm", [] {
    return std::vector<keras::Layer>{
        Dense(16, {.activation = "tanh"}), keras::LayerNormalization(),
        Dense(8, {.activation = "gelu"}), Dense(5)};
  });
}

ModelSpec embedding() {
  ModelSpec m = of_layers("embedding", [] {
    return std::vector<keras::Layer>{keras::Embedding(20, 8),
                                     keras::GlobalAveragePooling1D(), Dense(5)};
  });
  m.inputs = {{{6}, 20}};
  return m;
}

class AttentionBlock : public keras::LayerBase {
 public:
  AttentionBlock() : LayerBase("attention_block") {}
  Tensors call(const Tensors& x, bool) override {
    const Tensor a = norm_(x[0] + attention_(x[0]));
    return {a + dense_(a)};
  }

 private:
  // A bias of the keys changes nothing: its gradient is rounding alone.
  keras::Layer attention_ = track(keras::MultiHeadAttention(
      2, 4, {.use_bias = false, .use_causal_mask = true}));
  keras::Layer norm_ = track(keras::LayerNormalization());
  keras::Layer dense_ = track(Dense(8, {.activation = "gelu"}));
};

ModelSpec attention() {
  ModelSpec m = of_layers("attention", [] {
    return std::vector<keras::Layer>{keras::make_layer<AttentionBlock>(),
                                     keras::GlobalAveragePooling1D(), Dense(5)};
  });
  m.inputs = {{{6, 8}}};
  return m;
}

class Residual : public keras::LayerBase {
 public:
  Residual() : LayerBase("residual") {}
  Tensors call(const Tensors& x, bool) override {
    const Tensor h = in_(x[0]);
    return {out_(h + inner_(h))};
  }

 private:
  keras::Layer in_ = track(Dense(8, {.activation = "tanh"}));
  keras::Layer inner_ = track(Dense(8, {.activation = "relu"}));
  keras::Layer out_ = track(Dense(5));
};

ModelSpec residual() {
  return of_rows("residual",
                 [](const Places&) { return keras::Model::make<Residual>(); });
}

// Weights that no output depends on.
class PartlyUsed : public keras::LayerBase {
 public:
  PartlyUsed() : LayerBase("partly_used") {}
  void build(const std::vector<Shape>&) override {
    spare_ = add_weight("spare", {3, 4}, "ones");
  }
  Tensors call(const Tensors& x, bool) override { return {used_(x[0])}; }

 private:
  keras::Layer used_ = track(Dense(5));
  Variable spare_;
};

ModelSpec unused() {
  return of_rows(
      "unused", [](const Places&) { return keras::Model::make<PartlyUsed>(); });
}

ModelSpec two_by_two() {
  return {"two_by_two",
          {{{12}}, {{3}}},
          {{{}, 5}, {{2}}},
          {sparse(), "mse"},
          [](const Places&) {
            const auto a = keras::Input({12}), b = keras::Input({3});
            const auto h = Dense(8, {.activation = "relu"})(a);
            const auto both = keras::Concatenate()({h, b});
            return keras::Model({a, b}, {Dense(5)(both), Dense(2)(both)});
          }};
}

// The layers of images that the others leave out.
ModelSpec image_layers() {
  return of_images("image_layers", [] {
    return std::vector<keras::Layer>{
        keras::DepthwiseConv2D(3, {.depth_multiplier = 2, .padding = "same"}),
        keras::PReLU(),
        keras::SeparableConv2D(4, 3, {.activation = "tanh"}),
        keras::UpSampling2D(2),
        keras::Conv2DTranspose(4, 3, {.strides = 2}),
        keras::Cropping2D(3),
        keras::ZeroPadding2D(1),
        keras::GroupNormalization({.groups = 2}),
        keras::ELU(),
        keras::AveragePooling2D(3),
        keras::GlobalMaxPooling2D(),
        Dense(5)};
  });
}

ModelSpec sequence_layers() {
  ModelSpec m = of_layers("sequence_layers", [] {
    return std::vector<keras::Layer>{
        keras::Conv1D(6, 3, {.activation = "silu", .padding = "causal"}),
        keras::AveragePooling1D(2),
        keras::ZeroPadding1D(1),
        keras::Conv1DTranspose(4, 3, {.strides = 2}),
        keras::Cropping1D(1),
        keras::UpSampling1D(2),
        keras::SpatialDropout1D(0.2),
        keras::Softmax(),
        keras::GaussianDropout(0.1),
        keras::GlobalAveragePooling1D({.keepdims = true}),
        keras::Reshape({-1}),
        Dense(5)};
  });
  m.inputs = {{{12, 3}}};
  return m;
}

ModelSpec merges() {
  return of_rows("merges", [](const Places&) {
    const auto x = keras::Input({12});
    const auto a = Dense(6, {.activation = "tanh"})(x);
    const auto b = Dense(6, {.activation = "softplus"})(x);
    const keras::KerasTensors both = {a, b};
    const auto all =
        keras::Concatenate()({keras::Add()(both), keras::Subtract()(both),
                              keras::Multiply()(both), keras::Average()(both),
                              keras::Maximum()(both), keras::Minimum()(both)});
    return keras::Model(x, Dense(5)(all));
  });
}

// An output for each of the losses.
ModelSpec losses() {
  ModelSpec m = {"losses", {{{12}}}, {}, {}, {}};
  std::vector<std::string> last;  // activations that suit them
  auto add = [&](keras::Loss loss, Part target, const char* activation) {
    m.losses.push_back(std::move(loss));
    m.targets.push_back(std::move(target));
    last.push_back(activation);
  };
  using namespace keras::losses;  // NOLINT
  const Part numbers = {{3}}, labels = {{3}, 2}, places = {{}, 3};
  add(MeanAbsoluteError(), numbers, "linear");
  add(Huber({.delta = 0.5}), numbers, "linear");
  add(LogCosh(), numbers, "tanh");
  add(BinaryCrossentropy({.label_smoothing = 0.1}), labels, "sigmoid");
  add(CategoricalCrossentropy({.from_logits = true}), labels, "linear");
  add(SparseCategoricalCrossentropy(), places, "softmax");
  add(SquaredHinge(), labels, "tanh");
  add(Poisson(), labels, "softplus");
  add(CosineSimilarity(), numbers, "tanh");
  add(MeanSquaredError({.reduction = "sum"}), numbers, "sigmoid");
  m.make = [last](const Places&) {
    const auto x = keras::Input({12});
    const auto h = Dense(8, {.activation = "tanh"})(x);
    keras::KerasTensors outputs;
    for (const std::string& a : last) {
      outputs.push_back(Dense(3, {.activation = a})(h));
    }
    return keras::Model({x}, outputs);
  };
  return m;
}

// A model over two devices; within replicas of two devices the scopes name
// these by their number there.
ModelSpec two_devices() {
  ModelSpec m = of_rows("two_devices", [](const Places& p) {
    std::vector<keras::Layer> layers;
    auto add = [&](const std::string& where, int units, const char* how) {
      std::optional<DeviceGuard> on;
      if (!where.empty()) on.emplace(where, Site::here());
      layers.push_back(Dense(units, {.activation = how}));
    };
    add(p.first, 16, "relu");
    add(p.second, 8, "tanh");
    add(p.first, 5, "linear");
    return keras::Sequential(layers);
  });
  m.special = true;
  return m;
}

// Numbers in [0, 1) by a congruential generator.
class Draws {
 public:
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 24);
  }

 private:
  uint64_t state_ = 17;
};

}  // namespace

const std::vector<ModelSpec>& models() {
  static const std::vector<ModelSpec> all = {dense(),
                                             conv(),
                                             batch_norm(),
                                             batch_norm_rows(),
                                             dropout(),
                                             layer_norm(),
                                             embedding(),
                                             attention(),
                                             residual(),
                                             unused(),
                                             two_by_two(),
                                             image_layers(),
                                             sequence_layers(),
                                             merges(),
                                             losses(),
                                             two_devices(),
                                             batch_norm_groups()};
  return all;
}

std::vector<std::string> names_of_models() {
  std::vector<std::string> names;
  for (const ModelSpec& m : models()) {
    if (!m.special) names.push_back(m.name);
  }
  return names;
}

const ModelSpec& model_named(const std::string& name) {
  for (const ModelSpec& m : models()) {
    if (m.name == name) return m;
  }
  throw errors::NotFound("no model \"" + name + "\" in the suite");
}

keras::Optimizer optimizer_named(const std::string& name) {
  if (name == "sgd") return keras::SGD(0.1);
  if (name == "momentum") return keras::SGD(0.05, {.momentum = 0.9});
  if (name == "nesterov") {
    return keras::SGD(0.05, {.momentum = 0.9, .nesterov = true});
  }
  if (name == "adam") return keras::Adam(0.01);
  if (name == "adamw") return keras::AdamW(0.01);
  if (name == "rmsprop") return keras::RMSprop(0.005, {.momentum = 0.5});
  if (name == "adagrad") return keras::Adagrad(0.05);
  throw errors::NotFound("no optimizer \"" + name + "\" in the suite");
}

Tensors data_for(const ModelSpec& model, int64_t examples) {
  Draws numbers;
  auto make = [&](const Part& part) {
    const Shape shape = [&] {
      std::vector<int64_t> dims = {examples};
      for (int64_t d : part.shape) dims.push_back(d);
      return Shape(dims);
    }();
    const auto n = static_cast<size_t>(shape.num_elements());
    if (part.below == 0) {
      std::vector<float> v(n);
      for (float& x : v) x = static_cast<float>(2 * numbers.next() - 1);
      return constant(std::span<const float>(v), shape);
    }
    std::vector<int32_t> v(n);
    for (int32_t& x : v) x = static_cast<int32_t>(numbers.next() * part.below);
    return constant(std::span<const int32_t>(v), shape);
  };
  Tensors all;
  for (const Part& p : model.inputs) all.push_back(make(p));
  for (const Part& p : model.targets) all.push_back(make(p));
  return all;
}

}  // namespace berth::strategy_suite
