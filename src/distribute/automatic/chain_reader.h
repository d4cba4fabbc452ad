// ChainReader: a training step's graph as a chain of layers.
//
// What read_step() and read_graph() share: variables, values and layouts of
// each layer. One thread per graph.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_

#include <string>
#include <vector>

#include "distribute/automatic/step_layers.h"
#include "distribute/search/model_chain.h"
#include "graph/graph.h"

namespace berth::distribute {

// A search looks at so many layers; more are joined.
inline constexpr size_t kMostLayers = 96;

class ChainReader {
 public:
  // `paths`: layers in the order of their calls.
  ChainReader(std::vector<std::string> paths, Machine machine, int64_t batch);

  const StepLayers& layers() const { return layers_; }
  const Machine& machine() const { return chain_.machine; }

  // Time of an op of a whole batch on device d.
  void add_time(StepLayers::Place at, size_t d, double us);
  // Variables that only updates use are the optimizer's.
  void add_variables(const Graph& graph,
                     const std::vector<StepLayers::Place>& at);
  // What the backward pass reads of the forward pass, and what later layers do.
  void add_values(const Graph& graph, const std::vector<StepLayers::Place>& at);
  // After these: the bytes that one device holds at its peak.
  void fit_peak(double peak);
  // Ways to divide the variables, whose state changes meanwhile.
  void add_splits(const Graph& graph);

  // Layers are joined until there are at most `most`, where least is sent
  // between them.
  ModelChain joined(size_t most = kMostLayers) const;

 private:
  const StepLayers layers_;
  ModelChain chain_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_
