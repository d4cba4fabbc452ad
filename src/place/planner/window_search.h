// Windows, one after the other: how a plan of many thousand ops gets better.
//
// Rounds: all streams anneal windows of the same plan side by side, then what
// got better is put back and tried as a whole, in order of position.

#ifndef BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_
#define BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/step_units.h"

namespace berth {

// Betters `plan`, which must keep masks and groups, until the budget is spent;
// `moves` are those of each stream so far, and are counted on. Returns its
// step. Only where has_windows().
double search_windows(const StepUnits& units, const Budget& budget,
                      uint64_t seed, PlacePlan& plan,
                      std::vector<int64_t>& moves);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_
