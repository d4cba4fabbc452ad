// Linear orders of the units of a throughput problem, for chain_dp.h, and of
// other graphs.
//
// Random, but neighbours in the graph stay close: each unit comes after what it
// reads, except where a cycle has to be broken. Pure.

#ifndef BERTH_PLACE_PLANNER_LINEAR_ORDERS_H_
#define BERTH_PLACE_PLANNER_LINEAR_ORDERS_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/loads.h"

namespace berth {

enum class OrderKind : uint8_t {
  kDepthFirst,    // follows a chain to its end
  kBreadthFirst,  // in layers
  kAny,           // any unit that may come next
  kLazyDepth,     // depth first from the end: sources by their readers
  kCount,
};

// Returns a random order of the nodes of a graph: `after` and `before` list,
// per node, what comes after and before it.
std::vector<int32_t> random_order(const Rows<int32_t>& after,
                                  const Rows<int32_t>& before, OrderKind kind,
                                  StreamRandom& random);

// Makes orders of one problem.
class LinearOrders {
 public:
  explicit LinearOrders(const LoadProblem& problem);
  std::vector<int32_t> make(OrderKind kind, StreamRandom& random) const;

 private:
  const LoadProblem& p_;
  Rows<int32_t> before_;  // per unit
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_LINEAR_ORDERS_H_
