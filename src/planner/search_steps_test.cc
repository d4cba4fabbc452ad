// Latency search compared with enumeration, and what it guarantees.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "planner/list_schedule.h"
#include "planner/models.h"
#include "planner/problem_testing.h"
#include "simulate/random_steps_testing.h"
#include "simulate/step_timer.h"

namespace berth {
namespace {

using place_tests::pick;
using place_tests::RandomSteps;

struct Shape {
  RandomSteps steps;
  bool groups = false, masks = false, limits = false;
};

PlanProblem random_problem(std::mt19937& r, const Shape& shape) {
  place_tests::RandomStep s = place_tests::random_step(r, shape.steps);
  PlanProblem p;
  p.name = "random";
  p.graph = std::move(s.graph);
  p.costs = std::move(s.costs);
  const int32_t n = p.num_ops();
  for (int32_t i = 0; i < n; ++i) {
    p.names.push_back("n" + std::to_string(i));
    const DeviceSet some = static_cast<DeviceSet>(r());
    p.allowed.push_back(shape.masks && pick(r, 3) == 0 ? some | 1
                                                       : ~DeviceSet{0});
    p.group.push_back(shape.groups && i > 0 && pick(r, 3) == 0
                          ? pick(r, p.num_groups)
                          : p.num_groups);
    p.num_groups = std::max(p.num_groups, p.group.back() + 1);
    p.resident_bytes.push_back(shape.limits ? pick(r, 4) : 0);
    p.backward.push_back(0);
  }
  if (shape.limits) {
    for (DeviceCost& d : p.costs.devices) d.memory_limit = 4 + pick(r, 16);
  }
  check_problem(p);
  return p;
}

// Calls `fn` with every feasible order of the ops.
void each_order(const PlanProblem& p,
                const std::function<void(const std::vector<int32_t>&)>& fn) {
  const SimulatedGraph& g = p.graph;
  std::vector<int32_t> order;
  std::vector<int32_t> waits(static_cast<size_t>(p.num_ops()));
  // Everything that a node waits for; timeless nodes are done when possible.
  std::vector<uint8_t> done(waits.size(), 0);
  const auto ready = [&](int32_t i) {
    for (const int32_t v : g.reads[i]) {
      if (!done[g.producer[v]]) return false;
    }
    return std::all_of(g.controls[i].begin(), g.controls[i].end(),
                       [&](int32_t c) { return done[c] != 0; });
  };
  const std::function<void()> go = [&] {
    std::vector<int32_t> settled;
    for (bool more = true; more;) {
      more = false;
      for (int32_t i = 0; i < p.num_ops(); ++i) {
        if (done[i] || p.takes_time(i) || !ready(i)) continue;
        done[i] = 1, more = true;
        settled.push_back(i);
      }
    }
    bool any = false;
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      if (done[i] || !ready(i)) continue;
      any = true;
      done[i] = 1;
      order.push_back(i);
      go();
      order.pop_back();
      done[i] = 0;
    }
    if (!any) fn(order);
    for (const int32_t i : settled) done[i] = 0;
  };
  go();
}

// The least step of all valid plans; infinite: there are none.
double enumerate(const PlanProblem& p) {
  const std::vector<DeviceSet> allowed = allowed_of_groups(p);
  StepTimer timer(p.graph, p.costs);
  double best = std::numeric_limits<double>::infinity();
  PlacePlan plan;
  plan.device.assign(static_cast<size_t>(p.num_ops()), 0);
  std::vector<int32_t> device(allowed.size(), 0);
  const std::function<void(size_t)> choose = [&](size_t group) {
    if (group < allowed.size()) {
      for (int32_t d = 0; d < p.num_devices(); ++d) {
        if (!(allowed[group] & device_bit(d))) continue;
        device[group] = d;
        choose(group + 1);
      }
      return;
    }
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      plan.device[i] = device[p.group[i]];
    }
    each_order(p, [&](const std::vector<int32_t>& order) {
      plan.sequence = order;
      const double us = timer.run(plan);
      if (us < best && evaluate(p, plan).violations.empty()) best = us;
    });
  };
  choose(0);
  return best;
}

