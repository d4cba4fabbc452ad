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

Tensor classes(int64_t n, int of) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<int32_t>(i * 7 % static_cast<size_t>(of));
  }
  return constant(std::span<const int32_t>(v), Shape{n});
}

struct Task {
  const char* name;
  Shape input;
  std::function<Sequential()> model;
  std::function<Optimizer()> optimizer = [] {
    return optimizers::SGD(0.05, {.momentum = 0.9});
  };
};

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

struct Result {
  std::vector<std::string> names;
  std::vector<Floats> variables;
  std::vector<double> losses;
};

Loss loss() {
  return losses::SparseCategoricalCrossentropy({.from_logits = true});
}

using Options = distribute::StrategyOptions;

// Trains `epochs` times on 22 examples in batches of 8: the last has 6.
Result train(const Task& task, const distribute::Strategy& strategy, int epochs,
             int64_t examples, int64_t batch, int slices = 0) {
  random::set_seed(7);
  clear_session();
  const auto scope = strategy.scope();
  Sequential model = task.model();
  const Optimizer optimizer = task.optimizer();
  model.compile({.optimizer = optimizer,
                 .loss = loss(),
                 .metrics = {"accuracy"},
                 .slices = slices});
  Shape shape{examples};
  for (int i = 0; i < task.input.rank(); ++i) shape.push_back(task.input[i]);
  const Tensor x = numbers(shape);
  const Tensor y = classes(examples, 3);
  Result r;
  const History h = model.fit(
      x, y,
      {.epochs = epochs, .batch_size = batch, .verbose = 0, .shuffle = false});
  r.losses = h.history.at("loss");
  for (double a : h.history.at("accuracy")) r.losses.push_back(a);
  const Logs logs = model.evaluate(x, y, {.batch_size = batch});
  r.losses.push_back(logs.at("loss"));
  std::vector<Variable> all = model.weights();
  for (const Variable& v : optimizer.variables()) all.push_back(v);
  for (const Variable& v : all) {
    const std::vector<double> values = v.value().to_vector<double>();
    r.names.push_back(v.name());
    r.variables.emplace_back(values.begin(), values.end());
  }
  const Floats p = model.predict(x, {.batch_size = batch}).to_vector<float>();
  r.names.push_back("predictions");
  r.variables.push_back(p);
  return r;
}

void compare(const std::string& what, const Result& a, const Result& b,
             double tolerance) {
  check(a.names == b.names && a.losses.size() == b.losses.size(),
        what + ": other variables");
  for (size_t i = 0; i < a.names.size(); ++i) {
    check(a.variables[i].size() == b.variables[i].size(), a.names[i]);
    for (size_t k = 0; k < a.variables[i].size(); ++k) {
      const double x = a.variables[i][k], y = b.variables[i][k];
      const bool close =
          std::abs(x - y) <= tolerance * std::max(1., std::abs(x));
      if (!close) std::cerr << x << " and " << y << " at " << k << "\n";
      check(close, what + ": " + a.names[i]);
    }
  }
  for (size_t i = 0; i < a.losses.size(); ++i) {
    const bool close = std::abs(a.losses[i] - b.losses[i]) <= 1e-4;
    if (!close) std::cerr << a.losses[i] << " and " << b.losses[i] << "\n";
    check(close, what + ": loss " + std::to_string(i));
  }
}

void equal_one_device(const std::vector<std::string>& devices,
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
  IN_A_FRESH_PROCESS(equal_one_device(cpus(2)));
}
TEST(StrategyFit, ThreeCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(equal_one_device(cpus(3)));
}
TEST(StrategyFit, TwoSimulatedGpusEqualOne) {
  IN_A_FRESH_PROCESS(equal_one_device(gpus(2)));
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
  IN_A_FRESH_PROCESS(equal_one_device(cpus(2), {.shares = {1, 3}}));
}

}  // namespace
}  // namespace berth::keras
