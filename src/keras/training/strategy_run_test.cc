// Custom loops through strategy.run(): with keras' losses, optimizers and
// metrics they are what one device computes on the global batch.

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::MirroredStrategy;
using distribute::PerReplica;
using distribute::ReduceOp;
using fresh_process::check;
using Floats = std::vector<float>;

Tensor classes(int64_t n) {
  std::vector<int32_t> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<int32_t>(i * 7 % 3);
  return constant(std::span<const int32_t>(v), Shape{n});
}

struct RunResult {
  std::vector<double> losses;
  Floats values;  // of all variables, metrics too
};

void compare(const RunResult& a, const RunResult& b, const std::string& what) {
  check(
      a.values.size() == b.values.size() && a.losses.size() == b.losses.size(),
      what + ": as many values");
  for (size_t i = 0; i < a.losses.size(); ++i) {
    if (std::abs(a.losses[i] - b.losses[i]) > 1e-4) {
      std::cerr << a.losses[i] << " and " << b.losses[i] << "\n";
    }
    check(std::abs(a.losses[i] - b.losses[i]) <= 1e-4,
          what + ": loss " + std::to_string(i));
  }
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (std::abs(x - y) > 1e-4 * std::max(1., std::abs(x))) {
      std::cerr << x << " and " << y << "\n";
    }
    check(std::abs(x - y) <= 1e-4 * std::max(1., std::abs(x)),
          what + ": value " + std::to_string(i));
  }
}

Sequential make_model() {
  random::set_seed(5);
  clear_session();
  // Built by its first call, which is in a replica.
  return Sequential({Dense(8, {.activation = "relu"}), Dense(3)});
}

// Four epochs over 21 examples in batches of 8, 8 and 5; with `rest` the last
// has that many instead.
data::Dataset make_data(int64_t rest) {
  const int64_t n = 16 + rest;
  return data::Dataset::from_tensor_slices({numbers({n, 6}), classes(n)})
      .batch(8);
}

void keep(const Model& model, const Optimizer& optimizer, const Metric& metric,
          RunResult* r) {
  std::vector<Variable> all = model.weights();
  for (const Variable& v : optimizer.variables()) all.push_back(v);
  all.push_back(metric.total());
  all.push_back(metric.count());
  for (const Variable& v : all) {
    for (double x : v.value().to_vector<double>()) {
      r->values.push_back(static_cast<float>(x));
    }
  }
}

RunResult custom_loop(const distribute::Strategy& strategy, int64_t rest,
                      bool traced) {
  const auto scope = strategy.scope();
  const Sequential model = make_model();
  const Adam optimizer(0.01);
  const Loss loss_fn =
      losses::SparseCategoricalCrossentropy({.from_logits = true});
  const Metric accuracy("accuracy");
  const auto step = function([&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor logits = model(x, true);
    const Tensor loss = loss_fn(y, logits);
    const auto variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
    accuracy.update_state(y, logits);
    return loss;
  });
  const auto whole = function([&](const PerReplica& x, const PerReplica& y) {
    return strategy.reduce(ReduceOp::kSum, strategy.run(step, x, y));
  });
  RunResult r;
  const auto batches =
      strategy.experimental_distribute_dataset(make_data(rest));
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (const auto& b : batches) {
      const Tensor loss =
          traced
              ? whole(b[0], b[1])
              : strategy.reduce(ReduceOp::kSum, strategy.run(step, b[0], b[1]));
      r.losses.push_back(loss.item<double>());
    }
  }
  keep(model, optimizer, accuracy, &r);
  return r;
}

// The loop without a strategy.
RunResult plain_loop(int64_t rest) {
  const Sequential model = make_model();
  const Adam optimizer(0.01);
  const Loss loss_fn =
      losses::SparseCategoricalCrossentropy({.from_logits = true});
  const Metric accuracy("accuracy");
  RunResult r;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (const Tensors& b : make_data(rest)) {
      GradientTape tape;
      const Tensor logits = model(b[0], true);
      const Tensor loss = loss_fn(b[1], logits);
      const auto variables = model.trainable_variables();
      optimizer.apply_gradients(tape.gradient(loss, variables), variables);
      accuracy.update_state(b[1], logits);
      r.losses.push_back(loss.item<double>());
    }
  }
  keep(model, optimizer, accuracy, &r);
  return r;
}

