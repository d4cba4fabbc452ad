// What every model brings: its evaluation, its search, its bound.
//
// plan_placement() and evaluate() ask them. The engine has two models; who has
// problems of another brings its rules with them. Pure; searches and bounds use
// the threads of their budget while they run.

#ifndef BERTH_PLACE_PLANNER_MODELS_H_
#define BERTH_PLACE_PLANNER_MODELS_H_

#include "place/planner/planner.h"

namespace berth {

// Value, use and limits of a plan whose lengths and device numbers are right.
Evaluation evaluate_loads(const PlanProblem& problem, const PlacePlan& plan);
Evaluation evaluate_steps(const PlanProblem& problem, const PlacePlan& plan);

// Searches begin with the problem's candidates and end by the budget, or when
// its enough(): what they return keeps all limits.
Found search_loads(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed);
Found search_steps(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed);

// Bounds hold for every plan that keeps the limits. `upper`: the value of a
// plan that is known, or infinity: targets above it need no trial. A bound must
// not be clipped to it: tests hand in more than the best, and look.
Bound bound_loads(const PlanProblem& problem, const Budget& budget,
                  double upper);
Bound bound_steps(const PlanProblem& problem, const Budget& budget,
                  double upper);

struct ModelRules {
  const char* name;     // in plan files: "step"
  const char* covered;  // what "no plan is better" ranges over
  Evaluation (*evaluate)(const PlanProblem& problem, const PlacePlan& plan);
  Found (*search)(const PlanProblem& problem, const Budget& budget,
                  uint64_t seed);
  Bound (*bound)(const PlanProblem& problem, const Budget& budget,
                 double upper);
};
// Returns those of the problem's model. Throws errors::InvalidArgument for a
// model of its own that has none.
const ModelRules& rules_of(const PlanProblem& problem);

// Looks for a proof that no plan keeps all limits (feasible.cc).
Infeasible prove_infeasible(const PlanProblem& problem);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_MODELS_H_
