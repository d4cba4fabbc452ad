// Plans for the simulator: from a placed graph, and with ops moved.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <unordered_map>

#include "berth/errors.h"
#include "place/order.h"
#include "simulate/simulate.h"

namespace berth {

PlacePlan plan_of(const Graph& placed, const Machine& machine, bool in_order) {
  std::unordered_map<DeviceId, int32_t> number;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    number.emplace(machine.devices[d].name, static_cast<int32_t>(d));
  }
  PlacePlan plan;
  plan.device.reserve(placed.nodes.size());
  for (const Node& n : placed.nodes) {
    const auto it = number.find(n.assigned);
    if (it == number.end()) {
      throw errors::InvalidArgument(fmt::format(
          "plan_of: \"{}\" is on \"{}\", for which there are no costs; "
          "expected one of {} devices, first \"{}\"",
          n.name, n.assigned.text(), number.size(),
          machine.devices.empty() ? "" : machine.devices[0].name));
    }
    plan.device.push_back(it->second);
  }
  const WorkOrder work = find_work(placed, in_order);
  for (const int32_t i : work.order) {
    if (takes_time(placed[i])) plan.sequence.push_back(i);
  }
  return plan;
}

Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const PlacePlan& plan, std::span<const int32_t> nodes,
                 int32_t device) {
  Simulator simulator(graph, costs);
  const Simulation& base = simulator.run(plan);
  const double step_us = base.step_us;
  const int64_t sent_bytes = base.sent_bytes;
  PlacePlan moved = plan;
  for (const int32_t i : nodes) {
    moved.device[i] = device;
    if (graph.kind[i] == SimulatedGraph::Kind::kOp &&
        std::isinf(costs.time(i, device).us)) {
      return {};
    }
  }
  const Simulation& then = simulator.run(moved);
  return {then.step_us, then.step_us - step_us, then.sent_bytes - sent_bytes};
}

}  // namespace berth
