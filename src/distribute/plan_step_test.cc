// Plans of strategies: of models, on simulated accelerators and core sets. No
// test asks how long anything takes on cores.

#include "distribute/plan_step.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fresh_process.h"
#include "berth/berth.h"
#include "berth/distribute.h"
#include "device/device_manager.h"

namespace berth::distribute {
namespace {

using keras::Dense;

// Devices are those of a process: other tests want none of these.
void on_gpus(const std::function<void()>& body) {
  IN_A_FRESH_PROCESS(({
    setenv("BERTH_SIM", "GPUx2", 1);
    setenv("BERTH_CACHE_DIR", "", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "", 1);
    body();
    if (testing::Test::HasFailure()) std::_Exit(1);
  }));
}

keras::Sequential small_model() {
  keras::Sequential model({Dense(32, {.activation = "relu"}), Dense(4)});
  model.build({-1, 8});
  model.compile(
      {.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  return model;
}

TEST(StrategyPlan, SaysWhatReplicasDo) {
  on_gpus([] {
    const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
    const auto scope = strategy.scope();
    const keras::Sequential model = small_model();
    const StrategyPlan plan = strategy.plan(model, 25);
    EXPECT_EQ(plan.strategy, "MirroredStrategy");
    EXPECT_EQ(plan.batch, 25);
    ASSERT_EQ(plan.replicas.size(), 2u);
    EXPECT_EQ(plan.replicas[0].examples + plan.replicas[1].examples, 25);
    EXPECT_GE(plan.replicas[1].examples, 12);
    for (const auto& r : plan.replicas) {
      ASSERT_EQ(r.devices.size(), 1u);
      EXPECT_GT(r.compute_us, 0);
      // Weights and the activations of 12 examples.
      EXPECT_GT(r.peak_bytes, 4 * (8 * 32 + 32 + 32 * 4 + 4));
    }
    // All four weights fit one bucket, and each memory gets the other's part.
    ASSERT_EQ(plan.buckets.size(), 1u);
    EXPECT_EQ(plan.buckets[0].variables.size(), 4u);
    EXPECT_EQ(plan.buckets[0].bytes, 4 * (8 * 32 + 32 + 32 * 4 + 4));
    EXPECT_EQ(plan.buckets[0].algorithm, "direct");
    EXPECT_GE(plan.bytes_per_step, 2 * plan.buckets[0].bytes);
    EXPECT_GT(plan.all_reduce_us, 0);
    EXPECT_TRUE(plan.unused.empty());
    EXPECT_TRUE(plan.whole.empty());
    EXPECT_EQ(plan.one_device, "GPU:0");
    // So small a step gains nothing.
    EXPECT_LT(plan.speed_up(), 1);
    EXPECT_NE(plan.advice.find("use GPU:0 or a larger batch"),
              std::string::npos)
        << plan.advice;
  });
}

TEST(StrategyPlan, PredictsTheSimulatedClock) {
  on_gpus([] {
    const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
    const auto scope = strategy.scope();
    keras::Sequential model = small_model();
    const StrategyPlan plan = strategy.plan(model, 64);
    const Tensor x = ones({64, 8});
    const Tensor y = zeros({64}, int32);
    for (int i = 0; i < 5; ++i) model.train_on_batch(x, y).item<float>();
    const double measured = model.placement().measured_step_us;
    ASSERT_GT(measured, 0);
    EXPECT_NEAR(plan.step_us / measured, 1, 0.2);
  });
}

TEST(StrategyPlan, NamesVariablesWithoutAGradient) {
  on_gpus([] {
    const Variable a(ones({2}), {.name = "a"}), b(ones({2}), {.name = "b"});
    StepToPlan step;
    step.name = "step";
    step.args = {{Shape({4, 2}), float32, "x"}};
    step.trainable = {a, b};
    step.fn = [&](const Tensors& args) {
      GradientTape tape;
      const Tensor loss = math::reduce_sum(args[0] * a.value());
      a.assign_sub(tape.gradient(loss, std::vector<Variable>{a})[0]);
      return Tensors{loss};
    };
    const auto core = OneDeviceStrategy("/CPU:0").core();
    const StrategyPlan plan = plan_step(core, step, false);
    EXPECT_EQ(plan.unused, (std::vector<std::string>{"b"}));
    EXPECT_EQ(plan.replicas.size(), 1u);
    EXPECT_EQ(plan.advice, "");
    EXPECT_EQ(a.value().to_vector<float>(), (std::vector<float>{1, 1}));
  });
}

TEST(StrategyPlan, RunsNothing) {
  on_gpus([] {
    const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
    const auto scope = strategy.scope();
    const keras::Sequential model = small_model();
    const std::vector<float> before =
        model.trainable_variables()[0].value().to_vector<float>();
    strategy.plan(model, 16);
    EXPECT_EQ(model.trainable_variables()[0].value().to_vector<float>(),
              before);
    EXPECT_EQ(model.num_train_traces(), 0);
  });
}

TEST(StrategyPlan, TellsWhatIsMissing) {
  on_gpus([] {
    const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
    const auto scope = strategy.scope();
    keras::Sequential fresh({Dense(4)});
    EXPECT_THROW(strategy.plan(fresh, 8), errors::FailedPrecondition);
    fresh.compile({.optimizer = "sgd", .loss = "mse"});
    EXPECT_THROW(strategy.plan(fresh, 8), errors::FailedPrecondition);
    const keras::Sequential model = small_model();
    EXPECT_THROW(strategy.plan(model, 1), errors::InvalidArgument);
    EXPECT_THROW(OneDeviceStrategy("/GPU:0").plan(model, 8),
                 errors::InvalidArgument);
  });
}

TEST(StrategyAdvice, SpeaksOfOneMemoryBus) {
  StrategyPlan plan;
  plan.replicas.resize(4);
  plan.step_us = 100;
  plan.one_device_us = 108;
  plan.one_device = "one device with 4 cores";
  EXPECT_EQ(advice_for(plan, true),
            "4 replicas on one memory bus: 1.1x; use one device with 4 cores");
  plan.one_device_us = 150;
  EXPECT_EQ(advice_for(plan, true), "");
}

void plan_core_sets() {
  using fresh_process::check;
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
  const MirroredStrategy strategy({"/CPU:0", "/CPU:1"}, {.shares = {1, 3}});
  const auto scope = strategy.scope();
  const StrategyPlan plan = strategy.plan(small_model(), 64);
  check(plan.replicas[0].examples == 16, "a quarter");
  check(plan.replicas[1].examples == 48, "and the rest");
  check(plan.replicas[1].slices == 24, "24 of 32 slices");
  check(plan.buckets.size() == 1, "one bucket");
  check(plan.buckets[0].algorithm == "shared memory", "one memory");
  check(plan.bytes_per_step == 0, "nothing is copied");
  check(plan.step_us > 0, "a prediction");
  check(plan.one_device.starts_with("one device with"), plan.one_device);
}

TEST(StrategyPlan, OfCoreSetsWithUnequalShares) {
  IN_A_FRESH_PROCESS(plan_core_sets());
}

}  // namespace
}  // namespace berth::distribute
