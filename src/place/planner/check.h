// Checkers of witnesses: each shares no code with the prover of its kind.
//
// They return "" if the witness proves that no plan of the problem has a value
// below its target, else what is wrong with it. docs/formats.md names the
// arrays of every kind. Pure; any numbers can be read safely.

#ifndef BERTH_PLACE_PLANNER_CHECK_H_
#define BERTH_PLACE_PLANNER_CHECK_H_

#include <string>

#include "place/planner/planner.h"

namespace berth {

std::string check_packing(const PlanProblem& problem, const Witness& witness);
std::string check_windows(const PlanProblem& problem, const Witness& witness);
std::string check_search(const PlanProblem& problem, const Witness& witness);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_CHECK_H_
