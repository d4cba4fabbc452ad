// Starts of ops whose values come too late from another device: numbers worked
// out by hand.

#include <gtest/gtest.h>

#include "planner/check.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "planner/step_graph.h"

namespace berth {
namespace {

// `blocks` times: an op (10 us) whose value three ops (20 us each) read, and
// the next block reads all three. Equal devices; a copy takes `copy` us.
struct Forks {
  PlanProblem problem;
  std::vector<int> join;  // per block: its first op
};

Forks make_forks(int blocks, double copy) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 4; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(copy, 1e9);
  Forks f;
  std::vector<int> before;
  for (int b = 0; b < blocks; ++b) {
    const std::string at = std::to_string(b);
    const int join = m.op("join" + at, {10}, before, 4);
    f.join.push_back(join);
    before.clear();
    for (const char* branch : {"a", "b", "c"}) {
      before.push_back(m.op(branch + at, {20}, {join}, 4));
    }
  }
  f.problem = m.make();
  return f;
}

TEST(JoinedStarts, CountBranchesInARowWhereCopiesTakeLonger) {
  const Forks f = make_forks(50, 1000);
  const StepGraph g(f.problem);
  const std::vector<double> start = joined_starts(g, false);
  for (int b = 0; b < 50; ++b) {
    EXPECT_NEAR(start[f.join[b]], 70 * b, 1e-6) << b;
  }
  // Backwards: its three, the next block's first op and its three.
  const std::vector<double> after = joined_starts(g, true);
  EXPECT_NEAR(after[f.join[48]], 60 + 10 + 60, 1e-6);
}

TEST(JoinedStarts, AreThoseOfChainsWhereCopiesTakeNoTime) {
  const Forks f = make_forks(50, 0);
  const StepGraph g(f.problem);
  const std::vector<double> start = joined_starts(g, false);
  for (int b = 0; b < 50; ++b) {
    EXPECT_NEAR(start[f.join[b]], 30 * b, 1e-6) << b;
  }
}

// While all three must be where their reader is, it starts after 10 + 60 us. A
// value from elsewhere arrives after 10 + 20 + 12.5 at the soonest.
TEST(JoinedStarts, EndWhereAValueCanComeFromElsewhere) {
  const Forks f = make_forks(2, 12.5);
  const StepGraph g(f.problem);
  EXPECT_NEAR(joined_starts(g, false)[f.join[1]], 42.5, 1e-6);
}

TEST(JoinedStarts, ProveThatALongNetworkCannotBeSplit) {
  const Forks f = make_forks(2000, 1000);
  const Bound b = bound_steps(f.problem, Budget::of_moves(10, 1));
  const double one_device = 2000 * 70.0;
  EXPECT_LE(b.value, one_device);
  EXPECT_GE(b.value, one_device * (1 - 1e-8));
  EXPECT_EQ(check_path(f.problem, b.witness), "");
}

}  // namespace
}  // namespace berth
