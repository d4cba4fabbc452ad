// What the planner accepts, and its errors for what it rejects.

#include "planner/problem.h"

#include <gtest/gtest.h>

#include <cmath>

#include "berth/errors.h"
#include "planner/planner.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

using testing::ProblemMaker;

PlanProblem two_ops() {
  ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU"), cpu = m.device_class("CPU");
  m.device("GPU:0", gpu);
  m.device("CPU:0", cpu);
  const int a = m.op("a", {1, kNoKernel}, {});
  const int b = m.op("b", {1, 2}, {a});
  const int c = m.op("c", {1, 3}, {b});
  m.together(b, c);
  m.allow(c, ~DeviceSet{0});
  return m.make();
}

std::string failure(const PlanProblem& p) {
  try {
    check_problem(p);
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(PlanProblem, GroupsAllowWhatAllTheirOpsAllowAndHaveKernelsFor) {
  PlanProblem p = two_ops();
  EXPECT_EQ(failure(p), "");
  EXPECT_EQ(allowed_of_groups(p), (std::vector<DeviceSet>{1, 3}));
  p.allowed[2] = 2;
  EXPECT_EQ(allowed_of_groups(p), (std::vector<DeviceSet>{1, 2}));
}

TEST(PlanProblem, RefusesWhatDoesNotFitTogetherAndNamesIt) {
  PlanProblem p = two_ops();
  p.names.pop_back();
  EXPECT_NE(failure(p).find("2 names; expected 3"), std::string::npos);
  p = two_ops();
  p.costs.times[2].us = std::nan("");
  EXPECT_NE(failure(p).find("op \"b\" takes nan"), std::string::npos);
  p = two_ops();
  p.costs.times[2].us = 1e308;
  EXPECT_NE(failure(p).find("op \"b\" takes 1e+308"), std::string::npos);
  p = two_ops();
  p.costs.link_of(0, 1).latency_us = 1e308;
  EXPECT_NE(failure(p).find("take 1e+308 on a link"), std::string::npos);
  p = two_ops();
  p.group[1] = 9;
  EXPECT_NE(failure(p).find("op \"b\" is in group 9 of 2"), std::string::npos);
  p = two_ops();
  p.resident_bytes[0] = -1;
  EXPECT_NE(failure(p).find("op \"a\" holds -1 bytes"), std::string::npos);
  p = two_ops();
  p.costs.devices.clear();
  p.costs.links.clear();
  EXPECT_NE(failure(p).find("0 devices; expected 1 to 4096"),
            std::string::npos);
}

TEST(PlanProblem, RefusesCycles) {
  PlanProblem p = two_ops();
  Rows<int32_t> controls;
  controls.add(std::vector<int32_t>{2});  // a waits for c, which needs a
  controls.add({});
  controls.add({});
  p.graph.controls = controls;
  p.graph.finish();
  EXPECT_NE(failure(p).find("waits for itself"), std::string::npos);
}

TEST(Evaluate, NamesWhatAPlanBreaks) {
  const PlanProblem p = two_ops();
  Evaluation e = evaluate(p, {{1, 0, 1}, {0, 1, 2}});
  ASSERT_EQ(e.violations.size(), 2u);
  EXPECT_NE(e.violations[0].find("\"a\" is on CPU:0"), std::string::npos);
  EXPECT_NE(e.violations[1].find("\"c\" and \"b\" must share a device"),
            std::string::npos);
  EXPECT_TRUE(evaluate(p, {{0, 0, 0}, {0, 1, 2}}).violations.empty());
  EXPECT_THROW(evaluate(p, {{0, 0}, {0, 1, 2}}), errors::InvalidArgument);
  EXPECT_THROW(evaluate(p, {{0, 0, 2}, {0, 1, 2}}), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
