// simulate: when every op and transfer of a placed step starts and ends.
//
// One pure function of graph, plan and costs; explain, reports, what-if and
// searches ask it alike. Deterministic. Not thread-safe: one Simulator per
// thread; the graph and the costs are only read.
//
// The rules:
//  - A device computes one op at a time, in the order of the plan. An op
//    starts when its device is free, its inputs are on its device and its
//    controls have ended. Placeholders, aliases and reads of variables take no
//    time and stand in no order.
//  - A value goes to each other device that reads it once, when it is ready.
//    Small constants, and handles of variables, are everywhere already. A copy
//    occupies the copy engine of its destination, or by the device's CopyRule
//    the devices themselves, and the `shared` group of its link.
//  - Copies to one device go one at a time, in order of readiness (then by
//    value). One whose turn it is keeps its destination while it waits for its
//    sender or link, where it is the next. Copies go before ops.
//  - Ops of devices on one bus that move bytes over it share what it gives:
//  when
//    together they would move more, all of them go on more slowly, in
//    proportion.
//  - Memory: arguments, constants, variables and results live throughout. A
//    value lives from the start of its op to the end of its last reader, a
//    copy from its own start; aliases share bytes; nothing is computed in
//    place. So peak_bytes is what plain liveness needs in this order.

#ifndef BERTH_PLACE_SIMULATE_H_
#define BERTH_PLACE_SIMULATE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "place/costs.h"
#include "place/rows.h"

namespace berth {

// Where every op runs, and one order of them all in which no op comes before
// what it waits for: each device computes its ops in this order.
struct PlacePlan {
  std::vector<int32_t> device;    // per node; index into the costs
  std::vector<int32_t> sequence;  // the nodes that take time
};

// Where every node of a graph runs, and in which order.
struct SimulatedPlan {
  std::vector<int32_t> device;  // per node; index into the costs
  // Per device, its nodes that take time; others may stand there too, and
  // mean nothing.
  std::vector<std::vector<int32_t>> order;
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
  std::vector<int64_t> peak_bytes;           // per device
  int64_t sent_bytes = 0;
};

// Numbers derived from a graph once, for many simulations of it. Partitioned
// or not: a transfer node is seen through, its readers read what it brings.
// Values are numbered densely, by node and output. The graph must outlive it.
class SimulatedGraph {
 public:
  SimulatedGraph() = default;  // of arrays alone: fill them in, then finish()
  explicit SimulatedGraph(const Graph& graph);

  // Derives readers and followers from reads and controls.
  void finish();

  enum class Kind : uint8_t {
    kOp,        // takes time
    kSource,    // argument, constant, handle: there from the start
    kAlias,     // its input's bytes, at once
    kTransfer,  // not simulated: its readers read what it brings
  };
  int32_t num_nodes() const { return static_cast<int32_t>(kind.size()); }
  ValueRef value(int32_t number) const {
    return {producer[number], number - values.begin_of(producer[number])};
  }

  const Graph* graph = nullptr;   // null: of arrays alone
  std::vector<Kind> kind;         // per node
  Rows<int32_t> reads;            // per node: distinct values
  Rows<int32_t> controls;         // per node: nodes it waits for, not read from
  Rows<int32_t> readers;          // per value: nodes
  Rows<int32_t> followers;        // per node: who has it as a control
  Rows<int32_t> values;           // per node: the numbers of its outputs
  std::vector<int32_t> producer;  // per value
  std::vector<uint8_t> everywhere;  // per value: never copied
  std::vector<uint8_t> lives_on;    // per value: to the end of the step
  std::vector<int32_t> alias_of;    // per node: the value it renames, -1: none
  std::vector<int64_t> variable_bytes;  // per node: behind a handle
};

// Simulates many plans of one graph; allocates only until its arrays have
// grown.
class Simulator {
 public:
  Simulator(const SimulatedGraph& graph, const CostTable& costs);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // Returns a result that the next run overwrites. Throws
  // errors::InvalidArgument when an op is missing in the order of its device or
  // stands in another, when its device has no kernel for it, or when the orders
  // cannot be followed (a deadlock), naming the ops.
  const Simulation& run(const SimulatedPlan& plan);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The same for one plan.
Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const SimulatedPlan& plan);

// Returns the plan of a placed graph, partitioned or not, in the order of the
// executor. Throws errors::InvalidArgument for a node whose device the costs
// lack.
SimulatedPlan plan_of(const Graph& placed, const Machine& machine);

// Returns what it costs to run `nodes` on `device` and all else where and in
// the order in which it is; step_us is -1 when `device` lacks a kernel.
Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const SimulatedPlan& plan, std::span<const int32_t> nodes,
                 int32_t device);

}  // namespace berth

#endif  // BERTH_PLACE_SIMULATE_H_
