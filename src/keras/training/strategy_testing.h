// What tests of models under strategies share: devices, on any machine, and
// numbers to learn from. Tests only.

#ifndef BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_
#define BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_

#include <cmath>
#include <functional>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/gpu_testing.h"

namespace berth::keras {

// So many devices of one kind. Return their names. Core sets share the cores.
inline std::vector<std::string> cpus(int n) {
  test::use_no_gpus();
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      std::vector<config::LogicalDeviceConfiguration>(
          static_cast<size_t>(n), {.workers = 2, .shared = true}));
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back("/CPU:" + std::to_string(i));
  return names;
}
inline std::vector<std::string> gpus(int n) {
  test::use_gpus(n);
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back("/GPU:" + std::to_string(i));
  return names;
}

inline Tensor numbers(const Shape& shape, float scale = 0.02f) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = scale * static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  }
  return constant(std::span<const float>(v), shape);
}

inline Tensor classes(int64_t n, int of) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<int32_t>(i * 7 % static_cast<size_t>(of));
  }
  return constant(std::span<const int32_t>(v), Shape{n});
}

// A model to train, and how.
struct Task {
  const char* name;
  Shape input;
  std::function<Sequential()> model;
  std::function<Optimizer()> optimizer = [] {
    return optimizers::SGD(0.05, {.momentum = 0.9});
  };
};

// What it learned: losses, metrics, every variable, predictions.
struct TrainedModel {
  std::vector<std::string> names;
  std::vector<std::vector<float>> variables;
  std::vector<double> losses;
};

inline Loss loss() {
  return losses::SparseCategoricalCrossentropy({.from_logits = true});
}

// Trains `epochs` times, evaluates and predicts.
inline TrainedModel train(const Task& task,
                          const distribute::Strategy& strategy, int epochs,
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
  TrainedModel r;
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
  const std::vector<float> p =
      model.predict(x, {.batch_size = batch}).to_vector<float>();
  r.names.push_back("predictions");
  r.variables.push_back(p);
  return r;
}

inline void compare(const std::string& what, const TrainedModel& a,
                    const TrainedModel& b, double tolerance) {
  fresh_process::check(a.names == b.names && a.losses.size() == b.losses.size(),
                       what + ": other variables");
  for (size_t i = 0; i < a.names.size(); ++i) {
    fresh_process::check(a.variables[i].size() == b.variables[i].size(),
                         a.names[i]);
    for (size_t k = 0; k < a.variables[i].size(); ++k) {
      const double x = a.variables[i][k], y = b.variables[i][k];
      const bool close =
          std::abs(x - y) <= tolerance * std::max(1., std::abs(x));
      if (!close) std::cerr << x << " and " << y << " at " << k << "\n";
      fresh_process::check(close, what + ": " + a.names[i]);
    }
  }
  for (size_t i = 0; i < a.losses.size(); ++i) {
    const bool close = std::abs(a.losses[i] - b.losses[i]) <= 1e-4;
    if (!close) std::cerr << a.losses[i] << " and " << b.losses[i] << "\n";
    fresh_process::check(close, what + ": loss " + std::to_string(i));
  }
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_STRATEGY_TESTING_H_
