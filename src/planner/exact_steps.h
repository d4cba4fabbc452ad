// ExactSteps: the shortest step of a tiny problem, by branch and bound.
//
// First fixes the devices of all units, then the order of all ops; a branch
// ends when the least time of any plan in it is no shorter than the best one
// known. Equal devices are tried once, as are equivalent orders, and states of
// a step that are no better than another with the same ops. If it finishes, the
// best plan is proved best. One thread.

#ifndef BERTH_PLANNER_EXACT_STEPS_H_
#define BERTH_PLANNER_EXACT_STEPS_H_

#include <cstdint>

#include "planner/models.h"
#include "planner/step_units.h"

namespace berth {

// Whether it is tiny, and by rules that the search supports: only ops and
// sources, no buses.
bool is_tiny(const StepUnits& units);

// Replaces `best` and its value by the best of all plans that keep limits.
// Returns whether it tried all, within `most_nodes` and the budget. `best` may
// be empty and its value infinite.
bool find_best_step(const StepUnits& units, const Budget& budget,
                    int64_t most_nodes, Found& best);

}  // namespace berth

#endif  // BERTH_PLANNER_EXACT_STEPS_H_
