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

// Where the next call goes on.
struct WindowRounds {
  int round = 0;
  std::vector<int32_t> next;  // per stream: its next window in this round
};

// Improves `plan`, which must keep masks and groups, until the streams of the
// series have spent its budget. Returns its step. Only if has_windows().
double search_windows(const StepUnits& units, SearchSeries& series,
                      WindowRounds& rounds, PlacePlan& plan);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOW_SEARCH_H_
