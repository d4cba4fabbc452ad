#include "place/planner/models.h"
#include "place/planner/step_graph.h"
#include "place/planner/windows.h"

namespace berth {

Bound bound_steps(const PlanProblem& p, const Budget& budget, double upper) {
  (void)upper;
  const StepGraph graph(p);
  Windows windows(graph, std::vector<double>(graph.num_kinds(), 1.0));
  Bound b;
  b.value = windows.deduce([&] { return budget.spent(0) >= 1; }) * (1 - 1e-9);
  b.how = "windows";
  return b;
}

}  // namespace berth
