// State divided over replicas: the most bytes that a device holds against
// closed forms and the plan, what users read and assign between steps,
// checkpoints under other strategies, and what is refused by name.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "berth/berth.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using distribute::MirroredStrategy;
using distribute::Sharding;

const std::vector<std::string> kGpus = {"/GPU:0", "/GPU:1", "/GPU:2", "/GPU:3"};
constexpr int64_t kWidth = 256, kLayers = 16;
constexpr int64_t kLayer = 4 * kWidth * (kWidth + 1);  // bytes
constexpr int64_t kVariables = kLayers * kLayer;

// Layers of one size, whose activations are small beside them.
keras::Model chain() {
  std::vector<keras::Layer> layers;
  for (int64_t i = 0; i < kLayers; ++i) {
    layers.push_back(keras::Dense(kWidth, {.activation = "relu"}));
  }
  auto model = keras::Sequential(layers);
  model.build({-1, kWidth});
  model.compile({.optimizer = "adam", .loss = "mse"});
  return model;
}

struct Peak {
  Sharding sharding;
  double pack;    // over a layer
  double closed;  // bytes of a device
};

class ShardingPeak : public testing::TestWithParam<Peak> {};

TEST_P(ShardingPeak, IsTheClosedFormAndThePlan) {
  std::vector<size_t> before;
  for (const std::string& gpu : kGpus) {
    before.push_back(config::get_memory_info(gpu).current_bytes);
  }
  const auto pack = static_cast<int64_t>(GetParam().pack * kLayer);
  const MirroredStrategy strategy(kGpus,
                                  {.communication = {.bytes_per_pack = pack},
                                   .sharding = GetParam().sharding});
  const auto scope = strategy.scope();
  auto model = chain();
  const Tensor x = zeros({16, kWidth});
  model.train_on_batch(x, x);
  for (const std::string& gpu : kGpus) config::reset_memory_stats(gpu);
  model.train_on_batch(x, x);
  const auto plan = strategy.plan(model, 16);
  for (size_t k = 0; k < kGpus.size(); ++k) {
    const auto held = static_cast<double>(
        config::get_memory_info(kGpus[k]).peak_bytes - before[k]);
    EXPECT_LE(held, 1.05 * GetParam().closed) << kGpus[k];
    EXPECT_GE(held, 0.7 * GetParam().closed) << kGpus[k];
    const auto planned = static_cast<double>(plan.replicas[k].peak_bytes);
    EXPECT_NEAR(held / planned, 1, 0.03) << kGpus[k];
  }
}

constexpr double kP = kVariables, kN = 4;
INSTANTIATE_TEST_SUITE_P(
    Adam, ShardingPeak,
    testing::Values(
        // Variables, gradients; slots.
        Peak{Sharding::kOptimizer, 1, 2 * kP + 2 * kP / kN},
        // Variables; slots, the parts of gradients; two layers' gradients.
        Peak{Sharding::kGradients, 1, kP + 3 * kP / kN + 2 * kLayer},
        // Everything by parts; two layers' variables.
        Peak{Sharding::kParameters, 1, 4.0 * kP / kN + 2 * kLayer},
        // A gradient of more than a pack is a pack.
        Peak{Sharding::kOptimizer, 0.25, 2 * kP + 2 * kP / kN},
        Peak{Sharding::kGradients, 0.25, kP + 3 * kP / kN + 2 * kLayer},
        Peak{Sharding::kParameters, 0.25, 4.0 * kP / kN + 2 * kLayer}),
    [](const auto& info) {
      return "level_" + std::to_string(info.index % 3 + 1) +
             (info.index < 3 ? "" : "_small_packs");
    });

// Sizes that no number of devices divides.
keras::Model odd(double clipnorm) {
  keras::clear_session();
  random::set_seed(5);
  auto model = keras::Sequential({keras::Dense(37, {.activation = "tanh"}),
                                  keras::Dense(29, {.activation = "tanh"}),
                                  keras::Dense(3)});
  model.build({-1, 11});
  model.compile({.optimizer = keras::Adam(0.01, {.global_clipnorm = clipnorm}),
                 .loss = "mse"});
  return model;
}

void steps(keras::Model& model, int n) {
  random::set_seed(6);
  const Tensor x = random::normal({15, 11}), y = random::normal({15, 3});
  for (int i = 0; i < n; ++i) model.train_on_batch(x, y);
}

