// What function/auto_place.h declares, done: the planner's answer is compiled
// on trial beside the rules' own plan, and the faster one wins.

#ifndef BERTH_PLANNER_AUTO_PLACE_H_
#define BERTH_PLANNER_AUTO_PLACE_H_

#include "function/auto_place.h"

namespace berth {

// As auto_place(), of two devices or more.
AutoPlaced plan_and_place(Graph& graph, const PlaceOptions& places,
                          const AutoPlacing& options);

}  // namespace berth

#endif  // BERTH_PLANNER_AUTO_PLACE_H_
