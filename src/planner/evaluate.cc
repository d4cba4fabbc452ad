// The value of plans: of steps, of loads, and what breaks a limit.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/compared_bytes.h"
#include "berth/errors.h"
#include "planner/loads.h"
#include "planner/models.h"
#include "simulate/check_plan.h"
#include "simulate/copy_route.h"
#include "simulate/timing_tables.h"

namespace berth {

bool any_without_kernel(const PlanProblem& p, const PlacePlan& plan) {
  for (const int32_t op : plan.sequence) {
    const double us = p.costs.time(op, plan.device[op]).us;
    if (!std::isfinite(us) || us < 0) return true;
  }
  return false;
}

bool add_copy(const PlanProblem& p, int32_t from, int32_t to, double us,
              std::vector<DeviceUse>& devices) {
  const CopyRoute route(p.costs, from, to);
  for (const int32_t n : route) {
    n < p.num_devices() ? devices[n].busy += us
                        : devices[n - p.num_devices()].copy_busy += us;
  }
  return !route.empty();
}

void add_copy_time(const PlanProblem& p, const Simulation& s,
                   std::vector<DeviceUse>& devices) {
  for (const SimulatedTransfer& t : s.transfers) {
    const double us = t.end_us - t.start_us;
    if (!add_copy(p, t.from, t.to, us, devices)) devices[t.to].copy_busy += us;
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

// --- Throughput: directly from ops and values (loads.h).

namespace {

// Adds the payments for a value that several devices hold, by the touch rule.
void add_touches(const PlanProblem& p, int32_t value, DeviceSet holders,
                 Evaluation& e) {
  if (holders.count() < 2) return;
  for (; holders; holders.drop_first()) {
    const size_t d = holders.first();
    if (!p.free_of_touch[d]) {
      e.devices[d].busy += p.touch_us[value];
    }
  }
}

// Adds the copies of a value, by the link rule.
void add_copies(const PlanProblem& p, int32_t value, int32_t from,
                DeviceSet readers, Evaluation& e) {
  for (; readers; readers.drop_first()) {
    const int32_t to = readers.first();
    if (to == from) continue;
    const double us = p.costs.link(from, to).time_us(p.costs.bytes.item(value));
    if (!add_copy(p, from, to, us, e.devices)) continue;
    for (const int32_t n : p.costs.link(from, to).shared) {
      if (e.shared_busy.size() <= static_cast<size_t>(n)) {
        e.shared_busy.resize(static_cast<size_t>(n) + 1, 0);
      }
      e.shared_busy[n] += us;
    }
  }
}

}  // namespace

Evaluation evaluate_loads(const PlanProblem& p, const PlacePlan& plan) {
  const SimulatedGraph& g = p.graph;
  Evaluation e;
  e.devices.resize(p.num_devices());
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<DeviceSet> readers(g.producer.size(), 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    DeviceUse& use = e.devices[d];
    if (p.takes_time(i)) use.busy += p.costs.time(i, d).us;
    use.bytes += p.resident_bytes[i];
    if (!g.variable_bytes.empty()) {
      use.bytes += g.variable_bytes[i];
    }
    for (const int32_t v : g.reads[i]) {
      readers[renamed[v]] |= device_bit(d);
    }
  }
  for (int32_t v = 0; v < static_cast<int32_t>(readers.size()); ++v) {
    if (readers[v] == 0 || g.everywhere[v]) continue;
    const int32_t from = plan.device[g.producer[v]];
    if (p.touch_us.empty()) {
      add_copies(p, v, from, readers[v], e);
    } else {
      add_touches(p, v, readers[v] | device_bit(from), e);
    }
  }
  e.value = 0;
  for (const DeviceUse& use : e.devices) {
    e.value = std::max({e.value, use.busy, use.copy_busy});
  }
  for (const double busy : e.shared_busy) e.value = std::max(e.value, busy);
  return e;
}

// --- Any plan.

namespace {

[[noreturn]] void bad_plan(const PlanProblem& p, const std::string& what) {
  throw errors::InvalidArgument(
      fmt::format("a plan for \"{}\": {}", p.name, what));
}

void check_plan_of(const PlanProblem& p, const PlacePlan& plan) {
  if (plan.device.size() != static_cast<size_t>(p.num_ops())) {
    bad_plan(p, fmt::format("devices for {} ops; expected {}",
                            plan.device.size(), p.num_ops()));
  }
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    if (d < 0 || d >= p.num_devices()) {
      bad_plan(p, fmt::format("op \"{}\" is on device {}; expected 0 to {}",
                              p.names[i], d, p.num_devices() - 1));
    }
  }
}

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

constexpr ModelRules kStepRules{"step",
                                "all placements and orders, ops as given",
                                &evaluate_steps, &search_steps, &bound_steps};
constexpr ModelRules kLoadRules{"load", "all placements, ops as given",
                                &evaluate_loads, &search_loads, &bound_loads};
constexpr ModelRules kPipelineRules{
    "pipeline", "all placements, stages and orders, ops as given",
    &evaluate_pipeline, &search_pipeline, &bound_pipeline};

}  // namespace

const ModelRules& rules_of(const PlanProblem& p) {
  return p.model == PlanModel::kLoad       ? kLoadRules
         : p.model == PlanModel::kPipeline ? kPipelineRules
                                           : kStepRules;
}

Evaluation evaluate(const PlanProblem& p, const PlacePlan& plan) {
  check_plan_of(p, plan);
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
