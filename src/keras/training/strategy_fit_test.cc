// fit under a strategy is fit on one device: gradients after one step, losses
// after 20, every variable compared. Devices are configured once per process,
// so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::MirroredStrategy;
using fresh_process::check;
using fresh_process::refuses;
using Floats = std::vector<float>;

std::vector<Task> tasks() {
  return {
      {"dense",
       {6},
       [] {
         return Sequential({Dense(8, {.activation = "relu"}), Dense(3)});
       },
       [] { return Adam(0.01); }},
      {"conv",
       {8, 8, 2},
       [] {
         return Sequential({Conv2D(4, {3, 3}, {.activation = "relu"}),
                            MaxPooling2D({2, 2}), Flatten(), Dense(3)});
       }},
      {"batch norm",
       {6},
       [] {
         return Sequential(
             {Dense(8), BatchNormalization(), Activation("relu"), Dense(3)});
       }},
      {"dropout",
       {6},
       [] {
         return Sequential(
             {Dense(16, {.activation = "tanh"}), Dropout(0.5), Dense(3)});
       }},
  };
}

using Options = distribute::StrategyOptions;

void strategy_equals_one_device(const std::vector<std::string>& devices,
                                const Options& options = {}) {
  const distribute::OneDeviceStrategy one(devices[0]);
  const MirroredStrategy all(devices, options);
  for (const Task& t : tasks()) {
    std::cerr << t.name << "\n";
    // One step; 21 steps with a last batch of 6 of 8; one whose last batch of
    // 1 leaves replicas without examples.
    compare(std::string(t.name) + ", one step", train(t, one, 1, 8, 8),
            train(t, all, 1, 8, 8), 1e-5);
    compare(std::string(t.name) + ", 21 steps", train(t, one, 7, 22, 8),
            train(t, all, 7, 22, 8), 2e-3);
    compare(std::string(t.name) + ", empty shares", train(t, one, 1, 9, 8),
            train(t, all, 1, 9, 8), 1e-4);
  }
}

TEST(StrategyFit, TwoCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(strategy_equals_one_device(cpus(2)));
}
TEST(StrategyFit, ThreeCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(strategy_equals_one_device(cpus(3)));
}
TEST(StrategyFit, TwoSimulatedGpusEqualOne) {
  IN_A_FRESH_PROCESS(strategy_equals_one_device(gpus(2)));
}
// A label that is out of range fails a step on the last core set. Its error is
// told once; other models train on.
void a_bad_label_is_told_once() {
  const MirroredStrategy strategy({.devices = cpus(2)});
  const auto scope = strategy.scope();
  const auto fit = [](int bad) {
    Sequential model({Dense(3)});
    model.compile({.optimizer = "sgd", .loss = loss()});
    std::vector<int32_t> labels(8, 1);
    labels[7] = bad;
    model.fit(numbers({8, 6}),
              constant(std::span<const int32_t>(labels), Shape{8}),
              {.batch_size = 8, .verbose = 0});
  };
  fit(2);
  for (int i = 0; i < 3; ++i) {
    refuses<errors::InvalidArgument>([&] { fit(7); }, "7");
    fit(0);
  }
}
TEST(StrategyFit, ABadLabelIsToldOnce) {
  IN_A_FRESH_PROCESS(a_bad_label_is_told_once());
}

TEST(StrategyFit, UnequalSharesEqualOneDevice) {
  IN_A_FRESH_PROCESS(strategy_equals_one_device(cpus(2), {.shares = {1, 3}}));
}

}  // namespace
}  // namespace berth::keras
