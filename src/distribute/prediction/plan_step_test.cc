// Plans of strategies for models, on simulated accelerators and core sets. No
// test checks a time on core sets.

#include "distribute/prediction/plan_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "berth/distribute.h"
#include "device/device_manager.h"
#include "distribute/strategy/strategy_testing.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using keras::Dense;

const bool kPlansKeepNoCosts = keep_no_costs();

keras::Sequential small_model() {
  keras::Sequential model({Dense(32, {.activation = "relu"}), Dense(4)});
  model.build({-1, 8});
  model.compile(
      {.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  return model;
}

void use_gpus() { config::set_simulated_devices("GPUx2"); }

void what_replicas_do() {
  use_gpus();
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto scope = strategy.scope();
  const keras::Sequential model = small_model();
  const StrategyPlan plan = strategy.plan(model, 25);
  check(plan.strategy == "MirroredStrategy" && plan.batch == 25, "the head");
  check(plan.replicas.size() == 2, "two replicas");
  check(plan.replicas[0].examples == 12 && plan.replicas[1].examples == 13,
        "examples");
  const int64_t weights = 4 * (8 * 32 + 32 + 32 * 4 + 4);
  for (const auto& r : plan.replicas) {
    check(r.devices.size() == 1, "one device each");
    check(r.compute_us > 0, "compute");
    check(r.peak_bytes > weights, "weights, and activations");
  }
  // All four weights fit one bucket, and each memory gets the other's part.
  check(plan.buckets.size() == 1, "one bucket");
  check(plan.buckets[0].variables.size() == 4, "of all weights");
  check(plan.buckets[0].bytes == weights, "and their bytes");
  // Small: each device sends the other everything.
  check(plan.buckets[0].algorithm == "exchange", plan.buckets[0].algorithm);
  check(plan.bytes_per_step >= 2 * weights, "bytes per step");
  check(plan.all_reduce_us > 0, "all-reduce");
  check(plan.unused.empty() && plan.whole.empty(), "nothing strange");
  check(plan.one_device == "GPU:0", plan.one_device);
  // Such a small step gains nothing.
  check(plan.speed_up() < 1, "no gain");
  check(plan.advice.ends_with("use GPU:0 or a larger batch"), plan.advice);
}

TEST(StrategyPlan, SaysWhatReplicasDo) {
  IN_A_FRESH_PROCESS(what_replicas_do());
}

void the_clock() {
  use_gpus();
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto scope = strategy.scope();
  keras::Sequential model = small_model();
  const StrategyPlan plan = strategy.plan(model, 64);
  const Tensor x = ones({64, 8});
  const Tensor y = zeros({64}, int32);
  for (int i = 0; i < 5; ++i) model.train_on_batch(x, y).item<float>();
  const double measured = model.placement().measured_step_us;
  check(measured > 0, "measured");
  check(std::abs(plan.step_us / measured - 1) < 0.2,
        std::to_string(plan.step_us) + " for " + std::to_string(measured));
}

TEST(StrategyPlan, PredictsTheSimulatedClock) {
  IN_A_FRESH_PROCESS(the_clock());
}

TEST(StrategyPlan, NamesVariablesWithoutAGradient) {
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
}

void plan_for_core_sets() {
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
  const MirroredStrategy strategy({"/CPU:0", "/CPU:1"});
  const auto scope = strategy.scope();
  const keras::Sequential model = small_model();
  const Tensor w = ones({8, 4});
  StepToPlan step;
  step.name = "step";
  step.args = {{Shape({64, 8}), float32, "x"}};
  step.fn = [&](const Tensors& args) {
    return Tensors{math::reduce_mean(linalg::matmul(args[0], w))};
  };
  const StrategyPlan guess = plan_step(strategy.core(), step, false);
  check(guess.step_us == 0 && guess.one_device_us == 0, "not measured");
  check(guess.all_reduce_us == 0 && guess.speed_up() == 0, "so not known");
  for (const auto& r : guess.replicas) check(r.compute_us == 0, "nor compute");
  check(guess.advice.empty(), guess.advice);
  check(guess.str().find("predicted: unknown") != std::string::npos, "text");
  const StrategyPlan plan = strategy.plan(model, 64);
  check(plan.step_us > 0 && plan.one_device_us > 0, "both sides measured");
  for (const auto& r : plan.replicas) {
    check(r.compute_us > 0 && r.compute_us <= plan.step_us, "in the step");
  }
}

TEST(StrategyPlan, MeasuresBothSidesOrSaysUnknown) {
  IN_A_FRESH_PROCESS(plan_for_core_sets());
}

void nothing_runs() {
  use_gpus();
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto scope = strategy.scope();
  const keras::Sequential model = small_model();
  const Variable w = model.trainable_variables()[0];
  const std::vector<float> before = w.value().to_vector<float>();
  strategy.plan(model, 16);
  check(w.value().to_vector<float>() == before, "weights are as they were");
  check(model.num_train_traces() == 0, "no step");
}

TEST(StrategyPlan, RunsNothing) { IN_A_FRESH_PROCESS(nothing_runs()); }

void what_is_missing() {
  use_gpus();
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto scope = strategy.scope();
  keras::Sequential fresh({Dense(4)});
  refuses<errors::FailedPrecondition>([&] { strategy.plan(fresh, 8); },
                                      "before compile()");
  fresh.compile({.optimizer = "sgd", .loss = "mse"});
  refuses<errors::FailedPrecondition>([&] { strategy.plan(fresh, 8); },
                                      "its inputs is not known");
  // The user's line, not one of a header.
  refuses<errors::FailedPrecondition>([&] { strategy.plan(fresh, 8); },
                                      " (plan_step_test.cc:");
  const keras::Sequential model = small_model();
  refuses<errors::InvalidArgument>([&] { strategy.plan(model, 1); },
                                   "the batch has 1 examples");
  refuses<errors::InvalidArgument>(
      [&] { OneDeviceStrategy("/GPU:0").plan(model, 8); }, "is compiled for");
}

TEST(StrategyPlan, TellsWhatIsMissing) {
  IN_A_FRESH_PROCESS(what_is_missing());
}

// An example needs about 4 KiB for each of the values that gradients want.
void what_does_not_fit() {
  config::set_simulated_devices("GPUx1");
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0], {{.memory_limit_mb = 24}});
  const OneDeviceStrategy strategy("/GPU:0");
  const auto scope = strategy.scope();
  keras::Sequential model({Dense(1024, {.activation = "relu"}), Dense(4)});
  model.build({-1, 8});
  model.compile(
      {.optimizer = "sgd", .loss = "sparse_categorical_crossentropy"});
  const StrategyPlan plan = strategy.plan(model, 20000);
  check(plan.too_small.size() == 1, "one device");
  check(plan.too_small[0].peak_bytes > 80 << 20, "of so much");
  check(plan.too_small[0].limit_bytes == 24 << 20, "with its limit");
  check(plan.str().find("does not fit GPU:0 (") != std::string::npos &&
            plan.str().find(" of 24 MiB)\n") != std::string::npos,
        plan.str());
  const int64_t most = plan.largest_batch;
  check(most > 100 && most < 6000, "the largest batch");
  check(strategy.plan(model, most).too_small.empty(), "which fits");
  check(!strategy.plan(model, most + 1).too_small.empty(), "one more does not");
}

TEST(StrategyPlan, SaysWhatDoesNotFitAndWhatDoes) {
  IN_A_FRESH_PROCESS(what_does_not_fit());
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
