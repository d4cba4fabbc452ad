// A functional model as Keras writes it: its layers, and for each use of a
// layer what it was called with.

#ifndef BERTH_KERAS_FUNCTIONAL_CONFIG_H_
#define BERTH_KERAS_FUNCTIONAL_CONFIG_H_

#include <vector>

#include "berth/keras/saving.h"
#include "keras/keras_node.h"

namespace berth::keras {

// `order`: the uses of layers, each after what it needs, without the inputs.
Config functional_config(const LayerBase& model, const KerasTensors& inputs,
                         const std::vector<const KerasNode*>& order,
                         const KerasTensors& outputs);

}  // namespace berth::keras

#endif  // BERTH_KERAS_FUNCTIONAL_CONFIG_H_
