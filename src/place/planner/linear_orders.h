// Linear orders of the units of a throughput problem, for chain_dp.h.
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

// Makes orders of one problem.
class LinearOrders {
 public:
  explicit LinearOrders(const LoadProblem& problem);
  std::vector<int32_t> make(OrderKind kind, StreamRandom& random) const;

 private:
  std::vector<int32_t> walk(const Rows<int32_t>& after,
                            const Rows<int32_t>& before, OrderKind kind,
                            StreamRandom& random) const;

  const LoadProblem& p_;
  Rows<int32_t> before_;  // per unit
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_LINEAR_ORDERS_H_
