// Proofs of infeasibility compared with enumeration, and what they name.

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "planner/all_plans_testing.h"
#include "planner/budget.h"
#include "planner/models.h"

namespace berth {
namespace {

// Ops without edges that hold bytes; a device per limit, all of one class.
PlanProblem holders(const std::vector<double>& bytes,
                    const std::vector<int64_t>& limits) {
  PlanProblem p;
  p.name = "holders";
  p.model = PlanModel::kLoad;
  const size_t n = bytes.size();
  p.graph.kind.assign(n, SimulatedGraph::Kind::kOp);
  p.graph.alias_of.assign(n, -1);
  p.graph.variable_bytes.assign(n, 0);
  for (size_t i = 0; i < n; ++i) {
    p.graph.reads.add({});
    p.graph.controls.add({});
    p.graph.values.add({});
    p.costs.bytes.add({});
    p.names.push_back("op" + std::to_string(i));
    p.group.push_back(static_cast<int32_t>(i));
  }
  p.graph.finish();
  p.num_groups = static_cast<int32_t>(n);
  p.costs.classes.resize(1);
  for (const int64_t limit : limits) {
    DeviceCost d;
    d.name = "/job:localhost/replica:0/task:0/device:GPU:" +
             std::to_string(p.costs.devices.size());
    d.memory_limit = limit;
    p.costs.devices.push_back(d);
  }
  p.costs.links.resize(limits.size() * limits.size());
  p.costs.times.assign(n, OpTime{1, 0, CostOrigin::kDeclared});
  p.allowed.assign(n, DeviceSet::below(static_cast<int32_t>(limits.size())));
  p.resident_bytes = bytes;
  p.backward.assign(n, 0);
  return p;
}

// Whether groups fit devices within limits, by trying all assignments.
bool possible(const PlanProblem& p, std::vector<double> room, int32_t g,
              uint32_t kept) {
  if (g == p.num_groups) return true;
  double sum = 0;
  DeviceSet mask = ~DeviceSet{0};
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (p.group[i] != g || !(kept >> i & 1)) continue;
    sum += p.resident_bytes[i];
    mask &= p.allowed[i];
  }
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    if (!mask.has(d)) continue;
    const bool limited = p.costs.devices[d].memory_limit > 0;
    if (limited && sum > room[d]) continue;
    std::vector<double> less = room;
    less[d] -= sum;
    if (possible(p, less, g + 1, kept)) return true;
  }
  return false;
}
bool possible(const PlanProblem& p, uint32_t kept) {
  std::vector<double> room;
  for (const DeviceCost& d : p.costs.devices) {
    room.push_back(static_cast<double>(d.memory_limit));
  }
  return possible(p, room, 0, kept);
}

TEST(Feasible, IsProvedOfNothingPossibleAndNamesOpsThatAreNot) {
  int infeasible = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    StreamRandom random(seed, 0);
    std::vector<double> bytes;
    std::vector<int64_t> limits;
    const uint32_t ops = 2 + random.below(6);
    for (uint32_t i = 0; i < ops; ++i) {
      bytes.push_back(random.below(4) == 0 ? 0 : 1 + random.below(20));
    }
    const uint32_t devices = 1 + random.below(3);
    for (uint32_t d = 0; d < devices; ++d) {
      limits.push_back(random.below(8) == 0 ? 0 : 10 + random.below(25));
    }
    PlanProblem p = holders(bytes, limits);
    for (uint32_t i = 0; i < ops; ++i) {
      if (random.below(3) == 0) p.allowed[i] = random.next() & p.allowed[i];
      if (random.below(3) == 0) p.group[i] = random.below(ops);
    }
    const Infeasible found = prove_infeasible(p);
    const uint32_t all = (1u << ops) - 1;
    ASSERT_FALSE(found.any() && possible(p, all)) << seed << found.text;
    if (!found.any()) continue;
    ++infeasible;
    ASSERT_FALSE(found.ops.empty()) << seed;
    uint32_t kept = 0;
    for (const int32_t i : found.ops) kept |= 1u << i;
    ASSERT_FALSE(possible(p, kept)) << seed << ": " << found.text;
  }
  EXPECT_GT(infeasible, 200);
}

TEST(Feasible, NothingIsProvedAboutStepsThatKeepAllLimits) {
  using place_tests::pick;
  std::mt19937 r(3);
  int possible_ones = 0, proved = 0, open = 0;
  for (int k = 0; k < 1000; ++k) {
    PlanProblem p = testing::random_step_problem(r, 3 + pick(r, 3), 2, false);
    for (DeviceCost& d : p.costs.devices) d.memory_limit = 2 + pick(r, 16);
    for (double& bytes : p.resident_bytes) bytes = pick(r, 3);
    const Infeasible found = prove_infeasible(p);
    bool any = false;
    testing::AllPlans(p, [&](const PlacePlan& plan) {
      any = any || evaluate(p, plan).violations.empty();
    });
    ASSERT_FALSE(any && found.any()) << k << ": " << found.text;
    possible_ones += any;
    proved += found.any();
    open += !any && !found.any();
  }
  EXPECT_GT(possible_ones, 200);
  // The test ignores which values must live together, except those of one op.
  EXPECT_GT(proved, 200);
  RecordProperty("infeasible and not proved", open);
}

TEST(Feasible, SaysWhichOpsHoldHowMuchAndWhatTheLimitsAre) {
  const double g = 1 << 30;
  const PlanProblem sum =
      holders({12 * g, 2 * g, 12 * g, 12 * g, 0}, {int64_t{16} << 30, 1 << 30});
  EXPECT_EQ(prove_infeasible(sum).text,
            "\"op0\" and \"op2\" hold 24 GiB; the limits of GPU:0 and GPU:1 "
            "are 17 GiB together");
  PlanProblem one = holders({5 * g}, {int64_t{4} << 30, int64_t{2} << 30});
  EXPECT_EQ(prove_infeasible(one).text,
            "\"op0\" holds 5 GiB; the limit of GPU:0 and GPU:1 is at most 4 "
            "GiB");
  one.allowed[0] = 0;
  EXPECT_EQ(prove_infeasible(one).text,
            "\"op0\" has no device that it allows and a kernel for it");
  PlanProblem apart = holders({0, 0}, {0, 0});
  apart.group = {0, 0};
  apart.num_groups = 1;
  apart.allowed = {1, 2};
  EXPECT_EQ(prove_infeasible(apart).text,
            "\"op0\" and \"op1\" must share a device and cannot: \"op0\" runs "
            "on GPU:0, \"op1\" runs on GPU:1 alone");
}

TEST(Feasible, AHundredThousandOpsWithAndWithoutLimitsAreQuick) {
  std::vector<double> bytes(100000, 1000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(prove_infeasible(holders(bytes, {0, 0, 0})).any());
  EXPECT_FALSE(prove_infeasible(holders(bytes, {60000000, 60000000})).any());
  const Infeasible much = prove_infeasible(holders(bytes, {40000000, 400000}));
  EXPECT_EQ(much.ops.size(), 40401u);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(took.count()));
}

}  // namespace
}  // namespace berth
