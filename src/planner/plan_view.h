// A plan's actions as lists to print, draw and compare.
//
// Pure functions over a problem, a plan of it and its evaluation.

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
};

// Returns the transfers of a plan: for kStep those of its simulation, else
// those that its devices pay for, by value and destination.
std::vector<PlannedTransfer> transfers_of(const PlanProblem& problem,
                                          const PlacePlan& plan,
                                          const Evaluation& evaluation);

// Returns "dense/MatMul:0"; for files, whose ops have one value each, the op.
std::string value_name(const PlanProblem& problem, int32_t value);

// Returns "GPU:1".
std::string short_name(const PlanProblem& problem, int32_t device);

// One link of the chain that decides when a step ends.
struct CriticalItem {
  int32_t op = -1;        // or
  int32_t transfer = -1;  // index in Simulation::transfers
  double start = 0, end = 0;
};

// Returns a chain of ops and transfers, up to the one that ends last, in which
// each began when the one before it ended. Empty except for kStep.
std::vector<CriticalItem> critical_path(const PlanProblem& problem,
                                        const PlacePlan& plan,
                                        const Evaluation& evaluation);

}  // namespace berth

#endif  // BERTH_PLANNER_PLAN_VIEW_H_
