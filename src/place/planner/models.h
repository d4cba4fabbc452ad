// What every model brings: its evaluation, its search, its bound.
//
// Internal to the planner; plan_placement() and evaluate() ask them. Pure;
// searches and bounds use the threads of their budget while they run.

#ifndef BERTH_PLACE_PLANNER_MODELS_H_
#define BERTH_PLACE_PLANNER_MODELS_H_

#include "place/planner/planner.h"

namespace berth {

// Value, use and limits of a plan whose lengths and device numbers are right.
Evaluation evaluate_loads(const PlanProblem& problem, const PlacePlan& plan);
Evaluation evaluate_steps(const PlanProblem& problem, const PlacePlan& plan);
Evaluation evaluate_pieces(const PlanProblem& problem, const PlacePlan& plan);

// Searches begin with the problem's candidates and end by the budget, or when
// its enough(): what they return keeps all limits.
Found search_loads(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed);
Found search_steps(const PlanProblem& problem, const Budget& budget,
                   uint64_t seed);
Found search_pieces(const PlanProblem& problem, const Budget& budget,
                    uint64_t seed);

// Bounds hold for every plan that keeps the limits. `upper`: the value of a
// plan that is known, or infinity: targets above it need no trial. A bound must
// not be clipped to it: tests hand in more than the best, and look.
Bound bound_loads(const PlanProblem& problem, const Budget& budget,
                  double upper);
Bound bound_steps(const PlanProblem& problem, const Budget& budget,
                  double upper);
Bound bound_pieces(const PlanProblem& problem, const Budget& budget,
                   double upper);

// Looks for a proof that no plan keeps all limits (feasible.cc).
Infeasible prove_infeasible(const PlanProblem& problem);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_MODELS_H_
