#include "place/simulate_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "berth/errors.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

[[noreturn]] void fail(const std::string& what) {
  throw errors::InvalidArgument("simulate: " + what);
}

std::string describe(const SimulatedGraph& graph, int32_t node) {
  const Node& n = (*graph.graph)[node];
  return fmt::format("{} \"{}\"", n.op->name(), n.name);
}

void check_sizes(const SimulatedGraph& graph, const CostTable& costs,
                 const SimulatedPlan& plan) {
  const auto n = static_cast<size_t>(graph.num_nodes());
  const size_t devices = costs.devices.size();
  if (plan.device.size() != n || plan.order.size() != devices) {
    fail(
        fmt::format("a plan of {} nodes and {} orders for a graph of {} nodes "
                    "on {} devices",
                    plan.device.size(), plan.order.size(), n, devices));
  }
  check_costs(graph, costs);
  for (int32_t i = 0; i < graph.num_nodes(); ++i) {
    const int32_t d = plan.device[i];
    if (d >= 0 && static_cast<size_t>(d) < devices) continue;
    fail(fmt::format("{} is on device {}; expected 0 to {}", describe(graph, i),
                     d, devices - 1));
  }
}

}  // namespace

void check_costs(const SimulatedGraph& graph, const CostTable& costs) {
  const auto n = static_cast<size_t>(graph.num_nodes());
  const size_t devices = costs.devices.size();
  const size_t times = n * costs.classes.size();
  if (costs.times.size() != times ||
      costs.bytes.num_items() != static_cast<int32_t>(graph.producer.size()) ||
      costs.links.size() != devices * devices ||
      (!costs.workspace.empty() && costs.workspace.size() != times)) {
    fail("the costs are those of another graph or machine");
  }
  for (const DeviceCost& d : costs.devices) {
    if (d.device_class >= 0 &&
        static_cast<size_t>(d.device_class) < costs.classes.size()) {
      continue;
    }
    fail(fmt::format("device {} is of class {}; expected 0 to {}", d.name,
                     d.device_class, costs.classes.size() - 1));
  }
}

void check_plan(const SimulatedGraph& graph, const CostTable& costs,
                const SimulatedPlan& plan, std::vector<uint8_t>& in_order) {
  check_sizes(graph, costs, plan);
  const int32_t n = graph.num_nodes();
  in_order.assign(static_cast<size_t>(n), 0);
  for (size_t d = 0; d < plan.order.size(); ++d) {
    const std::string& name = costs.devices[d].name;
    for (const int32_t i : plan.order[d]) {
      if (i < 0 || i >= n) {
        fail(fmt::format("the order of {} has node {}; expected 0 to {}", name,
                         i, n - 1));
      }
      if (graph.kind[i] != Kind::kOp) continue;
      if (in_order[i]) {
        fail(fmt::format("{} stands twice in the order of {}",
                         describe(graph, i), name));
      }
      if (static_cast<size_t>(plan.device[i]) != d) {
        fail(fmt::format("{} stands in the order of {}, and is elsewhere",
                         describe(graph, i), name));
      }
      const double us = costs.time(i, plan.device[i]).us;
      if (!std::isfinite(us) || us < 0) {
        fail(fmt::format("{} is on {}, which has no kernel for it",
                         describe(graph, i), name));
      }
      in_order[i] = 1;
    }
  }
  for (int32_t i = 0; i < n; ++i) {
    if (graph.kind[i] == Kind::kOp && !in_order[i]) {
      fail(describe(graph, i) + " is in no order");
    }
  }
}

namespace {

class Deadlock {
 public:
  Deadlock(const SimulatedGraph& graph, const CostTable& costs,
           const SimulatedPlan& plan, const std::vector<size_t>& position)
      : graph_(graph), costs_(costs), plan_(plan), position_(position) {
    over_.assign(static_cast<size_t>(graph.num_nodes()), 0);
    for (size_t d = 0; d < position.size(); ++d) {
      for (size_t k = 0; k < position[d]; ++k) over_[plan.order[d][k]] = 1;
    }
    // Numbers are an order in which nodes could run.
    for (int32_t i = 0; i < graph.num_nodes(); ++i) {
      if (graph.kind[i] != Kind::kOp) over_[i] = needs(i) < 0;
    }
  }

  std::string text() const {
    std::string text = "the orders cannot be followed:";
    const char* separator = " ";
    for (size_t d = 0; d < position_.size(); ++d) {
      if (position_[d] == plan_.order[d].size()) continue;
      const int32_t head = plan_.order[d][position_[d]];
      text += fmt::format("{}{} is at {}", separator, costs_.devices[d].name,
                          describe(graph_, head));
      int32_t p = needs(head);
      while (p >= 0 && graph_.kind[p] != Kind::kOp) p = needs(p);
      if (p >= 0) text += ", which needs " + describe(graph_, p);
      separator = "; ";
    }
    return text + "; expected orders in which inputs come first";
  }

 private:
  // What a node waits for; -1: nothing.
  int32_t needs(int32_t node) const {
    for (int32_t v : graph_.reads[node]) {
      if (!over_[graph_.producer[v]]) return graph_.producer[v];
    }
    for (int32_t c : graph_.controls[node]) {
      if (!over_[c]) return c;
    }
    return -1;
  }

  const SimulatedGraph& graph_;
  const CostTable& costs_;
  const SimulatedPlan& plan_;
  const std::vector<size_t>& position_;
  std::vector<uint8_t> over_;  // per node
};

}  // namespace

void fail_deadlock(const SimulatedGraph& graph, const CostTable& costs,
                   const SimulatedPlan& plan,
                   const std::vector<size_t>& position) {
  fail(Deadlock(graph, costs, plan, position).text());
}

}  // namespace berth
