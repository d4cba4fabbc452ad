// Custom loops: what strategy.run() trains equals one device, whose linear
// model is trained by hand in double precision.

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "conformance/strategy/linear.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::Strategy;

// How the step is called, and what stands in it.
enum class Call : uint8_t {
  kFunction,  // strategy.run(function, ...)
  kCallable,  // strategy.run(lambda, ...), traced each time
  kInside,    // run() and reduce() inside a function of PerReplica values
};
enum class Body : uint8_t {
  kKeras,      // a Keras loss and optimizer.apply_gradients()
  kOwnLoss,    // a sum over the global count, then the optimizer
  kAllReduce,  // gradients all-reduced, variables changed by hand
  kAggregate,  // each replica's own change, added up by the variable
  kMergeCall,  // reduced and updated in cross-replica context
};

struct Loop {
  Row row;  // devices, strategy, shares, examples, optimizer, seed
  Call call = Call::kFunction;
  Body body = Body::kKeras;

  std::string name() const {
    static constexpr const char* kCalls[] = {"function", "callable", "inside"};
    static constexpr const char* kBodies[] = {"keras", "own_loss", "all_reduce",
                                              "aggregate", "merge_call"};
    return std::string(kBodies[static_cast<int>(body)]) + "_" +
           kCalls[static_cast<int>(call)] + "_" + row.name();
  }
};
std::ostream& operator<<(std::ostream& out, const Loop& l) {
  return out << l.name();
}

constexpr int kSteps = 9;
constexpr double kRate = 0.1;

// The variables, and the step that all replicas run.
struct LinearModel {
  LinearModel(const LinearTask& task, Body body, const std::string& optimizer)
      : body(body), optimizer(optimizer_named(optimizer)) {
    const VariableAggregation how =
        body == Body::kAggregate   ? VariableAggregation::kSum
        : body == Body::kAllReduce ? VariableAggregation::kOnlyFirstReplica
                                   : VariableAggregation::kNone;
    w = Variable(task.tensor_w(), {.name = "w", .aggregation = how});
    b = Variable(task.tensor_b(), {.name = "b", .aggregation = how});
  }

  // x [local, kIn], y [local, kOut], global [] examples of all replicas.
  // Returns this replica's part of the loss.
  Tensor step(const Tensor& x, const Tensor& y, const Tensor& global) {
    const std::vector<Variable> variables = {w, b};
    GradientTape tape;
    const Tensor e = matmul(x, w) + b - y;
    const Tensor loss =
        body == Body::kKeras
            ? keras::losses::MeanSquaredError()(y, matmul(x, w) + b)
            : math::reduce_sum(math::square(e)) / (global * double{kOut});
    Tensors grads = tape.gradient(loss, variables);
    change(variables, grads);
    return loss;
  }

  void change(const std::vector<Variable>& variables, const Tensors& grads) {
    const auto context = distribute::get_replica_context();
    switch (body) {
      case Body::kKeras:
      case Body::kOwnLoss:
        optimizer.apply_gradients(grads, variables);
        return;
      case Body::kAllReduce: {
        const Tensors sums = context->all_reduce(ReduceOp::kSum, grads);
        w.assign_sub(sums[0] * kRate);
        b.assign_sub(sums[1] * kRate);
        return;
      }
      case Body::kAggregate:
        w.assign_sub(grads[0] * kRate);
        b.assign_sub(grads[1] * kRate);
        return;
      case Body::kMergeCall:
        context->merge_call(
            [&](const Strategy& s, const std::vector<PerReplica>& g) {
              for (size_t i = 0; i < g.size(); ++i) {
                const Variable& v = variables[i];
                s.update(
                    v, [&](const Tensor& sum) { v.assign_sub(sum * kRate); },
                    s.reduce(ReduceOp::kSum, g[i]));
              }
              return Tensors{};
            },
            grads);
        return;
    }
  }

  Body body;
  keras::Optimizer optimizer;
  Variable w, b;
};

