// Lint "layers-every-call": layers that are made, called and thrown away.
//
// Acts when a layer is made and when it goes. Thread-safe.

#ifndef BERTH_KERAS_MODELS_LINT_LAYERS_H_
#define BERTH_KERAS_MODELS_LINT_LAYERS_H_

#include "keras/models/layer_state.h"

namespace berth::keras {

// So many layers with weights, made at one line, each gone after one call
// before the next was made, are reported.
inline constexpr int kLayersInARow = 3;

void lint_layer_made(LayerState& state);
// Reports when `state`, which is not part of another layer, is the third in a
// row; at once when it was made, called and thrown away inside one trace.
void lint_layer_gone(const LayerState& state);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_LINT_LAYERS_H_
