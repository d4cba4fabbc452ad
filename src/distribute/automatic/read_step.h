// read_step, read_graph: a training step as a chain of layers with costs.
//
// read_step() places and plans the step on the fastest device, as if alone,
// with variables that have no memory in place of the model's, and reads the
// times of its ops on every device, and its peak, from that. Nothing runs but
// measurements. read_graph() needs neither model nor devices: layers are the
// names of ops ("dense" of "dense/MatMul"), times those of the costs, op by op.
// One thread.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_

#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "distribute/search/model_chain.h"
#include "graph/graph.h"
#include "place/costs.h"

namespace berth::distribute {

struct StepToRead {
  Graph graph;  // as traced on a whole batch
  std::vector<Shape> shapes;
  std::vector<std::string> paths;  // layers in the order of their calls
  std::vector<Device*> devices;
  int64_t memory_bytes = 0;  // of each device; 0: its limit
};

// Throws the errors of compiling.
ModelChain read_step(const StepToRead& step);

struct GraphToRead {
  Graph graph;  // its handles need no variables
  CostTable costs;
  double peak_bytes = 0;  // of the step on one device
};

// Throws errors::InvalidArgument for a graph that is not a training step, with
// a shape that is not known, or without layers.
ModelChain read_graph(const GraphToRead& step);

// Puts variables without memory on `home` in the place of a graph's; returns
// pairs of both.
std::vector<std::pair<Tensor, Tensor>> replace_variables(Graph& graph,
                                                         Device& home);

// Returns those of `all` that are named, with their links.
Machine part_of(const Machine& all, const std::vector<std::string>& names);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_
