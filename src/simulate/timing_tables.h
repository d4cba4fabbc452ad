// TimingTables: what timing a plan looks up, derived once from graph and
// costs. Internal to the module; read-only once made.

#ifndef BERTH_SIMULATE_TIMING_TABLES_H_
#define BERTH_SIMULATE_TIMING_TABLES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "berth/errors.h"
#include "place/device_set.h"
#include "simulate/check_plan.h"
#include "simulate/copy_route.h"
#include "simulate/step_model.h"

namespace berth {

// Nodes in an order in which none comes before what it waits for: by rank where
// there is a choice, then by index. Shorter than the graph if that has a cycle.
inline std::vector<int32_t> topological_order(const SimulatedGraph& g,
                                              std::span<const int32_t> rank) {
  using Item = std::pair<int32_t, int32_t>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
  std::vector<size_t> missing;
  for (int32_t i = 0; i < g.num_nodes(); ++i) {
    missing.push_back(g.reads[i].size() + g.controls[i].size());
    if (missing.back() == 0) ready.push({rank[i], i});
  }
  std::vector<int32_t> order;
  order.reserve(missing.size());
  while (!ready.empty()) {
    const int32_t i = ready.top().second;
    ready.pop();
    order.push_back(i);
    for_each_after(g, i, [&](int32_t next) {
      if (--missing[next] == 0) ready.push({rank[next], next});
    });
  }
  return order;
}

// As above, by index if that is such an order.
inline std::vector<int32_t> topological_order(const SimulatedGraph& g) {
  std::vector<int32_t> rank(g.kind.size());
  std::iota(rank.begin(), rank.end(), 0);
  bool ordered = true;
  for (int32_t i = 0; i < g.num_nodes() && ordered; ++i) {
    for_each_before(g, i, [&](int32_t b) { ordered = ordered && b < i; });
  }
  return ordered ? rank : topological_order(g, rank);
}

// NaN means that it takes infinitely long.
inline double time_or_never(double us) { return us >= 0 ? us : kInfinity; }

struct TimingTables {
  // Throws what StepTimer's constructor throws.
  TimingTables(const SimulatedGraph& g, const CostTable& c)
      : graph(g),
        costs(c),
        num_devices(c.devices.size()),
        num_classes(c.classes.size()),
        num_values(g.producer.size()),
        order(topological_order(g)) {
    check_costs(g, c);
    if (order.size() != static_cast<size_t>(g.num_nodes())) {
      throw errors::InvalidArgument(
          "simulate: some nodes wait for themselves, through others; expected "
          "a graph without cycles");
    }
    routes = CopyRoutes(c);
    add_classes();
    add_nodes();
    add_paths();
  }

  struct Read {
    int32_t value;
    int32_t producer;
    bool everywhere;
  };

  double us(int32_t node, int32_t device) const {
    return node_us[node * num_classes + class_of[static_cast<size_t>(device)]];
  }
  // 0 on one device.
  double copy_us(int32_t value, int32_t from, int32_t to) const {
    if (from == to || graph.everywhere[value]) return 0;
    return time_or_never(costs.link(from, to).time_us(costs.bytes.item(value)));
  }

  const SimulatedGraph& graph;
  const CostTable& costs;
  size_t num_devices = 0, num_classes = 0, num_values = 0;
  int32_t num_ops = 0;            // ops that take time
  std::vector<int32_t> order;     // topological
  std::vector<int32_t> timeless;  // sources and aliases, in that order
  std::vector<size_t> class_of;   // per device
  std::vector<double> node_us;    // [node * classes + class]; infinite: never
  std::vector<double> least_us;   // per node, on any device; 0: not an op
  std::vector<double>
      behind_us;       // per node: the least time from its end to any step's
  double work_us = 0;  // least times of all ops
  Rows<Read> reads;    // per node
  CopyRoutes routes;
  // Devices to which copies come_early().
  DeviceSet early;

 private:
  using Kind = SimulatedGraph::Kind;

  void add_classes() {
    for (const DeviceCost& d : costs.devices) {
      class_of.push_back(static_cast<size_t>(d.device_class));
      if (comes_early(d.copies)) {
        early |= device_bit(static_cast<int32_t>(class_of.size()) - 1);
      }
    }
    node_us.reserve(costs.times.size());
    for (const OpTime& t : costs.times) node_us.push_back(time_or_never(t.us));
  }

  void add_nodes() {
    std::vector<Read> row;
    for (int32_t i = 0; i < graph.num_nodes(); ++i) {
      row.clear();
      for (const int32_t v : graph.reads[i]) {
        row.push_back({v, graph.producer[v], graph.everywhere[v] != 0});
      }
      reads.add(row);
      num_ops += graph.kind[i] == Kind::kOp;
    }
    for (const int32_t i : order) {
      const Kind kind = graph.kind[i];
      if (kind == Kind::kSource || kind == Kind::kAlias) timeless.push_back(i);
    }
  }

  // Longest paths of least times, backwards.
  void add_paths() {
    behind_us.assign(graph.kind.size(), 0);
    least_us.assign(graph.kind.size(), 0);
    std::vector<double> with(graph.kind.size(), 0);  // the node itself
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const int32_t i = *it;
      double behind = 0;
      for_each_after(graph, i, [&](int32_t next) {
        behind = std::max(behind, with[next]);
      });
      behind_us[i] = behind;
      if (graph.kind[i] == Kind::kOp) {
        double least = kInfinity;
        for (size_t k = 0; k < num_classes; ++k) {
          least = std::min(least, node_us[i * num_classes + k]);
        }
        least_us[i] = least;
        work_us += least;
      }
      with[i] = least_us[i] + behind;
    }
  }
};

}  // namespace berth

#endif  // BERTH_SIMULATE_TIMING_TABLES_H_
