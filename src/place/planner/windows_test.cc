// Bounds on a step's time compared with all plans of small problems.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

#include "place/decode.h"
#include "place/planner/all_plans_testing.h"
#include "place/planner/check.h"
#include "place/planner/models.h"
#include "place/planner/problem_testing.h"

namespace berth {
namespace {

using place_tests::pick;

double shortest(const PlanProblem& p) {
  double best = std::numeric_limits<double>::infinity();
  Decoder decoder(p.graph, p.costs);
  testing::AllPlans(p, [&](const PlacePlan& plan) {
    best = std::min(best, decoder.decode(plan));
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
  for (const double upper :
       {best * 1.3, std::numeric_limits<double>::infinity()}) {
    const Bound b = bound_steps(p, Budget::of_moves(100000, 1), upper);
    ASSERT_LE(b.value, best) << nodes << " nodes on " << devices;
    ASSERT_EQ(b.value > 0 ? check_windows(p, b.witness) : "", "");
    if (best <= 0) continue;
    gaps.sum += 1 - b.value / best;
    gaps.tight += b.value > best * (1 - 1e-6);
    ++gaps.count;
  }
}

TEST(BoundSteps, IsAboveNoPlanOfSmallProblems) {
  std::mt19937 r(1);
  Gaps gaps;
  for (int k = 0; k < 1000 && !HasFatalFailure(); ++k) {
    compare(r, 4 + pick(r, 3), 2, false, gaps);
    compare(r, 4 + pick(r, 2), 3, false, gaps);
    compare(r, 4 + pick(r, 3), 2, true, gaps);
    compare(r, 4 + pick(r, 2), 3, true, gaps);
    if (k % 50 == 0) compare(r, 4, 10, false, gaps);  // of many kinds
  }
  ASSERT_GT(gaps.count, 4000);
  RecordProperty("mean gap, %", std::to_string(100 * gaps.sum / gaps.count));
  std::printf("mean gap %.2f %%, %d of %d are tight\n",
              100 * gaps.sum / gaps.count, gaps.tight, gaps.count);
}

double bound_of(const PlanProblem& p) {
  const Bound b = bound_steps(p, Budget::of_moves(1000000, 1),
                              std::numeric_limits<double>::infinity());
  if (b.value > 0) {
    EXPECT_EQ(check_windows(p, b.witness), "");
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

TEST(BoundSteps, OpsThatShareADeviceLeaveOthersIdle) {
  // Two sums of two large products each, on four devices: 12 more large ops
  // come before, but nothing runs beside the last products of a sum.
  testing::ProblemMaker m = gpus(4);
  for (int half = 0; half < 2; ++half) {
    std::vector<int> products;
    for (int k = 0; k < 2; ++k) {
      std::vector<int> before;
      for (int j = 0; j < 3; ++j) before.push_back(m.op("a", {10}, {}, 0));
      products.push_back(m.op("b", {10}, before, 1000));
    }
    m.op("c", {0}, products);
  }
  // In the last 10, at most one product of each sum: (160 + 2 * 10) / 4 = 45,
  // and whole ops of 10 need 50.
  EXPECT_NEAR(bound_of(m.make()), 50, 50 * kNear);
}

TEST(BoundSteps, WholeOpsAreCounted) {
  testing::ProblemMaker m = gpus(2);
  for (int k = 0; k < 5; ++k) m.op("a", {10}, {});
  EXPECT_NEAR(bound_of(m.make()), 30, 30 * kNear);
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

TEST(BoundSteps, IsTheSameAgainWhenMovesAreCounted) {
  std::mt19937 r(5);
  const PlanProblem p = testing::random_step_problem(r, 60, 4, false);
  double last = 0;
  for (const int64_t moves : {1, 100, 1000, 100000}) {
    const Bound a = bound_steps(p, Budget::of_moves(moves, 1), 1e9);
    const Bound b = bound_steps(p, Budget::of_moves(moves, 3), 1e9);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.witness.arrays, b.witness.arrays);
    EXPECT_GE(a.value, last);
    EXPECT_EQ(check_windows(p, a.witness), "");
    last = a.value;
  }
}

// Changes some number, so that the proof claims more or something else.
void mutate(std::mt19937& r, int ops, double best, Witness& w) {
  const size_t rows = w.arrays[1].second.size();
  if (rows == 0 || pick(r, 4) == 0) {  // another row
    const double row[] = {static_cast<double>(pick(r, 2)),
                          static_cast<double>(pick(r, ops + 1) - 1),
                          best * pick(r, 1000) / 900,
                          best * pick(r, 1000) / 2000,
                          best * pick(r, 1000) / 2000,
                          pick(r, 2) ? 0 : static_cast<double>(1 + pick(r, 6))};
    const auto at =
        static_cast<std::ptrdiff_t>(pick(r, 1 + static_cast<int>(rows)));
    for (size_t k = 1; k < w.arrays.size(); ++k) {
      std::vector<double>& column = w.arrays[k].second;
      column.insert(column.begin() + at, row[k - 1]);
    }
    return;
  }
  std::vector<double>& column =
      w.arrays[static_cast<size_t>(pick(r, 7))].second;
  double& x = column[r() % column.size()];
  x = pick(r, 3) == 0 ? pick(r, 8) : x * (0.5 + pick(r, 1000) / 700.0);
}

TEST(CheckWindows, FollowsWhatIsProvedOfLargerProblems) {
  std::mt19937 r(99);
  for (int k = 0; k < 300; ++k) {
    const PlanProblem p = testing::random_step_problem(
        r, 8 + pick(r, 40), 2 + pick(r, 4), k % 3 != 0);
    const Bound b = bound_steps(p, Budget::of_moves(1000000, 1), 1e300);
    if (b.value > 0) {
      ASSERT_EQ(check_windows(p, b.witness), "") << k;
    }
  }
}

TEST(CheckWindows, RejectsWhatClaimsTooMuch) {
  std::mt19937 r(11);
  int tried = 0;
  for (int k = 0; k < 400; ++k) {
    const PlanProblem p = testing::random_step_problem(
        r, 4 + pick(r, 3), 2 + pick(r, 2), k % 2 == 0);
    const double best = shortest(p);
    if (!(best > 0 && best < 1e9)) continue;
    const Bound b = bound_steps(p, Budget::of_moves(100000, 1), 2 * best);
    if (!(b.value > 0)) continue;
    Witness more = b.witness;
    more.target = b.value * (1 + 1e-6);
    ASSERT_NE(check_windows(p, more), "");
    for (int change = 0; change < 40; ++change) {
      Witness w = b.witness;
      for (int times = 1 + pick(r, 3); times > 0; --times) {
        mutate(r, p.num_ops(), best, w);
      }
      w.target = best * (1 + 1e-6);
      ASSERT_NE(check_windows(p, w), "") << k;
      ++tried;
    }
  }
  EXPECT_GT(tried, 10000);
}

}  // namespace
}  // namespace berth
