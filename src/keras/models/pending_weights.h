// Values of a checkpoint for weights that are not made yet.
//
// Put aside by the layer that will make them, and handed over when its build()
// has. Thread-safe; a build without any costs one load.

#ifndef BERTH_KERAS_MODELS_PENDING_WEIGHTS_H_
#define BERTH_KERAS_MODELS_PENDING_WEIGHTS_H_

#include <functional>
#include <string>

#include "keras/models/layer_state.h"

namespace berth::keras {

using PutWeight = std::function<void(const Variable&)>;

// Calls `put` with the weight `name` of the layer when it is made; several add
// up.
void put_when_made(const LayerState& layer, const std::string& name,
                   PutWeight put);

bool has_pending_weights(const LayerState& layer);

// The layer is built: does what was put aside. The layer is gone.
void weights_are_made(const LayerState& layer);
void forget_pending_weights(const LayerState& layer);

// Returns the name of a weight without that of its layer.
std::string weight_name(const LayerState& layer, const Variable& weight);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_PENDING_WEIGHTS_H_
