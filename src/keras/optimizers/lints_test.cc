// Lints of the module: layers that are thrown away, copies that drift apart.

#include <gtest/gtest.h>

#include <memory>

#include "base/diagnostics_testing.h"
#include "berth/berth.h"

namespace berth::keras {
namespace {

const char* const kLayers = "layers-every-call";
const char* const kReplicas = "unaveraged-replicas";

Tensor project(const Tensor& x) {
  const Dense wide(8);
  return wide(x);
}

TEST(LintLayers, NamesTheLineThatMakesALayerPerCall) {
  const Heard heard;
  const Tensor x = ones({2, 3});
  project(x);
  project(x);
  EXPECT_EQ(heard.text_of(kLayers), "0");
  project(x);
  project(x);
  const std::string text = heard.text_of(kLayers);
  EXPECT_NE(text.find("Dense (lints_test.cc:17)"), std::string::npos) << text;
}

TEST(LintLayers, ALayerOfATraceThatEndsWithItIsNamedAtOnce) {
  const Heard heard;
  auto step = function([](const Tensor& x) {
    const Dense inside(4);
    return inside(x);
  });
  step(ones({2, 3}));
  EXPECT_EQ(heard.of(kLayers).size(), 1u);
}

TEST(LintLayers, ALayerMadeInTheFirstTraceAndKeptIsLeftAlone) {
  const Heard heard;
  std::shared_ptr<Layer> kept;
  auto step = function([&](const Tensor& x) {
    if (!kept) kept = std::make_shared<Layer>(Dense(4));
    return (*kept)(x);
  });
  step(ones({2, 3}));
  step(ones({5, 3}));
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

TEST(LintLayers, ALoopThatMakesTheLayersOfOneModelIsLeftAlone) {
  const Heard heard;
  {
    std::vector<Layer> blocks;
    for (int i = 0; i < 6; ++i) blocks.push_back(Dense(3));
    Tensor x = ones({2, 3});
    for (const Layer& block : blocks) x = block(x);
  }
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

TEST(LintLayers, LayersThatAreCalledMoreThanOnceAreLeftAlone) {
  const Heard heard;
  for (int trial = 0; trial < 5; ++trial) {
    const Dense layer(3);
    layer(ones({2, 3}));
    layer(ones({2, 3}));
  }
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

TEST(LintLayers, ModelsThatAreTriedOutOneByOneAreLeftAlone) {
  const Heard heard;
  for (double rate : {.1, .01, .001, .0001}) {
    Sequential model({Dense(4, {.activation = "relu"}), Dropout(rate)});
    model(ones({2, 3}));
  }
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

TEST(LintLayers, LayersOfDifferentShapesAreLeftAlone) {
  const Heard heard;
  for (int units = 1; units < 9; ++units) {
    const Dense layer(units / 2 + 1);
    layer(ones({2, 3}));
  }
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

TEST(LintLayers, LayersWithoutWeightsAreLeftAlone) {
  const Heard heard;
  for (int i = 0; i < 5; ++i) Flatten()(ones({2, 3, 4}));
  EXPECT_EQ(heard.of(kLayers).size(), 0u);
}

// A line fit per device: y = w x, both copies made at one line.
struct Copies {
  explicit Copies(bool equal) {
    for (int i = 0; i < 2; ++i) {
      const auto on = device(i == 0 ? "/GPU:0" : "/GPU:1");
      const double start = equal ? 0.5 : 0.5 + i;
      weights.push_back(Variable(constant(static_cast<float>(start))));
      optimizers.push_back(SGD(0.01));
    }
  }
  // The gradient of (w x - 3 x)^2.
  Tensor gradient(int i, float x) const {
    const auto on = device(i == 0 ? "/GPU:0" : "/GPU:1");
    return (weights[i].value() - 3) * (2 * x * x);
  }
  void apply(int i, const Tensor& grad) const {
    optimizers[i].apply_gradients({grad}, {weights[i]});
  }
  std::vector<Variable> weights;
  std::vector<Optimizer> optimizers;
};

bool on_two_gpus() { return config::list_logical_devices("GPU").size() >= 2; }

TEST(LintReplicas, CopiesThatDriftApartAreNamedAfterThreeSteps) {
  if (!on_two_gpus()) GTEST_SKIP() << "needs BERTH_SIM=GPUx2";
  const Heard heard;
  const Copies c(true);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 2; ++i) c.apply(i, c.gradient(i, 1.f + i));
    EXPECT_EQ(heard.of(kReplicas).size(), step < 3 ? 0u : 1u);
  }
  EXPECT_NE(heard.text_of(kReplicas).find("GPU:1"), std::string::npos);
}

TEST(LintReplicas, CopiesThatGetTheAverageAreLeftAlone) {
  if (!on_two_gpus()) GTEST_SKIP() << "needs BERTH_SIM=GPUx2";
  const Heard heard;
  const Copies c(true);
  for (int step = 0; step < 6; ++step) {
    const Tensor mean = (c.gradient(0, 1) + c.gradient(1, 2)) * 0.5;
    for (int i = 0; i < 2; ++i) c.apply(i, mean);
  }
  EXPECT_EQ(heard.of(kReplicas).size(), 0u);
}

TEST(LintReplicas, ModelsThatBeganDifferentAreAnEnsemble) {
  if (!on_two_gpus()) GTEST_SKIP() << "needs BERTH_SIM=GPUx2";
  const Heard heard;
  const Copies c(false);
  for (int step = 0; step < 6; ++step) {
    for (int i = 0; i < 2; ++i) c.apply(i, c.gradient(i, 1.f + i));
  }
  EXPECT_EQ(heard.of(kReplicas).size(), 0u);
}

TEST(LintReplicas, LargeKernelsDrawnApartAreAnEnsembleThoughBiasesAgree) {
  if (!on_two_gpus()) GTEST_SKIP() << "needs BERTH_SIM=GPUx2";
  const Heard heard;
  std::vector<Layer> models;
  std::vector<Optimizer> optimizers;
  for (int i = 0; i < 2; ++i) {
    const auto on = device(i == 0 ? "/GPU:0" : "/GPU:1");
    models.push_back(Dense(150));
    optimizers.push_back(SGD(0.01));
  }
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < 2; ++i) {
      GradientTape tape;
      const Tensor loss = math::reduce_sum(math::square(
          models[i](ones({2, 150}) * static_cast<float>(step + i))));
      const auto weights = models[i].trainable_variables();
      optimizers[i].apply_gradients(tape.gradient(loss, weights), weights);
    }
  }
  EXPECT_EQ(heard.of(kReplicas).size(), 0u);
}

TEST(LintReplicas, ModelsTrainedOneAfterTheOtherAreLeftAlone) {
  if (!on_two_gpus()) GTEST_SKIP() << "needs BERTH_SIM=GPUx2";
  const Heard heard;
  const Copies c(true);
  for (int i = 0; i < 2; ++i) {
    for (int step = 0; step < 6; ++step) c.apply(i, c.gradient(i, 1.f + i));
  }
  EXPECT_EQ(heard.of(kReplicas).size(), 0u);
}

}  // namespace
}  // namespace berth::keras
