// What a function in run() can ask and change, with values in closed form.

#include <gtest/gtest.h>

#include <numeric>

#include "berth/berth.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::Strategy;

std::vector<Row> context_rows() {
  std::vector<Row> all;
  for (const char* devices :
       {"CPUx1", "CPUx2", "CPUx4", "GPUx2", "GPUx4", "CPU:1,GPU:0,GPU:3"}) {
    for (const char* strategy : {"mirrored", "central"}) {
      all.push_back(
          {.strategy = strategy, .devices = devices, .seed = all.size() % 4});
    }
  }
  all.push_back({.devices = "GPUx4", .devices_per_replica = 2});
  all.push_back({.strategy = "one_device", .devices = "GPUx1"});
  return all;
}

class RunContext : public testing::TestWithParam<Row> {
 protected:
  RunContext()
      : strategy_(strategy_of(GetParam())),
        n_(strategy_.num_replicas_in_sync()) {
    seed_devices(GetParam().seed);
    said();
  }

  // [r + 1] for each replica, all elements r + 1.
  PerReplica stairs() const {
    Tensors values;
    for (int r = 0; r < n_; ++r) {
      const auto on = device(strategy_.devices()[static_cast<size_t>(r)][0]);
      values.push_back(fill({2}, r + 1.f));
    }
    return PerReplica(values);
  }
  Variable variable(VariableSynchronization sync,
                    VariableAggregation how) const {
    const auto scope = strategy_.scope();
    return Variable(constant({10.f, 20.f}),
                    {.synchronization = sync, .aggregation = how});
  }
  double sum() const { return n_ * (n_ + 1) / 2.0; }  // of r + 1

  Strategy strategy_;
  int n_;
};

Numbers of_first(const PerReplica& p) { return numbers(p[0]); }

TEST_P(RunContext, ReplicasKnowWhoTheyAre) {
  EXPECT_FALSE(distribute::get_replica_context().has_value());
  const PerReplica ids = strategy_.run(
      [&](const Tensor& x) {
        const auto context = distribute::get_replica_context();
        EXPECT_EQ(context->num_replicas_in_sync(), n_);
        EXPECT_FALSE(distribute::in_cross_replica_context());
        return x * 0.f +
               static_cast<float>(context->replica_id_in_sync_group());
      },
      stairs());
  for (int r = 0; r < n_; ++r) {
    EXPECT_EQ(numbers(ids[static_cast<size_t>(r)]), Numbers(2, r));
  }
}

TEST_P(RunContext, AllReduceAndAllGatherSeeAllReplicas) {
  auto fn = function([](const Tensor& x) {
    const auto context = distribute::get_replica_context();
    return std::tuple(context->all_reduce(ReduceOp::kSum, x),
                      context->all_reduce(ReduceOp::kMean, x),
                      context->all_gather(x, 0));
  });
  const auto [total, mean, all] = strategy_.run(fn, stairs());
  Numbers want;
  for (int r = 0; r < n_; ++r) want.insert(want.end(), 2, r + 1);
  for (int r = 0; r < n_; ++r) {
    const auto at = static_cast<size_t>(r);
    EXPECT_EQ(numbers(total[at]), Numbers(2, sum()));
    for (double x : numbers(mean[at])) EXPECT_NEAR(x, sum() / n_, 1e-6);
    EXPECT_EQ(numbers(all[at]), want);
  }
}

TEST_P(RunContext, TheGradientOfAllReduceIsAllReduced) {
  // loss_r = (r + 1) * sum over q of x_q: d(sum of losses) / dx = sum.
  auto fn = function([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const auto context = distribute::get_replica_context();
    const Tensor all = context->all_reduce(ReduceOp::kSum, x);
    const float own =
        static_cast<float>(context->replica_id_in_sync_group() + 1);
    return tape.gradient(math::reduce_sum(all) * own, x);
  });
  const PerReplica grads = strategy_.run(fn, stairs());
  for (const Tensor& g : grads.values()) {
    EXPECT_EQ(numbers(g), Numbers(2, sum()));
  }
}

// d(sum over r of v * (r + 1)) / dv, wherever the copies of v are.
TEST_P(RunContext, ATapeAroundRunSeesAllReplicas) {
  const Variable v =
      variable(VariableSynchronization::kAuto, VariableAggregation::kSum);
  auto fn = function([&](const Tensor& x) { return v * x; });
  const PerReplica x = stairs();
  for (int step = 0; step < 2; ++step) {
    GradientTape tape;
    const Tensor loss = math::reduce_sum(
        strategy_.reduce(ReduceOp::kSum, strategy_.run(fn, x)));
    EXPECT_EQ(numbers(tape.gradient(loss, v)), Numbers(2, sum()));
  }
}

