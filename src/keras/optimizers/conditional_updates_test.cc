// Optimizers whose updates stand under a condition: gradients that are added
// up over steps, and loss scales. Under any strategy they are those of one
// device.

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "distribute/parameter_server/parameter_server_testing.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::MirroredStrategy;
using distribute::ReduceOp;
using fresh_process::check;
using Values = std::vector<double>;

struct NamedOptimizer {
  const char* name;
  Optimizer (*make)();
};
const std::vector<NamedOptimizer>& conditional() {
  static const std::vector<NamedOptimizer> list = {
      {"accumulation",
       [] { return Optimizer(SGD(0.05, {.gradient_accumulation_steps = 2})); }},
      {"accumulation, averages",
       [] {
         return Optimizer(Adam(0.05, {.use_ema = true,
                                      .ema_momentum = 0.8,
                                      .gradient_accumulation_steps = 3}));
       }},
      {"loss scale",
       [] {
         return Optimizer(LossScaleOptimizer(
             Optimizer(Adam(0.05)),
             {.initial_scale = 8, .dynamic_growth_steps = 2}));
       }},
      {"loss scale, accumulation",
       [] {
         return Optimizer(LossScaleOptimizer(Optimizer(
             SGD(0.05, {.momentum = 0.5, .gradient_accumulation_steps = 2}))));
       }},
  };
  return list;
}

Sequential conditional_model() {
  random::set_seed(5);
  clear_session();
  return Sequential(
      {InputLayer({3}), Dense(2, {.activation = "tanh"}), Dense(1)});
}

// Five batches; the gradients of one are not finite.
Tensor rows() {
  std::vector<float> v = numbers({30, 3}).to_vector<float>();
  v[40] = 1e30f;
  return constant(std::span<const float>(v), {30, 3});
}

Values values_of(const Model& model, const Optimizer& optimizer) {
  Values all;
  std::vector<Variable> variables = model.weights();
  for (const Variable& v : optimizer.variables()) variables.push_back(v);
  for (const Variable& v : variables) {
    const Values values = v.value().to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// After two epochs of fit, or of a loop over run().
Values trained(const distribute::Strategy& strategy, const NamedOptimizer& of,
               bool by_fit) {
  const auto scope = strategy.scope();
  Sequential model = conditional_model();
  const Optimizer optimizer = of.make();
  const Tensor x = rows(), y = numbers({30, 1});
  if (by_fit) {
    model.compile({.optimizer = optimizer, .loss = "mse"});
    model.fit(x, y,
              {.epochs = 2, .batch_size = 6, .verbose = 0, .shuffle = false});
    return values_of(model, optimizer);
  }
  const Loss loss_fn("mse");
  const auto step = function([&](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    const Tensor loss = optimizer.scale_loss(loss_fn(b, model(a)));
    const auto variables = model.trainable_variables();
    optimizer.apply_gradients(tape.gradient(loss, variables), variables);
  });
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices({x, y}).batch(6));
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& b : batches) strategy.run(step, b[0], b[1]);
  }
  return values_of(model, optimizer);
}

void equal(const std::string& what, const Values& a, const Values& b) {
  check(a.size() == b.size(), what + ": as many values");
  for (size_t i = 0; i < a.size(); ++i) {
    const double most = 1e-5 * std::max(1., std::abs(a[i]));
    const bool same = a[i] == b[i] || std::abs(a[i] - b[i]) <= most;
    if (!same) std::cerr << a[i] << " and " << b[i] << " at " << i << "\n";
    check(same, what);
  }
}

void equal_one_device(const std::vector<std::string>& devices) {
  const distribute::OneDeviceStrategy one(devices[0]);
  for (const NamedOptimizer& of : conditional()) {
    for (const bool by_fit : {true, false}) {
      const Values want = trained(one, of, by_fit);
      const std::string how = by_fit ? ", fit" : ", run";
      equal(of.name + how + ", mirrored", want,
            trained(MirroredStrategy({.devices = devices}), of, by_fit));
      equal(of.name + how + ", central", want,
            trained(distribute::CentralStorageStrategy({.devices = devices}),
                    of, by_fit));
    }
  }
}

TEST(ConditionalUpdates, AreMadeOnceOnSimulatedGpus) {
  IN_A_FRESH_PROCESS(equal_one_device(gpus(3)));
}
TEST(ConditionalUpdates, AreMadeOnceOnCoreSets) {
  IN_A_FRESH_PROCESS(equal_one_device(cpus(2)));
}

// One condition over variables that have a copy in each memory, and one that
// is on the host alone.
void of_two_kinds() {
  const MirroredStrategy strategy({.devices = gpus(2)});
  const Variable host =
      with_device("/CPU:0", [] { return Variable(constant(1.f)); });
  const auto scope = strategy.scope();
  const Variable mirrored(constant(1.f));
  const Optimizer optimizer =
      LossScaleOptimizer(Optimizer(SGD(1, {.gradient_accumulation_steps = 2})));
  const auto step = function([&](const Tensor& x) {
    const Tensor g = math::reduce_sum(x);
    optimizer.apply_gradients({g * 32768.f, g * 32768.f}, {host, mirrored});
    return host.value() + mirrored.value();
  });
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(Tensors{ones({4})}).batch(4));
  for (const double want : {2., -6., -6., -14.}) {
    for (const auto& b : batches) {
      const auto sums = strategy.run(step, b[0]);
      for (const Tensor& t : sums.values()) {
        check(t.item<float>() == want, "what the replica sees");
      }
    }
  }
}
TEST(ConditionalUpdates, MayBeOfVariablesOfSeveralKinds) {
  IN_A_FRESH_PROCESS(of_two_kinds());
}

// Servers run no branches: both are computed, and one is kept.
TEST(ConditionalUpdates, HaveTheBitsOfOneDeviceOnParameterServers) {
  const Tensor x = rows(), y = numbers({30, 1});
  for (const NamedOptimizer& of : conditional()) {
    SCOPED_TRACE(of.name);
    const auto run = [&] {
      Sequential model = conditional_model();
      const Optimizer optimizer = of.make();
      model.compile({.optimizer = optimizer, .loss = "mse"});
      model.fit(x, y,
                {.epochs = 2, .batch_size = 6, .verbose = 0, .shuffle = false});
      return values_of(model, optimizer);
    };
    const Values want = run();
    for (const int shards : {1, 2}) {
      distribute::ServerTasks tasks(
          1, 2,
          {.variable_partitioner =
               distribute::partitioners::FixedShardsPartitioner(shards)});
      const auto scope = tasks.strategy().scope();
      EXPECT_EQ(run(), want) << shards << " shards";
    }
  }
}

}  // namespace
}  // namespace berth::keras
