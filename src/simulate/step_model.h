// StepModel: a step to be timed, as plain arrays.
//
// A value; read-only while plans of it are timed, by any number of threads.

#ifndef BERTH_SIMULATE_STEP_MODEL_H_
#define BERTH_SIMULATE_STEP_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/simulate.h"

namespace berth {

// The graph is one micro-batch of a step.
struct PipelineSettings {
  int32_t micro_batches = 8;
  std::optional<PipelineOrder> order;  // none: any
};

struct StepModel {
  std::string name;  // of the graph, for messages

  // Ops are the nodes of this graph; times, bytes and the machine are in the
  // costs. A device has DeviceCost::memory_limit; 0: none.
  SimulatedGraph graph;
  CostTable costs;

  // Per op.
  std::vector<std::string> names;      // "dense/MatMul"; for files the id
  std::vector<double> resident_bytes;  // held throughout, besides its values

  // Pipelines. Per node: a step has it once, whatever the micro-batches:
  // variables, constants, reads of these, updates. Empty: none.
  PipelineSettings pipeline;
  std::vector<uint8_t> once;

  // Per value, for files whose transfers have their own times: what every
  // device pays that sends or receives it, except those in free_of_touch.
  // Empty: links and CopyRules decide.
  std::vector<double> touch_us;
  std::vector<uint8_t> free_of_touch;  // per device

  int32_t num_ops() const { return graph.num_nodes(); }
  int32_t num_devices() const { return costs.devices.size(); }
  bool takes_time(int32_t op) const {
    return graph.kind[op] == SimulatedGraph::Kind::kOp;
  }
};

// Calls fn(node) for all that a node reads or waits for, a node
// once per value; and for all
// that read it or wait for it.
template <class Fn>
void for_each_before(const SimulatedGraph& g, int32_t node, const Fn& fn) {
  for (const int32_t v : g.reads[node]) fn(g.producer[v]);
  for (const int32_t c : g.controls[node]) fn(c);
}
template <class Fn>
void for_each_after(const SimulatedGraph& g, int32_t node, const Fn& fn) {
  for (const int32_t v : g.values[node]) {
    for (const int32_t r : g.readers[v]) fn(r);
  }
  for (const int32_t f : g.followers[node]) fn(f);
}

// Per value, the value whose bytes it shares, seen through aliases.
std::vector<int32_t> renamed_values(const SimulatedGraph& graph);

}  // namespace berth

#endif  // BERTH_SIMULATE_STEP_MODEL_H_
