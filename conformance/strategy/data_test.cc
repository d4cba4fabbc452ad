// Batches cut for replicas, and values of replicas put together again.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "berth/berth.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::Strategy;

// All strategies, device kinds and shares; the model plays no role.
std::vector<Row> data_rows() {
  std::vector<Row> all;
  for (const char* devices : {"CPUx1", "CPUx2", "CPUx4", "GPUx2", "GPUx3",
                              "CPU:0,GPU:1", "GPU:2,CPU:1,GPU:0"}) {
    for (const Examples examples :
         {Examples::kEven, Examples::kUneven, Examples::kEmpty}) {
      for (const char* strategy : {"mirrored", "central"}) {
        all.push_back({.examples = examples,
                       .strategy = strategy,
                       .devices = devices,
                       .seed = all.size() % 3});
      }
    }
  }
  for (const char* devices : {"CPUx2", "GPUx2"}) {
    for (const char* shares : {"1:3", "7:1", "auto"}) {
      all.push_back({.devices = devices, .shares = shares});
    }
    all.push_back({.devices = devices, .slices = 5});
  }
  all.push_back({.devices = "GPUx4", .devices_per_replica = 2});
  all.push_back({.strategy = "one_device", .devices = "GPUx1"});
  return all;
}

class Data : public testing::TestWithParam<Row> {
 protected:
  Data() : strategy_(strategy_of(GetParam())) {
    seed_devices(GetParam().seed);
    said();
  }

  // [examples, 2], where each number is its place, and its labels.
  data::Dataset source() const {
    const int64_t n = count_of(GetParam().examples);
    return data::Dataset::from_tensor_slices(
        {reshape(float_range(0, 2.0 * static_cast<double>(n)), {n, 2}),
         range(0, n) * 10});
  }

  Strategy strategy_;
};

TEST_P(Data, BatchesAreCutByTheSharesAndLoseNothing) {
  const auto batches = source().batch(kBatch);
  const auto cut = strategy_.experimental_distribute_dataset(batches);
  EXPECT_EQ(cut.cardinality(), batches.cardinality());
  for (int pass = 0; pass < 2; ++pass) {
    auto whole = batches.make_iterator();
    for (const std::vector<PerReplica>& batch : cut) {
      const auto want = whole.next();
      ASSERT_TRUE(want.has_value());
      ASSERT_EQ(batch.size(), 2u);
      const auto sizes = strategy_.examples((*want)[0].shape()[0]);
      for (size_t c = 0; c < batch.size(); ++c) {
        ASSERT_EQ(batch[c].size(), sizes.size());
        for (size_t r = 0; r < sizes.size(); ++r) {
          EXPECT_EQ(batch[c][r].shape()[0], sizes[r]) << r;
        }
        EXPECT_EQ(numbers(strategy_.gather(batch[c], 0)), numbers((*want)[c]));
      }
    }
    EXPECT_FALSE(whole.next().has_value());
  }
}

TEST_P(Data, PartsLieInTheMemoryOfTheirReplica) {
  const auto cut =
      strategy_.experimental_distribute_dataset(source().batch(kBatch));
  const auto devices = strategy_.devices();
  for (const std::vector<PerReplica>& batch : cut) {
    for (size_t r = 0; r < devices.size(); ++r) {
      if (batch[0][r].shape()[0] == 0) continue;
      const std::string at = batch[0][r].device();
      // Core sets share the host's memory: their parts are cut in place.
      const bool host = devices[r][0].find("CPU:") != std::string::npos;
      EXPECT_TRUE(host ? at.find("CPU:") != at.npos : at == devices[r][0])
          << at << " is not " << devices[r][0];
    }
  }
}

TEST_P(Data, SharesFollowTheWeights) {
  const Row& row = GetParam();
  for (const int64_t batch :
       {int64_t{0}, int64_t{1}, int64_t{7}, kBatch, int64_t{1000}}) {
    const auto sizes = strategy_.examples(batch);
    ASSERT_EQ(static_cast<int>(sizes.size()), strategy_.num_replicas_in_sync());
    EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), batch);
    for (int64_t n : sizes) EXPECT_GE(n, 0);
    if (row.shares == "equal" && row.slices == 0) {
      const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*high - *low, 1) << batch;
    }
    if (row.shares == "1:3" && batch == 1000) {
      EXPECT_EQ(sizes, (std::vector<int64_t>{250, 750}));
    }
  }
}