TEST_P(RunContext, WritesAreAggregatedAsTheVariableSays) {
  struct {
    VariableAggregation how;
    double added;
  } const kinds[] = {{VariableAggregation::kSum, sum()},
                     {VariableAggregation::kMean, sum() / n_},
                     {VariableAggregation::kOnlyFirstReplica, 1}};
  for (const auto& [how, added] : kinds) {
    const Variable v = variable(VariableSynchronization::kAuto, how);
    auto fn = function([&](const Tensor& x) {
      v.assign_add(x);
      return v.value() * 1.f;
    });
    for (int step = 1; step <= 3; ++step) {
      const PerReplica seen = strategy_.run(fn, stairs());
      const double want = 10 + step * added;
      for (const Tensor& t : seen.values()) {
        EXPECT_NEAR(numbers(t)[0], want, 1e-4);
      }
      EXPECT_NEAR(numbers(v.value())[0], want, 1e-4);
      EXPECT_NEAR(numbers(v.value())[1], want + 10, 1e-4);
    }
    v.assign(constant({1.f, 2.f}));
    EXPECT_NEAR(of_first(strategy_.run(fn, stairs()))[0], 1 + added, 1e-4);
  }
}

TEST_P(RunContext, VariablesThatAgreeOnReadingKeepAPartPerReplica) {
  for (const auto how :
       {VariableAggregation::kSum, VariableAggregation::kMean}) {
    const Variable v = variable(VariableSynchronization::kOnRead, how);
    v.assign(constant({0.f, 0.f}));
    auto fn = function([&](const Tensor& x) { v.assign_add(x); });
    for (int step = 0; step < 3; ++step) strategy_.run(fn, stairs());
    const double want = how == VariableAggregation::kSum ? sum() : sum() / n_;
    EXPECT_NEAR(numbers(v.value())[1], 3 * want, 1e-4);
  }
}

TEST_P(RunContext, MetricsCountTheValuesOfAllReplicas) {
  std::optional<keras::Metric> metric;
  {
    const auto scope = strategy_.scope();
    metric.emplace(keras::metrics::Mean());
  }
  auto fn = function([&](const Tensor& x) { metric->update_state(x); });
  strategy_.run(fn, stairs());
  strategy_.run(fn, stairs());
  EXPECT_NEAR(metric->result(), sum() / n_, 1e-6);
  EXPECT_NEAR(metric->count().value().item<double>(), 4.0 * n_, 1e-6);
}

TEST_P(RunContext, MergeCallSeesTheValuesOfAllReplicas) {
  auto fn = function([](const Tensor& x) {
    const auto context = distribute::get_replica_context();
    return context->merge_call(
        [](const Strategy& s, const std::vector<PerReplica>& values) {
          EXPECT_TRUE(distribute::in_cross_replica_context());
          return Tensors{s.reduce(ReduceOp::kSum, values[0]) * 2.f};
        },
        {x})[0];
  });
  const PerReplica doubled = strategy_.run(fn, stairs());
  for (const Tensor& t : doubled.values()) {
    EXPECT_EQ(numbers(t), Numbers(2, 2 * sum()));
  }
}

// In run() a batch norm takes the moments of its replica: what one device
// does with as many groups.
TEST_P(RunContext, BatchNormTakesTheMomentsOfItsReplica) {
  constexpr int64_t kEach = 4, kFeatures = 3;
  auto train = [&](bool replicated) {
    random::set_seed(2);
    std::optional<distribute::StrategyGuard> scope;
    std::optional<DeviceGuard> on;
    if (replicated) {
      scope.emplace(strategy_.core(), Site::here());
    } else {
      on.emplace("/CPU:0", Site::here());
    }
    auto norm = keras::BatchNormalization(
        {.momentum = 0.9, .statistics_groups = replicated ? 1 : n_});
    auto dense = keras::Dense(2);
    keras::SGD sgd(0.1);
    scope.reset();
    const Tensor x = random::normal({kEach * n_, kFeatures});
    const Tensor y = random::normal({kEach * n_, 2});
    auto step = function([&](const Tensor& x, const Tensor& y) {
      GradientTape tape;
      const Tensor loss =
          keras::losses::MeanSquaredError()(y, dense(norm(x, true), true));
      auto weights = norm.trainable_variables();
      for (const auto& v : dense.trainable_variables()) weights.push_back(v);
      sgd.apply_gradients(tape.gradient(loss, weights), weights);
      return loss;
    });
    for (int i = 0; i < 3; ++i) {
      if (replicated) {
        const auto cut = strategy_.experimental_distribute_dataset(
            data::Dataset::from_tensor_slices({x, y}).batch(kEach * n_));
        for (const auto& b : cut) strategy_.run(step, b[0], b[1]);
      } else {
        step(x, y);
      }
    }
    std::vector<Variable> all = norm.weights();
    for (const auto& v : dense.weights()) all.push_back(v);
    return values_of(all);
  };
  EXPECT_EQ(difference(train(true), train(false), 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(Strategies, RunContext,
                         testing::ValuesIn(context_rows()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
