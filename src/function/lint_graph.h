// lint_graph: reports what lint_placement() has to say about a compiled graph.
//
// Acts once per compiled graph. Thread-safe.

#ifndef BERTH_FUNCTION_LINT_GRAPH_H_
#define BERTH_FUNCTION_LINT_GRAPH_H_

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Each finding once per function and node, also when it is compiled for other
// shapes.
void lint_graph(const Graph& graph, const PlaceOptions& devices);

}  // namespace berth

#endif  // BERTH_FUNCTION_LINT_GRAPH_H_
