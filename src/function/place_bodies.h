// What compiling needs to know of kernels and bodies. Pure functions.

#ifndef BERTH_FUNCTION_PLACE_BODIES_H_
#define BERTH_FUNCTION_PLACE_BODIES_H_

#include <string>

#include "graph/graph.h"
#include "passes/merge_updates.h"

namespace berth {

// True when the node's device has a kernel for it.
bool has_kernel(const Node& node, const Graph& graph);
// True when a device has kernels for what fuse() and merge_updates() make.
bool can_fuse(DeviceId device, DType dtype);
bool can_fuse_product(const Node& n, const Graph& g);
bool can_merge(const Node& n, const Graph& g);
// How much merge_updates() may merge on the device of an update.
MergeLimits merge_limits(const Node& n);

// Requests the arguments of a body on `device`.
void request_arguments(Graph& body, DeviceId device);
// The number of variables of a loop's body; 0 for other bodies of the node.
size_t num_vars_of(const Node& node, const std::string& role);
// Gives each result its own bytes on `device`, except those of the first
// `num_vars` that are the arguments with the same indices.
void own_results(Graph& body, DeviceId device, size_t num_vars);

}  // namespace berth

#endif  // BERTH_FUNCTION_PLACE_BODIES_H_
