// With {.slices = n} training has the same bits on 1, 2, 3 and 4 devices of
// one kind: every variable, every loss, after one step and after all.

#include <gtest/gtest.h>

#include "conformance/strategy/plan_races.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

using Rows = std::vector<Row>;

Rows rows() {
  Rows rows;
  for (const ModelSpec& m : models()) {
    if (m.special) continue;
    int n = 0;
    for (const char* devices : {"CPUx1", "CPUx2", "CPUx3", "CPUx4", "GPUx1",
                                "GPUx2", "GPUx3", "GPUx4"}) {
      rows.push_back({.model = m.name,
                      .optimizer = n % 2 ? "adam" : "momentum",
                      .examples = n % 3 ? Examples::kUneven : Examples::kEmpty,
                      .devices = devices,
                      .slices = 4,
                      .seed = static_cast<uint64_t>(n++)});
    }
  }
  // More slices, unequal shares and other ways to add do not matter either.
  for (const char* devices : {"CPUx2", "GPUx2"}) {
    for (const char* model : {"dense", "conv", "batch_norm"}) {
      rows.push_back({.model = model, .devices = devices, .slices = 6});
      rows.push_back(
          {.model = model, .devices = devices, .shares = "1:3", .slices = 8});
    }
  }
  for (const char* devices : {"CPUx3", "GPUx2", "GPUx4"}) {
    rows.push_back({.model = "batch_norm_groups",
                    .examples = Examples::kEven,
                    .devices = devices,
                    .slices = 4});
  }
  for (const char* algorithm : {"direct", "one"}) {
    rows.push_back({.model = "conv",
                    .devices = "GPUx3",
                    .slices = 8,
                    .algorithm = algorithm,
                    .pack_bytes = 300,
                    .seed = 9});
  }
  // Nor does what is divided.
  for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
    for (const char* model : {"dense", "conv", "batch_norm", "attention"}) {
      for (const char* devices : {"CPUx2", "GPUx2", "GPUx3"}) {
        rows.push_back({.model = model,
                        .optimizer = "adam",
                        .devices = devices,
                        .slices = 4,
                        .sharding = sharding});
      }
    }
  }
  // With GPUs the host updates, which is another backend.
  rows.push_back({.strategy = "central", .devices = "CPUx3", .slices = 4});
  return rows;
}

class Bits : public testing::TestWithParam<Row> {};

TEST_P(Bits, DoNotDependOnTheNumberOfDevices) {
  const Row& row = GetParam();
  const Trained& want = on_one_device(row);
  said();
  const Trained got = train(row);
  SCOPED_TRACE(said());
  expect_equal_bits(got, want);
  EXPECT_EQ(race_in(got.plan), "");
  EXPECT_EQ(race_in(got.last_plan), "");
}

INSTANTIATE_TEST_SUITE_P(
    Random, Bits, testing::ValuesIn(random_rows(names_of_models(), 100, true)),
    [](const auto& info) {
      return std::to_string(info.index) + "_" + info.param.name();
    });
INSTANTIATE_TEST_SUITE_P(Slices, Bits, testing::ValuesIn(rows()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
