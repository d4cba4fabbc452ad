// Problem of a graph: a traced step and its constraints as the planner's input.
//
// Acts between the device-free passes and the placement of a function, and on
// graph texts, whose devices need not exist. Op i of the problem is node i of
// the graph, device d is device d of the costs. Pure; one thread per graph.

#ifndef BERTH_PLANNER_PROBLEM_OF_GRAPH_H_
#define BERTH_PLANNER_PROBLEM_OF_GRAPH_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "op/contract_scope.h"
#include "place/place.h"
#include "planner/problem.h"

namespace berth {

struct GraphProblemOptions {
  PlanModel model = PlanModel::kStep;
  // Requests of the user bind; otherwise they are only a candidate. (What a
  // contract without fallbacks covers, and assigned devices, always bind.)
  bool keep_scopes = true;
  // Handles (nodes) whose variables may move to another device.
  std::vector<int32_t> movable = {};
  // The device that each argument of the graph comes from; -1, or none given:
  // from wherever it is read.
  std::vector<int32_t> arguments_on = {};
  // The order of candidates, over nodes that take time: any feasible one;
  // empty: as the executor would run the graph.
  std::vector<int32_t> order = {};
  // Ops also go with a variable that they read if it has more bytes than their
  // results; no candidates. Fewer decisions: for the start of a search.
  bool coarse = false;
  // Contracts of the whole step; those of blocks are in the graph.
  std::vector<ParsedContract> contracts = {};
};

// `graph` is optimised, but neither lowered nor partitioned; it must outlive
// the problem. `costs` are those of its nodes on, at least, the devices of
// `places`. Nodes that must share a device (place.h), and those that would be
// fused, are one group. A group may be where its kernels, assigned devices,
// variables, host data, contracts and, with keep_scopes, requests allow.
// Candidates: "the scopes as written", by Berth's rules, and "TensorFlow's
// rules", if these find a placement. Besides the graph's controls, the
// problem's graph has those that keep reads of a variable before its next
// write. An infeasible order is replaced by a feasible one close to it. Throws
// what place() throws, and errors::InvalidArgument when the costs lack a device
// or contracts leave no device for an op.
PlanProblem problem_of(const Graph& graph, const PlaceOptions& places,
                       CostTable costs,
                       const GraphProblemOptions& options = {});

}  // namespace berth

#endif  // BERTH_PLANNER_PROBLEM_OF_GRAPH_H_
