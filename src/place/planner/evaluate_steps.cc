#include "place/planner/models.h"

namespace berth {

Evaluation evaluate_steps(const PlanProblem&, const PlacePlan&) { return {}; }

}  // namespace berth
