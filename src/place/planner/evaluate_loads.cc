#include "place/planner/models.h"

namespace berth {

Evaluation evaluate_loads(const PlanProblem&, const PlacePlan&) { return {}; }

}  // namespace berth
