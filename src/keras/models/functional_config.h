// A functional model as Keras writes it: its layers, and for each use of a
// layer what it was called with.

#ifndef BERTH_KERAS_MODELS_FUNCTIONAL_CONFIG_H_
#define BERTH_KERAS_MODELS_FUNCTIONAL_CONFIG_H_

#include <map>
#include <vector>

#include "berth/keras/saving.h"
#include "keras/models/keras_node.h"

namespace berth::keras {

// The uses of layers that lead to `outputs`, each after what it needs. They end
// at the inputs, where those that no output needs do not count.
class UsesOfLayers {
 public:
  UsesOfLayers(const KerasTensors& inputs, const KerasTensors& outputs);
  const std::vector<const KerasNode*>& nodes() const { return nodes_; }
  // The layers once each, as Keras numbers them: the farthest from the outputs
  // first, of equals that which a walk back from the outputs meets first.
  std::vector<Layer> by_depth() const;
  // The inputs, then layers in the order of their first use: Berth's files have
  // names of weights by it.
  std::vector<Layer> as_reached() const;

 private:
  const KerasTensors inputs_;
  std::vector<const KerasNode*> nodes_;
  std::map<const LayerBase*, size_t> met_;
};

// `order`: the uses of layers, each after what it needs, without the inputs.
Config functional_config(const LayerBase& model, const KerasTensors& inputs,
                         const std::vector<const KerasNode*>& order,
                         const KerasTensors& outputs);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_FUNCTIONAL_CONFIG_H_
