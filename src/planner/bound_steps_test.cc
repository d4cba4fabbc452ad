// Bounds on a step's time compared with all plans of small problems.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

#include "planner/all_plans_testing.h"
#include "planner/check.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "simulate/step_timer.h"

namespace berth {
namespace {

using place_tests::pick;

double shortest(const PlanProblem& p) {
  double best = std::numeric_limits<double>::infinity();
  StepTimer timer(p.graph, p.costs);
  testing::AllPlans(p, [&](const PlacePlan& plan) {
    best = std::min(best, timer.run(plan));
  });
  return best;
}

struct Gaps {
  double sum = 0;
  int count = 0, tight = 0;
};

void compare(std::mt19937& r, int32_t nodes, int32_t devices, bool simple,
             Gaps& gaps) {
  const PlanProblem p = testing::random_step_problem(r, nodes, devices, simple);
  const double best = shortest(p);
  if (best == std::numeric_limits<double>::infinity()) return;
  const Bound b = bound_steps(p, Budget::of_moves(100000, 1));
  ASSERT_LE(b.value, best) << nodes << " nodes on " << devices;
  ASSERT_EQ(b.value > 0 ? check_path(p, b.witness) : "", "");
  if (best <= 0) return;
  gaps.sum += 1 - b.value / best;
  gaps.tight += b.value > best * (1 - 1e-6);
  ++gaps.count;
}

TEST(BoundSteps, IsAboveNoPlanOfSmallProblems) {
  std::mt19937 r(1);
  const int problems = testing::random_cases(1000);
  Gaps gaps;
  for (int k = 0; k < problems && !HasFatalFailure(); ++k) {
    compare(r, 4 + pick(r, 3), 2, false, gaps);
    compare(r, 4 + pick(r, 2), 3, false, gaps);
    compare(r, 4 + pick(r, 3), 2, true, gaps);
    compare(r, 4 + pick(r, 2), 3, true, gaps);
    if (k % 50 == 0) compare(r, 4, 10, false, gaps);  // of many kinds
  }
  ASSERT_GT(gaps.count, 2 * problems);
  RecordProperty("mean gap, %", std::to_string(100 * gaps.sum / gaps.count));
  std::printf("mean gap %.2f %%, %d of %d are tight\n",
              100 * gaps.sum / gaps.count, gaps.tight, gaps.count);
}

double bound_of(const PlanProblem& p) {
  const Bound b = bound_steps(p, Budget::of_moves(1000000, 1));
  if (b.value > 0) {
    EXPECT_EQ(check_path(p, b.witness), "");
  }
  return b.value;
}

testing::ProblemMaker gpus(int count) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < count; ++d) {
    m.device("GPU:" + std::to_string(d), gpu);
  }
  m.links(0, 1);
  return m;
}

constexpr double kNear = 1e-7;  // more than rounding subtracts

TEST(BoundSteps, OpsWhoseCopiesWouldBeTooLateRunOneAfterTheOther) {
  testing::ProblemMaker m = gpus(4);
  const int a = m.op("a", {1}, {}, 1);
  const int b = m.op("b", {10}, {a}, 100), c = m.op("c", {10}, {a}, 100);
  m.op("d", {2}, {b, c});
  // With a copy: 1 + 10 + 100 + 2.
  EXPECT_NEAR(bound_of(m.make()), 1 + 10 + 10 + 2, 23 * kNear);
}

TEST(BoundSteps, UnequalDevicesShareTheWorkAsTheyAreFast) {
  testing::ProblemMaker m(PlanModel::kStep);
  m.device("GPU:0", m.device_class("GPU"));
  m.device("CPU:0", m.device_class("CPU"));
  for (int k = 0; k < 1000; ++k) m.op("a", {1, 3}, {});
  // 750 on the GPU, 250 on the CPU.
  EXPECT_NEAR(bound_of(m.make()), 750, 1);
}

TEST(BoundSteps, CopiesThatCannotBeAvoidedCount) {
  testing::ProblemMaker m = gpus(3);
  const int a = m.op("a", {1}, {}, 7), b = m.op("b", {1}, {a}, 5);
  m.allow(a, 1);
  m.allow(b, 6);
  m.allow(m.op("c", {1}, {b}), 1);
  EXPECT_NEAR(bound_of(m.make()), 1 + 7 + 1 + 5 + 1, 15 * kNear);
}

