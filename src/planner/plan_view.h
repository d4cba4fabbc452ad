// A plan's transfers, as a list to price, print, draw and compare.
//
// Pure functions over a problem and a plan of it.

#ifndef BERTH_PLANNER_PLAN_VIEW_H_
#define BERTH_PLANNER_PLAN_VIEW_H_

#include <string>
#include <vector>

#include "planner/planner.h"

namespace berth {

// A value sent to one device.
struct PlannedTransfer {
  int32_t value = -1;          // number
  int32_t from = -1, to = -1;  // devices
  int64_t bytes = 0;
  double time = 0;              // alone, without contention
  double start = -1, end = -1;  // kStep only; else -1
  // Else: devices, and copy engines (number of devices + device), that it keeps
  // busy.
  std::vector<int32_t> payers = {};
};

// Returns the transfers of a plan: for kStep those of the simulation, else
// those that its devices pay for, by value and destination.
std::vector<PlannedTransfer> transfers_of(const PlanProblem& problem,
                                          const PlacePlan& plan,
                                          const Simulation& simulation);

// Returns "dense/MatMul:0"; for files, whose ops have one value each, the op.
std::string value_name(const PlanProblem& problem, int32_t value);

// Returns "GPU:1".
std::string short_name(const PlanProblem& problem, int32_t device);

}  // namespace berth

#endif  // BERTH_PLANNER_PLAN_VIEW_H_
