// StrategyPlan as text and as JSON.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/distribute.h"

namespace berth::distribute {
namespace {

using fresh_process::check;

StrategyPlan a_plan() {
  StrategyPlan p;
  p.strategy = "MirroredStrategy";
  p.batch = 256;
  p.replicas = {
      {0, {"/job:localhost/replica:0/task:0/device:CPU:0"}, 64, 8, 311.6, 900},
      {1,
       {"/job:localhost/replica:0/task:0/device:CPU:1"},
       192,
       24,
       330,
       3'400'000}};
  p.buckets = {{{"dense/kernel", "dense/bias"}, 401'920, "shared memory"}};
  p.unused = {"extra/kernel"};
  p.step_us = 640;
  p.all_reduce_us = 31.5;
  p.one_device_us = 704;
  p.one_device = "one device with 4 cores";
  p.advice = "2 replicas on one memory bus: 1.1x; use one device with 4 cores";
  return p;
}

TEST(StrategyPlanText, IsATable) {
  EXPECT_EQ(a_plan().str(),
            "MirroredStrategy, 2 replicas, batch 256\n"
            "  replica  device  examples  slices    compute       peak\n"
            "        0  CPU:0         64       8     312 us      900 B\n"
            "        1  CPU:1        192      24     330 us    3.2 MiB\n"
            "  bucket 0: 392.5 KiB, shared memory: dense/kernel, dense/bias\n"
            "  between devices: 0 B per step\n"
            "  no gradient, not trained: extra/kernel\n"
            "  predicted: 640 us per step, 31.5 us of it adding gradients\n"
            "  against one device with 4 cores: 704 us, speed-up 1.10x\n"
            "  2 replicas on one memory bus: 1.1x; use one device with 4 "
            "cores\n");
}

void simulated_plan() {
  config::set_simulated_devices("GPUx2");
  config::list_logical_devices();
  const std::string gpu = "/job:localhost/replica:0/task:0/device:GPU:";
  StrategyPlan p = a_plan();
  p.replicas[0].devices = {gpu + "0"};
  p.replicas[1].devices = {gpu + "1"};
  p.one_device = "GPU:0";
  p.task_counts = {{1, 700}, {2, 640}};
  const std::string s = p.str();
  for (const char* part :
       {"        0  GPU:0 (simulated)        64       8     312 us",
        "predicted: 640 us per step, 31.5 us of it adding gradients, "
        "simulated\n",
        "against GPU:0: 704 us, simulated, speed-up 1.10x\n",
        "by number of tasks: 1: 700 us, 2: 640 us, simulated\n"}) {
    check(s.find(part) != s.npos, part + ("\n" + s));
  }
  // Wall time and virtual time do not compare.
  p.replicas[0].devices = {"/job:localhost/replica:0/task:0/device:CPU:0"};
  const std::string mixed = p.str();
  check(mixed.find("against") == mixed.npos, mixed);
  check(mixed.find("  CPU:0  ") != mixed.npos, mixed);
  check(mixed.find("  GPU:1 (simulated)  ") != mixed.npos, mixed);
}
TEST(StrategyPlanText, MarksTimesOfAVirtualClock) {
  IN_A_FRESH_PROCESS(simulated_plan());
}

TEST(StrategyPlanText, JsonNamesEverything) {
  const auto j = nlohmann::json::parse(a_plan().json());
  EXPECT_EQ(j["replicas"][1]["examples"], 192);
  EXPECT_EQ(j["replicas"][1]["devices"][0],
            "/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_EQ(j["buckets"][0]["variables"][1], "dense/bias");
  EXPECT_EQ(j["unused"][0], "extra/kernel");
  EXPECT_DOUBLE_EQ(j["speed_up"], 1.1);
}

TEST(StrategyPlanText, WhatIsNotKnownIsNull) {
  const auto j = nlohmann::json::parse(StrategyPlan().json());
  EXPECT_TRUE(j["step_us"].is_null());
  EXPECT_TRUE(j["speed_up"].is_null());
  EXPECT_TRUE(j["replicas"].is_array());
}

}  // namespace
}  // namespace berth::distribute
