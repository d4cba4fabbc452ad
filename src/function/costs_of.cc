#include "function/costs_of.h"

#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "op/kernel.h"
#include "passes/lower.h"

namespace berth {

void lower_for_devices(Graph& graph) {
  lower(graph, [&](const Node& n) {
    const Device& d = DeviceManager::get().lookup(n.assigned.name());
    std::vector<SpecView> in;
    for (const ValueRef& v : n.inputs) in.push_back(graph.spec(v).view());
    return d.kernels().supports(*n.op, kernel_dtype(in, n.outputs));
  });
}

CostTable costs_of(const Graph& placed, bool may_measure) {
  if (!may_measure) return kept_costs(placed);
  MeasureOptions options;
  options.prepare = &lower_for_devices;
  return measured_costs(placed, options);
}

}  // namespace berth
