#include "place/planner/linear_orders.h"

#include <algorithm>
#include <numeric>

namespace berth {

LinearOrders::LinearOrders(const LoadProblem& problem) : p_(problem) {
  std::vector<std::vector<int32_t>> before(problem.bytes.size());
  for (int32_t u = 0; u < problem.num_units(); ++u) {
    for (const int32_t next : problem.after[u]) before[next].push_back(u);
  }
  before_ = Rows<int32_t>(before);
}

std::vector<int32_t> LinearOrders::make(OrderKind kind,
                                        StreamRandom& random) const {
  return random_order(p_.after, before_, kind, random);
}

std::vector<int32_t> random_order(const Rows<int32_t>& after,
                                  const Rows<int32_t>& before, OrderKind kind,
                                  StreamRandom& random) {
  if (kind == OrderKind::kLazyDepth) {
    auto order = random_order(before, after, OrderKind::kDepthFirst, random);
    std::ranges::reverse(order);
    return order;
  }
  const int32_t n = before.size();
  std::vector<int32_t> missing, ready, order, rest(n);
  for (int32_t u = 0; u < n; ++u) {
    missing.push_back(before[u].size());
    if (missing.back() == 0) ready.push_back(u);
  }
  random.shuffle(ready);
  // If nothing is ready there is a cycle: take any remaining unit.
  std::iota(rest.begin(), rest.end(), 0);
  random.shuffle(rest);
  size_t first = 0;  // of `ready`, when it is a queue
  while (static_cast<int32_t>(order.size()) < n) {
    if (first == ready.size()) {
      while (missing[rest.back()] < 0) rest.pop_back();
      ready.push_back(rest.back());
    }
    if (kind == OrderKind::kAny) {
      std::swap(ready[first + random.below(ready.size() - first)],
                ready.back());
    }
    int32_t u = 0;
    if (kind == OrderKind::kBreadthFirst) {
      u = ready[first++];
    } else {
      u = ready.back();
      ready.pop_back();
    }
    if (missing[u] < 0) continue;
    missing[u] = -1;
    order.push_back(u);
    const size_t begin = ready.size();
    for (const int32_t next : after[u]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
    random.shuffle(std::span(ready).subspan(begin));
  }
  return order;
}

}  // namespace berth
