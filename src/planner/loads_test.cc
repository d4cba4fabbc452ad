// The hypergraph of a throughput problem compared with its rules, read naively.

#include "planner/loads.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "planner/planner.h"
#include "planner/problem_testing.h"
#include "planner/random_load_graphs_testing.h"

namespace berth {
namespace {

using planner_tests::random_loads;
using planner_tests::RandomLoads;

// Devices that read a value, itself or under another name.
void add_readers(const PlanProblem& p, int32_t value, const PlacePlan& plan,
                 std::set<int32_t>& devices) {
  for (const int32_t op : p.graph.readers[value]) {
    devices.insert(plan.device[op]);
    if (p.graph.alias_of[op] != value || p.graph.everywhere[value]) continue;
    for (const int32_t v : p.graph.values[op]) {
      add_readers(p, v, plan, devices);
    }
  }
}

// The value of a plan, found by walking from every value that is not an alias.
double naive_value(const PlanProblem& p, const PlacePlan& plan) {
  std::map<int32_t, double> compute, copying, links;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    if (p.takes_time(i)) compute[d] += p.costs.time(i, d).us;
    const int32_t of = p.graph.alias_of[i];
    if (of >= 0 && !p.graph.everywhere[of]) continue;
    for (const int32_t v : p.graph.values[i]) {
      if (p.graph.everywhere[v]) continue;
      std::set<int32_t> devices;
      add_readers(p, v, plan, devices);
      devices.erase(d);
      if (devices.empty()) continue;
      if (!p.touch_us.empty()) {
        devices.insert(d);
        for (const int32_t at : devices) {
          if (!p.free_of_touch[at]) compute[at] += p.touch_us[v];
        }
        continue;
      }
      for (const int32_t to : devices) {
        const CopyRule rule = p.costs.devices[to].copies;
        const LinkCost& link = p.costs.link(d, to);
        const double us =
            link.latency_us +
            static_cast<double>(p.costs.bytes.item(v)) / link.bytes_per_us;
        if (rule == CopyRule::kFree) continue;
        for (const int32_t n : link.shared) links[n] += us;
        if (rule == CopyRule::kOverlap) copying[to] += us;
        if (rule != CopyRule::kOverlap) compute[to] += us;
        if (p.costs.devices[d].copies == CopyRule::kBoth) compute[d] += us;
      }
    }
  }
  double value = 0;
  for (const auto& [device, us] : compute) value = std::max(value, us);
  for (const auto& [device, us] : copying) value = std::max(value, us);
  for (const auto& [group, us] : links) value = std::max(value, us);
  return value;
}

RandomLoads options_of(uint64_t seed) {
  RandomLoads o;
  o.ops = 6 + static_cast<int>(seed % 30);
  o.groups = seed % 3 == 0 ? o.ops / 2 : 0;
  o.devices = 1 + static_cast<int>(seed % 5);
  o.classes = 1 + static_cast<int>(seed % 2);
  o.by_links = seed % 2;
  o.aliases = seed % 7 < 4;
  o.backward = seed % 5 == 0;
  o.shared = seed % 4 == 1;
  return o;
}

// Devices of units, and the same for ops.
struct RandomPlan {
  RandomPlan(const PlanProblem& p, std::mt19937_64& rng) {
    for (int32_t g = 0; g < p.num_groups; ++g) {
      units.push_back(static_cast<int32_t>(rng() % p.num_devices()));
    }
    for (const int32_t g : p.group) plan.device.push_back(units[g]);
  }
  std::vector<int32_t> units;
  PlacePlan plan;
};

TEST(Loads, EvaluationFollowsTheRules) {
  std::mt19937_64 rng(1);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const PlanProblem p = random_loads(options_of(seed), seed);
    const RandomPlan r(p, rng);
    EXPECT_NEAR(evaluate(p, r.plan).value, naive_value(p, r.plan), 1e-9)
        << "seed " << seed;
  }
}

// Three devices send to three others over one bus, which is busy three times as
// long as any of them.
TEST(Loads, CountEveryTransferOfASharedLink) {
  testing::ProblemMaker m(PlanModel::kLoad);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 6; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(0, 1);
  for (int k = 0; k < 3; ++k) {
    const int a = m.op("a" + std::to_string(k), {10}, {}, 10);
    m.op("b" + std::to_string(k), {10}, {a});
    m.allow(2 * k, device_bit(k));
    m.allow(2 * k + 1, device_bit(3 + k));
  }
  PlanProblem p = m.make();
  PlacePlan plan{{0, 3, 1, 4, 2, 5}, {}};
  EXPECT_EQ(evaluate(p, plan).value, 10);
  for (LinkCost& l : p.costs.links) l.shared = 7;
  const Evaluation e = evaluate(p, plan);
  EXPECT_EQ(e.value, 30);
  EXPECT_EQ(e.shared_busy[7], 30);
  const PlanAnswer a = plan_placement(p, {.moves = 1000, .threads = 1});
  EXPECT_EQ(a.value, 30);
}

