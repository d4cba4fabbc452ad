#include "place/planner/exact_graph.h"

#include <algorithm>
#include <limits>

namespace berth {

ExactGraph::ExactGraph(const StepUnits& of) : units(of), p(of.problem) {
  const SimulatedGraph& g = p.graph;
  op_of_node.assign(static_cast<size_t>(p.num_ops()), -1);
  for (const int32_t i : order_of_ops(p)) {
    op_of_node[i] = num_ops();
    node.push_back(i);
  }
  readers.resize(g.producer.size());
  for (int op = 0; op < num_ops(); ++op) {
    const int32_t i = node[op];
    unit.push_back(units.unit[i]);
    double best = std::numeric_limits<double>::infinity();
    for (int d = 0; d < p.num_devices(); ++d) {
      if (units.allowed[unit[op]].has(d)) best = std::min(best, us(op, d));
    }
    least.push_back(best);
    uint32_t mask = 0;
    reads.emplace_back();
    outs.emplace_back();
    const auto wait = [&](int32_t other) {
      if (op_of_node[other] >= 0) mask |= 1U << op_of_node[other];
    };
    for (const int32_t v : g.reads[i]) {
      wait(g.producer[v]);
      if (!g.everywhere[v]) reads[op].push_back(v);
      if (!g.everywhere[v]) readers[v].push_back(op);
    }
    for (const int32_t c : g.controls[i]) wait(c);
    needs.push_back(mask);
    for (const int32_t v : g.values[i]) outs[op].push_back(v);
  }
  // Sources come in the order of in-order traversal: by number.
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (op_of_node[i] >= 0) continue;
    for (const int32_t v : g.values[i]) source_values.push_back(v);
  }
  for (const LinkCost& l : p.costs.links) {
    num_shared = std::max(num_shared, l.shared + 1);
  }
  for (int d = 0; d < p.num_devices(); ++d) {
    int first = d;
    for (int e = 0; e < d && first == d; ++e) {
      if (equal_to[e] == e && alike(e, d)) first = e;
    }
    equal_to.push_back(first);
  }
}

// Whether exchanging the two devices changes nothing.
bool ExactGraph::alike(int a, int b) const {
  const DeviceCost &x = p.costs.devices[a], &y = p.costs.devices[b];
  if (x.device_class != y.device_class || x.memory_limit != y.memory_limit ||
      x.copies != y.copies) {
    return false;
  }
  for (const DeviceSet& allowed : units.allowed) {
    if (allowed.has(a) != allowed.has(b)) return false;
  }
  const auto same = [](const LinkCost& l, const LinkCost& m) {
    return l.latency_us == m.latency_us && l.bytes_per_us == m.bytes_per_us &&
           l.shared == m.shared;
  };
  if (!same(p.costs.link(a, b), p.costs.link(b, a))) return false;
  for (int d = 0; d < p.num_devices(); ++d) {
    if (d == a || d == b) continue;
    if (!same(p.costs.link(a, d), p.costs.link(b, d)) ||
        !same(p.costs.link(d, a), p.costs.link(d, b))) {
      return false;
    }
  }
  return true;
}

}  // namespace berth
