// What a plan would take: times of its regions, and their order.
//
// A region is what a device runs as one instruction, so times belong to
// regions: measured one device after the other, on scratch that no program
// sees, in the order of the plan, so that caches are as warm as in a step. Kept
// in the CostStore by what the region computes. Waits are left to the
// simulator. Thread-safe, but measurements of several threads disturb each
// other.

#ifndef BERTH_EXEC_MEASURE_PLAN_H_
#define BERTH_EXEC_MEASURE_PLAN_H_

#include <functional>
#include <string>
#include <vector>

#include "exec/plan.h"
#include "place/costs.h"
#include "simulate/simulate.h"

namespace berth {

// Returns what region `step` of a plan is kept under; "": it cannot be named.
std::string region_key(Plan& plan, int step, const Machine& machine);

// Returns the times of the regions of a plan, in its order, measured on core
// sets, for about `budget_ms` a device; origin kNone: not measured (transfers,
// control flow, other devices, a kernel that refuses zeros, no memory).
// `wanted` chooses among the plan's devices, by number, and sees what is
// measured so far; null: all.
std::vector<OpTime> measure_regions(
    Plan& plan, double budget_ms,
    const std::function<bool(int, const std::vector<OpTime>&)>& wanted =
        nullptr);

// What the simulator asks about a plan. The graph is the plan's.
struct PlanCosts {
  CostTable costs;
  PlacePlan order;
  double around_us = 0;  // of a run, beside its regions
  bool known = false;    // every kernel's time was measured or declared
};

// Returns the costs of a plan: kept measurements of its regions (each stands
// at its last op, the others take nothing), else of its ops, else estimates.
// `may_measure`: measures for up to `budget_ms` a device what is not kept.
PlanCosts costs_of_plan(Plan& plan, bool may_measure, double budget_ms = 250);

// What a plan would do, by the simulator.
struct PlanPrediction {
  double step_us = -1;
  Simulation simulation;  // nodes are those of the plan's graph
  PlanCosts costs;
};
// Throws errors::Error when the plan cannot be simulated.
PlanPrediction predict_plan(Plan& plan, bool may_measure,
                            double budget_ms = 250);

// Returns what the same plan, all on `device`, would take on a device of
// `cores` such cores: regions that fork share their work, all are bound by the
// memory bus. `p` is changed into that prediction.
double on_cores_us(Plan& plan, PlanPrediction& p, const Device& device,
                   int cores);

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_PLAN_H_
