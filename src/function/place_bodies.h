// What compiling asks of kernels and of bodies. Functions of their arguments.

#ifndef BERTH_FUNCTION_PLACE_BODIES_H_
#define BERTH_FUNCTION_PLACE_BODIES_H_

#include <string>

#include "graph/graph.h"
#include "passes/merge_updates.h"

namespace berth {

// True when the node's device has a kernel of its own for it.
bool has_kernel(const Node& node, const Graph& graph);
// True when a device has a kernel of the op that fuse(), merge_updates() makes.
bool can_fuse(DeviceId device);
bool can_fuse_product(const Node& n, const Graph& g);
bool can_merge(const Node& n, const Graph& g);
// How much merge_updates() makes one on the device of an update.
MergeLimits merge_limits(const Node& n);

// Asks for the arguments of a body on `device`.
void request_arguments(Graph& body, DeviceId device);
// Of the body of a loop: its variables; 0 for other bodies of the node.
size_t num_vars_of(const Node& node, const std::string& role);
// Gives every result bytes of its own on `device`, but for the first
// `num_vars` when they are the arguments of the same numbers.
void own_results(Graph& body, DeviceId device, size_t num_vars);

}  // namespace berth

#endif  // BERTH_FUNCTION_PLACE_BODIES_H_
