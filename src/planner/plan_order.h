// Feasible orders of a graph, close to a wanted one; and a graph in the order
// of a plan.
//
// Pure functions.

#ifndef BERTH_PLANNER_PLAN_ORDER_H_
#define BERTH_PLANNER_PLAN_ORDER_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "planner/planner.h"

namespace berth {

// Returns the nodes that take time, each after what it waits for, otherwise in
// the order of `wanted`; nodes missing there come as early as they can.
std::vector<int32_t> ordered_ops(const SimulatedGraph& graph,
                                 const std::vector<int32_t>& wanted);

// Returns the plan in the order in which the simulator begins its ops if this
// is no worse, and in program order (that of the problem's first candidate) if
// that is within `slack` of the value.
PlacePlan settled_order(const PlanProblem& problem, const PlacePlan& plan,
                        double value, double slack = 0.002);

// Puts the nodes of `graph`, from which `problem` was made, in the plan's order
// and on its devices: then program order is the plan's. Nodes that take no time
// come right before the first that needs them. Returns the costs of the
// reordered graph.
CostTable apply_plan(Graph& graph, const PlanProblem& problem,
                     const PlacePlan& plan);

}  // namespace berth

#endif  // BERTH_PLANNER_PLAN_ORDER_H_
