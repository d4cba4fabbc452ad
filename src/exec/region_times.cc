#include "exec/region_times.h"

#include <algorithm>
#include <cmath>

#include "exec/measure_plan.h"
#include "program/program.h"

namespace berth {

std::vector<RegionTime> region_times(Plan& plan, bool may_measure,
                                     double budget_ms) {
  const Program& p = plan.program();
  const CostTable costs = costs_of_plan(plan, may_measure, budget_ms).costs;
  std::vector<RegionTime> result;
  for (const PlanStep& step : p.steps) {
    RegionTime r;
    r.device = p.devices[step.device]->str();
    r.time = {0, 0, CostOrigin::kMeasured};
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      const int32_t node = p.ops[k].node;
      r.nodes.push_back(node);
      const OpTime& t = costs.time(node, costs.find(r.device));
      if (std::isinf(t.us) || p.ops[k].kind == StepKind::kTransfer) continue;
      r.time.us += t.us;
      r.time.spread = std::max(r.time.spread, t.spread);
      r.time.origin = std::min(r.time.origin, t.origin);
    }
    result.push_back(std::move(r));
  }
  return result;
}

}  // namespace berth
