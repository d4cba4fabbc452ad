// PlanTimes: what the runs of a plan took on each device, added up.
//
// Differences of two of them are what the runs in between took: they show
// changes, where reports (exec/report.h) give means over all runs. Waits for
// timed runs that are on their way. Thread-safe.

#ifndef BERTH_EXEC_PLAN_TIMES_H_
#define BERTH_EXEC_PLAN_TIMES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/plan.h"

namespace berth {

struct PlanTimes {
  struct Device {
    std::string name;     // full
    double us = 0;        // of its instructions, without waits
    double fixed_us = 0;  // of it: those that `is_fixed` holds for
  };
  int64_t samples = 0;  // timed runs
  double last_step_us = -1;
  std::vector<Device> devices;
};

// `is_fixed` is asked about the last op of each instruction.
PlanTimes plan_times(Plan& plan,
                     const std::function<bool(const Node&)>& is_fixed);

}  // namespace berth

#endif  // BERTH_EXEC_PLAN_TIMES_H_
