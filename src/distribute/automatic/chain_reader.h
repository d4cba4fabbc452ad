// ChainReader: a training step's graph as a chain of layers.
//
// What read_step() and read_graph() share: variables, values and layouts of
// each layer. One thread per graph.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_

#include <string>
#include <vector>

#include "distribute/pipeline/step_layers.h"
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
  // After the times: what each layer holds, sends, and can be divided into, the
  // peak of one device given, and layers joined until there are at most
  // kMostLayers, where least is sent between them. The state of the variables
  // changes meanwhile.
  ModelChain chain(const Graph& graph, const std::vector<StepLayers::Place>& at,
                   double peak);

 private:
  void add_variables(const Graph& graph,
                     const std::vector<StepLayers::Place>& at);
  void add_values(const Graph& graph, const std::vector<StepLayers::Place>& at);
  void fit_peak(double peak);
  void add_splits(const Graph& graph);

  const StepLayers layers_;
  ModelChain chain_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_CHAIN_READER_H_
