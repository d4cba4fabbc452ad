// Automatic shares, on simulated accelerators with a clock of their own and on
// core sets, where no test checks a time.

#include "distribute/strategy/rebalance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "berth/distribute.h"
#include "device/device_manager.h"
#include "distribute/strategy/strategy_testing.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using keras::Dense;

const bool kMoversKeepNoCosts = keep_no_costs();

void use_slow_gpus(int gpus) {
  DeviceManager::configure("a test", Site::here(), [=](RuntimeConfig& c) {
    c.simulated_gpus = gpus;
    c.sim_flops_per_second = 1e9;
    c.sim_bytes_per_second = 1e9;
    c.sim_link_bytes_per_second = 1e11;
  });
}

keras::Sequential a_model() {
  keras::Sequential model({Dense(48, {.activation = "tanh"}), Dense(4)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

std::vector<int> shares_of(const Strategy& s) { return s.core()->shares(); }

// One epoch of `steps` steps on 64 examples each.
keras::History train(keras::Sequential& model, int steps) {
  const int64_t n = 64 * steps;
  return model.fit(ones({n, 32}), zeros({n, 4}),
                   {.batch_size = 64, .verbose = 0});
}

void equal_devices() {
  use_slow_gpus(2);
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"}, {.shares = Auto});
  const auto scope = strategy.scope();
  keras::Sequential model = a_model();
  strategy.core()->set_shares({28, 4});
  const keras::History h = train(model, 60);
  const std::vector<int> shares = shares_of(strategy);
  check(shares[0] >= 14 && shares[0] <= 18, shares_text(shares));
  check(shares[0] + shares[1] == 32, "all slices");
  check(h.shares.starts_with("shares 28:4 -> " + shares_text(shares)),
        h.shares);
  check(h.shares.ends_with(" us, simulated"), h.shares);
}

TEST(Rebalancer, MovesSlicesUntilEqualDevicesHaveEqualShares) {
  IN_A_FRESH_PROCESS(equal_devices());
}

// Shares that move give the results of shares that stay.
void same_result() {
  use_slow_gpus(3);
  std::vector<std::vector<float>> weights;
  for (const bool moves : {true, false}) {
    const MirroredStrategy strategy(
        {"/GPU:0", "/GPU:1", "/GPU:2"},
        {.shares = moves ? Shares(Auto) : Shares({1, 1, 1}), .slices = 32});
    const auto scope = strategy.scope();
    random::set_seed(7);
    keras::Sequential model = a_model();
    if (moves) strategy.core()->set_shares({20, 6, 6});
    train(model, 30);
    if (moves) check(shares_of(strategy)[0] < 14, "slices have moved");
    weights.push_back(
        model.trainable_variables()[0].value().to_vector<float>());
  }
  check(weights[0] == weights[1], "equal bits");
}

TEST(Rebalancer, ChangesNoBitOfWhatIsLearned) {
  IN_A_FRESH_PROCESS(same_result());
}

void start_by_cores() {
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true}, {.workers = 3, .shared = true}});
  const MirroredStrategy strategy({"/CPU:0", "/CPU:1"}, {.shares = Auto});
  check(shares_by_speed(*strategy.core()) == std::vector<int>({8, 24}),
        "a quarter, and the rest");
  start_shares(*strategy.core());
  check(shares_of(strategy) == std::vector<int>({8, 24}), "set");
  strategy.core()->set_shares({10, 22});
  start_shares(*strategy.core());
  check(shares_of(strategy) == std::vector<int>({10, 22}), "once only");
}

TEST(Rebalancer, BeginsWithTheCoresOfEachDevice) {
  IN_A_FRESH_PROCESS(start_by_cores());
}

void fixed_shares() {
  use_slow_gpus(2);
  const MirroredStrategy strategy({"/GPU:0", "/GPU:1"}, {.shares = {7, 1}});
  const auto scope = strategy.scope();
  keras::Sequential model = a_model();
  check(train(model, 30).shares.empty(), "nothing moved");
  check(shares_of(strategy) == std::vector<int>({28, 4}), "as given");
}

TEST(Rebalancer, LeavesSharesAloneThatWereGiven) {
  IN_A_FRESH_PROCESS(fixed_shares());
}

// CPU:0 has memory for a part of what half of the batch needs.
void little_memory() {
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.workers = 1, .shared = true, .memory_limit_mb = 24},
       {.workers = 1, .shared = true}});
  const MirroredStrategy strategy({"/CPU:0", "/CPU:1"}, {.shares = Auto});
  const auto scope = strategy.scope();
  keras::Sequential model({Dense(512, {.activation = "tanh"}),
                           Dense(512, {.activation = "tanh"}), Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const auto on = device("/CPU:1");
  const Tensor x = ones({8192, 8}), y = zeros({8192, 1});
  model.train_on_batch(x, y);
  const std::vector<int> shares = shares_of(strategy);
  check(shares[0] < 16 && shares[0] + shares[1] == 32, shares_text(shares));
}

TEST(Rebalancer, KeepsWithinTheMemoryOfDevices) {
  IN_A_FRESH_PROCESS(little_memory());
}

}  // namespace
}  // namespace berth::distribute
