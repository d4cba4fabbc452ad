#include "place/planner/models.h"

namespace berth {

Evaluation evaluate_pieces(const PlanProblem&, const PlacePlan&) { return {}; }

}  // namespace berth
