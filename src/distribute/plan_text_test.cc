// StrategyPlan as text and as JSON.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/distribute.h"

namespace berth::distribute {
namespace {

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
