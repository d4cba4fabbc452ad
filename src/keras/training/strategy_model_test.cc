// What else a model under a strategy does: bad batches, weights that are set
// between steps, other strategies, equal bits, the measured split.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <sstream>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::CentralStorageStrategy;
using distribute::MirroredStrategy;
using distribute::OneDeviceStrategy;
using fresh_process::check;
using fresh_process::refuses;
using Floats = std::vector<float>;

Sequential strategy_small_model() {
  random::set_seed(3);
  clear_session();
  return Sequential({InputLayer({4}), Dense(5, {.activation = "tanh"}),
                     BatchNormalization(), Dense(2)});
}

Sequential compiled(int slices = 0) {
  Sequential model = strategy_small_model();
  model.compile({.optimizer = SGD(0.1), .loss = "mse", .slices = slices});
  return model;
}

Floats all_weights(const Model& model) {
  Floats all;
  for (const Tensor& t : model.get_weights()) {
    const Floats v = t.to_vector<float>();
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

double distance(const Floats& a, const Floats& b) {
  check(a.size() == b.size(), "as many weights");
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return most;
}

const FitOptions kFit{.batch_size = 8, .verbose = 0, .shuffle = false};

// Two examples for three replicas, and one; arrays and data sets.
void take_small_batches() {
  cpus(3);
  const Tensor x = numbers({7, 4}), y = numbers({7, 2});
  const auto data = data::Dataset::from_tensor_slices({x, y});
  const auto trained = [&](bool arrays) {
    Sequential model = compiled();
    if (arrays) {
      model.fit(x, y, {.batch_size = 2, .verbose = 0, .shuffle = false});
    } else {
      model.fit(data.batch(2), {.verbose = 0});
    }
    model.train_on_batch(x[{slice(0, 1)}], y[{slice(0, 1)}]);
    const Tensor one = x[{slice(0, 1)}];
    check(model.predict(one).shape() == Shape({1, 2}), "one prediction");
    model.evaluate(one, y[{slice(0, 1)}]);
    return all_weights(model);
  };
  const Floats alone = trained(true);
  const MirroredStrategy strategy;
  const auto scope = strategy.scope();
  check(distance(trained(true), alone) < 1e-5, "arrays as on one device");
  check(distance(trained(false), alone) < 1e-5, "data as on one device");
}
TEST(StrategyModel, TakesBatchesSmallerThanTheReplicas) {
  IN_A_FRESH_PROCESS(take_small_batches());
}

void know_their_scope() {
  cpus(2);
  const MirroredStrategy strategy, other;
  const Tensor x = numbers({8, 4}), y = numbers({8, 2});
  const auto devices_used = [&](Model& model) {
    model.fit(x, y, kFit);
    size_t used = 0;
    for (const auto& d : model.placement().devices) used += d.ops > 0;
    return used;
  };
  std::optional<Sequential> model, lazy;
  {
    const auto scope = strategy.scope();
    model = strategy_small_model();
    lazy = Sequential({Dense(2)});
  }
  // Compiled outside of the scope that it was made in.
  model->compile({.optimizer = "sgd", .loss = "mse"});
  check(devices_used(*model) == 2, "a model of the strategy uses both");
  lazy->compile({.optimizer = "sgd", .loss = "mse"});
  check(devices_used(*lazy) == 2, "a model built by fit uses both");
  Sequential plain = strategy_small_model();
  plain.compile({.optimizer = "sgd", .loss = "mse"});
  check(devices_used(plain) == 1, "a model of no strategy uses one");
  refuses<errors::InvalidArgument>(
      [&] {
        const auto scope = strategy.scope();
        plain.compile({.optimizer = "sgd", .loss = "mse"});
      },
      "was made in no scope of a strategy");
  refuses<errors::InvalidArgument>(
      [&] {
        const auto scope = other.scope();
        model->compile({.optimizer = "sgd", .loss = "mse"});
      },
      "was made in the scope of another MirroredStrategy");
  std::ostringstream out;
  model->summary(out);
  check(out.str().find("CPU:0") != std::string::npos, "summary names devices");
}
TEST(StrategyModel, BelongsToTheScopeItWasMadeOrCompiledIn) {
  IN_A_FRESH_PROCESS(know_their_scope());
}

// Two steps, weights set between them.
Floats interrupted(const distribute::Strategy& strategy) {
  const auto scope = strategy.scope();
  Sequential model = compiled();
  const Tensor x = numbers({8, 4}), y = numbers({8, 2});
  model.fit(x, y, kFit);
  Tensors weights = model.get_weights();
  for (Tensor& w : weights) w = w * 0.5;
  model.set_weights(weights);
  model.train_on_batch(x, y);
  model.fit(x, y, kFit);
  Floats all = all_weights(model);
  const Floats p = model.predict(x).to_vector<float>();
  all.insert(all.end(), p.begin(), p.end());
  return all;
}

void set_weights_between_steps() {
  gpus(2);
  const Floats one = interrupted(OneDeviceStrategy("/GPU:0"));
  check(distance(interrupted(MirroredStrategy()), one) < 1e-5, "mirrored");
  check(distance(interrupted(CentralStorageStrategy()), one) < 1e-5, "central");
  check(distance(interrupted(OneDeviceStrategy("/GPU:1")), one) < 1e-5,
        "on GPU:1");
}
TEST(StrategyModel, SeesWeightsThatAreSetBetweenSteps) {
  IN_A_FRESH_PROCESS(set_weights_between_steps());
}

void central_storage() {
  cpus(3);
  const Floats one = interrupted(OneDeviceStrategy("/CPU:0"));
  check(distance(interrupted(CentralStorageStrategy()), one) < 1e-5, "central");
  check(distance(interrupted(MirroredStrategy()), one) < 1e-5, "mirrored");
}
TEST(StrategyModel, IsTheSameUnderEveryStrategyOnCoreSets) {
  IN_A_FRESH_PROCESS(central_storage());
}

void one_device_is_where_all_runs() {
  gpus(2);
  const OneDeviceStrategy strategy("/GPU:1");
  const auto scope = strategy.scope();
  Sequential model = compiled();
  model.fit(numbers({8, 4}), numbers({8, 2}), kFit);
  for (const auto& d : model.placement().devices) {
    check(d.ops == 0 || d.device.ends_with("GPU:1"), d.device);
  }
  for (const Variable& v : model.weights()) {
    check(v.device().ends_with("GPU:1"), v.name());
  }
}
TEST(StrategyModel, OfOneDeviceRunsThereAlone) {
  IN_A_FRESH_PROCESS(one_device_is_where_all_runs());
}

// 3 steps of 8, 8, 5 examples, 6 slices.
Floats sliced(const distribute::Strategy* strategy, int of_compile) {
  std::optional<distribute::StrategyGuard> scope;
  if (strategy) scope.emplace(strategy->core(), Site::here());
  Sequential model = compiled(of_compile);
  model.fit(numbers({21, 4}), numbers({21, 2}), kFit);
  return all_weights(model);
}
bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void equal_bits() {
  cpus(3);
  const Floats alone = sliced(nullptr, 6);
  const MirroredStrategy two({"/CPU:0", "/CPU:1"});
  const MirroredStrategy three({"/CPU:0", "/CPU:1", "/CPU:2"});
  const MirroredStrategy own({"/CPU:0", "/CPU:1"}, {.slices = 6});
  const OneDeviceStrategy one("/CPU:1");
  refuses<errors::InvalidArgument>([&] { sliced(&three, 2); },
                                   "2 slices for 3 replicas");
  check(same_bits(sliced(&two, 6), alone), "two replicas");
  check(same_bits(sliced(&three, 6), alone), "three replicas");
  check(same_bits(sliced(&own, 0), alone), "slices of the strategy");
  check(same_bits(sliced(&one, 6), alone), "one device of a strategy");
}
TEST(StrategyModel, HasEqualBitsWithEqualSlicesWithAStrategyOrWithout) {
  IN_A_FRESH_PROCESS(equal_bits());
}

void measured_split() {
  cpus(2);
  const MirroredStrategy strategy;
  const Tensor x = numbers({44, 4}), y = numbers({44, 2});
  History h;
  int epochs_ended = 0, batches = 0;
  {
    const auto scope = strategy.scope();
    Sequential model = compiled();
    const Callback count{.on_epoch_end =
                             [&](Model&, int, const Logs& logs) {
                               check(logs.contains("val_loss"), "validation");
                               ++epochs_ended;
                             },
                         .on_train_batch_end =
                             [&](Model& m, int64_t) {
                               if (++batches == 40) m.stop_training();
                             }};
    h = model.fit(x, y,
                  {.epochs = 100,
                   .batch_size = 8,
                   .verbose = 0,
                   .callbacks = {count},
                   .validation_data = {x, y}});
  }
  check(batches == 40 && epochs_ended == 7, "stop_training stops");
  check(h.split.has_value(), "a split after 20 steps");
  const MeasuredSplit& s = *h.split;
  check(s.steps == 20 && s.replicas.size() == 2, "20 steps, 2 replicas");
  check(s.replicas[0].examples == 4 && s.replicas[1].examples == 4, "shares");
  check(s.replicas[0].compute_us > 0 && s.replicas[1].compute_us > 0, "times");
  check(s.step_us > 0 && s.imbalance() >= 0 && s.imbalance() <= 1, "step");
  check(s.replicas[1].devices[0].ends_with("CPU:1"), "devices");
  check(s.slowest_us() <= s.step_us * 1.0001, "replicas compute in the step");
  check(s.slowest_us() + s.other_us() <= s.step_us * 1.0001, "waits, too");
  for (const char* part : {"replica 1", "CPU:1", "4 examples", "all-reduce",
                           "input", "imbalance"}) {
    check(s.str().find(part) != std::string::npos, part);
  }
  check(s.predicted_us < 0, "nobody has asked for a plan");
  check(s.str().find("predicted") == std::string::npos, "so none is compared");
  {
    const auto scope = strategy.scope();
    Sequential model({InputLayer({4}), Dense(6), Dense(2)});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const auto plan = strategy.plan(model, 8);
    h = model.fit(x, y, {.epochs = 5, .batch_size = 8, .verbose = 0});
    check(plan.step_us > 0 && h.split->predicted_us == plan.step_us,
          "what the plan says");
    check(h.split->str().find("predicted") != std::string::npos, "is compared");
  }
  Sequential alone = compiled();
  const auto plain = alone.fit(
      x, y, {.epochs = 5, .batch_size = 8, .verbose = 0, .shuffle = false});
  check(!plain.split, "no split without a strategy");
}
TEST(StrategyModel, MeasuresTheSplitOfAStepAfterTwentySteps) {
  IN_A_FRESH_PROCESS(measured_split());
}

// Dropout and shuffling draw the same with a plan before and without.
void plan_changes_nothing() {
  cpus(2);
  const MirroredStrategy strategy;
  const auto train = [&](bool plan) {
    const auto scope = strategy.scope();
    random::set_seed(3);
    clear_session();
    Sequential model({InputLayer({4}), Dense(6), Dropout(0.5), Dense(2)});
    model.compile({.optimizer = SGD(0.1), .loss = "mse"});
    if (plan) check(strategy.plan(model, 8).batch == 8, "a plan of 8");
    model.fit(numbers({24, 4}), numbers({24, 2}),
              {.batch_size = 8, .verbose = 0});
    return all_weights(model);
  };
  const Floats without = train(false);
  check(distance(train(true), without) < 1e-6, "as without a plan");
}
TEST(StrategyModel, APlanBeforeFitChangesNothing) {
  IN_A_FRESH_PROCESS(plan_changes_nothing());
}

TEST(MeasuredSplit, AddsUp) {
  MeasuredSplit s;
  s.replicas = {{{"/device:CPU:0"}, 6, 300}, {{"/device:CPU:1"}, 2, 100}};
  s.step_us = 400;
  s.all_reduce_us = 30;
  s.predicted_us = 300;
  EXPECT_DOUBLE_EQ(s.slowest_us(), 300);
  EXPECT_DOUBLE_EQ(s.imbalance(), 0.5);
  EXPECT_DOUBLE_EQ(s.other_us(), 70);
  EXPECT_DOUBLE_EQ(s.prediction_error(), -0.25);
  EXPECT_NE(s.str().find("(-25 %)"), std::string::npos) << s.str();
}

void simulated_split() {
  gpus(2);
  config::list_logical_devices();  // creates them
  const std::string gpu = "/job:localhost/replica:0/task:0/device:GPU:";
  MeasuredSplit s;
  s.replicas = {{{gpu + "0"}, 4, 300}, {{gpu + "1"}, 4, 300}};
  s.step_us = 400;
  s.predicted_us = 300;
  check(s.str().find("per step (simulated times; the wait for input is wall "
                     "time)") != std::string::npos,
        s.str());
  check(s.str().find("(-25 %)") != std::string::npos, s.str());
  s.replicas[1].devices = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  check(s.str().find("%)") == std::string::npos, "no error of both clocks");
}
TEST(MeasuredSplit, MarksTimesOfAVirtualClock) {
  IN_A_FRESH_PROCESS(simulated_split());
}

// The second of three layers on the second device of its replica.
Floats spread(const distribute::Strategy& strategy) {
  const auto scope = strategy.scope();
  random::set_seed(3);
  clear_session();
  Sequential model({
      InputLayer({4}),
      Dense(6, {.activation = "tanh"}),
      with_device("/GPU:1", [] { return Dense(5, {.activation = "tanh"}); }),
      Dense(2),
  });
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.fit(numbers({20, 4}), numbers({20, 2}), kFit);
  for (const auto& d : model.placement().devices) {
    check(d.ops > 0 || d.device.find("CPU") != std::string::npos, d.device);
  }
  return all_weights(model);
}

void replicas_of_two() {
  gpus(4);
  const Heard heard;
  const MirroredStrategy pairs(
      distribute::StrategyOptions{.devices_per_replica = 2});
  check(pairs.num_replicas_in_sync() == 2, "two replicas");
  const MirroredStrategy pair({"/GPU:0", "/GPU:1"}, {.devices_per_replica = 2});
  check(pair.num_replicas_in_sync() == 1, "one replica");
  const Floats two = spread(pairs);
  check(heard.of("strategy-scope-ignored").empty(), "scopes count");
  check(two.size() == 4 * 6 + 6 + 6 * 5 + 5 + 5 * 2 + 2, "weights");
  // Every device has work, so that one replica is compared by hand.
  random::set_seed(3);
  clear_session();
  Sequential model({InputLayer({4}), Dense(6, {.activation = "tanh"}),
                    Dense(5, {.activation = "tanh"}), Dense(2)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.fit(numbers({20, 4}), numbers({20, 2}), kFit);
  check(distance(two, all_weights(model)) < 1e-4, "as on one device");
}
TEST(StrategyModel, AReplicaMaySpanDevicesThatItsScopesNameByNumber) {
  IN_A_FRESH_PROCESS(replicas_of_two());
}

void scopes_in_a_replica_of_one() {
  gpus(2);
  const Heard heard;
  const Floats both = spread(MirroredStrategy());
  check(heard.of("strategy-scope-ignored").size() == 1, "said once");
  check(both.size() > 50, "it trains");
}
TEST(StrategyModel, ScopesInsideAReplicaOfOneDeviceAreNamedAndIgnored) {
  IN_A_FRESH_PROCESS(scopes_in_a_replica_of_one());
}

// A custom loop as articles write it: the scope ends before the loop.
void custom_loop_outside() {
  gpus(2);
  const Heard heard;
  const MirroredStrategy strategy;
  std::optional<Sequential> model;
  std::optional<SGD> optimizer;
  {
    const auto scope = strategy.scope();
    model = strategy_small_model();
    optimizer.emplace(0.1);
  }
  const Tensor x = numbers({8, 4}), y = numbers({8, 2});
  const auto step = [&] {
    GradientTape tape;
    const Tensor loss = Loss("mse")(y, (*model)(x, true));
    const auto variables = model->trainable_variables();
    optimizer->apply_gradients(tape.gradient(loss, variables), variables);
  };
  const Floats before = all_weights(*model);
  for (int i = 0; i < 3; ++i) step();
  const std::string text = heard.text_of("not-distributed");
  for (const char* part : {"MirroredStrategy with 2 replicas", "GPU:0",
                           "strategy_model_test.cc:", "strategy.run(step"}) {
    check(text.find(part) != std::string::npos, text);
  }
  check(distance(all_weights(*model), before) > 0, "it trains");
  refuses<errors::FailedPrecondition>(
      [&] {
        const auto scope = strategy.scope();
        step();
      },
      "apply_gradients() in cross-replica context");
  const auto traced = function([&](const Tensor&) {
    step();
    return constant(0.f);
  });
  refuses<errors::FailedPrecondition>(
      [&] {
        const auto scope = strategy.scope();
        traced(x);
      },
      "expected strategy.run(step, batch)");
  // fit of the same model is in order.
  model->compile({.optimizer = "sgd", .loss = "mse"});
  model->fit(x, y, kFit);
  check(heard.of("not-distributed").size() == 1, "said once");
}
TEST(StrategyModel, ACustomLoopOutsideOfRunIsNamed) {
  IN_A_FRESH_PROCESS(custom_loop_outside());
}

}  // namespace
}  // namespace berth::keras
