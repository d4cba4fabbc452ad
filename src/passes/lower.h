// lower: replaces composite ops by their decompositions where a device has no
// kernel of its own for them. Runs after placement, per device.

#ifndef BERTH_PASSES_LOWER_H_
#define BERTH_PASSES_LOWER_H_

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace berth {

// `has_kernel(node)`: false sends the node through OpDef::decompose(), if it
// has one. The parts keep the node's device, request, replica, slices and
// sources. Returns true when anything changed. `parts`, if not null, receives
// for each node of the new graph whether it is of a decomposition.
bool lower(Graph& graph, const std::function<bool(const Node&)>& has_kernel,
           std::vector<bool>* parts = nullptr);

}  // namespace berth

#endif  // BERTH_PASSES_LOWER_H_
