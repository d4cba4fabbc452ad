// The symbol that libberth looks for.

#include "function/planner_plugin.h"
#include "planner/auto_place.h"

extern "C" {
__attribute__((visibility(
    "default"))) extern const berth::PlannerPlugin berth_planner_plugin;
const berth::PlannerPlugin berth_planner_plugin = {BERTH_BUILD_ID,
                                                   berth::plan_and_place};
}
