// Splits of linear orders compared with enumeration, and the orders and
// clusters that a throughput search begins with.

#include "place/planner/chain_dp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/infinity.h"
#include "place/planner/coarsen.h"
#include "place/planner/linear_orders.h"
#include "place/planner/random_load_graphs_testing.h"

namespace berth {
namespace {

using planner_tests::random_loads;
using planner_tests::RandomLoads;

// Whether each device's set of units is one piece of the order.
bool is_cut(std::span<const int32_t> order, std::span<const int32_t> device) {
  std::set<int32_t> left;
  for (size_t k = 1; k < order.size(); ++k) {
    const int32_t before = device[order[k - 1]], here = device[order[k]];
    if (here == before) continue;
    left.insert(before);
    if (left.count(here)) return false;
  }
  return true;
}

double best_cut(const LoadProblem& p, std::span<const int32_t> order) {
  std::vector<int32_t> device(p.bytes.size(), 0);
  double best = kInfinity;
  while (true) {
    if (is_cut(order, device)) best = std::min(best, load_value(p, device));
    size_t u = 0;
    while (u < device.size() && ++device[u] == p.num_devices()) device[u++] = 0;
    if (u == device.size()) return best;
  }
}

TEST(ChainCutter, FindsTheBestCutOfAnOrderByTouchRule) {
  int cuts = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomLoads o;
    o.ops = 7;
    o.devices = 2 + static_cast<int>(seed % 3);
    o.classes = 1 + static_cast<int>(seed % 2);
    o.limits = seed % 3 == 0;
    o.masks = seed % 5 == 0;
    const LoadProblem p(random_loads(o, seed));
    std::vector<int32_t> order(p.bytes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    const Budget budget = Budget::of_moves(1 << 20, 1);
    SearchStream stream(budget, seed, 0);
    const std::vector<int32_t> device =
        ChainCutter(p).cut(order, kInfinity, stream, 1);
    const double best = best_cut(p, order);
    ASSERT_EQ(device.empty(), std::isinf(best)) << "seed " << seed;
    if (device.empty()) continue;
    ++cuts;
    EXPECT_TRUE(is_cut(order, device)) << "seed " << seed;
    EXPECT_NEAR(load_value(p, device), best, 1e-9) << "seed " << seed;
    EXPECT_TRUE(ChainCutter(p).cut(order, best, stream, 1).empty());
  }
  EXPECT_GT(cuts, 200);
}

TEST(ChainCutter, EndsWithTheBudget) {
  RandomLoads o;
  o.ops = 2000;
  const LoadProblem p(random_loads(o, 1));
  std::vector<int32_t> order(p.bytes.size());
  std::iota(order.begin(), order.end(), 0);
  const Budget budget = Budget::of_moves(8 * 1000, 1);
  SearchStream stream(budget, 1, 0);
  EXPECT_TRUE(ChainCutter(p).cut(order, kInfinity, stream, 1).empty());
  EXPECT_EQ(stream.moves(), 1000);
}

TEST(LinearOrders, EveryKindIsATopologicalOrderOfAllUnits) {
  RandomLoads o;
  o.ops = 60;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const LoadProblem p(random_loads(o, seed));
    const LinearOrders orders(p);
    StreamRandom random(seed, 0);
    for (int k = 0; k < static_cast<int>(OrderKind::kCount); ++k) {
      const std::vector<int32_t> order =
          orders.make(static_cast<OrderKind>(k), random);
      std::vector<int32_t> rank(order.size(), -1);
      for (size_t at = 0; at < order.size(); ++at) {
        rank[order[at]] = static_cast<int32_t>(at);
      }
      ASSERT_EQ(order.size(), p.bytes.size());
      EXPECT_EQ(std::ranges::count(rank, -1), 0);
      for (int32_t u = 0; u < p.num_units(); ++u) {
        for (const int32_t next : p.after[u]) EXPECT_LT(rank[u], rank[next]);
      }
    }
  }
}

TEST(LinearOrders, UnitsOfACycleAreAllThere) {
  RandomLoads o;
  o.ops = 60;
  o.groups = 10;
  const LoadProblem p(random_loads(o, 3));
  StreamRandom random(1, 0);
  std::vector<int32_t> order =
      LinearOrders(p).make(OrderKind::kLazyDepth, random);
  std::ranges::sort(order);
  for (int32_t u = 0; u < p.num_units(); ++u) EXPECT_EQ(order[u], u);
  EXPECT_EQ(order.size(), p.bytes.size());
}

TEST(Coarsen, ClustersKeepCapMasksAndWhatIsApart) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomLoads o;
    o.ops = 80;
    o.classes = 1;
    o.masks = true;
    o.by_links = seed % 2;
    const LoadProblem p(random_loads(o, seed));
    std::vector<int32_t> apart;
    for (int32_t u = 0; u < p.num_units(); ++u) apart.push_back(u % 2);
    StreamRandom random(seed, 0);
    const Clusters c = cluster_units(p, 0.3, apart, random);
    EXPECT_LT(c.count, p.num_units());
    std::vector<double> work(static_cast<size_t>(c.count), 0);
    std::vector<int32_t> size(work.size(), 0), side(work.size(), -1);
    std::vector<DeviceSet> allowed(work.size(), ~DeviceSet{0});
    double all = 0, cap = 0.3 / o.devices;
    for (int32_t u = 0; u < p.num_units(); ++u) {
      const int32_t k = c.of_unit[u];
      work[k] += p.work[u];
      all += p.work[u];
      ++size[k];
      allowed[k] &= p.allowed[u];
      if (side[k] < 0) side[k] = apart[u];
      EXPECT_EQ(side[k], apart[u]);
    }
    for (size_t k = 0; k < work.size(); ++k) {
      EXPECT_NE(allowed[k], DeviceSet{0});
      EXPECT_TRUE(size[k] == 1 || work[k] <= cap * all + 1e-9);
    }
  }
}

TEST(Coarsen, ShrinksUnitsThatNothingHoldsTogether) {
  LoadProblem p;
  p.num_classes = 1;
  p.device_class = {0, 0};
  p.limit = {1e9, 1e9};
  p.pays = 3;
  p.work.assign(5000, 1);
  p.bytes.assign(5000, 1);
  p.allowed.assign(5000, 3);
  StreamRandom random(1, 0);
  const Clusters c = shrink(p, 100, random);
  EXPECT_LE(c.count, 100);
  EXPECT_GE(c.count, 10);
}

}  // namespace
}  // namespace berth
