// Split: a placed and partitioned graph, cut by tasks.
//
// Edges between tasks become a _TaskSend and a _TaskRecv on the CPUs of both.
// In every part they run in one order, that of the whole graph: so no part
// waits for another in a ring, whatever a schedule makes of the rest. Pure.

#ifndef BERTH_REMOTE_SPLIT_H_
#define BERTH_REMOTE_SPLIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/member.h"
#include "graph/graph.h"

namespace berth::remote {

// What one task does of a step.
struct TaskGraph {
  std::optional<cluster::TaskId> task;  // nothing: this process
  Graph graph;
  std::vector<int> args;     // which of the whole graph's
  std::vector<int> outputs;  // the same
};

// The parts, this process's first, though it may be empty. `self` is the name
// under which others send to this process. Nothing: no node is on another
// task, or a branch or loop spans several.
std::optional<std::vector<TaskGraph>> split_graph(const Graph& graph,
                                                  const std::string& self);

// The variables of a graph and of the bodies in it, node by node.
std::vector<Tensor> variable_nodes(const Graph& graph);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_SPLIT_H_
