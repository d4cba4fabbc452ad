// The export `berth_planner_plugin` of libberth_planner.so. The library is in
// the folder `berth` beside libberth.so, which is not searched for backends,
// and is opened at the first use.

#ifndef BERTH_FUNCTION_PLANNER_PLUGIN_H_
#define BERTH_FUNCTION_PLANNER_PLUGIN_H_

#include "berth/device/build_id.h"
#include "function/auto_place.h"

namespace berth {

struct PlannerPlugin {
  const char* build_id;
  AutoPlaced (*auto_place)(Graph& graph, const PlaceOptions& places,
                           const AutoPlacing& options);
};

// Throws errors::FailedPrecondition where the library cannot be opened.
const PlannerPlugin& planner_plugin();

}  // namespace berth

#endif  // BERTH_FUNCTION_PLANNER_PLUGIN_H_
