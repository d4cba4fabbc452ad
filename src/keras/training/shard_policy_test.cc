// What each of two tasks reads under a policy, and that ends that differ hang
// nobody. Tasks are threads.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/fresh_process_testing.h"
#include "berth/data_files.h"
#include "berth/data_options.h"
#include "berth/io.h"
#include "distribute/multi_worker/tasks_testing.h"
#include "io/temp_dir_testing.h"
#include "keras/training/strategy_testing.h"
#include "ops/random_key.h"

namespace berth::keras {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using distribute::core_sets;
using distribute::MultiWorkerMirroredStrategy;
using distribute::on_tasks;
using FourFloats = std::array<float, 4>;  // three of x, one of y
using SharedWeights = std::vector<float>;

FourFloats four_floats(int i) {
  const auto f = [&](int k) {
    return std::sin(0.7f * static_cast<float>(i * 4 + k));
  };
  return {f(0), f(1), f(2), f(3)};
}

// Rows 0 to 17 in four files of 4, 4, 4 and 6.
struct RowFiles {
  RowFiles() {
    const int begins[] = {0, 4, 8, 12, 18};
    for (int file = 0; file < 4; ++file) {
      std::string bytes;
      for (int i = begins[file]; i < begins[file + 1]; ++i) {
        const FourFloats r = four_floats(i);
        bytes.append(reinterpret_cast<const char*>(r.data()), sizeof(r));
      }
      names.push_back(dir / ("rows" + std::to_string(file)));
      io::testing::write_file(names.back(), bytes);
    }
  }
  io::testing::TempDir dir;
  std::vector<std::string> names;
};

Dataset with_policy(const Dataset& d, AutoShardPolicy policy) {
  return data::with_options(
      d, {.experimental_distribute = {.auto_shard_policy = policy}});
}

Tensors x_and_y(const Tensor& rows) {
  return {rows[{slice(), slice(0, 3)}], rows[{slice(), slice(3, 4)}]};
}

Dataset batches_in(const std::vector<std::string>& files, int64_t batch) {
  return data::FixedLengthRecordDataset(files, sizeof(FourFloats))
      .batch(batch)
      .map([](const Tensors& e) {
        return x_and_y(io::decode_raw(e[0], float32));
      });
}

// Batches of these rows.
Dataset batches_of_rows(std::vector<std::vector<int>> batches) {
  return Dataset::from_generator(
      [batches] {
        return [batches, at = size_t{0}]() mutable -> std::optional<Tensors> {
          if (at == batches.size()) return std::nullopt;
          std::vector<float> values;
          for (const int i : batches[at]) {
            for (const float v : four_floats(i)) values.push_back(v);
          }
          const auto n = static_cast<int64_t>(batches[at++].size());
          return x_and_y(constant(values, Shape{n, 4}));
        };
      },
      {{Shape{kUnknownDim, 3}, float32, {}},
       {Shape{kUnknownDim, 1}, float32, {}}});
}

// Devices are made once in a process.
void in_sharing_process(int devices, const std::function<void()>& body) {
  IN_A_FRESH_PROCESS(cpus(devices); body();
                     if (testing::Test::HasFailure()) std::_Exit(1));
}

struct Fitted {
  SharedWeights weights;
  double loss = 0, tested = 0;
};

template <class Data>
Fitted fit_shared(const Data& batches) {
  Sequential model({InputLayer({3}), Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.set_weights({constant({{0.1f}, {0.2f}, {0.3f}}), constant({0.f})});
  Fitted f;
  f.loss =
      model.fit(batches, {.epochs = 2, .verbose = 0}).history.at("loss").back();
  f.tested = model.evaluate(batches, {.verbose = 0}).at("loss");
  for (const Tensor& w : model.get_weights()) {
    for (const float v : w.to_vector<float>()) f.weights.push_back(v);
  }
  return f;
}

void expect_fitted(const Fitted& a, const Fitted& b) {
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_NEAR(a.weights[i], b.weights[i], 1e-5) << i;
  }
  EXPECT_NEAR(a.loss, b.loss, 1e-5);
  EXPECT_NEAR(a.tested, b.tested, 1e-5);
}

// Both tasks train on what `make` gives, as one task does on `steps`.
void expect_shared_steps(const std::function<Dataset(int rank)>& make,
                         const std::vector<std::vector<int>>& steps) {
  const Fitted one = fit_shared(batches_of_rows(steps));
  cluster::FakeCluster cluster({.workers = 2});
  for (const Fitted& f : on_tasks<Fitted>(cluster, [&](const auto& member) {
         const MultiWorkerMirroredStrategy strategy(
             member, {.devices = core_sets(member->rank(), 1)});
         const auto scope = strategy.scope();
         return fit_shared(make(member->rank()));
       })) {
    expect_fitted(f, one);
  }
}

// Task 0 has rows 0-3 and 8-11, task 1 rows 4-7 and 12-17, in batches of 4.
const std::vector<std::vector<int>> kByFile{
    {0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}, {16}, {17}};

TEST(ShardPolicy, FilesAreSharedAndUnevenEndsHangNobody) {
  in_sharing_process(2, [] {
    const RowFiles files;
    for (const auto policy : {AutoShardPolicy::kFile, AutoShardPolicy::kAuto}) {
      expect_shared_steps(
          [&](int) { return with_policy(batches_in(files.names, 4), policy); },
          kByFile);
    }
  });
}

TEST(ShardPolicy, DataIsTheBatchesOfOneTask) {
  in_sharing_process(2, [] {
    const RowFiles files;
    const std::vector<std::vector<int>> steps{
        {0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}, {16, 17}};
    expect_shared_steps(
        [&](int) {
          return with_policy(batches_in(files.names, 4),
                             AutoShardPolicy::kData);
        },
        steps);
    // Fewer files than tasks.
    expect_shared_steps([&](int) { return batches_in({files.names[0]}, 4); },
                        {{0, 1, 2, 3}});
  });
}

TEST(ShardPolicy, OffTakesEachTasksOwnAndAHintSplitsWhereItStands) {
  in_sharing_process(2, [] {
    const RowFiles files;
    expect_shared_steps(
        [&](int rank) {
          return with_policy(batches_in({files.names[rank == 0 ? 0 : 1],
                                         files.names[rank == 0 ? 2 : 3]},
                                        4),
                             AutoShardPolicy::kOff);
        },
        kByFile);
    expect_shared_steps(
        [&](int) {
          return with_policy(
              data::FixedLengthRecordDataset(files.names, sizeof(FourFloats))
                  .take(6)
                  .shard(data::SHARD_HINT, data::SHARD_HINT)
                  .batch(4)
                  .map([](const Tensors& e) {
                    return x_and_y(io::decode_raw(e[0], float32));
                  }),
              AutoShardPolicy::kHint);
        },
        {{0, 1}, {2, 4, 3, 5}});
  });
}

TEST(ShardPolicy, ATaskWithoutAnyBatchTakesPart) {
  in_sharing_process(2, [] {
    expect_shared_steps(
        [&](int rank) {
          const Dataset rows = batches_of_rows({{0, 1, 2, 3}});
          return with_policy(rank == 0 ? rows : rows.take(0),
                             AutoShardPolicy::kOff);
        },
        {{0, 1}, {2, 3}});
  });
}

std::vector<std::string> policy_refusals(
    const std::function<Dataset(int)>& make) {
  cluster::FakeCluster cluster({.workers = 2});
  return on_tasks<std::string>(cluster, [&](const auto& member) {
    const MultiWorkerMirroredStrategy strategy(
        member, {.devices = core_sets(member->rank(), 1)});
    try {
      strategy.experimental_distribute_dataset(make(member->rank()));
    } catch (const errors::InvalidArgument& e) {
      return std::string(e.what());
    }
    return std::string();
  });
}

TEST(ShardPolicy, WhatCannotBeSharedIsRefusedInAllTasks) {
  in_sharing_process(2, [] {
    const RowFiles files;
    const auto expect = [](const std::function<Dataset(int)>& make,
                           const char* part) {
      const auto e = policy_refusals(make);
      EXPECT_EQ(e[0].substr(e[0].find("):")), e[1].substr(e[1].find("):")));
      EXPECT_NE(e[0].find(part), std::string::npos) << e[0];
    };
    expect(
        [](int) {
          return with_policy(Dataset::range(8).batch(2),
                             AutoShardPolicy::kFile);
        },
        "the dataset of worker:0 cannot be split: it reads no files");
    expect(
        [&](int rank) {
          return with_policy(
              batches_in({files.names.begin(), files.names.begin() + 2 - rank},
                         2),
              AutoShardPolicy::kFile);
        },
        "worker:1 cannot be split: it reads 1 files");
    expect(
        [](int rank) {
          return with_policy(
              Dataset::range(8).batch(2),
              rank == 0 ? AutoShardPolicy::kOff : AutoShardPolicy::kData);
        },
        "worker:0 has auto_shard_policy OFF, that of worker:1 DATA");
    expect(
        [](int) {
          return with_policy(Dataset::range(8).batch(2),
                             AutoShardPolicy::kHint);
        },
        "has no shard(SHARD_HINT, SHARD_HINT)");
  });
}

// Rows that each of two tasks sees, step by step, in a loop of one's own.
std::vector<std::vector<int64_t>> rows_seen(
    const std::function<distribute::DistributedDataset(
        const MultiWorkerMirroredStrategy&)>& distributed) {
  cluster::FakeCluster cluster({.workers = 2});
  return on_tasks<std::vector<int64_t>>(cluster, [&](const auto& member) {
    const MultiWorkerMirroredStrategy strategy(
        member, {.devices = core_sets(member->rank(), 1)});
    std::vector<int64_t> seen;
    for (const auto& batch : distributed(strategy)) {
      const auto rows = batch[0][0].template to_vector<int64_t>();
      seen.insert(seen.end(), rows.begin(), rows.end());
      seen.push_back(-1);
    }
    return seen;
  });
}

TEST(ShardPolicy, LoopsOfOnesOwnHaveAsManyStepsInAllTasks) {
  in_sharing_process(2, [] {
    using Seen = std::vector<std::vector<int64_t>>;
    const Seen hinted = rows_seen([](const auto& strategy) {
      return strategy.experimental_distribute_dataset(with_policy(
          Dataset::range(5).shard(data::SHARD_HINT, data::SHARD_HINT).batch(2),
          AutoShardPolicy::kHint));
    });
    EXPECT_EQ(hinted, (Seen{{0, -1, 2, -1, 4, -1}, {1, -1, 3, -1, -1}}));
    const Seen made = rows_seen([](const auto& strategy) {
      return strategy.distribute_datasets_from_function(
          [](const distribute::InputContext& c) {
            return Dataset::range(3)
                .shard(c.num_input_pipelines, c.input_pipeline_id)
                .batch(c.get_per_replica_batch_size(2));
          });
    });
    EXPECT_EQ(made, (Seen{{0, -1, 2, -1}, {1, -1, -1}}));
  });
}

}  // namespace
}  // namespace berth::keras
