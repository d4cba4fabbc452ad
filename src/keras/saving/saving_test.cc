// Configs of layers and of what options name, in both directions.

#include "berth/keras/saving.h"

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

template <class E = errors::InvalidArgument, class F>
std::string thrown_by(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Config, IsJsonWhoseFieldsKeepTheirOrder) {
  Config c({{"units", 64}, {"rate", 0.5}, {"name", "a\"b"}, {"none", nullptr}});
  EXPECT_EQ(c.str(), R"({"units":64,"rate":0.5,"name":"a\"b","none":null})");
  EXPECT_EQ(Config::parse(c.str()), c);
  EXPECT_EQ(c.at("units").as_int(), 64);
  EXPECT_EQ(c.at("units").as_double(), 64);
  EXPECT_EQ(c.at("name").as_string(), "a\"b");
  EXPECT_EQ(c.at("none").kind(), Config::Kind::kNull);
  c.set("self", c);
  EXPECT_EQ(c.at("self").at("rate").as_double(), 0.5);
  EXPECT_EQ(c.names().back(), "self");
}

TEST(Config, RefusesWhatIsNoneOfItsKind) {
  const Config c({{"units", 64}});
  expect_has(thrown_by([&] { c.at("units").as_string(); }),
             "found 64, expected a text");
  expect_has(thrown_by<errors::NotFound>([&] { c.at("unit"); }),
             "there are: units");
  expect_has(thrown_by([] { Config::parse("{\n\"a\": ]"); }),
             "line 2, column 6");
  expect_has(thrown_by([] { Config::parse(std::string(1000, '[')); }),
             "deeper than 200");
  expect_has(thrown_by([] { Config::parse("[1e999]"); }), "1e308");
  // Depth inside a text is none.
  EXPECT_EQ(Config::parse("\"" + std::string(1000, '[') + "\"").kind(),
            Config::Kind::kString);
}

TEST(FromConfig, SaysWhichFieldOfWhichClassIsWrong) {
  const auto read = [](const std::string& json) {
    return thrown_by([&] { layers::deserialize(Config::parse(json)); });
  };
  expect_has(read(R"({"class_name":"Dense","config":{"units":"7"}})"),
             "the config of Dense");
  expect_has(read(R"({"class_name":"Dense","config":{"units":"7"}})"),
             "\"units\" is \"7\"; expected a whole number");
  expect_has(read(R"({"class_name":"Dense","config":{}})"),
             "there is no field \"units\"");
  expect_has(read(R"({"class_name":"Dense","config":{"units":2,"x":1}})"),
             "\"x\" is 1; expected no such field");
  expect_has(read(R"({"class_name":"Dense","config":{"units":-2}})"),
             "units is -2");
  expect_has(read(R"({"class_name":"Dense","config":3})"),
             "expected an object of fields");
  expect_has(read(R"({"config":{}})"), "expected {\"class_name\"");
  expect_has(read(R"({"class_name":"Dense2","config":{}})"),
             "keras::register_custom_object(\"Dense2\"");
  expect_has(read(R"({"class_name":"Dense","config":{"units":2,
                   "kernel_initializer":{"class_name":"Nonsense"}}})"),
             "no initializer of class \"Nonsense\"");
  expect_has(read(R"({"class_name":"Reshape","config":{"target_shape":
                   [1,1,1,1,1,1,1,1,1,1]}})"),
             "expected at most");
  expect_has(read(R"({"class_name":"Sequential","config":{"layers":[1]}})"),
             "the config of a layer");
}

TEST(FromConfig, OfTrainableAndDeviceIsTheSameLayer) {
  const DeviceGuard on = device("/CPU:0");
  Dense layer(2);
  layer.set_trainable(false);
  const Config config = layers::serialize(layer);
  EXPECT_FALSE(layers::deserialize(config).trainable());
  EXPECT_EQ(layers::deserialize(config).requested_device(),
            layer.requested_device());
}

class Scale : public LayerBase {
 public:
  explicit Scale(double factor) : LayerBase("Scale"), factor_(factor) {}
  void build(const std::vector<Shape>& x) override {
    w_ = add_weight("w", {x[0][1]}, initializers::Constant(factor_));
  }
  Tensors call(const Tensors& x, bool) override { return {x[0] * w_}; }
  Config get_config() const override { return Config({{"factor", factor_}}); }

 private:
  const double factor_;
  Variable w_;
};
class Nameless : public LayerBase {
 public:
  Nameless() : LayerBase("Nameless") {}
  Tensors call(const Tensors& x, bool) override { return x; }
};