// Two transfers of 10 us, over a card each and an uplink that both need.
TEST(Loads, EveryLinkOfAPathCarriesTheTransfer) {
  testing::ProblemMaker m(PlanModel::kLoad);
  const int gpu = m.device_class("GPU");
  for (int d = 0; d < 4; ++d) m.device("GPU:" + std::to_string(d), gpu);
  m.links(0, 1);
  for (int k = 0; k < 2; ++k) {
    const int a = m.op("a" + std::to_string(k), {10}, {}, 10);
    m.op("b" + std::to_string(k), {10}, {a});
    m.allow(2 * k, device_bit(k));
    m.allow(2 * k + 1, device_bit(2 + k));
  }
  PlanProblem p = m.make();
  for (int k = 0; k < 2; ++k) {
    p.costs.link_of(k, 2 + k).shared = k;
    p.costs.link_of(k, 2 + k).shared.add(4);
  }
  const Evaluation e = evaluate(p, {{0, 2, 1, 3}, {}});
  EXPECT_EQ(e.shared_busy, (std::vector<double>{10, 10, 0, 0, 20}));
  EXPECT_EQ(e.value, 20);
  EXPECT_EQ(load_value(LoadProblem(p), std::vector<int32_t>{0, 2, 1, 3}), 20);
  EXPECT_EQ(plan_placement(p, {.moves = 1000, .threads = 1}).value, 20);
}

// Equal links, per pair of hosts and per pair of devices.
TEST(Loads, LinksOfHostsAreThoseOfTheirDevices) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomLoads o = options_of(seed);
    o.by_links = true, o.shared = true, o.devices = 5;
    PlanProblem by_host = random_loads(o, seed);
    by_host.costs.host = {0, 1, 1, 2, 0};
    by_host.costs.num_hosts = 3;
    by_host.costs.links.resize(9);
    PlanProblem by_device = by_host;
    by_device.costs.link_of(0, 0);
    ASSERT_EQ(by_device.costs.links.size(), 25u);
    for (const PlanModel model : {PlanModel::kLoad, PlanModel::kStep}) {
      by_host.model = by_device.model = model;
      const PlannerOptions options{.moves = 2000, .threads = 1};
      const PlanAnswer a = plan_placement(by_host, options);
      const PlanAnswer b = plan_placement(by_device, options);
      EXPECT_EQ(evaluate(by_device, a.plan).value, a.value) << "seed " << seed;
      EXPECT_EQ(evaluate(by_host, b.plan).value, b.value) << "seed " << seed;
      EXPECT_EQ(a.bound.value, b.bound.value) << "seed " << seed;
    }
  }
}

TEST(Loads, HypergraphGivesTheLoadsOfTheEvaluation) {
  std::mt19937_64 rng(2);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const PlanProblem p = random_loads(options_of(seed), seed);
    const RandomPlan r(p, rng);
    const Evaluation e = evaluate(p, r.plan);
    const LoadProblem l(p);
    const std::vector<double> loads = machine_loads(l, r.units);
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      EXPECT_NEAR(loads[d], e.devices[d].busy, 1e-9) << "seed " << seed;
      EXPECT_NEAR(loads[p.num_devices() + d], e.devices[d].copy_busy, 1e-9)
          << "seed " << seed;
    }
    EXPECT_NEAR(load_value(l, r.units), e.value, 1e-9) << "seed " << seed;
  }
}

TEST(Loads, ContractedProblemGivesTheLoadsOfPlansThatKeepClusters) {
  std::mt19937_64 rng(3);
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PlanProblem p = random_loads(options_of(seed), seed);
    const LoadProblem l(p);
    const int32_t clusters = 1 + l.num_units() / 3;
    std::vector<int32_t> cluster, coarse, fine;
    for (int32_t c = 0; c < clusters; ++c) {
      coarse.push_back(static_cast<int32_t>(rng() % p.num_devices()));
    }
    for (int32_t u = 0; u < l.num_units(); ++u) {
      cluster.push_back(static_cast<int32_t>(rng() % clusters));
      fine.push_back(coarse[cluster.back()]);
    }
    const std::vector<double> a = machine_loads(l, fine);
    const std::vector<double> b =
        machine_loads(contract(l, cluster, clusters), coarse);
    for (size_t m = 0; m < a.size(); ++m) {
      EXPECT_NEAR(a[m], b[m], 1e-9) << "seed " << seed;
    }
  }
}

TEST(Loads, ValueIsInfiniteWhereLimitsOrMasksAreBroken) {
  RandomLoads o;
  o.limits = o.masks = true;
  std::mt19937_64 rng(4);
  int broken = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const PlanProblem p = random_loads(o, seed);
    const RandomPlan r(p, rng);
    const bool kept = evaluate(p, r.plan).violations.empty();
    broken += !kept;
    EXPECT_EQ(std::isfinite(load_value(LoadProblem(p), r.units)), kept);
  }
  EXPECT_GT(broken, 50);
  EXPECT_LT(broken, 290);
}

}  // namespace
}  // namespace berth
