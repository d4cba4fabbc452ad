#include <cmath>

#include "planner/models.h"
#include "simulate/check_plan.h"
#include "simulate/timing_tables.h"

namespace berth {

bool any_without_kernel(const PlanProblem& p, const PlacePlan& plan) {
  for (const int32_t op : plan.sequence) {
    const double us = p.costs.time(op, plan.device[op]).us;
    if (!std::isfinite(us) || us < 0) return true;
  }
  return false;
}

void add_copy_time(const PlanProblem& p, const Simulation& s,
                   std::vector<DeviceUse>& devices) {
  for (const SimulatedTransfer& t : s.transfers) {
    const double us = t.end_us - t.start_us;
    const CopyRule to = p.costs.devices[t.to].copies;
    const bool blocks = to == CopyRule::kReceiving || to == CopyRule::kBoth;
    (blocks ? devices[t.to].busy : devices[t.to].copy_busy) += us;
    if (p.costs.devices[t.from].copies == CopyRule::kBoth &&
        to != CopyRule::kFree) {
      devices[t.from].busy += us;
    }
  }
}

Evaluation evaluate_steps(const PlanProblem& p, const PlacePlan& plan) {
  Evaluation e;
  e.devices.resize(p.costs.devices.size());
  check_sequence(p.graph, p.costs.devices.size(), plan,
                 topological_order(p.graph), p.names);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    e.devices[plan.device[i]].bytes += p.resident_bytes[i];
  }
  if (any_without_kernel(p, plan)) return e;  // takes infinitely long
  e.simulation = simulate(p.graph, p.costs, plan);
  e.value = e.simulation.step_us;
  for (size_t d = 0; d < e.devices.size(); ++d) {
    e.devices[d].busy = e.simulation.busy_us[d];
    e.devices[d].bytes += e.simulation.peak_bytes[d];
  }
  add_copy_time(p, e.simulation, e.devices);
  return e;
}

}  // namespace berth