TEST(BoundSteps, GroupsAreOnOneDevice) {
  testing::ProblemMaker m = gpus(4);
  const int a = m.op("a", {5}, {}), b = m.op("b", {5}, {}),
            c = m.op("c", {5}, {});
  m.together(a, b);
  m.together(b, c);
  EXPECT_NEAR(bound_of(m.make()), 15, 15 * kNear);
}

TEST(BoundSteps, AnyNumbersDoNoHarm) {
  testing::ProblemMaker none = gpus(2);
  EXPECT_EQ(bound_of(none.make()), 0);
  testing::ProblemMaker zero = gpus(2);
  zero.op("a", {0}, {zero.op("b", {0}, {})});
  EXPECT_EQ(bound_of(zero.make()), 0);
  testing::ProblemMaker huge = gpus(2);
  for (int k = 0; k < 9; ++k) huge.op("a", {1e308}, {}, 1);
  bound_of(huge.make());
  testing::ProblemMaker tiny = gpus(2);
  for (int k = 0; k < 9; ++k) tiny.op("a", {1e-300}, {}, 1);
  EXPECT_LE(bound_of(tiny.make()), 5e-300);
}

TEST(BoundSteps, LongChainsAndManyOpsAreBounded) {
  testing::ProblemMaker m = gpus(8);
  int last = m.op("a", {1}, {}, 1);
  for (int k = 1; k < 50000; ++k) last = m.op("a", {1}, {last}, 1);
  for (int k = 0; k < 50000; ++k) m.op("b", {9}, {}, 1);
  EXPECT_NEAR(bound_of(m.make()), (50000 + 9 * 50000) / 8.0, 10);
}

TEST(BoundSteps, IsTheSameWhateverTheBudget) {
  std::mt19937 r(5);
  const PlanProblem p = testing::random_step_problem(r, 60, 4, false);
  const Bound a = bound_steps(p, Budget::of_moves(1, 1));
  const Bound b = bound_steps(p, Budget::of_moves(100000, 3));
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.witness.arrays, b.witness.arrays);
}

// Changes some weight, so that the proof claims more or something else.
void mutate(std::mt19937& r, Witness& w) {
  std::vector<double>& weight = w.arrays[0].second;
  double& x = weight[r() % weight.size()];
  x = pick(r, 3) == 0 ? pick(r, 8) : x * (0.5 + pick(r, 1000) / 700.0);
}

TEST(CheckPath, FollowsWhatIsProvedOfLargerProblems) {
  std::mt19937 r(99);
  for (int k = 0; k < 300; ++k) {
    const PlanProblem p = testing::random_step_problem(
        r, 8 + pick(r, 40), 2 + pick(r, 4), k % 3 != 0);
    const Bound b = bound_steps(p, Budget::of_moves(1000000, 1));
    if (b.value > 0) {
      ASSERT_EQ(check_path(p, b.witness), "") << k;
    }
  }
}

TEST(CheckPath, RejectsWhatClaimsTooMuch) {
  std::mt19937 r(11);
  int tried = 0;
  for (int k = 0; k < testing::random_cases(400); ++k) {
    const PlanProblem p = testing::random_step_problem(
        r, 4 + pick(r, 3), 2 + pick(r, 2), k % 2 == 0);
    const double best = shortest(p);
    if (!(best > 0 && best < 1e9)) continue;
    const Bound b = bound_steps(p, Budget::of_moves(100000, 1));
    if (!(b.value > 0)) continue;
    Witness more = b.witness;
    more.target = best * (1 + 1e-6);
    ASSERT_NE(check_path(p, more), "");
    for (int change = 0; change < 40; ++change) {
      Witness w = b.witness;
      for (int times = 1 + pick(r, 3); times > 0; --times) {
        mutate(r, w);
      }
      w.target = best * (1 + 1e-6);
      ASSERT_NE(check_path(p, w), "") << k;
      ++tried;
    }
  }
  EXPECT_GT(tried, testing::random_cases(10000));
}

}  // namespace
}  // namespace berth
