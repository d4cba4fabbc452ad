// Loads kept up to date compared with loads computed anew.

#include "planner/load_state.h"

#include <gtest/gtest.h>

#include "planner/random_load_graphs_testing.h"

namespace berth {
namespace {

using planner_tests::random_loads;
using planner_tests::RandomLoads;

// The norm of 2^squarings, raised to that power, by its definition.
double naive_energy(const LoadProblem& p, std::span<const int32_t> device,
                    double scale, int squarings) {
  double energy = 0;
  for (const double load : machine_loads(p, device)) {
    energy += std::pow(load / scale, 1 << squarings);
  }
  return energy;
}

TEST(LoadState, PricesAndLoadsStayThoseOfTheProblem) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomLoads o;
    o.ops = 20;
    o.devices = 2 + static_cast<int>(seed % 4);
    o.by_links = seed % 2;
    o.aliases = true;
    o.shared = seed % 4 == 1;
    const LoadProblem p(random_loads(o, seed));
    std::mt19937_64 rng(seed);
    std::vector<int32_t> device;
    for (int32_t u = 0; u < p.num_units(); ++u) {
      device.push_back(static_cast<int32_t>(rng() % p.limit.size()));
    }
    const int squarings = seed % 3 == 0 ? 8 : 4;
    LoadState state(p, 40, squarings);
    state.set(device);
    for (int move = 0; move < 200; ++move) {
      const auto unit = static_cast<int32_t>(rng() % p.bytes.size());
      const auto to = static_cast<int32_t>(rng() % p.limit.size());
      if (to == state.device(unit)) continue;
      const double before = state.energy();
      const double priced = state.price(unit, to);
      if (rng() % 3 == 0) continue;  // but not made
      state.apply();
      device[unit] = to;
      const double energy = naive_energy(p, device, 40, squarings);
      // A sharp norm loses what is small beside the one before.
      const double most = squarings > 4 ? std::max(before, energy) : energy;
      ASSERT_NEAR(priced, energy, 1e-9 * (1 + most)) << "seed " << seed;
      ASSERT_NEAR(state.energy(), energy, 1e-9 * (1 + energy));
      const std::vector<double> loads = machine_loads(p, device);
      for (size_t m = 0; m < loads.size(); ++m) {
        ASSERT_NEAR(state.load(static_cast<int32_t>(m)), loads[m], 1e-9);
      }
      ASSERT_NEAR(state.highest(), std::ranges::max(loads), 1e-9);
    }
  }
}

TEST(LoadState, BytesAboveALimitAreLoadAndNoted) {
  RandomLoads o;
  o.limits = true;
  o.devices = 2;
  int broken = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const LoadProblem p(random_loads(o, seed));
    LoadProblem roomy = p;
    roomy.limit.assign(p.limit.size(), 1e9);
    std::vector<int32_t> device;
    std::mt19937_64 rng(seed);
    for (int32_t u = 0; u < p.num_units(); ++u) {
      device.push_back(static_cast<int32_t>(rng() % 2));
    }
    LoadState state(p, 40), free(roomy, 40);
    state.set(device);
    free.set(device);
    for (int move = 0; move < 50; ++move) {
      const auto unit = static_cast<int32_t>(rng() % p.bytes.size());
      state.move(unit, 1 - state.device(unit));
      free.move(unit, 1 - free.device(unit));
      double bytes[2] = {};
      for (int32_t u = 0; u < p.num_units(); ++u) {
        bytes[state.device(u)] += p.bytes[u];
      }
      const bool kept = bytes[0] <= p.limit[0] && bytes[1] <= p.limit[1];
      broken += !kept;
      ASSERT_EQ(state.keeps_limits(), kept);
      ASSERT_EQ(state.energy() > free.energy(), !kept);
    }
  }
  EXPECT_GT(broken, 100);
}

}  // namespace
}  // namespace berth
