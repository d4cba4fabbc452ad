// simulate: when every op and transfer of a placed step starts and ends.
//
// One pure function of graph, plan and costs; explain, reports, what-if and
// searches ask it alike. Deterministic. Not thread-safe: one Simulator per
// thread; the graph and the costs are only read.
//
// The rules. A plan is a device for every node and one sequence of all ops that
// take time, none before what it waits for. Every device, copy engine and
// shared link does its items in the order of the plan:
//  - An op starts when its device is free, its inputs are on its device and its
//    controls have ended. Arguments, constants and handles are there from the
//    start; aliases and reads of variables take no time, and stand behind the
//    last op that they wait for.
//  - A value goes once to each other device that reads it. Small constants, and
//    handles of variables, are everywhere already. By the destination's
//    CopyRule, a copy
//      kOverlap    occupies the destination's copy engine, and stands right
//                  behind what makes the value;
//      kReceiving  occupies the destination, and stands right in front of the
//                  first op, or copy, that needs it there, also through
//                  aliases; what nobody needs comes last;
//      kBoth       as kReceiving; copies to others also occupy a sender of
//                  this rule;
//      kFree       waits for nobody and occupies nothing.
//    All but kFree also occupy the `shared` group of their link. Behind one op
//    go copies of its values by number, then those of aliases that stand there,
//    each by destination.
//  - Ops of devices on one bus that move bytes over it share what it gives:
//    when together they would move more, all of them go on more slowly, in
//    proportion.
//  - Memory: arguments, constants, variables and results live throughout. A
//    value lives from the start of its op to the end of its last reader or
//    copy, a copy from its own start; aliases share bytes; nothing is computed
//    in place; an op's workspace lives as long as it runs. What ends at an
//    instant is freed before what begins there. So peak_bytes is what plain
//    liveness needs in this order.

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

  // Derives readers and followers from reads and controls. Sources lose their
  // controls: they are there from the start. Flags, aliases and bytes that are
  // not filled in become none.
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
// grown. A search asks a Decoder (decode.h) instead.
class Simulator {
 public:
  // Throws errors::InvalidArgument when the costs are those of another graph or
  // machine, or the graph has a cycle.
  Simulator(const SimulatedGraph& graph, const CostTable& costs);
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // Returns a result that the next run overwrites. Throws
  // errors::InvalidArgument when an op is missing in the sequence, stands there
  // twice or before what it waits for, or when its device has no kernel for it,
  // naming the ops.
  const Simulation& run(const PlacePlan& plan);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The same for one plan.
Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const PlacePlan& plan);

// False for sources, aliases, reads of variables and transfers.
bool takes_time(const Node& node);

// Returns the plan of a placed graph, partitioned or not, in the order of the
// executor. Throws errors::InvalidArgument for a node whose device the costs
// lack.
PlacePlan plan_of(const Graph& placed, const Machine& machine,
                  bool in_order = false);

// Returns what it costs to run `nodes` on `device` and all else where it is, in
// the same order; step_us is -1 when `device` lacks a kernel.
Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const PlacePlan& plan, std::span<const int32_t> nodes,
                 int32_t device);

}  // namespace berth

#endif  // BERTH_PLACE_SIMULATE_H_
