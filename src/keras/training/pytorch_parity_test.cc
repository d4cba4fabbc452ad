// Fifty steps of small models follow the losses that PyTorch had from the same
// weights and batches (conformance/fixtures/README.md).

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-4;

json fixture(const std::string& model) {
  std::ifstream file(BERTH_SOURCE_DIR "/conformance/fixtures/parity_" + model +
                     ".json");
  EXPECT_TRUE(file) << model;
  return json::parse(file);
}

Tensor torch_tensor(const json& t) {
  const auto dims = t.at("shape").get<std::vector<int64_t>>();
  return constant(t.at("data").get<std::vector<float>>(), Shape(dims));
}

// The generator that the fixtures describe.
class Batches {
 public:
  Batches(const json& f)
      : state_(f.at("seed")),
        batch_(f.at("batch")),
        classes_(f.at("classes")),
        shape_(f.at("input_shape").get<std::vector<int64_t>>()) {
    shape_.insert(0, batch_);
  }

  std::pair<Tensor, Tensor> next() {
    const int64_t width = shape_.num_elements() / batch_;
    std::vector<float> x;
    std::vector<int> labels;
    for (int64_t row = 0; row < batch_; ++row) {
      for (int64_t i = 0; i < width; ++i) x.push_back(value());
      const auto first = x.end() - width;
      labels.push_back(
          static_cast<int>(std::max_element(first, first + classes_) - first));
    }
    return {constant(x, shape_), constant(labels, {batch_})};
  }

 private:
  float value() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<double>(state_ >> 40) / (1 << 23) -
                              1.0);
  }
  uint64_t state_;
  int64_t batch_, classes_;
  Shape shape_;
};

Sequential model_of(const std::string& name) {
  if (name == "mlp") {
    return Sequential({Dense(16, {.activation = "relu"}), Dense(5)});
  }
  if (name == "cnn") {
    return Sequential(
        {Conv2D(4, {3, 3}, {.activation = "relu", .padding = "same"}),
         MaxPooling2D({2, 2}), Flatten(), Dense(5)});
  }
  return Sequential({Conv2D(4, {3, 3}, {.padding = "same", .use_bias = false}),
                     BatchNormalization({.epsilon = 0.001}), Activation("relu"),
                     MaxPooling2D({2, 2}), Flatten(), Dense(5)});
}

Optimizer torch_optimizer(const json& run) {
  const double rate = run.at("learning_rate");
  if (run.at("optimizer") == "SGD") {
    return SGD(
        rate, {.momentum = run.at("momentum"), .nesterov = run.at("nesterov")});
  }
  return Adam(rate, {.beta_1 = run.at("beta_1"),
                     .beta_2 = run.at("beta_2"),
                     .epsilon = run.at("epsilon")});
}

// Weights of the file go where the name says: "dense/kernel" is the first
// Dense layer's, whatever the layer is called in this process.
void load_weights(const Model& model, const json& weights) {
  const std::vector<Variable> trained = model.trainable_variables();
  ASSERT_EQ(trained.size(), weights.size());
  for (size_t i = 0; i < trained.size(); ++i) {
    const std::string name = weights[i].at("name");
    EXPECT_NE(trained[i].name().find(name.substr(name.find('/'))),
              std::string::npos)
        << name << " " << trained[i].name();
    trained[i].assign(torch_tensor(weights[i]));
  }
}

class Parity : public testing::TestWithParam<const char*> {};

TEST_P(Parity, FiftyStepsFollowPyTorch) {
  const json f = fixture(GetParam());
  for (const json& run : f.at("runs")) {
    SCOPED_TRACE(run.at("optimizer").get<std::string>());
    auto model = model_of(GetParam());
    Shape shape(f.at("input_shape").get<std::vector<int64_t>>());
    shape.insert(0, -1);
    model.build(shape);
    load_weights(model, f.at("weights"));
    model.compile(
        {.optimizer = torch_optimizer(run),
         .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
    Batches batches(f);
    double worst = 0;
    const auto wanted = run.at("losses").get<std::vector<double>>();
    ASSERT_EQ(wanted.size(), 50u);
    for (size_t step = 0; step < wanted.size(); ++step) {
      const auto [x, y] = batches.next();
      if (step == 0) {
        ASSERT_EQ(x.to_vector<float>(),
                  torch_tensor(f.at("first_batch").at("x")).to_vector<float>());
        ASSERT_EQ(
            y.to_vector<float>(),
            torch_tensor(f.at("first_batch").at("labels")).to_vector<float>());
      }
      const double loss = model.train_on_batch(x, y).item<double>();
      worst = std::max(worst, std::abs(loss - wanted[step]));
      ASSERT_NEAR(loss, wanted[step], kTolerance) << "step " << step;
    }
    EXPECT_EQ(model.num_train_traces(), 1);
    const std::vector<Variable> trained = model.trainable_variables();
    for (size_t i = 0; i < trained.size(); ++i) {
      const json& want = run.at("final_weights")[i];
      double sum = 0, sum_abs = 0;
      for (double v : trained[i].value().to_vector<double>()) {
        sum += v;
        sum_abs += std::abs(v);
      }
      EXPECT_NEAR(sum, want.at("sum"), 1e-2) << want.at("name");
      EXPECT_NEAR(sum_abs, want.at("sum_abs"), 1e-2) << want.at("name");
    }
    RecordProperty("worst", std::to_string(worst));
    std::printf("  worst difference of a loss: %.2g\n", worst);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Parity,
                         testing::Values("mlp", "cnn", "cnn_batch_norm"));

}  // namespace
}  // namespace berth::keras
