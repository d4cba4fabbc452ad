// simulate: when every op and transfer of a placed step starts and ends.
//
// A pure function of graph, plan and costs, shared by explain, reports, what-if
// and searches. Deterministic; any thread.
//
// The rules. A plan is a device for every node and one sequence of all ops that
// take time, none before what it waits for. Every device, copy engine and
// shared link runs its items in the order of the plan:
//  - An op starts when its device is free, its inputs are on its device and
//    its controls have ended. Arguments, constants and handles are there from
//    the start; aliases and reads of variables take no time, and come right
//    after the last op that they wait for.
//  - A value is sent once to each other device that reads it. Small constants
//    and handles of variables are everywhere already. By the destination's
//    CopyRule, a copy
//      kOverlap    occupies the destination's copy engine, and comes right
//                  after the op that makes the value;
//      kReceiving  occupies the destination, and comes right before the first
//                  op, or copy, that needs it there, also through aliases;
//                  one that nothing needs comes last;
//      kBoth       as kReceiving; copies to others also occupy a sender with
//                  this rule;
//      kFree       waits for nothing and occupies nothing.
//    All but kFree also occupy all that their link shares (SharedLinks), for
//    their whole time. An op is followed by copies of its values by number,
//    then by those of the aliases that come there, each by destination.
//  - Ops of devices on one bus that move bytes over it share its bandwidth: if
//    together they would move more, all of them slow down in proportion.
//  - Memory: arguments, constants, variables and results live throughout. A
//    value lives from the start of its op to the end of its last reader or
//    copy, a copy from its own start; aliases share bytes; nothing is computed
//    in place; an op's workspace lives as long as the op runs. At any instant,
//    what ends is freed before what begins is allocated. So peak_bytes is what
//    plain liveness needs in this order.

#ifndef BERTH_SIMULATE_SIMULATE_H_
#define BERTH_SIMULATE_SIMULATE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "place/costs.h"
#include "place/rows.h"

namespace berth {

// The order in which a device runs the micro-batches of its stages
// (task_order.h).
enum class PipelineOrder : uint8_t { kGPipe, k1F1B, kInterleaved };

// The part of a pipeline's stage that an op belongs to.
struct OpStage {
  int32_t stage = 0;
  bool backward = false;
  bool operator==(const OpStage&) const = default;
};

// Where every op runs, and one order of all ops in which none comes before what
// it waits for: each device runs its ops in this order.
struct PlacePlan {
  std::vector<int32_t> device;      // per node; index into the costs
  std::vector<int32_t> sequence;    // the nodes that take time
  std::vector<OpStage> stage = {};  // pipelines, per node; empty: all is one
  PipelineOrder order = PipelineOrder::k1F1B;  // pipelines
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

// Numbers derived from a graph once, for many simulations of it. The graph may
// be partitioned: readers of a transfer node then read what it brings. Values
// are numbered densely, by node and output. The graph must outlive it.
class SimulatedGraph {
 public:
  SimulatedGraph() = default;  // built from arrays: fill in, then finish()
  explicit SimulatedGraph(const Graph& graph);

  // Derives readers and followers from reads and controls. Drops the controls
  // of sources, which are there from the start. Flags, aliases and bytes that
  // are not filled in default to none.
  void finish();

  enum class Kind : uint8_t {
    kOp,        // takes time
    kSource,    // argument, constant, handle: there from the start
    kAlias,     // its input's bytes, at once
    kTransfer,  // not simulated: its readers read its input
  };
  int32_t num_nodes() const { return static_cast<int32_t>(kind.size()); }
  ValueRef value(int32_t number) const {
    return {producer[number], number - values.begin_of(producer[number])};
  }

  const Graph* graph = nullptr;     // null: built from arrays
  std::vector<Kind> kind;           // per node
  Rows<int32_t> reads;              // per node: distinct values
  Rows<int32_t> controls;           // per node: waits for these, reads none
  Rows<int32_t> readers;            // per value: nodes
  Rows<int32_t> followers;          // per node: the nodes it is a control of
  Rows<int32_t> values;             // per node: the indices of its outputs
  std::vector<int32_t> producer;    // per value
  std::vector<uint8_t> everywhere;  // per value: never copied
  std::vector<uint8_t> lives_on;    // per value: to the end of the step
  std::vector<int32_t> alias_of;    // per node: the value it renames; -1: none
  std::vector<int64_t> variable_bytes;  // per node: for a handle
};

// Simulates one plan. Throws errors::InvalidArgument when the costs belong to
// another graph or machine, the graph has a cycle, an op is missing from the
// sequence, appears twice or before what it waits for, or its device has no
// kernel for it, naming the ops. Searches use a StepTimer (step_timer.h).
Simulation simulate(const SimulatedGraph& graph, const CostTable& costs,
                    const PlacePlan& plan);

// False for sources, aliases, reads of variables and transfers.
bool takes_time(const Node& node);

// Returns the plan of a placed graph, partitioned or not, in the executor's
// order. Throws errors::InvalidArgument for a node whose device is not in the
// costs.
PlacePlan plan_of(const Graph& placed, const Machine& machine,
                  bool in_order = false);

// Returns the cost of running `nodes` on `device` with everything else
// unchanged, in the same order; step_us is -1 when `device` lacks a kernel.
Price price_move(const SimulatedGraph& graph, const CostTable& costs,
                 const PlacePlan& plan, std::span<const int32_t> nodes,
                 int32_t device);

}  // namespace berth

#endif  // BERTH_SIMULATE_SIMULATE_H_