// Runs steps over the distributed batches; returns their losses.
std::vector<double> run_loop(const Loop& loop, const LinearTask& task,
                             const Strategy& strategy, LinearModel& model,
                             LinearState* after_one) {
  auto body = [&](const Tensor& x, const Tensor& y, const Tensor& n) {
    return model.step(x, y, n);
  };
  auto in_replica = function(body, {.name = "replica"});
  auto whole = function(
      [&](const PerReplica& x, const PerReplica& y, const Tensor& n) {
        return strategy.reduce(ReduceOp::kSum, strategy.run(body, x, y, n));
      },
      {.name = "whole"});
  const auto batches = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices({task.tensor_x(), task.tensor_y()})
          .batch(kBatch));
  std::vector<double> losses;
  while (losses.size() < kSteps) {
    for (const std::vector<PerReplica>& batch : batches) {
      int64_t examples = 0;
      for (const Tensor& t : batch[0].values()) examples += t.shape()[0];
      const Tensor n = constant(static_cast<float>(examples));
      Tensor loss;
      if (loop.call == Call::kInside) {
        loss = whole(batch[0], batch[1], n);
      } else if (loop.call == Call::kFunction) {
        loss = strategy.reduce(ReduceOp::kSum,
                               strategy.run(in_replica, batch[0], batch[1], n));
      } else {
        loss = strategy.reduce(ReduceOp::kSum,
                               strategy.run(body, batch[0], batch[1], n));
      }
      losses.push_back(loss.item<double>());
      if (losses.size() == 1) {
        *after_one = {model.w.value().to_vector<double>(),
                      model.b.value().to_vector<double>(),
                      {}};
      }
      if (losses.size() == kSteps) break;
    }
  }
  return losses;
}

Values as_values(const LinearState& s) { return {{"w", s.w}, {"b", s.b}}; }

class Run : public testing::TestWithParam<Loop> {};

TEST_P(Run, EqualsOneDeviceByHand) {
  const Loop& loop = GetParam();
  const LinearTask task = linear_task(count_of(loop.row.examples));
  seed_devices(loop.row.seed);
  said();
  const Strategy strategy = strategy_of(loop.row);
  std::optional<LinearModel> model;
  {
    const auto scope = strategy.scope();
    model.emplace(task, loop.body, loop.row.optimizer);
  }
  LinearState after_one;
  const auto losses = run_loop(loop, task, strategy, *model, &after_one);
  SCOPED_TRACE(said());
  EXPECT_EQ(
      difference(as_values(after_one),
                 as_values(train_by_hand(task, loop.row.optimizer, 1)), 1e-5),
      "");
  const LinearState want = train_by_hand(task, loop.row.optimizer, kSteps);
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], want.losses[i], 1e-4 * want.losses[i]) << i;
  }
  EXPECT_EQ(difference({{"w", model->w.value().to_vector<double>()},
                        {"b", model->b.value().to_vector<double>()}},
                       as_values(want), 1e-4),
            "");
}

std::vector<Loop> loops() {
  std::vector<Loop> all;
  // Every body, called in every way, on every kind of devices.
  for (const Body body : {Body::kKeras, Body::kOwnLoss, Body::kAllReduce,
                          Body::kAggregate, Body::kMergeCall}) {
    for (const Call call : {Call::kFunction, Call::kCallable, Call::kInside}) {
      for (const char* devices : {"CPUx1", "CPUx3", "GPUx2", "CPU:0,GPU:0"}) {
        all.push_back({{.optimizer = "sgd", .devices = devices}, call, body});
      }
    }
  }
  for (const Examples examples : {Examples::kEven, Examples::kEmpty}) {
    for (const char* devices : {"CPUx4", "GPUx3"}) {
      for (const char* optimizer : {"momentum", "adam"}) {
        all.push_back({{.optimizer = optimizer,
                        .examples = examples,
                        .devices = devices}});
      }
    }
  }
  for (const char* shares : {"1:3", "5:1"}) {
    for (const char* devices : {"CPUx2", "GPUx2"}) {
      for (const Body body : {Body::kKeras, Body::kAggregate}) {
        all.push_back(
            {{.optimizer = "sgd", .devices = devices, .shares = shares},
             Call::kFunction,
             body});
      }
    }
  }
  for (const char* strategy : {"one_device", "central"}) {
    for (const char* devices : {"CPUx2", "GPUx3"}) {
      all.push_back(
          {{.optimizer = "adam", .strategy = strategy, .devices = devices}});
    }
  }
  uint64_t seed = 0;
  for (const char* algorithm : {"ring", "pairs", "one", "direct"}) {
    for (const char* devices : {"GPUx3", "GPUx4", "CPU:0,CPU:1,GPU:0"}) {
      all.push_back({{.optimizer = "momentum",
                      .devices = devices,
                      .algorithm = algorithm,
                      .pack_bytes = seed % 2 ? 0 : 16,
                      .seed = ++seed},
                     Call::kInside});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Loops, Run, testing::ValuesIn(loops()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
