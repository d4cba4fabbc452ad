// What the split rules do to a step whose variables are divided: which ops run
// in parts, and what is added up or gathered.
//
// One thread per graph.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_LAYER_EXCHANGE_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_LAYER_EXCHANGE_H_

#include <vector>

#include "distribute/data_parallel/sharding_analysis.h"
#include "distribute/pipeline/step_layers.h"
#include "distribute/search/model_chain.h"

namespace berth::distribute {

// The rules of split_batch(), node by node, for axes that are not settled yet.
class LayerRules {
 public:
  LayerRules(const Graph& graph, int parts);

  // The variable of a handle is divided along `axis`; -1: whole.
  void set(int32_t handle, int axis);

  struct Visit {
    bool divided = false;       // it runs in parts
    bool open = false;          // its results are in parts
    std::vector<int64_t> sent;  // bytes of each value that it needs whole
  };
  // Applies the rules to a node, after those that it reads.
  Visit visit(int32_t i);

  // Nodes that run whole on divided values.
  const std::vector<int32_t>& whole() const { return analysis_.states().whole; }

 private:
  // A lookup in a part of a table, and a cross entropy of some of the classes,
  // become ops that have rules (split_vocabulary.h).
  bool visit_vocabulary(int32_t i);

  const Graph& graph_;
  SplitAnalysis analysis_;
};

// By layer, what is divided and sent in a step that was split by `states`.
std::vector<SplitLayer> exchange_of(const Graph& graph,
                                    const SplitStates& states,
                                    const std::vector<StepLayers::Place>& at,
                                    size_t num_layers, int64_t batch, int parts,
                                    const Machine& machine);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_LAYER_EXCHANGE_H_
