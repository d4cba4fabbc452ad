// The bound of pipelines: no device, copy engine or group of links can do its
// share of all micro-batches in less time; and a step is not shorter than one
// micro-batch.

#include "planner/models.h"
#include "simulate/pipeline_steps.h"

namespace berth {

namespace {

// The problem of model kLoad whose loads are those of a whole step, or less: a
// bound of it is one of the pipeline.
PlanProblem loads_of_step(const PlanProblem& problem) {
  PlanProblem p = problem;
  p.model = PlanModel::kLoad;
  p.candidates.clear();
  const std::vector<MicroBatchRole> role = roles_of(problem);
  const double m = problem.pipeline.micro_batches;
  const size_t classes = p.costs.classes.size();
  Rows<int64_t> bytes;
  std::vector<int64_t> row;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    row.assign(p.costs.bytes[i].begin(), p.costs.bytes[i].end());
    // What is read after the step is sent once.
    for (size_t k = 0; k < row.size() && role[i] == MicroBatchRole::kEach;
         ++k) {
      const auto readers = p.graph.readers[p.graph.values.begin_of(i) + k];
      if (std::ranges::all_of(readers, [&](int32_t r) {
            return role[r] == MicroBatchRole::kEach;
          })) {
        row[k] = std::min(static_cast<double>(row[k]) * m, 0x1p60);
      }
    }
    bytes.add(row);
    if (role[i] != MicroBatchRole::kEach) continue;
    for (size_t c = 0; c < classes; ++c) {
      p.costs.times[static_cast<size_t>(i) * classes + c].us *= m;
    }
  }
  p.costs.bytes = std::move(bytes);
  return p;
}

}  // namespace

Bound bound_pipeline(const PlanProblem& problem, const Budget& budget) {
  const PlanProblem loads = loads_of_step(problem);
  Bound bound = bound_loads(loads, budget.part(0, 0.6));
  bound.how = "busiest device, " + bound.how;
  PlanProblem one = problem;
  one.model = PlanModel::kStep;
  one.candidates.clear();
  Bound latency = bound_steps(one, budget.part(0.6, 1));
  latency.how = "one micro-batch, " + latency.how;
  return latency.value > bound.value ? latency : bound;
}

}  // namespace berth
