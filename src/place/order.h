// WorkOrder: which nodes run, what they wait for, and in what order.
//
// A pure function over a graph.

#ifndef BERTH_PLACE_ORDER_H_
#define BERTH_PLACE_ORDER_H_

#include <vector>

#include "graph/graph.h"

namespace berth {

struct WorkOrder {
  std::vector<int32_t> order;  // the nodes that run, in launch order
  // For each node that runs, the nodes that must have run: producers and
  // controls, seen through the nodes that do not run. Sorted, distinct.
  std::vector<std::vector<int32_t>> waits_for;
  std::vector<bool> runs;
  std::vector<bool> is_transfer;

  // True for _Arg, Const and VarHandleOp, which exist before the run begins.
  // (_HandOver, the other node that does not run, is never transferred.)
  bool is_source(int32_t node) const { return !runs[node]; }
};

// Program order, but updates of variables and transfers come right after the
// last node they wait for. Accesses of one variable keep their order.
// `in_order`: program order is a plan's. Then updates stay where they are;
// transfers to CPUs, which make them themselves, and transfers of what CPUs
// compute come right before the first node that waits for them.
WorkOrder find_work(const Graph& graph, bool in_order = false);

}  // namespace berth

#endif  // BERTH_PLACE_ORDER_H_
