// lint_graph: reports the findings of lint_placement() on a compiled graph.
//
// Acts once per compiled graph. Thread-safe.

#ifndef BERTH_FUNCTION_LINT_GRAPH_H_
#define BERTH_FUNCTION_LINT_GRAPH_H_

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Reports each finding once per function and node, even when the function is
// compiled for other shapes.
void lint_graph(const Graph& graph, const PlaceOptions& devices);

}  // namespace berth

#endif  // BERTH_FUNCTION_LINT_GRAPH_H_
