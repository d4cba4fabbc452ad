// Models trained by fit under a strategy against one device: every variable
// after one step and after all, every loss, evaluate and predict.

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/debugging.h"
#include "conformance/strategy/plan_races.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

constexpr double kAfterOneStep = 1e-5;
constexpr double kLosses = 1e-4;
// Roundings that twenty updates carried on.
constexpr double kAfterAll = 2e-3;

using Rows = std::vector<Row>;

// Every model, whose momentum slots are the gradients.
Rows every_model() {
  Rows rows;
  for (const std::string& model : names_of_models()) {
    for (const char* devices : {"CPUx2", "CPUx3", "GPUx2", "GPUx3"}) {
      rows.push_back({.model = model, .devices = devices});
    }
    rows.push_back({.model = model, .devices = "CPU:0,GPU:0"});
  }
  return rows;
}

Rows every_optimizer() {
  Rows rows;
  for (const char* optimizer :
       {"sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad"}) {
    for (const char* devices : {"CPUx2", "GPUx3", "CPU:1,GPU:2"}) {
      for (const char* model : {"dense", "conv"}) {
        rows.push_back(
            {.model = model, .optimizer = optimizer, .devices = devices});
      }
    }
  }
  return rows;
}

// Batches that replicas do not divide, and such that most get nothing.
Rows every_batch() {
  Rows rows;
  for (const char* model : {"dense", "batch_norm", "dropout", "two_by_two"}) {
    for (const Examples examples : {Examples::kEven, Examples::kEmpty}) {
      for (const char* devices : {"CPUx4", "GPUx4", "CPU:0,GPU:0,GPU:1"}) {
        rows.push_back(
            {.model = model, .examples = examples, .devices = devices});
      }
    }
  }
  return rows;
}

Rows every_share() {
  Rows rows;
  for (const char* model : {"dense", "conv", "batch_norm", "dropout"}) {
    for (const char* devices : {"CPUx2", "GPUx2", "CPU:0,GPU:0"}) {
      for (const char* shares : {"1:3", "auto"}) {
        rows.push_back({.model = model, .devices = devices, .shares = shares});
      }
    }
    rows.push_back({.model = model,
                    .examples = Examples::kEmpty,
                    .devices = "GPUx4",
                    .shares = "1:2:3:10"});
  }
  return rows;
}

Rows every_strategy() {
  Rows rows;
  for (const char* model : {"dense", "batch_norm", "unused"}) {
    for (const char* strategy : {"one_device", "central"}) {
      for (const char* devices : {"CPUx2", "GPUx1", "GPUx3", "GPU:1,CPU:2"}) {
        rows.push_back({.model = model,
                        .optimizer = "adam",
                        .strategy = strategy,
                        .devices = devices});
      }
    }
  }
  return rows;
}

Rows every_algorithm() {
  Rows rows;
  uint64_t seed = 0;
  for (const char* algorithm : {"ring", "pairs", "one", "direct"}) {
    for (const char* devices :
         {"GPUx2", "GPUx3", "GPUx4", "CPU:0,CPU:1,GPU:0,GPU:1"}) {
      for (const int64_t pack : {int64_t{0}, int64_t{100}, int64_t{1} << 30}) {
        rows.push_back({.model = seed % 2 ? "dense" : "conv",
                        .devices = devices,
                        .algorithm = algorithm,
                        .pack_bytes = pack,
                        .seed = ++seed});
      }
    }
  }
  return rows;
}

// Per-replica statistics, as an option of the model: with as many groups as
// replicas nothing is sent for them.
Rows statistics_groups() {
  Rows rows;
  for (const char* devices : {"CPUx2", "CPUx3", "GPUx2", "GPUx4"}) {
    rows.push_back({.model = "batch_norm_groups",
                    .examples = Examples::kEven,
                    .devices = devices});
  }
  return rows;
}

// Replicas of two devices each.
Rows replicas_of_two() {
  Rows rows;
  for (const char* devices : {"CPUx2", "CPUx4", "GPUx2", "GPUx4"}) {
    for (const Examples examples : {Examples::kUneven, Examples::kEmpty}) {
      rows.push_back({.model = "two_devices",
                      .examples = examples,
                      .devices = devices,
                      .devices_per_replica = 2});
    }
  }
  return rows;
}

// Other orders of what no wait orders.
Rows every_seed() {
  Rows rows;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    for (const char* model : {"dense", "batch_norm", "attention"}) {
      rows.push_back({.model = model,
                      .optimizer = "adam",
                      .devices = seed % 2 ? "GPUx3" : "GPUx4",
                      .seed = seed * 101});
    }
  }
  return rows;
}

// State divided over the memories: each level and model, each optimizer, and
// batches of which some devices get nothing.
Rows every_sharding() {
  Rows rows;
  uint64_t seed = 0;
  for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
    for (const std::string& model : names_of_models()) {
      rows.push_back({.model = model,
                      .devices = seed % 2 ? "GPUx3" : "GPUx4",
                      .seed = ++seed,
                      .sharding = sharding});
    }
    for (const char* optimizer :
         {"sgd", "nesterov", "adam", "adamw", "rmsprop", "adagrad"}) {
      rows.push_back(
          {.optimizer = optimizer, .devices = "GPUx3", .sharding = sharding});
    }
    for (const char* model : {"dense", "batch_norm", "embedding"}) {
      rows.push_back({.model = model,
                      .optimizer = "adam",
                      .examples = Examples::kEmpty,
                      .devices = "GPUx4",
                      .shares = "1:2:3:10",
                      .sharding = sharding});
      rows.push_back({.model = model,
                      .devices = "CPUx2",
                      .sharding = sharding,
                      .way = Way::kTrainOnBatch});
    }
  }
  return rows;
}

