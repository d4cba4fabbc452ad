// What the ops of a plan take, by what the executor makes of them: regions.
//
// Acts when a step is planned: a plan on trial tells what ops cost together.
// Thread-safe, but measurements of several threads disturb each other.

#ifndef BERTH_EXEC_REGION_TIMES_H_
#define BERTH_EXEC_REGION_TIMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "place/costs.h"

namespace berth {

// One instruction of a plan.
struct RegionTime {
  std::string device;          // full name
  std::vector<int32_t> nodes;  // of the plan's graph, as they run
  OpTime time;                 // of all of them; transfers: none
};

// Returns them in the order in which they are launched; each device runs its
// own in this order. `may_measure`: measures for up to `budget_ms` a device
// what is not kept.
std::vector<RegionTime> region_times(Plan& plan, bool may_measure,
                                     double budget_ms = 250);

}  // namespace berth

#endif  // BERTH_EXEC_REGION_TIMES_H_
