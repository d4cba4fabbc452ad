// DecodeTables: what decoding a plan looks up, derived once from graph and
// costs. Internal to the room; only read once made.

#ifndef BERTH_PLACE_DECODE_TABLES_H_
#define BERTH_PLACE_DECODE_TABLES_H_

#include <cstdint>
#include <vector>

#include "place/simulate.h"

namespace berth {

// Nodes in an order in which none comes before what it waits for: by number
// wherever numbers are one. Shorter than the graph when that has a cycle.
std::vector<int32_t> topological_order(const SimulatedGraph& graph);

struct DecodeTables {
  // Throws what Decoder's constructor throws.
  DecodeTables(const SimulatedGraph& graph, const CostTable& costs);

  struct Read {
    int32_t value;
    int32_t producer;
  };

  double us(int32_t node, int32_t device) const {
    return node_us[static_cast<size_t>(node) * num_classes +
                   class_of[static_cast<size_t>(device)]];
  }
  // 0 on one device.
  double copy_us(int32_t value, int32_t from, int32_t to) const {
    const uint8_t kind =
        link_kind[static_cast<size_t>(from) * num_devices + to];
    return kind < num_kinds
               ? kind_us[static_cast<size_t>(value) * num_kinds + kind]
               : slow_copy_us(value, from, to);
  }
  double slow_copy_us(int32_t value, int32_t from, int32_t to) const;
  int32_t group(int32_t from, int32_t to) const {
    return link_group[static_cast<size_t>(from) * num_devices + to];
  }

  const SimulatedGraph& graph;
  const CostTable& costs;
  size_t num_devices = 0, num_classes = 0, num_values = 0;
  int32_t num_ops = 0;            // that take time
  int32_t num_groups = 0;         // of shared links
  std::vector<int32_t> order;     // topological
  std::vector<int32_t> timeless;  // sources and aliases, in that order
  std::vector<size_t> class_of;   // per device
  std::vector<double> node_us;    // [node * classes + class]; infinite: never
  std::vector<double> behind_us;  // per node: Decoder::path_behind_us
  Rows<Read> reads;               // per node
  // Links that are alike have one kind, of `num_kinds`; 0: no link, on one
  // device. Others, where too many differ, have kind num_kinds.
  std::vector<uint8_t> link_kind;  // [from * devices + to]
  uint8_t num_kinds = 1;
  std::vector<double> kind_us;      // [value * kinds + kind]
  std::vector<int32_t> link_group;  // as link_kind: 0 to num_groups - 1, or -1
  bool all_free = true;             // copies to any device
  // Per device: copies to it stand behind what they copy, not in front of who
  // reads it.
  std::vector<uint8_t> eager;
  bool any_eager = false;

 private:
  void add_classes();
  void add_nodes();
  void add_paths();
  void add_links();
};

}  // namespace berth

#endif  // BERTH_PLACE_DECODE_TABLES_H_
