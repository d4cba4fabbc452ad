#include "planner/plan_order.h"

#include <algorithm>

#include "simulate/timing_tables.h"

namespace berth {

namespace {

// All nodes in the plan's order.
std::vector<int32_t> node_order(const SimulatedGraph& g,
                                const std::vector<int32_t>& sequence) {
  std::vector<int32_t> order;
  std::vector<bool> done(g.num_nodes(), false);
  std::vector<int32_t> open;
  const auto emit = [&](int32_t node) {
    open.push_back(node);
    while (!open.empty()) {
      const int32_t i = open.back();
      if (done[i]) {
        open.pop_back();
        continue;
      }
      const size_t before = open.size();
      for_each_before(g, i, [&](int32_t need) {
        if (!done[need]) open.push_back(need);
      });
      if (open.size() > before) continue;
      open.pop_back();
      done[i] = true;
      order.push_back(i);
    }
  };
  for (const int32_t i : sequence) emit(i);
  for (int32_t i = 0; i < g.num_nodes(); ++i) emit(i);
  return order;
}

// The costs of nodes in another order.
CostTable in_order(const CostTable& costs, const std::vector<int32_t>& order) {
  CostTable c;
  static_cast<Machine&>(c) = costs;
  c.error = costs.error;
  const size_t classes = costs.classes.size();
  for (const int32_t i : order) {
    const size_t at = i;
    for (size_t k = 0; k < classes; ++k) {
      c.times.push_back(costs.times[at * classes + k]);
      c.workspace.push_back(costs.workspace[at * classes + k]);
    }
    c.bytes.add(costs.bytes[i]);
    if (!costs.bus_bytes.empty()) c.bus_bytes.push_back(costs.bus_bytes[at]);
  }
  return c;
}

}  // namespace

std::vector<int32_t> ordered_ops(const SimulatedGraph& g,
                                 const std::vector<int32_t>& wanted) {
  std::vector<int32_t> place(static_cast<size_t>(g.num_nodes()), -1);
  for (size_t k = 0; k < wanted.size(); ++k) {
    place[wanted[k]] = static_cast<int32_t>(k);
  }
  std::vector<int32_t> order = topological_order(g, place);
  std::erase_if(
      order, [&](int32_t i) { return g.kind[i] != SimulatedGraph::Kind::kOp; });
  return order;
}

PlacePlan settled_order(const PlanProblem& p, const PlacePlan& plan,
                        double value, double slack) {
  PlacePlan best = plan;
  if (p.candidates.empty()) return best;
  PlacePlan other{plan.device, p.candidates[0].plan.sequence};
  Evaluation e = evaluate(p, other);
  if (e.violations.empty() && e.value <= value * (1 + slack)) return other;
  e = evaluate(p, plan);
  const std::vector<double>& start = e.simulation.start_us;
  if (start.size() != static_cast<size_t>(p.num_ops())) return best;
  other.sequence = plan.sequence;
  std::stable_sort(other.sequence.begin(), other.sequence.end(),
                   [&](int32_t a, int32_t b) { return start[a] < start[b]; });
  // Ops that take no time may begin together with those that they wait for.
  other.sequence = ordered_ops(p.graph, other.sequence);
  e = evaluate(p, other);
  return e.violations.empty() && e.value <= value ? other : best;
}

CostTable apply_plan(Graph& graph, const PlanProblem& p,
                     const PlacePlan& plan) {
  for (int32_t i = 0; i < graph.size(); ++i) {
    graph[i].assigned = p.costs.devices[plan.device[i]].name;
  }
  const std::vector<int32_t> order = node_order(p.graph, plan.sequence);
  std::vector<int32_t> number(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    number[order[k]] = static_cast<int32_t>(k);
  }
  graph.renumber(number);
  return in_order(p.costs, order);
}

}  // namespace berth
