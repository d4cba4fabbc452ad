#include "planner/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "planner/budget.h"

namespace berth {
namespace {

struct Arcs {
  int32_t a, b;
  int64_t there, back;
};

int64_t cut_of(const std::vector<Arcs>& arcs, uint32_t side) {
  int64_t cut = 0;
  for (const Arcs& arc : arcs) {
    const bool a = side >> arc.a & 1, b = side >> arc.b & 1;
    if (a && !b) cut += arc.there;
    if (b && !a) cut += arc.back;
  }
  return cut;
}

TEST(MaxFlow, EqualsTheLeastCutOfAllCuts) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    StreamRandom r(seed, 7);
    const auto nodes = static_cast<int32_t>(3 + r.below(6));
    std::vector<Arcs> arcs;
    MaxFlow flow;
    flow.reset(nodes);
    for (int32_t i = 0; i < 3 * nodes; ++i) {
      const auto a = static_cast<int32_t>(r.below(nodes));
      const auto b = static_cast<int32_t>(r.below(nodes));
      if (a == b) continue;
      arcs.push_back({a, b, r.below(10), r.below(3)});
      const int32_t number = flow.add_arcs(a, b, 1, arcs.back().back);
      flow.set_capacity(number, arcs.back().there);
    }
    int64_t least = MaxFlow::kInfinite;
    for (uint32_t side = 0; side < 1U << nodes; ++side) {
      if (!(side & 1) || side >> 1 & 1) continue;  // source 0, sink 1
      least = std::min(least, cut_of(arcs, side));
    }
    ASSERT_EQ(flow.run(0, 1, MaxFlow::kInfinite), least) << "seed " << seed;
    EXPECT_GE(flow.run(0, 1, least / 2), least / 2);
  }
}

}  // namespace
}  // namespace berth
