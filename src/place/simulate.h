// simulate: when every op and transfer of a placed step starts and ends.
//
// One pure function of graph, plan and costs; explain, reports, what-if and
// searches ask it alike. Deterministic; allocates only in its result and
// scratch, which can be kept. One thread per scratch.

#ifndef BERTH_PLACE_SIMULATE_H_
#define BERTH_PLACE_SIMULATE_H_

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "place/costs.h"

namespace berth {

// Where every node of an unpartitioned graph runs, and in which order.
struct SimulatedPlan {
  std::vector<int32_t> device;              // per node; index into the costs
  std::vector<std::vector<int32_t>> order;  // nodes, per device
};

struct SimulatedTransfer {
  ValueRef value;
  int32_t from = -1, to = -1;  // devices
  int64_t bytes = 0;
  double start_us = 0, end_us = 0;
};

struct Simulation {
  double step_us = 0;
  std::vector<double> start_us, end_us;      // per node
  std::vector<SimulatedTransfer> transfers;  // by start
  std::vector<double> busy_us;               // per device, compute
  std::vector<double> copy_busy_us;          // per device, as destination
  std::vector<int64_t> peak_bytes;           // per device, upper estimate
  int64_t sent_bytes = 0;
};

// Numbers derived from a graph once, for many simulations of it.
class SimulatedGraph {
 public:
  explicit SimulatedGraph(const Graph& graph);
  // Per node, sorted and distinct: producers and controls. Placeholders
  // (arguments, constants, handles) take no time.
  std::vector<std::vector<int32_t>> waits_for;
  std::vector<std::vector<ValueRef>> reads;
  std::vector<std::vector<int32_t>> users;
  std::vector<bool> lives_on;  // to the end of the step: outputs, variables
};

// Throws errors::InvalidArgument when an op is on a device without a kernel
// for it, or the orders cannot be followed (a deadlock), naming the ops.
Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const SimulatedPlan& plan);

}  // namespace berth

#endif  // BERTH_PLACE_SIMULATE_H_
