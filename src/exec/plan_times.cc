#include "exec/plan_times.h"

#include <algorithm>

#include "exec/plan_impl.h"

namespace berth {

PlanTimes plan_times(Plan& plan,
                     const std::function<bool(const Node&)>& is_fixed) {
  Plan::Impl& impl = plan.impl();
  const Program& p = plan.program();
  impl.harvest_all();
  PlanTimes times;
  for (const Device* d : p.devices) times.devices.push_back({d->str()});
  std::lock_guard lock(impl.mutex);
  times.samples = impl.record.samples;
  if (times.samples > 0) {
    times.last_step_us = impl.record.step_us[static_cast<size_t>(
        (times.samples - 1) % static_cast<int64_t>(RunRecord::kKeptSteps))];
  }
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const PlanStep& step = p.steps[s];
    if (step.kind == StepKind::kNothing || step.num_ops == 0) continue;
    PlanTimes::Device& d = times.devices[static_cast<size_t>(
        std::find(p.devices.begin(), p.devices.end(),
                  p.streams[step.stream].device) -
        p.devices.begin())];
    const double us = impl.record.steps[s].total_us;
    d.us += us;
    const PlanOp& last = p.ops[step.first_op + step.num_ops - 1];
    if (is_fixed(impl.graph[last.node])) d.fixed_us += us;
  }
  return times;
}

}  // namespace berth
