// Compiling: from an optimised graph to a plan, all in one file.
//
// Acts when a function is called with shapes, or under a policy, for which it
// has no plan. Thread-safe; takes no lock that a call holds.

#ifndef BERTH_FUNCTION_COMPILE_H_
#define BERTH_FUNCTION_COMPILE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "berth/function.h"
#include "exec/plan.h"
#include "function/task_parts.h"
#include "graph/graph.h"
#include "place/contracts.h"
#include "place/costs.h"
#include "place/placed.h"

namespace berth {

struct CompileJob {
  const Graph& graph;  // optimised; dimensions may be symbols
  const FunctionOptions& options;
  const std::vector<ParsedContract>& contracts;  // of the options
  std::vector<Shape> shapes;                     // of the arguments
  // Full names of the devices that hold the arguments; empty: unknown.
  std::vector<std::string> argument_on;
  // Counts the runs for random ops.
  std::shared_ptr<std::atomic<uint64_t>> steps;
  std::shared_ptr<BodySteps> body_steps;
};

struct CompiledGraph {
  std::unique_ptr<Plan> plan;        // the part of this task
  std::unique_ptr<TaskParts> parts;  // null: there are no others
  PlacedGraph placed;
  std::string certificate;  // the planner's; "": placed by rules
  CostTable planned_costs;  // of the placed graph, if planned
};

// Throws what the rewrite, the placer and Plan::build throw.
CompiledGraph compile_graph(const CompileJob& job);

// Places, lowers and partitions a graph, then the bodies of its control-flow
// nodes, whose arguments and results are on the device of their node. With
// `optimize` they are fused, too. Returns the graphs as they were placed.
// `on_trial`: reports no fallbacks, notes or lints.
PlacedGraph place_all(Graph& graph, const PlaceOptions& devices, bool optimize,
                      bool on_trial = false);

// Returns the devices of this process to place on, in order of preference.
PlaceOptions real_devices();

}  // namespace berth

#endif  // BERTH_FUNCTION_COMPILE_H_
