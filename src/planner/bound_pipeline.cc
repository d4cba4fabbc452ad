// The bound of pipelines: no device, copy engine or group of links can do its
// share of all micro-batches in less time; and a step is not shorter than one
// micro-batch.

#include "planner/models.h"
#include "planner/pipeline.h"

namespace berth {

Bound bound_pipeline(const PlanProblem& problem, const Budget& budget) {
  const PlanProblem loads = loads_of_step(problem);
  const bool flushed = !problem.pipeline.stash_weights;
  Bound bound = bound_loads(loads, flushed ? budget.part(0, 0.6) : budget);
  bound.how = "busiest device, " + bound.how;
  if (!flushed) return bound;
  PlanProblem one = problem;
  one.model = PlanModel::kStep;
  one.candidates.clear();
  Bound latency = bound_steps(one, budget.part(0.6, 1));
  latency.how = "one micro-batch, " + latency.how;
  return latency.value > bound.value ? latency : bound;
}

}  // namespace berth
