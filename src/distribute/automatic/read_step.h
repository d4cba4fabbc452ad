// read_step: a training step as a chain of layers with costs.
//
// Places and plans the step on the fastest device, as if alone, with variables
// that have no memory in place of the model's, and reads the times of its ops
// on every device, and its peak, from that. Nothing runs but measurements. One
// thread.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_

#include <string>
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

// Layers are joined until there are at most `most`, where least is sent between
// them. Throws the errors of compiling.
ModelChain read_step(const StepToRead& step, size_t most = 96);

// Returns those of `all` that are named, with their links.
Machine part_of(const Machine& all, const std::vector<std::string>& names);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_READ_STEP_H_
