// One use of a layer in a model that is being described.

#ifndef BERTH_KERAS_MODELS_KERAS_NODE_H_
#define BERTH_KERAS_MODELS_KERAS_NODE_H_

#include <vector>

#include "berth/keras/layers.h"

namespace berth::keras {

struct KerasNode {
  Layer layer;
  KerasTensors inputs;  // none: an input of the model
  std::vector<TensorSpec> outputs;
  // The order in which Keras meets the inputs, if it is another: those without
  // names, then those with names by the alphabet.
  std::vector<size_t> met = {};
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_KERAS_NODE_H_
