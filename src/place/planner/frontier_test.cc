#include "place/planner/frontier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "place/planner/random_loads_testing.h"

namespace berth {
namespace {

using testing::Payment;

std::vector<int32_t> set_of(uint32_t bits) {
  std::vector<int32_t> units;
  for (int32_t u = 0; bits >> u; ++u) {
    if (bits >> u & 1) units.push_back(u);
  }
  return units;
}

// Calls fn with all kinds of random problems, random worth and the best set.
template <class Fn>
void for_each_kind(int problems, Fn fn) {
  for (int seed = 0; seed < problems; ++seed) {
    const PlanProblem plan = testing::random_load_problem(
        static_cast<uint64_t>(seed),
        seed % 2 ? Payment::kTouch : Payment::kLinks);
    const PackingProblem p(LoadProblem(plan), {});
    StreamRandom r(static_cast<uint64_t>(seed), 11);
    std::vector<double> worth;
    for (int32_t u = 0; u < p.num_units(); ++u) {
      worth.push_back(r.uniform() * 2 - 0.3);
    }
    for (size_t k = 0; k < p.num_kinds(); ++k) {
      const double most = 5 + 20 * r.uniform();
      double best = 0;
      for (uint32_t bits = 0; bits < 1U << p.num_units(); ++bits) {
        const std::vector<int32_t> units = set_of(bits);
        if (load_of(p, k, units) > most) continue;
        double sum = 0;
        for (const int32_t u : units) sum += worth[static_cast<size_t>(u)];
        best = std::max(best, sum);
      }
      fn(p, k, worth, most, best);
    }
  }
}

FrontierGraph graph_of(const PackingProblem& p, size_t kind, double most,
                       int32_t width) {
  std::vector<double> size;
  for (int32_t u = 0; u < p.num_units(); ++u)
    size.push_back(p.size_on(u, kind));
  return FrontierGraph(p, kind, frontier_order(p, 8), size, most, width,
                       100000);
}

TEST(Frontier, FindsTheSetOfMostWorthOfAllThatFit) {
  for_each_kind(200,
                [](const PackingProblem& p, size_t kind,
                   const std::vector<double>& worth, double most, double best) {
                  const FrontierGraph graph = graph_of(p, kind, most, 16);
                  ASSERT_TRUE(graph.complete());
                  for (const bool real : {false, true}) {
                    FrontierSearch search(graph);
                    FrontierQuery q;
                    q.worth = worth;
                    q.most = most;
                    q.grid = 100000;
                    q.real = real;
                    const double found = search.run(q).back().worth;
                    ASSERT_NEAR(found, best, 1e-9) << "real " << real;
                    for (const FoundSet& set : search.found()) {
                      EXPECT_NEAR(load_of(p, kind, set.units), set.load, 1e-6);
                      EXPECT_LE(set.load, most);
                    }
                  }
                });
}

TEST(Frontier, ClaimsTooMuchRatherThanTooLittle) {
  for_each_kind(
      200, [](const PackingProblem& p, size_t kind,
              const std::vector<double>& worth, double most, double best) {
        for (const int32_t width : {16, 2, 0}) {  // with some nets left out
          const FrontierGraph graph = graph_of(p, kind, most, width);
          for (const int grid : {3, 10, 100}) {
            FrontierSearch search(graph);
            FrontierQuery q;
            q.worth = worth;
            q.most = most;
            q.grid = grid;
            EXPECT_GE(search.run(q).back().worth, best - 1e-9);
            q.real = true;
            if (width < 16) continue;
            EXPECT_LE(search.run(q).back().worth, best + 1e-9);
          }
        }
      });
}

TEST(Frontier, StaircaseHoldsForEveryLoad) {
  for_each_kind(60, [](const PackingProblem& p, size_t kind,
                       const std::vector<double>& worth, double most, double) {
    const FrontierGraph graph = graph_of(p, kind, most, 16);
    FrontierSearch search(graph);
    FrontierQuery q;
    q.worth = worth;
    q.most = most;
    q.grid = 50;
    const std::vector<Worth> stairs = search.run(q);
    for (uint32_t bits = 0; bits < 1U << p.num_units(); ++bits) {
      const std::vector<int32_t> units = set_of(bits);
      const double load = load_of(p, kind, units);
      if (load > most) continue;
      double sum = 0;
      for (const int32_t u : units) sum += worth[static_cast<size_t>(u)];
      double claimed = 0;
      for (const Worth& w : stairs) {
        if (w.load <= load + 1e-9) claimed = w.worth;
      }
      ASSERT_LE(sum, claimed + 1e-9);
    }
  });
}

TEST(Frontier, GivesUpWhenThereIsTooMuchOrSomebodySaysStop) {
  const PlanProblem plan = testing::random_load_problem(1, Payment::kTouch);
  const PackingProblem p(LoadProblem(plan), {});
  const FrontierGraph graph = graph_of(p, 0, 100, 16);
  FrontierSearch search(graph);
  const std::vector<double> worth(static_cast<size_t>(p.num_units()), 1);
  FrontierQuery q;
  q.worth = worth;
  q.most = 100;
  q.most_labels = 3;
  EXPECT_TRUE(search.run(q).empty());
  EXPECT_TRUE(search.found().empty());
  q.most_labels = 1000000;
  q.stop = [] { return true; };
  EXPECT_TRUE(search.run(q).empty());
  q.stop = nullptr;
  EXPECT_FALSE(search.run(q).empty());
  std::vector<double> size(worth.size(), 1);
  EXPECT_FALSE(
      FrontierGraph(p, 0, frontier_order(p, 8), size, 100, 16, 2).complete());
}

TEST(Frontier, OrderHoldsEveryUnitOnce) {
  for_each_kind(
      20, [](const PackingProblem& p, size_t, const auto&, double, double) {
        std::vector<int32_t> order = frontier_order(p, 3);
        std::sort(order.begin(), order.end());
        ASSERT_EQ(static_cast<int32_t>(order.size()), p.num_units());
        for (int32_t u = 0; u < p.num_units(); ++u) EXPECT_EQ(order[u], u);
      });
}

}  // namespace
}  // namespace berth