void loops_equal_one_device(const distribute::StrategyOptions& options) {
  const MirroredStrategy strategy(options);
  for (const int64_t rest : {5, 1}) {  // 1: a replica without examples
    const RunResult one = plain_loop(rest);
    compare(one, custom_loop(strategy, rest, false), "run");
    compare(one, custom_loop(strategy, rest, true), "run in a function");
  }
}

TEST(StrategyRun, LoopsOnCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS({
    cpus(2);
    loops_equal_one_device({});
  });
}
TEST(StrategyRun, LoopsOnSimulatedGpusEqualOneDevice) {
  IN_A_FRESH_PROCESS({
    gpus(3);
    loops_equal_one_device({});
  });
}
TEST(StrategyRun, LoopsWithUnequalSharesEqualOneDevice) {
  IN_A_FRESH_PROCESS({
    cpus(2);
    loops_equal_one_device({.devices_per_replica = 1, .shares = {1, 3}});
  });
}

// Batch normalization in run() is local, as in TensorFlow: two replicas see
// means 1 and 3, and the moving mean goes half way to 2.
void local_statistics() {
  const MirroredStrategy strategy;
  const auto scope = strategy.scope();
  const BatchNormalization layer({.momentum = 0.5});
  const auto step = function([&](const Tensor& x) { return layer(x, true); });
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(
          Tensors{constant({{0.f}, {2.f}, {3.f}, {3.f}})})
          .batch(4));
  for (const auto& b : batches) strategy.run(step, b[0]);
  check(std::abs(layer.get_weights()[2].to_vector<float>()[0] - 1) < 1e-6,
        "moving mean");
}
TEST(StrategyRun, BatchNormalizationIsLocalAndItsMovingAveragesAreMeans) {
  IN_A_FRESH_PROCESS({
    cpus(2);
    local_statistics();
  });
  IN_A_FRESH_PROCESS({
    gpus(2);
    local_statistics();
  });
}

void fit_takes_distributed_data() {
  const MirroredStrategy strategy;
  const auto train = [&](bool distributed) {
    const auto scope = strategy.scope();
    Sequential model = make_model();
    model.compile(
        {.optimizer = "sgd",
         .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
    const data::Dataset data = make_data(5);
    const FitOptions options{.epochs = 2, .verbose = 0};
    RunResult r;
    r.losses =
        (distributed ? model.fit(strategy.experimental_distribute_dataset(data),
                                 options)
                     : model.fit(data, options))
            .history.at("loss");
    for (const Tensor& w : model.get_weights()) {
      for (float x : w.to_vector<float>()) r.values.push_back(x);
    }
    return r;
  };
  compare(train(false), train(true), "fit of a distributed dataset");
}
TEST(StrategyRun, FitTakesDistributedDatasets) {
  IN_A_FRESH_PROCESS({
    gpus(2);
    fit_takes_distributed_data();
  });
}

void lints_of_run() {
  cpus(2);
  const Heard heard;
  const MirroredStrategy strategy;
  const auto scope = strategy.scope();
  const Variable w(ones({2, 1}), {.name = "w"});
  const Variable spare(ones({2, 1}), {.name = "spare"});
  const SGD sgd(0.1);
  const auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = math::reduce_mean(matmul(x, w));
    const std::vector<Variable> all = {w, spare};
    sgd.apply_gradients(tape.gradient(loss, all), all);
  });
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(Tensors{ones({4, 2})}).batch(4));
  for (const auto& b : batches) strategy.run(step, b[0]);
  // Two replicas, each with a gradient of 1: TensorFlow's sum is 2.
  check(std::abs(w.value().to_vector<float>()[0] - 0.8f) < 1e-6, "local mean");
  const std::string text = heard.text_of("local-mean");
  check(text.find("2 replicas") != std::string::npos, text);
  check(
      heard.text_of("unused-variables").find("\"spare\"") != std::string::npos,
      "unused");
}
TEST(StrategyRun, ALocalMeanStaysLocalAndIsNamed) {
  IN_A_FRESH_PROCESS(lints_of_run());
}

}  // namespace
}  // namespace berth::keras
