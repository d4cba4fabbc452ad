// Timing from a changed position compared with timing from the beginning;
// simulate_random_test compares its numbers with the rules.

#include "simulate/step_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "berth/errors.h"
#include "simulate/pair_slots.h"
#include "simulate/random_steps_testing.h"

namespace berth {
namespace {

using namespace place_tests;

constexpr double kNever = std::numeric_limits<double>::infinity();

void move_with_inputs(const RandomStep& s, int32_t node, int32_t device,
                      PlacePlan& plan) {
  plan.device[static_cast<size_t>(node)] = device;
  for (const int32_t v : s.graph.reads[node]) {
    const int32_t p = s.graph.producer[static_cast<size_t>(v)];
    if (s.graph.kind[static_cast<size_t>(p)] != SimulatedGraph::Kind::kOp) {
      move_with_inputs(s, p, device, plan);
    }
  }
}

// Changes devices of some nodes and the order after some position, and returns
// that position.
int32_t change(std::mt19937& r, const RandomStep& s, PlacePlan& plan) {
  const auto ops = static_cast<int32_t>(plan.sequence.size());
  const int32_t first = pick(r, ops + 1);
  const int32_t devices = static_cast<int32_t>(s.costs.devices.size());
  for (int32_t k = first; k < ops; ++k) {
    const auto op = static_cast<size_t>(plan.sequence[static_cast<size_t>(k)]);
    if (pick(r, 4) == 0) plan.device[op] = pick(r, devices);
  }
  for (int32_t i = 0; i < s.graph.num_nodes(); ++i) {
    if (s.graph.kind[static_cast<size_t>(i)] != SimulatedGraph::Kind::kOp &&
        pick(r, 30) == 0) {
      plan.device[static_cast<size_t>(i)] = pick(r, devices);
    }
  }
  // Ops with the arguments and aliases that they read.
  for (int n = pick(r, 3); n > 0 && first < ops; --n) {
    const int32_t op =
        plan.sequence[static_cast<size_t>(first + pick(r, ops - first))];
    move_with_inputs(s, op, pick(r, devices), plan);
  }
  // Another order after it: that of a random plan.
  if (pick(r, 2) == 0) {
    const PlacePlan other = random_plan(r, s);
    std::vector<uint8_t> before(plan.device.size(), 0);
    for (int32_t k = 0; k < first; ++k) {
      before[static_cast<size_t>(plan.sequence[static_cast<size_t>(k)])] = 1;
    }
    plan.sequence.resize(static_cast<size_t>(first));
    for (const int32_t op : other.sequence) {
      if (!before[static_cast<size_t>(op)]) plan.sequence.push_back(op);
    }
  }
  return first;
}

std::vector<StepTimer::Event> copies(StepTimer& d) {
  std::vector<StepTimer::Event> copies;
  for (const StepTimer::Event& e : d.events()) {
    if (e.to >= 0) copies.push_back(e);
  }
  return copies;
}

void expect_same_copies(StepTimer& a, StepTimer& b) {
  const auto x = copies(a), y = copies(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t e = 0; e < x.size(); ++e) {
    ASSERT_EQ(x[e].number, y[e].number);
    ASSERT_EQ(x[e].to, y[e].to);
    ASSERT_EQ(x[e].position, y[e].position);
    ASSERT_EQ(x[e].start_us, y[e].start_us);
    ASSERT_EQ(x[e].end_us, y[e].end_us);
  }
}

void expect_same(const RandomStep& s, StepTimer& a, StepTimer& b) {
  for (int32_t i = 0; i < s.graph.num_nodes(); ++i) {
    ASSERT_EQ(a.spans()[i].start_us, b.spans()[i].start_us) << i;
    ASSERT_EQ(a.spans()[i].end_us, b.spans()[i].end_us) << i;
  }
  ASSERT_NO_FATAL_FAILURE(expect_same_copies(a, b));
  EXPECT_TRUE(std::ranges::equal(a.peak_bytes(), b.peak_bytes()));
}

void walk(std::mt19937& r, const RandomStep& s, int moves) {
  StepTimer timer(s.graph, s.costs), fresh(s.graph, s.costs);
  PlacePlan kept = random_plan(r, s);
  double kept_us = timer.run(kept);
  for (int k = 0; k < moves; ++k) {
    PlacePlan changed = kept;
    const int32_t first = change(r, s, changed);
    const double whole = fresh.run(changed);
    const double limit = pick(r, 2) ? kNever : kept_us;
    const double us = timer.try_from(changed, first, limit);
    ASSERT_EQ(us, whole > limit ? kNever : whole);
    if (us == kNever) {
      fresh.run(kept);
      ASSERT_NO_FATAL_FAILURE(expect_same(s, timer, fresh));
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(s, timer, fresh));
    if (pick(r, 3) == 0) continue;  // tried, but not kept
    timer.accept();
    kept = changed;
    kept_us = us;
    ASSERT_EQ(timer.step_us(), us);
    ASSERT_NO_FATAL_FAILURE(expect_same(s, timer, fresh));
  }
}

TEST(StepTimer, TriesAChangedPlanAsIfFromTheBeginning) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 r(seed);
    RandomSteps o;
    o.nodes = 5 + pick(r, 60);
    o.devices = 1 + pick(r, 4);
    SCOPED_TRACE(seed);
    const RandomStep s = random_step(r, o);
    ASSERT_NO_FATAL_FAILURE(walk(r, s, 40));
  }
}