TEST_P(Data, FunctionsMakeTheBatchesOfEachReplica) {
  const auto n = static_cast<int64_t>(strategy_.num_replicas_in_sync());
  int calls = 0;
  const auto cut = strategy_.distribute_datasets_from_function(
      [&](const distribute::InputContext& context) {
        ++calls;
        EXPECT_EQ(context.num_replicas_in_sync, n);
        EXPECT_EQ(context.input_pipeline_id, 0);
        return data::Dataset::range(6 * n).batch(
            context.get_per_replica_batch_size(3 * n));
      });
  std::vector<double> all;
  int batches = 0;
  for (const std::vector<PerReplica>& batch : cut) {
    for (const Tensor& t : batch[0].values()) {
      EXPECT_EQ(t.shape()[0], 3);
      for (double x : numbers(t)) all.push_back(x);
    }
    ++batches;
  }
  EXPECT_GE(calls, 1);
  EXPECT_EQ(batches, 2);
  std::vector<double> want(static_cast<size_t>(6 * n));
  std::iota(want.begin(), want.end(), 0.0);
  EXPECT_EQ(all, want);
}

// Values [r + 1, 2] of replica r, all elements r + 0.5.
PerReplica stairs(const Strategy& strategy, bool same_shape) {
  Tensors values;
  for (int r = 0; r < strategy.num_replicas_in_sync(); ++r) {
    const auto on = device(strategy.devices()[static_cast<size_t>(r)][0]);
    values.push_back(fill({same_shape ? 3 : r + 1, 2}, r + 0.5f));
  }
  return PerReplica(values);
}

TEST_P(Data, ReduceCombinesValuesOfReplicas) {
  const double n = strategy_.num_replicas_in_sync();
  const double sum = n * n / 2;  // of r + 0.5
  const PerReplica v = stairs(strategy_, true);
  const auto all = [](double x) { return std::vector<double>(6, x); };
  EXPECT_EQ(numbers(strategy_.reduce(ReduceOp::kSum, v)), all(sum));
  for (const double x : numbers(strategy_.reduce(ReduceOp::kMean, v))) {
    EXPECT_NEAR(x, sum / n, 1e-6);
  }
}

TEST_P(Data, ReduceRefusesValuesOfUnequalShapes) {
  const PerReplica v = stairs(strategy_, false);
  if (v.size() < 2) return;
  EXPECT_THROW(strategy_.reduce(ReduceOp::kSum, v), errors::InvalidArgument);
  EXPECT_THROW(strategy_.reduce(ReduceOp::kMean, v), errors::InvalidArgument);
}

TEST_P(Data, ReduceAlongAnAxisCountsElements) {
  const int n = strategy_.num_replicas_in_sync();
  const PerReplica v = stairs(strategy_, false);
  double sum = 0, count = 0;
  for (int r = 0; r < n; ++r) {
    sum += (r + 1) * (r + 0.5);
    count += r + 1;
  }
  EXPECT_EQ(numbers(strategy_.reduce(ReduceOp::kSum, v, 0)),
            (std::vector<double>{sum, sum}));
  for (double x : numbers(strategy_.reduce(ReduceOp::kMean, v, 0))) {
    EXPECT_NEAR(x, sum / count, 1e-6);
  }
}

TEST_P(Data, GatherConcatenatesInTheOrderOfReplicas) {
  const PerReplica v = stairs(strategy_, false);
  std::vector<double> want;
  for (int r = 0; r < strategy_.num_replicas_in_sync(); ++r) {
    want.insert(want.end(), static_cast<size_t>(2 * (r + 1)), r + 0.5);
  }
  EXPECT_EQ(numbers(strategy_.gather(v, 0)), want);
  const Tensor wide = strategy_.gather(stairs(strategy_, true), 1);
  EXPECT_EQ(wide.shape(), Shape({3, 2 * strategy_.num_replicas_in_sync()}));
  EXPECT_EQ(strategy_.local_results(v).size(), v.size());
}

TEST_P(Data, IntegersAreReducedExactly) {
  Tensors values;
  for (int r = 0; r < strategy_.num_replicas_in_sync(); ++r) {
    values.push_back(constant({(1 << 24) + 1, r}));  // no float has it
  }
  const int n = strategy_.num_replicas_in_sync();
  const Tensor sum = strategy_.reduce(ReduceOp::kSum, PerReplica(values));
  EXPECT_EQ(sum.dtype(), int32);
  EXPECT_EQ(sum.to_vector<int32_t>(),
            (std::vector<int32_t>{n * ((1 << 24) + 1), n * (n - 1) / 2}));
}

INSTANTIATE_TEST_SUITE_P(Cut, Data, testing::ValuesIn(data_rows()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
