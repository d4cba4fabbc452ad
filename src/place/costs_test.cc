// Estimates: closed forms from flops, bytes and rates.

#include "place/costs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "berth/berth.h"
#include "graph/graph_text.h"
#include "graph/tracer.h"

namespace berth {
namespace {

const char kArgs[] =
    "berth-graph 1\n"
    "op Own (x: any) -> (y)\n"
    "node x = _Arg() {index = 0, dtype = float32, shape = shape[8,16]} -> "
    "float32[8,16]\n"
    "node w = _Arg() {index = 1, dtype = float32, shape = shape[16,4]} -> "
    "float32[16,4]\n"
    "node u = _Arg() {index = 2, dtype = float32, shape = shape[?1,16]} -> "
    "float32[?1,16]\n";

// One class: 2 flops and 1 byte per us, 10 us a launch.
Machine slow_machine() {
  Machine m = assumed_machine({"/job:localhost/replica:0/task:0/device:CPU:0"});
  m.classes[0].flops_per_us = 2;
  m.classes[0].bytes_per_us = 1;
  m.classes[0].launch_us = 10;
  return m;
}

struct Estimated {
  explicit Estimated(const std::string& more,
                     const EstimateOptions& options = {},
                     const Machine& m = slow_machine())
      : text(parse_text(kArgs + more)) {
    EstimateOptions o = options;
    o.declared = &text.costs;
    costs = estimate_costs(text.graph, m, o);
  }
  const OpTime& last() const { return costs.times.back(); }
  GraphText text;
  CostTable costs;
};

TEST(EstimateCosts, IsLaunchAndTheLongerOfComputingAndMoving) {
  const Estimated mm("node y = MatMul(x:0, w:0) -> float32[8,4]\n");
  // 2 * 8 * 16 * 4 flops; 4 * (128 + 64 + 32) bytes.
  EXPECT_EQ(mm.last().us, 10 + 4 * (128 + 64 + 32));
  EXPECT_EQ(mm.last().origin, CostOrigin::kEstimated);
  EXPECT_GT(mm.last().spread, 0);
  Machine m = slow_machine();
  m.classes[0].flops_per_us = 0.5;
  const Estimated bound("node y = MatMul(x:0, w:0) -> float32[8,4]\n", {}, m);
  EXPECT_EQ(bound.last().us, 10 + 2 * 8 * 16 * 4 / 0.5);
  EXPECT_EQ(mm.costs.bytes_of({3, 0}), 4 * 32);
}

TEST(EstimateCosts, PlaceholdersAndAliasesAreFree) {
  const Estimated e(
      "node y = Reshape(x:0) {shape = shape[16,8]} -> float32[16,8]\n");
  for (const OpTime& t : e.costs.times) EXPECT_EQ(t.us, 0);
  EXPECT_EQ(e.costs.bytes_of({0, 0}), 4 * 128);
}

TEST(EstimateCosts, AnUnknownDimensionCountsAsOneAndSaysSo) {
  const Estimated e("node y = Tanh(u:0) -> float32[?1,16]\n");
  EXPECT_EQ(e.last().origin, CostOrigin::kEstimated);
  EXPECT_EQ(e.last().spread, 1);
  const Estimated one(
      "node v = _Arg() {index = 3, dtype = float32, shape = shape[1,16]} -> "
      "float32[1,16]\n"
      "node y = Tanh(v:0) -> float32[1,16]\n");
  EXPECT_EQ(e.last().us, one.last().us);
  EXPECT_LT(one.last().spread, 1);
  EXPECT_EQ(e.costs.bytes_of({3, 0}), 64);
}

TEST(EstimateCosts, WhatIsDeclaredWins) {
  const Estimated e(
      "node y = Own(x:0) -> float32[8,16] time CPU 2.5, GPU 7 bytes 99\n");
  EXPECT_EQ(e.last().us, 2.5);
  EXPECT_EQ(e.last().origin, CostOrigin::kDeclared);
  EXPECT_EQ(e.costs.bytes_of({3, 0}), 99);
  const Estimated other("node y = Own(x:0) -> float32[8,16] time GPU 7\n");
  EXPECT_EQ(other.last().origin, CostOrigin::kEstimated);
}

TEST(EstimateCosts, WithoutAKernelAnOpTakesForEver) {
  const Estimated e("node y = Tanh(x:0) -> float32[8,16]\n",
                    {[](const OpDef& op, DType dtype, const DeviceClass& on) {
                      EXPECT_EQ(dtype, float32);
                      EXPECT_EQ(on.type, "CPU");
                      return op.name() != "Tanh";
                    }});
  EXPECT_EQ(e.last().us, kNoKernel);
  EXPECT_EQ(e.last().origin, CostOrigin::kNone);
}

TEST(EstimateCosts, ALoopTakesAllItsTurns) {
  // Four iterations of adding 8 floats; the condition compares scalars.
  Tracer tracer("loop");
  const Tensor x = tracer.add_arg(TensorSpec(Shape({8}), float32));
  tracer.start();
  const auto [i, y] = while_loop(
      [](const Tensor& i, const Tensor&) { return i < 4; },
      [](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y + y); },
      std::tuple(constant(0), x), {.max_iterations = 4});
  const Tensors results = {y};
  const Graph g = tracer.finish(results);
  int32_t loop = -1;
  for (int32_t i = 0; i < g.size(); ++i) {
    if (g[i].op->name() == "While") loop = i;
  }
  ASSERT_GE(loop, 0);
  const CostTable costs = estimate_costs(g, slow_machine());
  // Per iteration: Less (4 + 4 + 1 bytes), AddV2 of scalars (12 bytes), AddV2
  // of 8 floats (96 bytes), each with a launch.
  EXPECT_EQ(costs.times[loop].us, 4 * (10 + 9 + 10 + 12 + 10 + 96));
}

TEST(AssumedMachine, HasOneClassPerType) {
  const std::string head = "/job:localhost/replica:0/task:0/device:";
  const Machine m = assumed_machine(
      {head + "CPU:0", head + "GPU:0", head + "GPU:1", head + "CPU:1"});
  ASSERT_EQ(m.classes.size(), 2u);
  EXPECT_EQ(m.devices[3].device_class, m.devices[0].device_class);
  EXPECT_EQ(m.class_of(2).type, "GPU");
  EXPECT_EQ(m.devices[1].copies, CopyRule::kOverlap);
  EXPECT_EQ(m.devices[0].copies, CopyRule::kReceiving);
  EXPECT_EQ(&m.link(3, 0), &m.link(1, 2));  // all equal, stored once
  EXPECT_EQ(m.find(head + "GPU:1"), 2);
  EXPECT_EQ(m.find(head + "GPU:2"), -1);
  EXPECT_GT(m.class_of(1).flops_per_us, m.class_of(0).flops_per_us);
}

}  // namespace
}  // namespace berth