TEST(StepTimer, TriesAChangedPlanWhereCopiesWaitForNobody) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 r(seed);
    RandomSteps o;
    o.nodes = 5 + pick(r, 60);
    o.devices = 1 + pick(r, 4);
    o.aliases = seed % 3 == 0;
    o.rules = {CopyRule::kFree};
    SCOPED_TRACE(seed);
    RandomStep s = random_step(r, o);
    ASSERT_NO_FATAL_FAILURE(walk(r, s, 40));
  }
}

// Pairs of values and devices have no table where they are many.
TEST(StepTimer, TriesAChangedPlanOnThousandsOfDevices) {
  std::mt19937 r(7);
  RandomSteps o;
  o.nodes = 3000;
  o.devices = 4;
  o.shared_links = false;
  RandomStep s = random_step(r, o);
  const std::vector<DeviceCost> some = s.costs.devices;
  s.costs.links = {s.costs.link(0, 1)};
  for (size_t d = some.size(); d < 4096; ++d) {
    s.costs.devices.push_back(some[d % some.size()]);
  }
  ASSERT_GT(s.graph.producer.size() * s.costs.devices.size(),
            PairSlots::kMostInTable);
  ASSERT_NO_FATAL_FAILURE(walk(r, s, 6));
  const PlacePlan plan = random_plan(r, s);
  StepTimer timer(s.graph, s.costs);
  EXPECT_EQ(timer.run(plan), simulate(s.graph, s.costs, plan).step_us);
}

TEST(PairSlots, NumberPairsAndForget) {
  SimulatedGraph g;
  g.producer.resize(100);
  g.reads.add(std::vector<int32_t>(100));
  PairSlots slots(g, PairSlots::kMostInTable);
  for (int round = 0; round < 3; ++round) {
    for (size_t k = 0; k < 300; ++k) EXPECT_EQ(slots.slot(k / 7, k % 7), k);
    for (size_t k = 0; k < 300; ++k) EXPECT_EQ(slots.slot(k / 7, k % 7), k);
    EXPECT_TRUE(slots.is_full());
    slots.clear();
    EXPECT_EQ(slots.size(), 0u);
  }
}

// Both loops implement the rule: an alias that nothing reads selects the other
// loop.
TEST(StepTimer, BothLoopsAgree) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 r(seed);
    RandomSteps o;
    o.nodes = 5 + pick(r, 60);
    o.aliases = false;
    o.rules = {CopyRule::kFree};
    const RandomStep s = random_step(r, o);
    RandomStep other = s;
    SimulatedGraph& g = other.graph;
    g.kind.push_back(SimulatedGraph::Kind::kAlias);
    g.reads.add(std::vector<int32_t>{});
    g.controls.add(std::vector<int32_t>{});
    g.values.add(std::vector<int32_t>{});
    g.alias_of.push_back(-1);
    g.variable_bytes.push_back(0);
    g.finish();
    other.costs.bytes.add(std::vector<int64_t>{});
    for (size_t k = 0; k < s.costs.classes.size(); ++k) {
      other.costs.times.push_back({0});
      other.costs.workspace.push_back(0);
    }
    PlacePlan plan = random_plan(r, s);
    StepTimer a(s.graph, s.costs);
    StepTimer b(g, other.costs);
    const double us = a.run(plan);
    plan.device.push_back(0);
    EXPECT_EQ(b.run(plan), us);
    ASSERT_NO_FATAL_FAILURE(expect_same_copies(a, b));
    EXPECT_TRUE(std::ranges::equal(a.peak_bytes(), b.peak_bytes()));
  }
}

TEST(StepTimer, TakesForEverWithoutAKernelAndIsNoNumberNever) {
  std::mt19937 r(5);
  RandomSteps o;
  RandomStep s = random_step(r, o);
  const PlacePlan plan = random_plan(r, s);
  for (OpTime& t : s.costs.times) t.us = 1e300;
  EXPECT_GE(StepTimer(s.graph, s.costs).run(plan), 1e300);
  for (LinkCost& l : s.costs.links) l = {0, 0};  // 0 bytes / 0: no number
  const double us = StepTimer(s.graph, s.costs).run(plan);
  EXPECT_GE(us, 1e300);
  for (const double never : {kNoKernel, std::nan(""), -1.0}) {
    for (OpTime& t : s.costs.times) t.us = never;
    StepTimer timer(s.graph, s.costs);
    EXPECT_EQ(timer.run(plan), kNever);
    EXPECT_EQ(timer.try_from(plan, 0, kNever), kNever);
  }
}

TEST(StepTimer, AGraphWithoutOpsTakesNoTime) {
  SimulatedGraph g;
  g.finish();
  CostTable c;
  c.devices.resize(1);
  c.classes.resize(1);
  c.links.resize(1);
  StepTimer timer(g, c);
  EXPECT_EQ(timer.run({}), 0);
  EXPECT_EQ(timer.try_from({}, 0, 0), 0);
}

TEST(StepTimer, RefusesACycle) {
  SimulatedGraph g;
  g.kind = {SimulatedGraph::Kind::kOp, SimulatedGraph::Kind::kOp};
  for (int32_t i = 0; i < 2; ++i) {
    g.reads.add(std::vector<int32_t>{1 - i});
    g.controls.add(std::vector<int32_t>{});
    g.values.add(std::vector<int32_t>{i});
    g.producer.push_back(i);
  }
  g.everywhere = g.lives_on = {0, 0};
  g.alias_of = {-1, -1};
  g.variable_bytes = {0, 0};
  g.finish();
  CostTable c;
  c.devices.resize(1);
  c.classes.resize(1);
  c.links.resize(1);
  c.times.resize(2);
  for (int i = 0; i < 2; ++i) c.bytes.add(std::vector<int64_t>{4});
  EXPECT_THROW(StepTimer(g, c), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth
