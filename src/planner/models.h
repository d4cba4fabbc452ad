// What every model provides: its evaluation, its search, its bound.
//
// plan_placement() and evaluate() call them. There are three models. Pure;
// searches and bounds use the threads of their budget while they run.

#ifndef BERTH_PLANNER_MODELS_H_
#define BERTH_PLANNER_MODELS_H_

#include "planner/planner.h"

namespace berth {

// Value, use and limits of a plan with valid lengths and device numbers.
using ValueRule = Evaluation(const PlanProblem& problem, const PlacePlan& plan);
ValueRule evaluate_loads, evaluate_steps, evaluate_pipeline;
// Whether an op of a plan has no kernel where it is.
bool any_without_kernel(const PlanProblem& problem, const PlacePlan& plan);
// Adds copies to the time of devices that their CopyRule keeps busy.
void add_copy_time(const PlanProblem& problem, const Simulation& simulation,
                   std::vector<DeviceUse>& devices);

// Searches begin with the problem's candidates and end when the budget is spent
// or its enough() is reached; their result keeps all limits.
using SearchRule = Found(const PlanProblem& problem, const Budget& budget,
                         uint64_t seed);
SearchRule search_loads, search_steps, search_pipeline;

// Bounds hold for every plan that keeps the limits.
using BoundRule = Bound(const PlanProblem& problem, const Budget& budget);
BoundRule bound_loads, bound_steps, bound_pipeline;

struct ModelRules {
  const char* name;     // in plan files: "step"
  const char* covered;  // what "no plan is better" refers to
  ValueRule* evaluate;
  SearchRule* search;
  BoundRule* bound;
};
// Returns the rules of the problem's model.
const ModelRules& rules_of(const PlanProblem& problem);

// Tries to prove that no plan keeps all limits (feasible.cc).
Infeasible prove_infeasible(const PlanProblem& problem);

}  // namespace berth

#endif  // BERTH_PLANNER_MODELS_H_
