#include <fmt/format.h>

#include <cmath>

#include "base/compared_bytes.h"
#include "berth/errors.h"
#include "planner/models.h"

namespace berth {

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