TEST(CustomObject, OfAClassIsFoundByItsName) {
  const Sequential model({make_layer<Scale>(3.0), Dense(2)});
  const Tensor x = ones({1, 4});
  model(x);
  const std::string json = model.to_json();
  expect_has(thrown_by([&] { model_from_json(json); }),
             "register_custom_object(\"Scale\"");
  {
    const CustomObjectScope scope;
    register_custom_object("Scale", [](const Config& c) {
      return make_layer<Scale>(c.at("factor").as_double());
    });
    const Model twin = clone_model(model);
    twin.set_weights(model.get_weights());
    EXPECT_EQ(twin(x).to_vector<float>(), model(x).to_vector<float>());
    EXPECT_EQ(twin.weights()[0].name(), model.weights()[0].name());
  }
  EXPECT_THROW(clone_model(model), errors::InvalidArgument);
}

TEST(CustomObject, IsNeededByAClassWithoutConfig) {
  const Sequential model({make_layer<Nameless>()});
  expect_has(thrown_by<errors::FailedPrecondition>([&] { model.to_json(); }),
             "class Nameless has no get_config()");
}

TEST(CustomObject, OfEveryKindIsAnOptionByName) {
  const CustomObjectScope scope;
  register_custom_object("halves", [](const Config&) {
    return Initializer([](const Shape& s, DType d) { return fill(s, .5, d); });
  });
  register_custom_object("twice", [](const Tensor& x) { return x * 2.0; });
  register_custom_object("off", [](const Config&) {
    return Loss("off", [](const Tensor& y, const Tensor& p) { return p - y; });
  });
  const Dense layer(1, {.activation = "twice", .kernel_initializer = "halves"});
  EXPECT_EQ(layer(ones({1, 3})).to_vector<float>(), std::vector<float>{3});
  const Layer twin = layers::deserialize(layers::serialize(layer));
  EXPECT_EQ(twin(ones({1, 3})).to_vector<float>(), std::vector<float>{3});
  const Loss loss = losses::deserialize(losses::serialize("off"));
  EXPECT_EQ(loss(ones({2}), fill({2}, 3, float32)).item<float>(), 2);
  EXPECT_THROW(register_custom_object("", CustomFunction()),
               errors::InvalidArgument);
}

TEST(CustomObject, OfAFunctionWithoutNameIsRefused) {
  const Dense layer(
      1, {.kernel_initializer = Initializer(
              [](const Shape& s, DType d) { return fill(s, 1, d); })});
  expect_has(thrown_by<errors::FailedPrecondition>([&] { layer.get_config(); }),
             "a function without a name");
}

TEST(FunctionalConfig, KeepsSharedLayersAndSeveralInputsAndOutputs) {
  const KerasTensor a = Input({3}), b = Input({3}, {.name = "b"});
  const Dense shared(3, {.activation = "tanh"});
  const KerasTensor sum = Add()(KerasTensors{shared(a), shared(shared(b))});
  const Model model(KerasTensors{a, b}, KerasTensors{sum, Dense(1)(sum)});
  const Model twin = clone_model(model);
  EXPECT_EQ(twin.weights().size(), 4u);
  twin.set_weights(model.get_weights());
  const Tensors x{ones({2, 3}), fill({2, 3}, -2, float32)};
  const Tensors want = model(x), got = twin(x);
  ASSERT_EQ(got.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>());
  }
  // A model inside a model.
  const Model outer(a, Dense(2)(twin.outputs_of({a, a})[0]));
  EXPECT_EQ(clone_model(outer).to_json(), outer.to_json());
}

TEST(FunctionalConfig, OfBrokenGraphsIsRefused) {
  const KerasTensor a = Input({3}, {.name = "a"});
  const std::string json = Model(a, Dense(2, {.name = "d"})(a)).to_json();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = json;
    text.replace(text.find(from), from.size(), to);
    return thrown_by([&] { model_from_json(text); });
  };
  expect_has(
      with(R"("keras_history":["a",0,0])", R"("keras_history":["d",0,0])"),
      "\"d\" waits for itself");
  expect_has(
      with(R"("output_layers":["d",0,0])", R"("output_layers":["d",0,9])"),
      "there is no tensor");
  expect_has(
      with(R"("output_layers":["d",0,0])", R"("output_layers":["d",-1,0])"),
      "there is no tensor");
  expect_has(with(R"("keras_history":["a",0,0])", R"("keras_history":5)"),
             "no [layer, use, output]");
  expect_has(with(R"("args":)", R"("arg":)"), "expected {\"args\"");
  expect_has(thrown_by([] { model_from_json("[]"); }), "model_from_json");
  const Model twins(a, Dense(2, {.name = "x"})(Dense(2, {.name = "x"})(a)));
  expect_has(thrown_by<errors::FailedPrecondition>([&] { twins.to_json(); }),
             "two layers with the name \"x\"");
}

