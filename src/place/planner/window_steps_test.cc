// Windows of long plans: their step is the whole plan's.

#include "place/planner/window_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "place/planner/list_schedule.h"
#include "place/planner/models.h"
#include "place/planner/problem_testing.h"
#include "place/planner/window_search.h"

namespace berth {
namespace {

// Layers of ops that read some of the previous layer, on unequal devices.
PlanProblem layered(uint32_t seed, int ops, CopyRule rule) {
  std::mt19937 r(seed);
  testing::ProblemMaker m(PlanModel::kStep);
  const int fast = m.device_class("fast"), slow = m.device_class("slow");
  m.device("D0", fast, 0, rule);
  m.device("D1", fast, 0, rule);
  m.device("D2", slow, 0, rule);
  m.links(1, 2);
  for (int i = 0; i < ops; ++i) {
    std::vector<int> reads;
    for (int k = 0; k < 3 && i > 0; ++k) {
      reads.push_back(std::max(0, i - 1 - static_cast<int>(r() % 12)));
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    const double us = 1 + static_cast<double>(r() % 8);
    const int op = m.op("n", {us, 2 * us}, reads, r() % 6);
    if (i > 0 && r() % 6 == 0) {
      m.together(static_cast<int>(r() % static_cast<uint32_t>(i)), op);
    }
    if (r() % 6 == 0) m.allow(op, 7);
  }
  return m.make();
}

struct Whole {
  explicit Whole(const PlanProblem& p)
      : units(p), kept(p.graph, p.costs), random(1, 1) {
    ListScheduler lists(units);
    plan = lists.run(list_rules()[0], random);
    kept.decode(plan);
    latest = latest_starts(units, kept, plan);
  }
  StepUnits units;
  Decoder kept;
  StreamRandom random;
  PlacePlan plan;
  std::vector<double> latest;
};

TEST(StepWindow, LatestStartsLeaveTheCriticalOpsNoTime) {
  const PlanProblem p = layered(1, 100, CopyRule::kFree);
  const Whole w(p);
  double least = 1e9;
  for (const int32_t op : w.plan.sequence) {
    least = std::min(least, w.latest[op] - w.kept.start_us(op));
  }
  EXPECT_NEAR(least, 0, 1e-9);
}

// A change inside a window changes its step like the whole plan's, if this gets
// longer or nothing outside is as long.
TEST(StepWindow, IsAsLongAsTheWholePlanWhereCopiesWaitForNobody) {
  int longer = 0;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const PlanProblem p = layered(seed, 120, CopyRule::kFree);
    Whole w(p);
    const double step = w.kept.step_us();
    const StepWindow window =
        cut_window(w.units, w.kept, w.plan, w.latest, 40, 80);
    check_problem([&] {
      PlanProblem named = window.problem;
      named.names.resize(named.allowed.size());
      named.backward.resize(named.allowed.size());
      return named;
    }());
    Decoder part(window.problem.graph, window.problem.costs);
    const double before = part.decode(window.plan);
    const double offset = step - before;  // the time before the window
    EXPECT_GE(offset, -1e-9);
    for (int k = 0; k < 60; ++k) {
      PlacePlan changed = window.plan;
      const int32_t n =
          window.first +
          static_cast<int32_t>(w.random.below(window.last() - window.first));
      const auto to = static_cast<int32_t>(w.random.below(3));
      if (!(window.problem.allowed[n] & device_bit(to))) continue;
      for (int32_t i = 0; i < window.problem.num_ops(); ++i) {
        if (window.problem.group[i] == window.problem.group[n]) {
          changed.device[i] = to;
        }
      }
      PlacePlan whole = w.plan;
      put_back(w.units, window, changed, whole);
      Decoder all(p.graph, p.costs);
      const double then = all.decode(whole);
      const double seen = part.decode(changed) + offset;
      if (seen > step + 1e-9) {
        ++longer;
        EXPECT_NEAR(then, seen, 1e-9) << seed << " " << k;
      } else {
        EXPECT_LE(then, step + 1e-9) << seed << " " << k;
      }
    }
  }
  EXPECT_GT(longer, 200);
}

TEST(StepWindow, SearchKeepsMasksAndGroupsAndShortensPlans) {
  for (const CopyRule rule : {CopyRule::kFree, CopyRule::kOverlap,
                              CopyRule::kReceiving, CopyRule::kBoth}) {
    const PlanProblem p = layered(7, 900, rule);
    Whole w(p);
    ASSERT_TRUE(has_windows(w.units));
    const double before = w.kept.step_us();
    const Budget budget = Budget::of_moves(40000, 2);
    SearchSeries series(budget, 1, 1);
    WindowRounds rounds;
    double us = before;
    while (series.next(us)) {
      const double then =
          std::exchange(us, search_windows(w.units, series, rounds, w.plan));
      EXPECT_LE(us, then);
    }
    EXPECT_LT(us, before);
    const Evaluation e = evaluate(p, w.plan);
    EXPECT_EQ(e.violations, std::vector<std::string>());
    EXPECT_NEAR(e.value, us, 1e-9 * us);
    EXPECT_EQ(series.moves(), 40000);
    EXPECT_GT(rounds.round, 1);
  }
}

TEST(StepWindow, SearchRepeatsOnAnyNumberOfThreads) {
  const PlanProblem p = layered(8, 1500, CopyRule::kOverlap);
  const Found one = search_steps(p, Budget::of_moves(30000, 1), 3);
  for (const int threads : {2, 5}) {
    const Found other = search_steps(p, Budget::of_moves(30000, threads), 3);
    EXPECT_EQ(other.value, one.value);
    EXPECT_EQ(other.plan.device, one.plan.device);
    EXPECT_EQ(other.plan.sequence, one.plan.sequence);
    EXPECT_EQ(other.moves, one.moves);
  }
}

}  // namespace
}  // namespace berth
