// The picture of a plan: which device does what when, or how much.
//
// For a step: per device its computation and, thinner, the copies to it, with
// the critical path outlined. For throughput: per device its load, work and
// transfers. The bound is a dashed line. Pure.

#ifndef BERTH_CLI_PLANNER_PLAN_SVG_H_
#define BERTH_CLI_PLANNER_PLAN_SVG_H_

#include <string>

#include "planner/planner.h"

namespace berth {

// Returns an SVG document. `answer` has a plan.
std::string plan_svg(const PlanProblem& problem, const PlanAnswer& answer);

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PLAN_SVG_H_
