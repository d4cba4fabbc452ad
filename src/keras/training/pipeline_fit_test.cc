// fit under a PipelineStrategy is fit on one device: variables after one step,
// losses after 21, under every schedule. Devices are configured once per
// process, so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::OneDeviceStrategy;
using distribute::PipelineOptions;
using distribute::PipelineSchedule;
using distribute::PipelineStrategy;
using fresh_process::check;
using fresh_process::refuses;

Dense named_dense(int units, const char* name) {
  return Dense(units, {.activation = "tanh", .name = name});
}

std::vector<Task> pipeline_tasks() {
  return {
      {"dense",
       {6},
       [] {
         return Sequential({named_dense(8, "a"), named_dense(8, "b"),
                            named_dense(6, "c"), Dropout(0.3),
                            named_dense(8, "d"), Dense(3, {.name = "out"})});
       },
       [] { return Adam(0.01, {.global_clipnorm = 0.5}); }},
      {"conv",
       {8, 8, 2},
       [] {
         return Sequential(
             {Conv2D(4, {3, 3}, {.activation = "relu", .name = "a"}),
              MaxPooling2D({2, 2}), Flatten({.name = "b"}), named_dense(8, "c"),
              named_dense(8, "d"), Dense(3)});
       },
       [] { return optimizers::SGD(0.05, {.momentum = 0.9}); }},
      {"norm",
       {6},
       [] {
         return Sequential(
             {named_dense(8, "a"), LayerNormalization({.name = "b"}),
              named_dense(8, "c"), named_dense(4, "d"), Dense(3)});
       },
       [] { return optimizers::RMSprop(0.01); }},
  };
}

// The options of every schedule for two devices.
std::vector<PipelineOptions> schedules() {
  using enum PipelineSchedule;
  return {{.micro_batches = 4, .schedule = kGPipe, .stages = {"c"}},
          {.micro_batches = 4, .schedule = k1F1B, .stages = {"b"}},
          {.micro_batches = 4,
           .schedule = kInterleaved1F1B,
           .stages = {"b", "c", "d"}},
          {.micro_batches = 3, .schedule = kZbH1, .stages = {"c"}},
          {.micro_batches = 4, .schedule = kZbV, .stages = {"b", "c", "d"}}};
}

void equals_one_device(const std::vector<std::string>& devices) {
  const OneDeviceStrategy one(devices[0]);
  for (const Task& t : pipeline_tasks()) {
    for (const PipelineOptions& options : schedules()) {
      const std::string what =
          std::string(t.name) + ", schedule " +
          std::to_string(static_cast<int>(options.schedule));
      std::cerr << what << "\n";
      const auto run = [&](int epochs, int64_t examples) {
        return train(t, PipelineStrategy(devices, options), epochs, examples,
                     8);
      };
      // One step; 21 steps with a last batch of 6 of 8; one whose last batch
      // has one example.
      compare(what + ", one step", train(t, one, 1, 8, 8), run(1, 8), 1e-5);
      if (options.schedule == PipelineSchedule::kInterleaved1F1B) continue;
      compare(what + ", 21 steps", train(t, one, 7, 22, 8), run(7, 22), 2e-3);
      compare(what + ", one example", train(t, one, 1, 9, 8), run(1, 9), 1e-4);
    }
  }
}

TEST(PipelineFit, TwoCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(equals_one_device(cpus(2)));
}
TEST(PipelineFit, TwoSimulatedGpusEqualOne) {
  IN_A_FRESH_PROCESS(equals_one_device(gpus(2)));
}

}  // namespace
}  // namespace berth::keras
