// The event loop compared with the step timer: if the bus is fast enough
// nothing changes; shared links are used in the order of the plan.

#include "simulate/bus_loop.h"

#include <gtest/gtest.h>

#include "simulate/random_steps_testing.h"

namespace berth {
namespace {

using namespace place_tests;

void put_on_bus(std::mt19937& r, RandomStep& s, double bytes_per_us) {
  s.costs.buses = {{bytes_per_us, CostOrigin::kDeclared}};
  for (DeviceCost& d : s.costs.devices) d.bus = 0;
  for (int32_t i = 0; i < s.graph.num_nodes(); ++i) {
    s.costs.bus_bytes.push_back(1 + pick(r, 9));
  }
}

TEST(BusLoop, IsTheDecoderWhileThereIsEnough) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 r(seed);
    RandomSteps o;
    o.nodes = 5 + pick(r, 60);
    o.devices = 1 + pick(r, 4);
    RandomStep s = random_step(r, o);
    const PlacePlan plan = random_plan(r, s);
    const Simulation without = simulate(s.graph, s.costs, plan);
    put_on_bus(r, s, 1e6);
    ASSERT_TRUE(BusLoop(s.graph, s.costs).needed());
    const Simulation with = simulate(s.graph, s.costs, plan);
    ASSERT_EQ(with.step_us, without.step_us) << seed;
    ASSERT_EQ(with.start_us, without.start_us) << seed;
    ASSERT_EQ(with.end_us, without.end_us) << seed;
    ASSERT_EQ(with.peak_bytes, without.peak_bytes) << seed;
    ASSERT_EQ(with.transfers.size(), without.transfers.size()) << seed;
    for (size_t t = 0; t < with.transfers.size(); ++t) {
      ASSERT_EQ(with.transfers[t].value, without.transfers[t].value) << seed;
      ASSERT_EQ(with.transfers[t].start_us, without.transfers[t].start_us);
      ASSERT_EQ(with.transfers[t].end_us, without.transfers[t].end_us);
    }
  }
}

TEST(BusLoop, StepsAreNoShorterThanWithoutABus) {
  int longer = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 r(seed);
    RandomSteps o;
    o.nodes = 5 + pick(r, 40);
    o.devices = 1 + pick(r, 4);
    RandomStep s = random_step(r, o);
    const PlacePlan plan = random_plan(r, s);
    const double without = simulate(s.graph, s.costs, plan).step_us;
    put_on_bus(r, s, 2);
    const double with = simulate(s.graph, s.costs, plan).step_us;
    ASSERT_GE(with, without * (1 - 1e-12)) << seed;
    longer += with > without;
  }
  EXPECT_GT(longer, 150);
}

TEST(BusLoop, EndsWhereACopyNeverDoes) {
  std::mt19937 r(1);
  RandomSteps o;
  o.aliases = false;
  RandomStep s = random_step(r, o);
  const PlacePlan plan = random_plan(r, s);
  put_on_bus(r, s, 1e-300);
  for (LinkCost& l : s.costs.links) l = {0, 0};
  EXPECT_GE(simulate(s.graph, s.costs, plan).step_us, 1e300);
  for (double& bytes : s.costs.bus_bytes) bytes = 1e300;
  EXPECT_GE(simulate(s.graph, s.costs, plan).step_us, 1e300);
}

}  // namespace
}  // namespace berth