Rows batch_by_batch() {
  Rows rows;
  for (const char* model : {"dense", "two_by_two", "embedding"}) {
    for (const char* devices : {"CPUx3", "GPUx2"}) {
      rows.push_back(
          {.model = model, .devices = devices, .way = Way::kTrainOnBatch});
    }
  }
  return rows;
}

class Fit : public testing::TestWithParam<Row> {};

// The devices of the row, each of which has to compute.
std::vector<std::string> missing(const Trained& t, const Row& row) {
  std::vector<std::string> names = device_names(row.devices);
  if (row.strategy == "one_device") names.resize(1);
  std::erase_if(names, [&](const std::string& name) {
    return std::any_of(
        t.devices.begin(), t.devices.end(),
        [&](const std::string& d) { return d.ends_with(":" + name); });
  });
  return names;
}

// Whether the row may have an op that cannot be cut.
bool may_run_whole(const Row& row) {
  // A hinge looks whether all labels are 0 or 1.
  if (row.model == "losses") return true;
  // Groups that replicas do not hold whole.
  return row.model == "batch_norm_groups" && !row.devices.ends_with("x2");
}

int64_t times_run_whole() {
  return debugging::diagnostic_counts()["runs-whole"];
}

Values losses(const Trained& t) {
  Values v;
  for (double loss : t.losses) {
    v.push_back({"loss after step " + std::to_string(v.size() + 1), {loss}});
  }
  return v;
}

Values evaluated(const Trained& t) {
  Values v;
  for (const auto& [name, value] : t.evaluated) v.push_back({name, {value}});
  return v;
}

TEST_P(Fit, EqualsOneDevice) {
  const Row& row = GetParam();
  const Trained& want = on_one_device(row);
  // By the means of epochs; a step on one example may lead astray.
  if (row.examples != Examples::kEmpty) {
    ASSERT_LT(want.losses.back(), want.losses[2]) << "it does not learn";
  }
  said();
  const int64_t before = times_run_whole();
  const Trained got = train(row);
  SCOPED_TRACE(said());
  if (!may_run_whole(row)) {
    EXPECT_EQ(times_run_whole(), before);
  }
  EXPECT_EQ(difference(got.start, want.start, 1e-6), "") << "at the start";
  EXPECT_EQ(difference(got.after_one, want.after_one, kAfterOneStep), "")
      << "after one step";
  EXPECT_EQ(difference(losses(got), losses(want), kLosses), "");
  EXPECT_EQ(difference(got.after_all, want.after_all, kAfterAll), "")
      << "after " << want.losses.size() << " steps";
  EXPECT_EQ(difference(evaluated(got), evaluated(want), kLosses), "")
      << "evaluate";
  EXPECT_EQ(difference(got.outputs, want.outputs, kAfterAll), "") << "predict";
  EXPECT_EQ(missing(got, row), std::vector<std::string>()) << "did nothing";
  EXPECT_EQ(race_in(got.plan), "");
  EXPECT_EQ(race_in(got.last_plan), "");
}

auto name = [](const auto& info) { return info.param.name(); };
auto indexed_name = [](const auto& info) {
  return std::to_string(info.index) + "_" + info.param.name();
};
INSTANTIATE_TEST_SUITE_P(Model, Fit, testing::ValuesIn(every_model()), name);
INSTANTIATE_TEST_SUITE_P(Optimizer, Fit, testing::ValuesIn(every_optimizer()),
                         name);
INSTANTIATE_TEST_SUITE_P(Batch, Fit, testing::ValuesIn(every_batch()), name);
INSTANTIATE_TEST_SUITE_P(Share, Fit, testing::ValuesIn(every_share()), name);
INSTANTIATE_TEST_SUITE_P(Strategy, Fit, testing::ValuesIn(every_strategy()),
                         name);
INSTANTIATE_TEST_SUITE_P(Algorithm, Fit, testing::ValuesIn(every_algorithm()),
                         name);
INSTANTIATE_TEST_SUITE_P(ReplicasOfTwo, Fit,
                         testing::ValuesIn(replicas_of_two()), name);
INSTANTIATE_TEST_SUITE_P(Groups, Fit, testing::ValuesIn(statistics_groups()),
                         name);
INSTANTIATE_TEST_SUITE_P(Random, Fit,
                         testing::ValuesIn(random_rows(names_of_models(), 120,
                                                       false)),
                         indexed_name);
INSTANTIATE_TEST_SUITE_P(Seed, Fit, testing::ValuesIn(every_seed()), name);
INSTANTIATE_TEST_SUITE_P(Sharding, Fit, testing::ValuesIn(every_sharding()),
                         name);
INSTANTIATE_TEST_SUITE_P(BatchByBatch, Fit, testing::ValuesIn(batch_by_batch()),
                         name);

}  // namespace
}  // namespace berth::strategy_suite
