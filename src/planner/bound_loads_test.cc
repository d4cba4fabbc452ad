#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "planner/check.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "planner/random_loads_testing.h"

namespace berth {
namespace {

using testing::Payment;

// Bounds compared with the best of all placements.
void expect_valid(Payment payment, int count, double* mean_gap) {
  double gaps = 0;
  int feasible = 0;
  for (int seed = 0; seed < count; ++seed) {
    const PlanProblem p =
        testing::random_load_problem(static_cast<uint64_t>(seed), payment);
    const double best = testing::best_load(p);
    if (std::isinf(best)) continue;
    const Bound b = bound_loads(p, Budget::of_moves(4000, 1));
    ASSERT_LE(b.value, best * (1 + 1e-9)) << "seed " << seed << " by " << b.how;
    if (b.value > 0) {
      ASSERT_EQ(check_packing(p, b.witness), "")
          << "seed " << seed << " by " << b.how;
    }
    if (best > 0) {
      gaps += 1 - b.value / best;
      ++feasible;
    }
  }
  ASSERT_GT(feasible, count / 2);
  *mean_gap = gaps / feasible;
  ::testing::Test::RecordProperty("mean_gap_percent",
                                  std::to_string(100 * *mean_gap));
  std::printf("mean gap %.2f %% of %d problems\n", 100 * *mean_gap, feasible);
}

TEST(BoundLoads, NeverExceedsTheBestPlacementByTheTouchRuleSlow) {
  double gap = 0;
  expect_valid(Payment::kTouch, testing::random_cases(1000), &gap);
  EXPECT_LT(gap, 0.15);
}

TEST(BoundLoads, NeverExceedsTheBestPlacementByLinksSlow) {
  double gap = 0;
  expect_valid(Payment::kLinks, testing::random_cases(1000), &gap);
  EXPECT_LT(gap, 0.15);
}

// The bound of a random problem.
struct Case {
  PlanProblem problem;
  Bound bound;
};
std::vector<Case> some_cases(int count) {
  std::vector<Case> cases;
  for (uint64_t seed = 0; static_cast<int>(cases.size()) < count; ++seed) {
    Case c;
    c.problem = testing::random_load_problem(
        seed, seed % 2 ? Payment::kLinks : Payment::kTouch);
    c.bound = bound_loads(c.problem, Budget::of_moves(20000, 1));
    if (c.bound.value > 0) cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<double>& array_of(Witness& w, const std::string& name) {
  for (auto& [n, array] : w.arrays) {
    if (n == name) return array;
  }
  static std::vector<double> none;
  return none;
}

TEST(CheckPacking, RejectsHigherTargets) {
  int rejected = 0;
  for (const Case& c : some_cases(200)) {
    const double best = testing::best_load(c.problem);
    Witness w = c.bound.witness;
    w.target = c.bound.value * 1.3;
    if (w.target <= best) continue;  // may be true
    EXPECT_NE(check_packing(c.problem, w), "");
    ++rejected;
  }
  EXPECT_GT(rejected, 150);
}

TEST(CheckPacking, RejectsMoreWorthAndLowerPrices) {
  int priced = 0;
  for (const Case& c : some_cases(200)) {
    const Witness& good = c.bound.witness;
    ASSERT_EQ(check_packing(c.problem, good), "");
    Witness w = good;
    const std::vector<double> prices = array_of(w, "price");
    // If no device has a price, an op is too large for all.
    if (*std::max_element(prices.begin(), prices.end()) == 0) continue;
    ++priced;
    for (double& price : array_of(w, "price")) price *= 0.5;
    EXPECT_NE(check_packing(c.problem, w), "");
    w = good;
    for (double& worth : array_of(w, "worth")) worth *= 2;
    EXPECT_NE(check_packing(c.problem, w), "");
    w = good;
    for (double& worth : array_of(w, "worth")) worth *= 0.5;
    EXPECT_NE(check_packing(c.problem, w), "");
  }
  EXPECT_GT(priced, 100);
}

TEST(CheckPacking, RejectsWhatIsNoWitness) {
  const Case c = some_cases(1)[0];
  const Witness& good = c.bound.witness;
  for (size_t i = 0; i < good.arrays.size(); ++i) {
    for (const double bad : {std::nan(""), -1e300, 1e300,
                             std::numeric_limits<double>::infinity()}) {
      Witness w = good;
      if (w.arrays[i].second.empty()) continue;
      w.arrays[i].second[0] = bad;
      if (w.arrays[i].first == "q" && bad == -1e300) continue;
      if (w.arrays[i].first == "worth" && bad == -1e300) continue;
      if (w.arrays[i].first == "price" && bad == 1e300) continue;
      EXPECT_NE(check_packing(c.problem, w), "") << w.arrays[i].first;
    }
    Witness w = good;
    w.arrays[i].second.pop_back();
    EXPECT_NE(check_packing(c.problem, w), "") << w.arrays[i].first;
    if (w.arrays[i].first == "q") continue;  // a proof by counting may be left
    w.arrays.erase(w.arrays.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(check_packing(c.problem, w), "");
  }
}

TEST(BoundLoads, RepeatsForABudgetInMoves) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const PlanProblem p = testing::random_load_problem(seed, Payment::kTouch);
    const Bound a = bound_loads(p, Budget::of_moves(5000, 1));
    const Bound b = bound_loads(p, Budget::of_moves(5000, 4));
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.witness.arrays, b.witness.arrays);
  }
}

}  // namespace
}  // namespace berth
