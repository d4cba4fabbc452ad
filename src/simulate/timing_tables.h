// TimingTables: what timing a plan looks up, derived once from graph and
// costs. Internal to the module; read-only once made.

#ifndef BERTH_SIMULATE_TIMING_TABLES_H_
#define BERTH_SIMULATE_TIMING_TABLES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "place/device_set.h"
#include "simulate/copy_route.h"
#include "simulate/step_model.h"

namespace berth {

// Nodes in an order in which none comes before what it waits for; by index if
// that is such an order. Shorter than the graph if that has a cycle.
std::vector<int32_t> topological_order(const SimulatedGraph& graph);
// As above, but by rank where there is a choice, then by index.
std::vector<int32_t> topological_order(const SimulatedGraph& graph,
                                       std::span<const int32_t> rank);

// NaN means that it takes infinitely long.
inline double time_or_never(double us) { return us >= 0 ? us : kInfinity; }

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
  void add_classes();
  void add_nodes();
  void add_paths();
};

}  // namespace berth

#endif  // BERTH_SIMULATE_TIMING_TABLES_H_