Values everything(const keras::Model& model) {
  Values all = values_of(model.weights());
  for (auto& v : values_of(model.optimizer().variables())) all.push_back(v);
  return all;
}

template <class Fn>
void on_each_level(const Fn& fn) {
  for (const Sharding level :
       {Sharding::kOptimizer, Sharding::kGradients, Sharding::kParameters}) {
    SCOPED_TRACE(static_cast<int>(level));
    fn(MirroredStrategy(kGpus, {.sharding = level}));
  }
}

TEST(ShardingState, ClippingByTheNormOfAllGradientsIsThatOfOneDevice) {
  auto one = odd(0.01);
  steps(one, 4);
  on_each_level([&](const MirroredStrategy& strategy) {
    const auto scope = strategy.scope();
    auto model = odd(0.01);
    steps(model, 4);
    EXPECT_EQ(difference(everything(model), everything(one), 1e-5), "");
  });
}

TEST(ShardingState, VariablesAreReadAndAssignedWholeBetweenSteps) {
  const auto halve = [](keras::Model& model) {
    for (const Variable& v : model.weights()) v.assign(v.value() * 0.5);
  };
  auto one = odd(0);
  steps(one, 2);
  const Values after_two = everything(one);
  halve(one);
  steps(one, 2);
  on_each_level([&](const MirroredStrategy& strategy) {
    const auto scope = strategy.scope();
    auto model = odd(0);
    steps(model, 2);
    EXPECT_EQ(difference(everything(model), after_two, 1e-5), "");
    halve(model);
    steps(model, 2);
    EXPECT_EQ(difference(everything(model), everything(one), 1e-5), "");
  });
}

TEST(ShardingState, CheckpointsAreRestoredUnderAnyOtherStrategy) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("berth_sharding_" + std::to_string(::getpid()));
  auto whole = odd(0);
  steps(whole, 4);
  const std::vector<Sharding> levels = {Sharding::kNone, Sharding::kOptimizer,
                                        Sharding::kParameters};
  for (const Sharding from : levels) {
    std::string path;
    {
      const MirroredStrategy strategy(kGpus, {.sharding = from});
      const auto scope = strategy.scope();
      auto model = odd(0);
      steps(model, 2);
      path = train::Checkpoint({{"model", model}}).save(file.string());
    }
    for (const Sharding to : levels) {
      SCOPED_TRACE(testing::Message()
                   << static_cast<int>(from) << " -> " << static_cast<int>(to));
      const MirroredStrategy strategy({"/GPU:2", "/GPU:0", "/GPU:1"},
                                      {.sharding = to});
      const auto scope = strategy.scope();
      auto model = odd(0);
      steps(model, 1);  // its parts have other values
      train::Checkpoint({{"model", model}}).restore(path).assert_consumed();
      steps(model, 2);
      EXPECT_EQ(difference(everything(model), everything(whole), 1e-5), "");
    }
  }
}

template <class Fn>
void expect_refused(const Fn& fn, const std::string& text) {
  try {
    fn();
    ADD_FAILURE() << "nothing was thrown; expected \"" << text << "\"";
  } catch (const errors::Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(ShardingState, WhatCannotBeDividedIsRefusedByName) {
  constexpr Sharding kLevel = Sharding::kGradients;
  using Options = distribute::StrategyOptions;
  expect_refused(
      [] { distribute::CentralStorageStrategy(Options{.sharding = kLevel}); },
      "MirroredStrategy");
  expect_refused(
      [] {
        MirroredStrategy(kGpus, {.devices_per_replica = 2, .sharding = kLevel});
      },
      "devices_per_replica 1");
  expect_refused(
      [] {
        MirroredStrategy(kGpus,
                         {.cross_device_ops = distribute::CrossDeviceOps::kRing,
                          .sharding = kLevel});
      },
      "kDirect");
  expect_refused(
      [] {
        MirroredStrategy({"/CPU:0", "/GPU:0"}, {.sharding = kLevel});
      },
      "memory of their own");
  const MirroredStrategy strategy(kGpus, {.sharding = kLevel});
  expect_refused(
      [&] { strategy.run([](const Tensor& x) { return x; }, ones({2})); },
      "run()");
}

}  // namespace
}  // namespace berth::strategy_suite
