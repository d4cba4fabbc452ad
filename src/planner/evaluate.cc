// The value of plans: of steps, of loads, and what breaks a limit.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/compared_bytes.h"
#include "planner/models.h"
#include "planner/plan_view.h"
#include "simulate/check_plan.h"
#include "simulate/copy_route.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

// Ops where they must not be, and groups that are split.
void add_violations(const PlanProblem& p, const PlacePlan& plan,
                    std::vector<std::string>& out) {
  std::vector<int32_t> first(p.num_groups, -1);
  const std::vector<DeviceSet> allowed = allowed_of_groups(p);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    const size_t group = p.group[i];
    if (first[group] < 0) {
      first[group] = i;
      if (!allowed[group].has(d)) {
        out.push_back(fmt::format(
            "\"{}\" is on {}, which {} does not allow", p.names[i],
            p.costs.devices[d].name,
            "its kernels, its request or an op that it must be with"));
      }
    } else if (plan.device[first[group]] != d) {
      out.push_back(fmt::format("\"{}\" and \"{}\" must share a device",
                                p.names[i], p.names[first[group]]));
    }
  }
}

}  // namespace

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
    const CopyRoute route(p.costs, t.from, t.to);
    for (const int32_t n : route) {
      n < p.num_devices() ? devices[n].busy += us
                          : devices[n - p.num_devices()].copy_busy += us;
    }
    if (route.empty()) devices[t.to].copy_busy += us;
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

Evaluation evaluate_loads(const PlanProblem& p, const PlacePlan& plan) {
  Evaluation e;
  e.devices.resize(p.num_devices());
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    DeviceUse& use = e.devices[plan.device[i]];
    if (p.takes_time(i)) use.busy += p.costs.time(i, plan.device[i]).us;
    use.bytes += p.resident_bytes[i];
    use.bytes += p.graph.variable_bytes[i];
  }
  for (const PlannedTransfer& t : transfers_of(p, plan, {})) {
    for (const int32_t n : t.payers) {
      n < p.num_devices() ? e.devices[n].busy += t.time
                          : e.devices[n - p.num_devices()].copy_busy += t.time;
    }
    if (t.payers.empty() || !p.touch_us.empty()) continue;
    for (const size_t n : p.costs.link(t.from, t.to).shared) {
      e.shared_busy.resize(std::max(e.shared_busy.size(), n + 1), 0);
      e.shared_busy[n] += t.time;
    }
  }
  e.value = 0;
  for (const DeviceUse& use : e.devices) {
    e.value = std::max({e.value, use.busy, use.copy_busy});
  }
  for (const double busy : e.shared_busy) e.value = std::max(e.value, busy);
  return e;
}

const ModelRules& rules_of(const PlanProblem& p) {
  static constexpr ModelRules kRules[] = {
      {"step", "all placements and orders, ops as given", &evaluate_steps,
       &search_steps, &bound_steps},
      {"load", "all placements, ops as given", &evaluate_loads, &search_loads,
       &bound_loads},
      {"pipeline", "all placements, stages and orders, ops as given",
       &evaluate_pipeline, &search_pipeline, &bound_pipeline}};
  return kRules[static_cast<size_t>(p.model)];
}

Evaluation evaluate(const PlanProblem& p, const PlacePlan& plan) {
  check_devices(p.graph, p.costs.devices.size(), plan, p.names);
  std::vector<std::string> violations;
  add_violations(p, plan, violations);
  Evaluation e = rules_of(p).evaluate(p, plan);
  for (size_t d = 0; d < e.devices.size(); ++d) {
    const DeviceCost& device = p.costs.devices[d];
    const double limit = device.memory_limit;
    if (limit <= 0 || e.devices[d].bytes <= limit) continue;
    const auto [needs, most] =
        compared_bytes(std::llround(e.devices[d].bytes), device.memory_limit);
    violations.push_back(
        fmt::format("{} needs {}; its limit is {}", device.name, needs, most));
  }
  e.violations.insert(e.violations.begin(), violations.begin(),
                      violations.end());
  return e;
}

}  // namespace berth
