// Placing a graph with its bodies. One thread per graph.

#ifndef BERTH_FUNCTION_PLACE_BODIES_H_
#define BERTH_FUNCTION_PLACE_BODIES_H_

#include "graph/graph.h"
#include "place/place.h"
#include "place/placed.h"

namespace berth {

// Places, lowers and partitions a graph; then the bodies of its control-flow
// nodes, whose arguments and results lie on the device of their node.
// With `optimize` they are fused, too. Returns the graphs as they were placed.
// `on_trial`: nobody is told of fallbacks, notes and lints.
PlacedGraph place_all(Graph& graph, const PlaceOptions& devices, bool optimize,
                      bool on_trial = false);

}  // namespace berth

#endif  // BERTH_FUNCTION_PLACE_BODIES_H_
