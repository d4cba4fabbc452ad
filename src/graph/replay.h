// replay: runs the nodes of a graph, in order, through the seam.
//
// Under a tracer this copies (inlines) the graph, under a tape it
// differentiates it, with neither it interprets it. Device requests, source
// lines and colocation travel along.

#ifndef BERTH_GRAPH_REPLAY_H_
#define BERTH_GRAPH_REPLAY_H_

#include <functional>
#include <span>

#include "graph/graph.h"

namespace berth {

// Returns the graph's outputs for `args`, one per graph.args. A null tensor in
// `args` is allowed where nobody reads the argument.
Tensors replay(const Graph& graph, std::span<const Tensor> args);

}  // namespace berth

#endif  // BERTH_GRAPH_REPLAY_H_
