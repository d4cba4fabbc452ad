// The search of all plans compared with simpler enumeration.

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>

#include "planner/all_plans_testing.h"
#include "planner/check.h"
#include "planner/problem_testing.h"

namespace berth {
namespace {

using place_tests::pick;

// Aliases are not supported; limits: 0 none, else some matter.
PlanProblem tiny_problem(std::mt19937& r, int32_t nodes, int32_t devices,
                         bool simple, bool limits) {
  PlanProblem p;
  do {
    p = testing::random_step_problem(r, nodes, devices, simple);
  } while (!why_not_tiny(p).empty());
  for (DeviceCost& d : p.costs.devices) {
    d.memory_limit = limits ? 20 + pick(r, 200) : 0;
  }
  return p;
}

// The best plan, if all were tried within these steps.
std::optional<Found> find_best_step(const PlanProblem& p, int64_t most) {
  Found found;
  while (true) {
    const Enumerated tried =
        enumerate_steps(p, found.value, [&] { return --most < 0; });
    if (!tried.all) return std::nullopt;
    if (tried.shorter.device.empty()) return found;
    found.plan = tried.shorter;
    found.value = evaluate(p, found.plan).value;
  }
}

double best_of_all(const PlanProblem& p) {
  double best = std::numeric_limits<double>::infinity();
  testing::AllPlans(p, [&](const PlacePlan& plan) {
    const Evaluation e = evaluate(p, plan);
    if (e.violations.empty()) best = std::min(best, e.value);
  });
  return best;
}

TEST(EnumerateSteps, FindsTheBestOfAllPlans) {
  std::mt19937 r(7);
  int planned = 0;
  for (int k = 0; k < testing::random_cases(300); ++k) {
    const PlanProblem p =
        tiny_problem(r, 3 + pick(r, 3), 2 + pick(r, 2), k % 2, k % 3 == 0);
    const std::optional<Found> all = find_best_step(p, 1 << 30);
    ASSERT_TRUE(all.has_value());
    const Found& found = *all;
    const double best = best_of_all(p);
    ASSERT_EQ(found.any(), best < std::numeric_limits<double>::infinity());
    if (!found.any()) continue;
    ++planned;
    EXPECT_NEAR(found.value, best, 1e-9 * best) << k;
    const Evaluation e = evaluate(p, found.plan);
    EXPECT_NEAR(e.value, found.value, 1e-9 * best) << k;
    EXPECT_TRUE(e.violations.empty());
    if (!(best > 0)) continue;
    EXPECT_EQ(check_search(p, {"search", best, {}}), "") << k;
    EXPECT_NE(check_search(p, {"search", best * 1.01, {}}), "") << k;
  }
  EXPECT_GT(planned, testing::random_cases(150));
}

// Each order is followed once per set of times, else this takes minutes.
TEST(EnumerateSteps, SlowCheckerRepeatsTheSearch) {
  std::mt19937 r(3);
  for (int k = 0; k < testing::random_cases(20); ++k) {
    const PlanProblem p =
        tiny_problem(r, 13 + pick(r, 4), 2 + pick(r, 3), true, false);
    const std::optional<Found> found = find_best_step(p, 1 << 20);
    if (!found || !found->any() || !(found->value > 0)) continue;
    EXPECT_EQ(check_search(p, {"search", found->value, {}}), "") << k;
    EXPECT_NE(check_search(p, {"search", found->value * 1.01, {}}), "") << k;
  }
}

// A chain of ops whose copies cost more than they gain: one device, 165.
TEST(EnumerateSteps, ClosesTheGapOfAChain) {
  testing::ProblemMaker m(PlanModel::kStep);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 4; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(50, 1);
  int last = -1;
  const double us[] = {20, 35, 15, 40, 25, 30};
  for (int i = 0; i < 6; ++i) {
    last = m.op("op" + std::to_string(i), {us[i]},
                last < 0 ? std::vector<int>{} : std::vector<int>{last}, 10);
  }
  const PlanAnswer a = plan_placement(m.make(), {.moves = 10000, .threads = 1});
  EXPECT_EQ(a.value, 165);
  EXPECT_EQ(a.bound.value, 165);
  EXPECT_EQ(a.bound.witness.kind, "search");
}

TEST(EnumerateSteps, EndsWithItsNodesAndProvesNothingThen) {
  std::mt19937 r(1);
  const PlanProblem p = tiny_problem(r, 12, 3, true, false);
  EXPECT_FALSE(find_best_step(p, 10).has_value());
}

TEST(EnumerateSteps, CheckerRefusesWhatItDoesNotKnow) {
  testing::ProblemMaker m(PlanModel::kLoad);
  m.device("GPU:0", m.device_class("GPU"));
  m.op("a", {5}, {});
  EXPECT_NE(check_search(m.make(), {"search", 1, {}}), "");
}

}  // namespace
}  // namespace berth