TEST(SerializedOptions, ComeBackOfEveryClass) {
  for (const std::string& name : saving::initializer_classes()) {
    const Config c({{"class_name", name}});
    const Config full = initializers::serialize(initializers::deserialize(c));
    EXPECT_EQ(full.at("class_name").as_string(), name);
    EXPECT_EQ(initializers::serialize(initializers::deserialize(full)), full);
  }
  for (const std::string& name : saving::loss_classes()) {
    const Config c({{"class_name", name}, {"config", {{"reduction", "sum"}}}});
    const Config full = losses::serialize(losses::deserialize(c));
    EXPECT_EQ(full.at("config").at("reduction").as_string(), "sum") << name;
    EXPECT_EQ(losses::serialize(losses::deserialize(full)), full);
  }
  for (const std::string& name : saving::optimizer_classes()) {
    Config c({{"class_name", name}, {"config", {{"learning_rate", 0.5}}}});
    if (name == "LossScaleOptimizer") {
      c.set("config",
            {{"inner_optimizer",
              {{"class_name", "SGD"}, {"config", {{"learning_rate", 0.5}}}}}});
    }
    const Optimizer optimizer = optimizers::deserialize(c);
    EXPECT_EQ(optimizer.learning_rate().value().item<float>(), 0.5f) << name;
    const Config full = optimizers::serialize(optimizer);
    EXPECT_EQ(optimizers::serialize(optimizers::deserialize(full)), full);
  }
  const std::string classes = R"({"num_classes":3})",
                    some = R"({"num_classes":3,"target_class_ids":[0,2]})";
  const std::map<std::string, std::string> required = {
      {"ConfusionMatrix", classes},
      {"MeanIoU", classes},
      {"OneHotMeanIoU", classes},
      {"IoU", some},
      {"OneHotIoU", some},
      {"PrecisionAtRecall", R"({"recall":0.5})"},
      {"RecallAtPrecision", R"({"precision":0.5})"},
      {"SensitivityAtSpecificity", R"({"specificity":0.5})"},
      {"SpecificityAtSensitivity", R"({"sensitivity":0.5})"}};
  for (const std::string& name : saving::metric_classes()) {
    Config c({{"class_name", name}});
    if (const auto it = required.find(name); it != required.end()) {
      c.set("config", Config::parse(it->second));
    }
    const Config full = metrics::serialize(metrics::deserialize(c));
    EXPECT_EQ(metrics::serialize(metrics::deserialize(full)), full) << name;
  }
}

TEST(SerializedOptions, HaveTheValuesTheyWereMadeWith) {
  const auto text = [](const Config& c) { return c.at("config").str(); };
  EXPECT_EQ(text(optimizers::serialize(
                Adam(optimizers::schedules::ExponentialDecay(0.5, 7, 0.25),
                     {.beta_1 = 0.25, .clipnorm = 2}))),
            R"({"learning_rate":{"module":"keras.optimizers.schedules",)"
            R"("class_name":"ExponentialDecay","config":{)"
            R"("initial_learning_rate":0.5,"decay_steps":7,"decay_rate":0.25,)"
            R"("staircase":false},"registered_name":null},"weight_decay":0.0,)"
            R"("clipnorm":2.0,"clipvalue":null,"global_clipnorm":null,)"
            R"("use_ema":false,"ema_momentum":0.99,)"
            R"("ema_overwrite_frequency":null,"loss_scale_factor":null,)"
            R"("gradient_accumulation_steps":null,"beta_1":0.25,)"
            R"("beta_2":0.999,"epsilon":1e-07,"amsgrad":false})");
  const Optimizer back = optimizers::deserialize(optimizers::serialize(
      SGD(optimizers::schedules::PiecewiseConstantDecay({3}, {0.5, 0.25}))));
  EXPECT_EQ(back.schedule()(int64_t{3}), 0.5);
  EXPECT_EQ(back.schedule()(int64_t{4}), 0.25);
  const Loss huber = losses::Huber({.delta = 2});
  const Loss twin = losses::deserialize(losses::serialize(huber));
  const Tensor y = zeros({1}), p = fill({1}, 5, float32);
  EXPECT_EQ(twin(y, p).item<float>(), huber(y, p).item<float>());
  const Initializer init =
      initializers::RandomNormal({.mean = 3, .stddev = 0, .seed = 4});
  EXPECT_EQ(initializers::deserialize(initializers::serialize(init))({2})
                .to_vector<float>(),
            (std::vector<float>{3, 3}));
  EXPECT_EQ(
      metrics::deserialize(metrics::serialize(metrics::Mean({.name = "m"})))
          .name(),
      "m");
}

}  // namespace
}  // namespace berth::keras
