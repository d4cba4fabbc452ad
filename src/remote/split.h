// Split: a placed and partitioned graph, split by tasks.
//
// Edges between tasks become a _TaskSend and a _TaskRecv on the CPUs of both.
// They run in the same order in every part, that of the whole graph, so no
// cyclic wait between parts can arise, whatever schedule the rest gets. Pure.

#ifndef BERTH_REMOTE_SPLIT_H_
#define BERTH_REMOTE_SPLIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "graph/graph.h"

namespace berth::remote {

// The part of a step that one task runs.
struct TaskGraph {
  std::optional<cluster::TaskId> task;  // nothing: this process
  Graph graph;
  std::vector<int> args;     // indices into those of the whole graph
  std::vector<int> outputs;  // likewise
};

// Returns the parts, this process's first, even if it is empty. `self` is the
// name under which others send to this process. Returns nothing if no node is
// on another task, or a branch or loop spans several.
std::optional<std::vector<TaskGraph>> split_graph(const Graph& graph,
                                                  const std::string& self);

// The variables of a graph and of the bodies in it, node by node.
std::vector<Tensor> variable_nodes(const Graph& graph);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_SPLIT_H_
