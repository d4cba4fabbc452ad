// Searches for throughput plans compared with enumeration, limits and budgets.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/loads.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "planner/random_load_graphs_testing.h"

namespace berth {
namespace {

using planner_tests::random_loads;
using planner_tests::RandomLoads;

// The least value of all plans; infinite when none keeps all limits.
double least_of_all(const PlanProblem& problem) {
  const LoadProblem p(problem);
  std::vector<int32_t> device(p.bytes.size(), 0);
  double best = std::numeric_limits<double>::infinity();
  while (true) {
    best = std::min(best, load_value(p, device));
    size_t u = 0;
    while (u < device.size() && ++device[u] == p.num_devices()) device[u++] = 0;
    if (u == device.size()) return best;
  }
}

RandomLoads small(uint64_t seed, bool by_links) {
  RandomLoads o;
  o.ops = 5 + static_cast<int>(seed % 6);
  o.groups = 5 + static_cast<int>(seed % 3);
  o.devices = 2 + static_cast<int>(seed % 2);
  o.classes = 1 + static_cast<int>(seed / 2 % 2);
  o.by_links = by_links;
  o.limits = seed % 3 == 0;
  o.masks = seed % 5 < 2;
  o.aliases = seed % 7 == 0;
  o.backward = seed % 4 == 0;
  return o;
}

void expect_best_found(bool by_links) {
  int found = 0, none = 0;
  const int problems = testing::random_cases(1000);
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(problems); ++seed) {
    const PlanProblem p = random_loads(small(seed, by_links), seed);
    const double best = least_of_all(p);
    const Found f = search_loads(p, Budget::of_moves(32000, 1), seed);
    if (std::isinf(best)) {
      ++none;
      EXPECT_FALSE(f.any()) << "seed " << seed;
      continue;
    }
    ++found;
    ASSERT_TRUE(f.any()) << "seed " << seed;
    EXPECT_NEAR(f.value, best, 1e-9) << "seed " << seed;
    const Evaluation e = evaluate(p, f.plan);
    EXPECT_TRUE(e.violations.empty()) << "seed " << seed;
    EXPECT_NEAR(e.value, f.value, 1e-9) << "seed " << seed;
  }
  EXPECT_GT(found, problems * 4 / 5);
  EXPECT_GT(none, problems / 200);
}

TEST(SearchLoads, FindsTheBestPlanOfSmallProblemsByTouchRuleSlow) {
  expect_best_found(false);
}

TEST(SearchLoads, FindsTheBestPlanOfSmallProblemsByLinkRuleSlow) {
  expect_best_found(true);
}

RandomLoads larger(bool by_links) {
  RandomLoads o;
  o.ops = 150;
  o.groups = 100;
  o.devices = 5;
  o.by_links = by_links;
  o.limits = o.masks = o.backward = true;
  return o;
}

TEST(SearchLoads, MovesRepeatOnAnyNumberOfThreads) {
  for (const bool by_links : {false, true}) {
    const PlanProblem p = random_loads(larger(by_links), 3);
    const Found one = search_loads(p, Budget::of_moves(100000, 1), 7);
    ASSERT_TRUE(one.any());
    for (const int threads : {2, 5}) {
      const Found f = search_loads(p, Budget::of_moves(100000, threads), 7);
      EXPECT_EQ(f.plan.device, one.plan.device);
      EXPECT_EQ(f.value, one.value);
      EXPECT_EQ(f.moves, one.moves);
    }
    const Found other = search_loads(p, Budget::of_moves(100000, 1), 8);
    EXPECT_NE(other.plan.device, one.plan.device);
  }
}

TEST(SearchLoads, MakesAsManyMovesAsItMay) {
  const PlanProblem p = random_loads(larger(false), 3);
  for (const int64_t moves : {8, 1000, 12345, 200000}) {
    const Budget budget = Budget::of_moves(moves, 2);
    const Found f = search_loads(p, budget, 1);
    EXPECT_EQ(f.moves, Budget::kStreams * budget.moves_per_stream());
  }
}

TEST(SearchLoads, IsNoWorseThanACandidate) {
  PlanProblem p = random_loads(larger(true), 5);
  const Found good = search_loads(p, Budget::of_moves(400000, 4), 1);
  ASSERT_TRUE(good.any());
  p.candidates.push_back({"good", good.plan});
  const Found f = search_loads(p, Budget::of_moves(8, 1), 2);
  EXPECT_LE(f.value, good.value);
}

TEST(SearchLoads, LargeProblemsAreSearchedOnSmallerOnes) {
  RandomLoads o;
  o.ops = 6000;
  o.devices = 9;
  o.classes = 2;
  for (const bool by_links : {false, true}) {
    o.by_links = by_links;
    const PlanProblem p = random_loads(o, 9);
    const Found f = search_loads(p, Budget::of_moves(400000, 4), 1);
    ASSERT_TRUE(f.any());
    const Evaluation e = evaluate(p, f.plan);
    EXPECT_TRUE(e.violations.empty());
    // Close to equal shares, or it would not be spread at all.
    double work = 0;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      work += std::min(p.costs.times[2 * i].us, p.costs.times[2 * i + 1].us);
    }
    EXPECT_LT(e.value, 2 * work / 9);
  }
}

// Of 8,000 ops in a chain, none needs more than a share of 6e-5 of a device.
TEST(SearchLoads, LevelsLoadsThatDifferByLittle) {
  testing::ProblemMaker m(PlanModel::kLoad);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 8; ++d) m.device("GPU:" + std::to_string(d), gpu);
  std::mt19937 random(4);
  double work = 0;
  int last = -1;
  for (int i = 0; i < 8000; ++i) {
    const double us = 1 + random() % 50;
    work += us;
    last = m.op("op", {us}, i > 0 ? std::vector<int>{last} : std::vector<int>{},
                1);
  }
  m.links(0, 1000);
  const Found f = search_loads(m.make(), Budget::of_moves(200000, 2), 1);
  EXPECT_GE(f.value, work / 8);
  EXPECT_LE(f.value, work / 8 * (1 + 5e-5));
}

TEST(SearchLoads, EndsWithAPlanThatIsEnough) {
  const PlanProblem p = random_loads(larger(false), 6);
  Budget budget = Budget::of_seconds(60, 2);
  budget.set_enough(1e9);
  EXPECT_TRUE(search_loads(p, budget, 1).any());
}

}  // namespace
}  // namespace berth
