// TimingTables: what decoding a plan looks up, derived once from graph and
// costs. Internal to the module; read-only once made.

#ifndef BERTH_SIMULATE_TIMING_TABLES_H_
#define BERTH_SIMULATE_TIMING_TABLES_H_

#include <cstdint>
#include <vector>

#include "place/device_set.h"
#include "simulate/simulate.h"

namespace berth {

// Nodes in an order in which none comes before what it waits for; by index if
// that is such an order. Shorter than the graph if that has a cycle.
std::vector<int32_t> topological_order(const SimulatedGraph& graph);

// What a copy from one device to another occupies: d is computing on device d,
// devices + d its copy engine; shared links come after them.
struct CopyRoute {
  int32_t occupies[2 + SharedLinks::kMost] = {};
  int32_t num_occupied = 0;

  void occupy(int32_t resource) { occupies[num_occupied++] = resource; }
  const int32_t* begin() const { return occupies; }
  const int32_t* end() const { return occupies + num_occupied; }
};
// `links` are numbered from 2 * devices.
inline CopyRoute route_between(const Machine& m, const LinkNumbers& links,
                               int32_t from, int32_t to) {
  CopyRoute route;
  const CopyRule rule = m.devices[to].copies;
  if (from == to || rule == CopyRule::kFree) return route;
  const auto devices = static_cast<int32_t>(m.devices.size());
  route.occupy(rule == CopyRule::kOverlap ? devices + to : to);
  if (m.devices[from].copies == CopyRule::kBoth) route.occupy(from);
  for (const int32_t n : links.between(from, to)) route.occupy(n);
  return route;
}

struct TimingTables {
  // Throws what StepTimer's constructor throws.
  TimingTables(const SimulatedGraph& graph, const CostTable& costs);

  struct Read {
    int32_t value;
    int32_t producer;
    bool everywhere;
  };

  double us(int32_t node, int32_t device) const {
    return node_us[static_cast<size_t>(node) * num_classes +
                   class_of[static_cast<size_t>(device)]];
  }
  // 0 on one device.
  double copy_us(int32_t value, int32_t from, int32_t to) const {
    const uint8_t kind = kind_of_link(from, to);
    return kind < num_kinds
               ? kind_us[static_cast<size_t>(value) * num_kinds + kind]
               : slow_copy_us(value, from, to);
  }
  double slow_copy_us(int32_t value, int32_t from, int32_t to) const;

  CopyRoute route(int32_t from, int32_t to) const {
    return routes.empty() ? route_between(costs, links, from, to)
                          : routes[static_cast<size_t>(from) * num_devices +
                                   static_cast<size_t>(to)];
  }
  uint8_t kind_of_link(int32_t from, int32_t to) const {
    return from == to ? 0 : kind[links.link(from, to)];
  }

  // What a node waits for, where copies are free: a producer, and where its
  // copy times begin in kind_us. Controls point to zeros.
  struct Edge {
    int32_t times;
    int32_t producer;
  };

  const SimulatedGraph& graph;
  const CostTable& costs;
  size_t num_devices = 0, num_classes = 0, num_values = 0;
  int32_t num_ops = 0;            // ops that take time
  std::vector<int32_t> order;     // topological
  std::vector<int32_t> timeless;  // sources and aliases, in that order
  std::vector<size_t> class_of;   // per device
  std::vector<double> node_us;    // [node * classes + class]; infinite: never
  std::vector<double> least_us;   // per node, on any device; 0: not an op
  std::vector<double> behind_us;  // per node: StepTimer::path_behind_us
  double work_us = 0;             // least times of all ops
  Rows<Read> reads;               // per node
  std::vector<Edge> edges;        // by node; edges_of has the bounds
  std::vector<int32_t> edges_of;  // per node + 1: where its edges begin
  LinkNumbers links;              // shared ones as in CopyRoute
  std::vector<CopyRoute> routes;  // [from * devices + to]; empty: too many
  std::vector<uint8_t> kind;      // per link
  // Equal links share one of the `num_kinds` kinds; kind 0 is no link. If too
  // many differ, the others have kind num_kinds, and `few_kinds` is false.
  uint8_t num_kinds = 1;
  bool few_kinds = true;
  std::vector<double> kind_us;  // [value * kinds + kind]; ends with zeros
  bool all_free = true;         // copies to any device
  // Devices whose incoming copies come right after what they copy, not right
  // before the reader.
  DeviceSet eager;

 private:
  void add_classes();
  void add_nodes();
  void add_paths();
  void add_links();
  void add_edges();
};

}  // namespace berth

#endif  // BERTH_SIMULATE_TIMING_TABLES_H_
