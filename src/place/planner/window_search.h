// Windows, one after the other: improves a plan of many thousand ops.
//
// In each round all streams anneal windows of the same plan concurrently; then
// the improved ones are put back and tried as a whole, in order of position.

#ifndef BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_
#define BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/step_units.h"

namespace berth {

// Improves `plan`, which must keep masks and groups, until the budget is spent;
// continues to count each stream's `moves`. Returns its step. Only if
// has_windows().
double search_windows(const StepUnits& units, const Budget& budget,
                      uint64_t seed, PlacePlan& plan,
                      std::vector<int64_t>& moves);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_
