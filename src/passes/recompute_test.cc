// What is computed again: against exact plans of chains, and the rewritten
// graph.

#include "passes/recompute.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <random>
#include <tuple>

#include "graph/graph_text.h"

namespace berth {
namespace {

// Layers whose gradients need what they read: sizes[i] and us[i] are those of
// the result of layer i; layer 0 is the argument.
struct Chain {
  std::vector<int64_t> sizes;
  std::vector<double> us;
  int layers() const { return static_cast<int>(sizes.size()) - 1; }
  double all_us() const {
    return 3 * std::accumulate(us.begin() + 1, us.end(), 0.0);
  }
};

Chain random_chain(uint32_t seed) {
  std::mt19937 random(seed);
  Chain c{{64}, {0}};
  const int layers = 5 + static_cast<int>(random() % 6);
  for (int i = 0; i < layers; ++i) {
    c.sizes.push_back(16 + random() % 200);
    c.us.push_back(1 + random() % 30);
  }
  return c;
}

Graph graph_of(const Chain& c) {
  const int n = c.layers();
  std::string text =
      "berth-graph 1\nop F (x: float32) -> (y)\nop L (x: float32) -> (g)\n"
      "op B (g: float32, x: float32) -> (dx)\n";
  text += fmt::format(
      "node a0 = _Arg() {{dtype = float32, index = 0, shape = shape[{0}]}} -> "
      "float32[{0}]\n",
      c.sizes[0]);
  for (int i = 1; i <= n; ++i) {
    text += fmt::format("node a{} = F(a{}:0) -> float32[{}]\n", i, i - 1,
                        c.sizes[i]);
  }
  text += fmt::format("node g{} = L(a{}:0) -> float32[{}]\n", n, n, c.sizes[n]);
  for (int i = n; i > 0; --i) {
    text += fmt::format("node g{} = B(g{}:0, a{}:0) -> float32[{}]\n", i - 1, i,
                        i - 1, c.sizes[i - 1]);
  }
  return parse_graph(text + "return g0:0\n");
}

RecomputeCosts costs_of(const Graph& g, const Chain& c) {
  RecomputeCosts costs;
  for (const Node& n : g.nodes) {
    costs.counted.push_back(true);
    costs.away_us.push_back(-1);
    costs.us.push_back(n.op->name() == "F" ? c.us[std::stoul(n.name.substr(1))]
                                           : -1);
  }
  return costs;
}

// The least time of forward layers, run as often as one likes, such that at
// most `limit` elements are alive; negative: there is no such order. Dijkstra's
// algorithm over which results are alive and how many gradients are done.
double least_us(const Chain& c, int64_t limit) {
  const int n = c.layers();
  using State = std::pair<uint32_t, int>;  // results alive; the next gradient
  std::map<State, double> known;
  using Entry = std::tuple<double, uint32_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(0, 0, n + 1);
  const auto size_of_all = [&](uint32_t alive) {
    int64_t sum = 0;
    for (int i = 1; i <= n; ++i) {
      if (alive >> i & 1) sum += c.sizes[static_cast<size_t>(i)];
    }
    return sum;
  };
  const auto has = [](uint32_t alive, int i) {
    return i == 0 || (alive >> i & 1);
  };
  while (!open.empty()) {
    const auto [us, alive, next] = open.top();
    open.pop();
    if (!known.emplace(State(alive, next), us).second) continue;
    if (next == 0) return us;
    const int64_t held = size_of_all(alive) +
                         (next <= n ? c.sizes[static_cast<size_t>(next)] : 0);
    for (int i = 1; i <= n; ++i) {
      if (has(alive, i)) {
        open.emplace(us, alive & ~(1u << i), next);
      } else if (has(alive, i - 1) &&
                 held + c.sizes[static_cast<size_t>(i)] <= limit) {
        open.emplace(us + c.us[static_cast<size_t>(i)], alive | 1u << i, next);
      }
    }
    // Reads the last result, or what its layer read; makes the next gradient.
    if (has(alive, next - 1) &&
        held + c.sizes[static_cast<size_t>(next - 1)] <= limit) {
      open.emplace(us, alive, next - 1);
    }
  }
  return -1;
}

TEST(Recompute, TakesLittleMoreTimeThanExactPlansOfChains) {
  double worst = 1;
  int compared = 0, missed = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    const Chain c = random_chain(seed);
    const Graph g = graph_of(c);
    const RecomputeCosts costs = costs_of(g, c);
    const int64_t all = most_bytes_alive(g, costs);
    for (const double share : {0.5, 0.75}) {
      const auto limit = static_cast<int64_t>(static_cast<double>(all) * share);
      const double least = least_us(c, limit / 4);
      if (least < 0) continue;
      Graph less = g;
      const Recomputed chosen = recompute(less, costs, limit);
      verify(less);
      EXPECT_EQ(chosen.names.empty(), limit >= all);
      ++compared;
      if (chosen.bytes > limit) {
        ++missed;
        continue;
      }
      const double base = c.all_us();
      const double optimum =
          base - std::accumulate(c.us.begin(), c.us.end(), 0.0) + least;
      worst = std::max(worst, (base + chosen.us) / optimum);
      EXPECT_LE(base + chosen.us, 1.05 * optimum)
          << "chain " << seed << " in " << share << ": " << chosen.us
          << " more, least " << optimum - base;
    }
  }
  EXPECT_GE(compared, 40);
  EXPECT_LE(missed, 1);
  std::cout << compared << " chains, " << missed
            << " without a plan, else at most " << worst
            << " times the optimum\n";
}

}  // namespace
}  // namespace berth
