// Who must run after whom among the nodes of a schedule.
//
// Internal to the region pass; a pure function over a graph.

#ifndef BERTH_EXEC_REGION_ORDER_H_
#define BERTH_EXEC_REGION_ORDER_H_

#include <vector>

#include "graph/graph.h"
#include "place/schedule.h"

namespace berth {

// Per node the nodes that must have run, seen through nodes that never run:
// producers, and those that only the order of effects puts before it.
struct RegionOrder {
  std::vector<std::vector<int32_t>> producers;
  std::vector<std::vector<int32_t>> before;
};

RegionOrder find_order(const Graph& graph, const Schedule& schedule);

}  // namespace berth

#endif  // BERTH_EXEC_REGION_ORDER_H_
