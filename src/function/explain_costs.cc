#include "function/explain_costs.h"

#include "exec/measure_costs.h"
#include "function/place_bodies.h"
#include "passes/lower.h"

namespace berth {

void lower_for_devices(Graph& graph) {
  lower(graph, [&](const Node& n) { return has_kernel(n, graph); });
}

CostTable costs_of(const Graph& placed, bool may_measure) {
  if (!may_measure) return kept_costs(placed);
  MeasureOptions options;
  options.prepare = &lower_for_devices;
  return measured_costs(placed, options);
}

}  // namespace berth
