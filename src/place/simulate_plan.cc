// Plans for the simulator: of a placed graph, and with ops moved elsewhere.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "berth/errors.h"
#include "place/order.h"
#include "place/simulate.h"

namespace berth {

SimulatedPlan plan_of(const Graph& placed, const Machine& machine) {
  std::unordered_map<std::string, int32_t> number;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    number.emplace(machine.devices[d].name, static_cast<int32_t>(d));
  }
  SimulatedPlan plan;
  plan.order.resize(machine.devices.size());
  plan.device.reserve(placed.nodes.size());
  for (const Node& n : placed.nodes) {
    const auto it = number.find(n.assigned);
    if (it == number.end()) {
      throw errors::InvalidArgument(fmt::format(
          "plan_of: \"{}\" is on \"{}\", for which there are no costs; "
          "expected one of {} devices, first \"{}\"",
          n.name, n.assigned, number.size(),
          machine.devices.empty() ? "" : machine.devices[0].name));
    }
    plan.device.push_back(it->second);
  }
  const Work work = find_work(placed);
  for (const int32_t i : work.order) {
    if (!work.is_transfer[i]) plan.order[plan.device[i]].push_back(i);
  }
  return plan;
}

Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const SimulatedPlan& plan, std::span<const int32_t> nodes,
                 int32_t device) {
  Simulator simulator(graph, costs);
  const Simulation& base = simulator.run(plan);
  const double step_us = base.step_us;
  const int64_t sent_bytes = base.sent_bytes;
  SimulatedPlan moved;
  moved.device = plan.device;
  for (const int32_t i : nodes) {
    moved.device[i] = device;
    if (graph.kind[i] == SimulatedGraph::Kind::kOp &&
        std::isinf(costs.time(i, device).us)) {
      return {};
    }
  }
  // When things happened is an order that can be followed on any devices.
  std::vector<std::tuple<double, double, int32_t>> order;
  for (const std::vector<int32_t>& on_device : plan.order) {
    for (const int32_t i : on_device) {
      if (graph.kind[i] != SimulatedGraph::Kind::kOp) continue;
      order.emplace_back(base.start_us[i], base.end_us[i], i);
    }
  }
  std::sort(order.begin(), order.end());
  moved.order.resize(plan.order.size());
  for (const auto& [start, end, i] : order) {
    moved.order[moved.device[i]].push_back(i);
  }
  const Simulation& then = simulator.run(moved);
  return {then.step_us, then.step_us - step_us, then.sent_bytes - sent_bytes};
}

}  // namespace berth