Found search(const PlanProblem& p, int64_t moves, int threads = 1,
             uint64_t seed = 1) {
  return search_steps(p, Budget::of_moves(moves, threads), seed);
}

// Checks a plan and its stated value by evaluation.
void expect_plan(const PlanProblem& p, const Found& found) {
  ASSERT_TRUE(found.any());
  const Evaluation e = evaluate(p, found.plan);
  EXPECT_EQ(e.violations, std::vector<std::string>());
  EXPECT_NEAR(e.value, found.value, 1e-9 * found.value);
}

// Compares search and enumeration on problems of a shape.
void compare(const Shape& shape, int count, int64_t moves, uint32_t seed) {
  const int problems = testing::random_cases(count);
  std::mt19937 r(seed);
  int without = 0;
  for (int k = 0; k < problems; ++k) {
    const PlanProblem p = random_problem(r, shape);
    const double best = enumerate(p);
    const Found found = search(p, moves);
    if (std::isinf(best)) {
      EXPECT_FALSE(found.any()) << k;
      ++without;
      continue;
    }
    ASSERT_TRUE(found.any()) << "problem " << k << ", best " << best;
    expect_plan(p, found);
    EXPECT_DOUBLE_EQ(found.value, best) << "problem " << k;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_LT(without, problems / 2 + 1);
}

TEST(SearchSteps, FindsTheBestPlanOfSmallProblemsSlow) {
  for (int rule = 0; rule < 4; ++rule) {
    Shape shape{{.nodes = 5, .devices = 3, .aliases = false}};
    shape.steps.rules = {static_cast<CopyRule>(rule)};
    compare(shape, 100, 16000, 1 + static_cast<uint32_t>(rule));
  }
  compare({{.nodes = 6, .devices = 2, .aliases = false}}, 200, 16000, 7);
}

TEST(SearchSteps, FindsTheBestPlanThatKeepsMasksAndGroupsSlow) {
  compare({.steps = {.nodes = 6, .devices = 3, .aliases = false},
           .groups = true,
           .masks = true},
          200, 16000, 11);
}

TEST(SearchSteps, FindsTheBestPlanThatKeepsMemoryLimitsSlow) {
  compare(
      {.steps = {.nodes = 5, .devices = 2, .aliases = false}, .limits = true},
      200, 16000, 21);
}

TEST(SearchSteps, FindsTheBestPlanAroundAliasesAndSources) {
  compare({.steps = {.nodes = 6, .devices = 2}, .groups = true}, 200, 16000,
          31);
}

PlanProblem middling_problem(uint32_t seed) {
  std::mt19937 r(seed);
  return random_problem(
      r, {.steps = {.nodes = 60, .devices = 4}, .groups = true, .masks = true});
}

TEST(SearchSteps, RepeatsOnAnyNumberOfThreads) {
  const PlanProblem p = middling_problem(3);
  const Found one = search(p, 20000, 1, 5);
  for (const int threads : {2, 5}) {
    const Found other = search(p, 20000, threads, 5);
    EXPECT_EQ(other.value, one.value);
    EXPECT_EQ(other.plan.device, one.plan.device);
    EXPECT_EQ(other.plan.sequence, one.plan.sequence);
    EXPECT_EQ(other.moves, one.moves);
  }
  expect_plan(p, one);
}

TEST(SearchSteps, MakesAsManyMovesAsItMay) {
  const PlanProblem p = middling_problem(4);
  for (const int64_t moves : {8, 80, 4000}) {
    EXPECT_EQ(search(p, moves).moves, moves);
  }
  EXPECT_EQ(search(p, 1).moves, Budget::kStreams);  // a plan per stream
}

TEST(SearchSteps, EndsWhenNothingBetterExists) {
  const PlanProblem p = middling_problem(5);
  Budget budget = Budget::of_moves(1 << 20, 2);
  const double value = search(p, 4000).value;
  budget.set_enough(value * 1.05);
  const Found found = search_steps(p, budget, 1);
  EXPECT_LE(found.value, value * 1.05);
  EXPECT_LT(found.moves, 1 << 18);
}

TEST(SearchSteps, IsNoWorseThanCandidatesThatItStartsFrom) {
  PlanProblem p = middling_problem(6);
  const Found good = search(p, 200000);
  p.candidates.push_back({"good", good.plan});
  EXPECT_LE(search(p, 8 * 25).value, good.value);
}

TEST(SearchSteps, FindsNothingWhereAnOpMayBeNowhere) {
  PlanProblem p = middling_problem(7);
  p.allowed[1] = 0;
  EXPECT_FALSE(search(p, 100).any());
}

// Two values of a byte are held at once; devices hold one.
TEST(SearchSteps, EndsWhereNoPlanOfManyOpsFits) {
  testing::ProblemMaker chain(PlanModel::kStep);
  const int gpu = chain.device_class("GPU");
  for (const char* name : {"GPU:0", "GPU:1"}) chain.device(name, gpu, 1);
  chain.links(1, 1);
  for (int i = 0; i < 4200; ++i) {
    chain.op("n", {1}, i == 0 ? std::vector<int>{} : std::vector<int>{i - 1},
             1);
  }
  const PlanProblem p = chain.make();
  const Found found = search(p, 8 * 400);
  EXPECT_FALSE(found.any());
  EXPECT_LE(found.moves, 8 * 400);
  EXPECT_FALSE(search_steps(p, Budget::of_seconds(0.2, 2), 1).any());
}

TEST(SearchSteps, PlansLongChainsAndWideGraphs) {
  testing::ProblemMaker chain(PlanModel::kStep);
  const int gpu = chain.device_class("GPU");
  for (int d = 0; d < 4; ++d) chain.device("GPU:" + std::to_string(d), gpu);
  chain.links(1, 1);
  constexpr int kOps = 50000;
  for (int i = 0; i < kOps; ++i) {
    chain.op("n", {1}, i == 0 ? std::vector<int>{} : std::vector<int>{i - 1},
             1);
  }
  const Found found = search(chain.make(), 16);
  EXPECT_EQ(found.value, kOps);

  testing::ProblemMaker wide(PlanModel::kStep);
  const int cpu = wide.device_class("CPU");
  for (int d = 0; d < 4; ++d) wide.device("CPU:" + std::to_string(d), cpu);
  std::vector<int> all;
  for (int i = 0; i < kOps; ++i) all.push_back(wide.op("n", {1}, {}));
  wide.op("end", {1}, all);
  EXPECT_EQ(search(wide.make(), 16).value, kOps / 4 + 1);
}

TEST(SearchSteps, PlansGraphsWithoutWork) {
  std::mt19937 r(9);
  PlanProblem p = random_problem(r, {.steps = {.nodes = 12, .devices = 3}});
  for (auto& kind : p.graph.kind) kind = SimulatedGraph::Kind::kSource;
  for (auto& alias : p.graph.alias_of) alias = -1;
  expect_plan(p, search(p, 2000));
  EXPECT_FALSE(search(testing::ProblemMaker(PlanModel::kStep).make(), 9).any());
}

TEST(SearchSteps, SurvivesTimesThatOverflow) {
  std::mt19937 r(9);
  PlanProblem p = random_problem(r, {.steps = {.nodes = 12, .devices = 3}});
  for (OpTime& t : p.costs.times) t.us = 1e308;
  for (LinkCost& l : p.costs.links) l.latency_us = 1e308;
  search(p, 2000);
}

TEST(ListScheduler, MakesPlansThatKeepMasksAndGroups) {
  std::mt19937 r(5);
  StreamRandom random(1, 1);
  for (int k = 0; k < 50; ++k) {
    const PlanProblem p = random_problem(
        r, {.steps = {.nodes = 40}, .groups = true, .masks = true});
    const StepUnits units(p);
    ListScheduler lists(units);
    for (ListRule rule : kListRules) {
      rule.noise = 0.4 * random.uniform();
      const PlacePlan& plan = lists.run(rule, random);
      EXPECT_EQ(evaluate(p, plan).violations, std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace berth
