// Problem of a graph: a traced step, and what binds it, as the planner asks.
//
// Acts between the device-free passes and the placement of a function, and on
// graph texts, whose devices need not exist. Op i of the problem is node i of
// the graph, device d is device d of the costs. Pure; one thread per graph.

#ifndef BERTH_PLACE_PLANNER_PROBLEM_OF_GRAPH_H_
#define BERTH_PLACE_PLANNER_PROBLEM_OF_GRAPH_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "op/contract_scope.h"
#include "place/place.h"
#include "place/planner/problem.h"

namespace berth {

struct GraphProblemOptions {
  PlanModel model = PlanModel::kStep;
  // What the user asked for binds; else it is a candidate alone. (What a
  // contract without fallbacks covers, and assigned devices, bind anyhow.)
  bool keep_scopes = true;
  // Handles whose variables may be put elsewhere than they are: nodes.
  std::vector<int32_t> movable = {};
  // Where each argument of the graph comes from: a device; -1, or none given:
  // from wherever it is read.
  std::vector<int32_t> arguments_on = {};
  // The order of candidates, of nodes that take time: any that can be; empty:
  // as the executor would run the graph.
  std::vector<int32_t> order = {};
  // Ops also go with a variable that they read when it has more bytes than what
  // they make; no candidates. Fewer decisions: for the start of a search.
  bool coarse = false;
  // Those of the whole step; contracts of blocks stand in the graph.
  std::vector<ParsedContract> contracts = {};
};

// `graph` is optimised, and neither lowered nor partitioned; it must outlive
// the problem. `costs` are those of its nodes on, at least, the devices of
// `places`. Nodes that must share a device (place.h), and those that would be
// fused, are one group. A group may be where its kernels, assigned devices,
// variables, host data, contracts and, with keep_scopes, requests allow.
// Candidates: "the scopes as written", by Berth's rules, and "TensorFlow's
// rules", where these find a placement. The problem's graph has, beside the
// graph's controls, those that keep reads of a variable before its next write.
// An order that cannot be followed is made one that can, and stays close.
// Throws what place() throws, and errors::InvalidArgument when the costs lack
// a device or nothing is left where contracts allow an op.
PlanProblem problem_of(const Graph& graph, const PlaceOptions& places,
                       CostTable costs,
                       const GraphProblemOptions& options = {});

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PROBLEM_OF_GRAPH_H_
