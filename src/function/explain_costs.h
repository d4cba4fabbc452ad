// costs_of: the costs that explanations and reports use.

#ifndef BERTH_FUNCTION_EXPLAIN_COSTS_H_
#define BERTH_FUNCTION_EXPLAIN_COSTS_H_

#include "graph/graph.h"
#include "place/costs.h"

namespace berth {

// Returns the costs of a placed graph (fused and partitioned, or as placed) on
// the devices of this process; CostTable::error is the error of this machine's
// predictions. `may_measure`: takes up to 2 s the first time and keeps its
// measurements on disk. Otherwise uses kept measurements, else estimates.
CostTable costs_of(const Graph& placed, bool may_measure);

// Lowers composite ops to ops that their devices have kernels for: what
// MeasureOptions::prepare needs.
void lower_for_devices(Graph& graph);

}  // namespace berth

#endif  // BERTH_FUNCTION_EXPLAIN_COSTS_H_
