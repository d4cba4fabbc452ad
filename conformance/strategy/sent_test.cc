// What a step of fit sends between devices: each replica's sent_rows once, and
// what the way to add gradients takes by its closed form.

#include <gtest/gtest.h>

#include "berth/berth.h"
#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

constexpr int64_t kExamples = 240, kInputs = 500, kHidden = 300, kOutputs = 40;
constexpr int64_t kParameters =
    4 * (kInputs * kHidden + kHidden + kHidden * kOutputs + kOutputs);
constexpr int64_t kRows = 4 * (kInputs + kOutputs);  // of an example
// The loss, metrics, the rate, and what says how many examples there were.
constexpr int64_t kScalars = 16;

// By which devices: those whose memory is not the host's.
int64_t expected(const Row& row) {
  const auto names = device_names(row.devices);
  const auto replicas = static_cast<int64_t>(names.size());
  int64_t away = 0;  // replicas
  for (const std::string& n : names) away += n.starts_with("GPU") ? 1 : 0;
  const int64_t sent_rows = kRows * kExamples * away / replicas;
  if (row.strategy == "central") return sent_rows + 2 * away * kParameters;
  // The core sets among them count once.
  const int64_t memories = away + (away < replicas ? 1 : 0);
  return sent_rows + 2 * (memories - 1) * kParameters;
}

class Sent : public testing::TestWithParam<Row> {};

TEST_P(Sent, IsTheClosedForm) {
  const Row& row = GetParam();
  const distribute::Strategy strategy = strategy_of(row);
  const auto scope = strategy.scope();
  auto model =
      keras::Sequential({keras::Dense(kHidden), keras::Dense(kOutputs)});
  model.compile({.optimizer = optimizer_named(row.optimizer), .loss = "mse"});
  model.train_on_batch(zeros({kExamples, kInputs}),
                       zeros({kExamples, kOutputs}));
  const auto sent = static_cast<int64_t>(model.train_plan_info().copied_bytes);
  EXPECT_GE(sent, expected(row));
  const auto replicas = static_cast<int64_t>(device_names(row.devices).size());
  EXPECT_LE(sent,
            expected(row) == 0 ? 0 : expected(row) + 4 * kScalars * replicas)
      << model.placement().str();
}

std::vector<Row> sent_rows() {
  std::vector<Row> all;
  for (const char* devices : {"GPUx2", "GPUx3", "GPUx4", "CPU:0,GPU:1",
                              "CPU:0,CPU:1,GPU:0", "CPU:1,GPU:0,GPU:1,GPU:2"}) {
    for (const char* algorithm : {"auto", "ring", "pairs", "one", "direct"}) {
      for (const char* optimizer : {"sgd", "adam"}) {
        all.push_back({.optimizer = optimizer,
                       .devices = devices,
                       .algorithm = algorithm,
                       .pack_bytes = optimizer[0] == 'a' ? 10000 : 0});
      }
    }
  }
  // Gradients are sent to where they are summed, and variables to all: after
  // the update or, with "parameters", before they are used. No other layer
  // comes between the two uses of the second, and the first needs its variables
  // in the forward pass alone.
  for (const char* sharding : {"optimizer", "gradients", "parameters"}) {
    for (const char* devices : {"GPUx2", "GPUx3", "GPUx4"}) {
      all.push_back(
          {.optimizer = "adam", .devices = devices, .sharding = sharding});
    }
  }
  for (const char* devices : {"GPUx2", "GPUx4"}) {
    all.push_back({.strategy = "central", .devices = devices});
  }
  for (const char* devices : {"CPUx2", "CPUx4"}) {
    for (const char* strategy : {"mirrored", "central"}) {
      all.push_back({.strategy = strategy, .devices = devices});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Bytes, Sent, testing::ValuesIn(sent_rows()),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace berth::strategy_suite
