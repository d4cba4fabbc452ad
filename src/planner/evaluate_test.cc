// What a plan for the shortest step does: numbers worked out by hand.

#include <gtest/gtest.h>

#include "berth/errors.h"
#include "planner/models.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

// a (10) on device 0 to b (5) on device 1: 8 bytes at 2 per microsecond, 1 of
// latency.
PlanProblem two_ops(CopyRule rule) {
  PlanProblem p;
  p.graph.kind.assign(2, SimulatedGraph::Kind::kOp);
  p.graph.reads = Rows<int32_t>({{}, {0}});
  p.graph.controls = Rows<int32_t>({{}, {}});
  p.graph.values = Rows<int32_t>({{0}, {1}});
  p.graph.producer = {0, 1};
  p.graph.finish();
  p.costs.classes.resize(1);
  p.costs.devices.resize(2);
  for (int d = 0; d < 2; ++d) {
    p.costs.devices[d].name = "D" + std::to_string(d);
    p.costs.devices[d].copies = rule;
  }
  p.costs.links.assign(4, LinkCost{1, 2});
  p.costs.times = {{10}, {5}};
  p.costs.bytes = Rows<int64_t>({{8}, {4}});
  p.names = {"a", "b"};
  p.allowed = {3, 3};
  p.group = {0, 1};
  p.num_groups = 2;
  p.resident_bytes = {100, 1000};
  p.backward = {0, 0};
  return p;
}

const PlacePlan kApart = {{0, 1}, {0, 1}};

TEST(EvaluateSteps, SaysWhatEveryDeviceDoes) {
  const Evaluation e = evaluate_steps(two_ops(CopyRule::kOverlap), kApart);
  EXPECT_EQ(e.value, 20);  // 10, the copy 5, 5
  EXPECT_EQ(e.devices[0].busy, 10);
  EXPECT_EQ(e.devices[1].busy, 5);
  EXPECT_EQ(e.devices[1].copy_busy, 5);
  EXPECT_EQ(e.devices[0].bytes, 100 + 8);
  EXPECT_EQ(e.devices[1].bytes, 1000 + 8 + 4);
  EXPECT_EQ(e.simulation.transfers.size(), 1u);
}

TEST(EvaluateSteps, CopiesThatBlockCountAsBusy) {
  const Evaluation in = evaluate_steps(two_ops(CopyRule::kReceiving), kApart);
  EXPECT_EQ(in.devices[0].busy, 10);
  EXPECT_EQ(in.devices[1].busy, 10);
  EXPECT_EQ(in.devices[1].copy_busy, 0);
  const Evaluation both = evaluate_steps(two_ops(CopyRule::kBoth), kApart);
  EXPECT_EQ(both.devices[0].busy, 15);
  EXPECT_EQ(both.devices[1].busy, 10);
  EXPECT_EQ(both.value, 20);
}

TEST(EvaluateSteps, TakesForEverWithoutAKernel) {
  PlanProblem p = two_ops(CopyRule::kOverlap);
  p.costs.times[1].us = kNoKernel;
  const Evaluation e = evaluate_steps(p, kApart);
  EXPECT_EQ(e.value, kNoKernel);
  EXPECT_EQ(e.devices.size(), 2u);
}

TEST(EvaluateSteps, NamesTheOpsOfAnOrderThatCannotBe) {
  try {
    evaluate_steps(two_ops(CopyRule::kOverlap), {{0, 1}, {1, 0}});
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "\"b\" stands in front of \"a\", which it needs"),
              std::string::npos)
        << e.what();
  }
}

TEST(EvaluateSteps, ChainsOfAliasesMayBeLongerThanTheStack) {
  constexpr int kAliases = 200'000;
  testing::ProblemMaker m(PlanModel::kStep);
  m.device("GPU:0", m.device_class("GPU"));
  for (int i = 0; i < kAliases + 2; ++i) {
    m.op("op" + std::to_string(i), {3},
         i == 0 ? std::vector<int>{} : std::vector<int>{i - 1}, 8);
  }
  PlanProblem p = m.make();
  for (int32_t i = 1; i <= kAliases; ++i) {
    p.graph.kind[i] = SimulatedGraph::Kind::kAlias;
    p.graph.alias_of[i] = i - 1;
  }
  p.graph.finish();
  const PlacePlan plan = {std::vector<int32_t>(kAliases + 2, 0),
                          {0, kAliases + 1}};
  const Evaluation e = evaluate(p, plan);
  EXPECT_EQ(e.value, 6);
  EXPECT_EQ(e.devices[0].bytes, 16);
}

}  // namespace
}  // namespace berth
