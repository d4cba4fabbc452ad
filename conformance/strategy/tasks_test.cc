// Rows across processes: every task of a cluster runs them, each against one
// device of its own. `berth launch --workers 3 -- conformance_strategy
// --gtest_filter='*Tasks*'`; alone they are rows of a MirroredStrategy.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/multi_worker.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using Rows = std::vector<Row>;

bool is_near(double a, double b) {
  return std::fabs(a - b) <= 1e-4 * std::fmax(1, std::fabs(b));
}

// `devices`: of each task.
Rows rows_of_tasks() {
  Rows rows;
  for (const ModelSpec& m : models()) {
    if (m.special || m.name == "losses") continue;
    rows.push_back({.model = m.name,
                    .strategy = "multi_worker",
                    .devices = rows.size() % 2 == 0 ? "CPUx1" : "GPUx2"});
  }
  for (const char* model : {"dense", "batch_norm", "dropout", "two_by_two"}) {
    rows.push_back({.model = model,
                    .optimizer = "adam",
                    .examples = Examples::kEmpty,
                    .strategy = "multi_worker",
                    .devices = "GPUx2"});
    rows.push_back({.model = model,
                    .examples = Examples::kEven,
                    .strategy = "multi_worker",
                    .devices = "CPUx2",
                    .pack_bytes = 100,
                    .way = Way::kTrainOnBatch});
  }
  return rows;
}

Rows sliced_rows_of_tasks() {
  Rows rows;
  for (const ModelSpec& m : models()) {
    if (m.special) continue;
    rows.push_back({.model = m.name,
                    .optimizer = "adam",
                    .strategy = "multi_worker",
                    .devices = rows.size() % 2 == 0 ? "GPUx2" : "CPUx1",
                    .slices = 8});
  }
  return rows;
}

class Tasks : public testing::TestWithParam<Row> {};

TEST_P(Tasks, EqualOneDevice) {
  const Row& row = GetParam();
  const Trained& want = on_one_device(row);
  said();
  const Trained got = train(row);
  SCOPED_TRACE(said());
  EXPECT_EQ(difference(got.start, want.start, 1e-6), "") << "at the start";
  EXPECT_EQ(difference(got.after_one, want.after_one, 1e-5), "")
      << "after one step";
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i) {
    EXPECT_PRED2(is_near, got.losses[i], want.losses[i]) << "step " << i + 1;
  }
  EXPECT_EQ(difference(got.after_all, want.after_all, 2e-3), "");
  for (const auto& [name, value] : want.evaluated) {
    EXPECT_PRED2(is_near, got.evaluated.at(name), value) << name;
  }
  EXPECT_EQ(difference(got.outputs, want.outputs, 2e-3), "") << "predict";
}

class TasksBits : public testing::TestWithParam<Row> {};

TEST_P(TasksBits, DoNotDependOnTheNumberOfTasks) {
  const Row& row = GetParam();
  const Trained& want = on_one_device(row);
  said();
  const Trained got = train(row);
  SCOPED_TRACE(said());
  expect_equal_bits(got, want);
}

// So that a launcher which starts nobody, or one task, does not pass.
TEST(TasksCluster, HasAsManyTasksAsWereLaunched) {
  const char* expected = std::getenv("BERTH_EXPECTED_TASKS");
  if (expected == nullptr) GTEST_SKIP() << "BERTH_EXPECTED_TASKS is not set";
  const distribute::MultiWorkerMirroredStrategy strategy(
      distribute::cluster_resolver::from_environment(),
      {.devices = {"/CPU:0"}});
  EXPECT_EQ(strategy.num_replicas_in_sync(), std::atoi(expected));
}

auto row_name = [](const auto& info) { return info.param.name(); };
INSTANTIATE_TEST_SUITE_P(Rows, Tasks, testing::ValuesIn(rows_of_tasks()),
                         row_name);
INSTANTIATE_TEST_SUITE_P(Sliced, TasksBits,
                         testing::ValuesIn(sliced_rows_of_tasks()), row_name);

}  // namespace
}  // namespace berth::strategy_suite
