// DecodeTables: what decoding a plan looks up, derived once from graph and
// costs. Internal to the module; read-only once made.

#ifndef BERTH_PLACE_DECODE_TABLES_H_
#define BERTH_PLACE_DECODE_TABLES_H_

#include <cstdint>
#include <vector>

#include "place/device_set.h"
#include "place/simulate.h"

namespace berth {

// Nodes in an order in which none comes before what it waits for; by index if
// that is such an order. Shorter than the graph if that has a cycle.
std::vector<int32_t> topological_order(const SimulatedGraph& graph);

struct DecodeTables {
  // Throws what Decoder's constructor throws.
  DecodeTables(const SimulatedGraph& graph, const CostTable& costs);

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
    const uint8_t kind = route(from, to).kind;
    return kind < num_kinds
               ? kind_us[static_cast<size_t>(value) * num_kinds + kind]
               : slow_copy_us(value, from, to);
  }
  double slow_copy_us(int32_t value, int32_t from, int32_t to) const;

  // A route from one device to another. It occupies numbered resources: d to
  // compute on device d, devices + d for its copy engine, then groups of links.
  struct Route {
    int32_t occupies[3] = {0, 0, 0};
    uint8_t num_occupied = 0;
    uint8_t kind = 0;  // of the link; 0: on one device

    void occupy(int32_t resource) { occupies[num_occupied++] = resource; }
  };
  Route route(int32_t from, int32_t to) const {
    return routes.empty() ? make_route(from, to)
                          : routes[static_cast<size_t>(from) * num_devices +
                                   static_cast<size_t>(to)];
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
  int32_t num_groups = 0;         // groups of shared links
  std::vector<int32_t> order;     // topological
  std::vector<int32_t> timeless;  // sources and aliases, in that order
  std::vector<size_t> class_of;   // per device
  std::vector<double> node_us;    // [node * classes + class]; infinite: never
  std::vector<double> least_us;   // per node, on any device; 0: not an op
  std::vector<double> behind_us;  // per node: Decoder::path_behind_us
  double work_us = 0;             // least times of all ops
  Rows<Read> reads;               // per node
  std::vector<Edge> edges;        // by node; edges_of has the bounds
  std::vector<int32_t> edges_of;  // per node + 1: where its edges begin
  std::vector<Route> routes;      // [from * devices + to]; empty: equal links
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
  // Over a link of kind 1, or on one device.
  Route make_route(int32_t from, int32_t to) const;
  void add_classes();
  void add_nodes();
  void add_paths();
  void add_links();
  void add_edges();
};

}  // namespace berth

#endif  // BERTH_PLACE_DECODE_TABLES_H_
