// replace_nodes: a graph traced anew, in which other ops compute some results.
//
// Any thread; the trace is the calling thread's.

#ifndef BERTH_FUNCTION_REPLACE_NODES_H_
#define BERTH_FUNCTION_REPLACE_NODES_H_

#include <functional>

#include "graph/graph.h"

namespace berth {

// Puts what make(node, inputs) computes in place of each node that is `wanted`:
// one tensor per output, on the line and in the scope of the node. The other
// nodes stay. Returns false, and leaves the graph alone, if none is wanted.
bool replace_nodes(
    Graph& graph, const std::function<bool(const Node&)>& wanted,
    const std::function<Tensors(const Node&, const Tensors&)>& make);

}  // namespace berth

#endif  // BERTH_FUNCTION_REPLACE_NODES_H_
