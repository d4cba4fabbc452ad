// The names that weights have in files.
//
// A path through the model: "encoder/dense_1/kernel". Layers that nobody named
// are counted within what holds them, not within the process, so that the same
// model has the same names wherever it is made. Pure.

#ifndef BERTH_KERAS_MODELS_WEIGHT_PATHS_H_
#define BERTH_KERAS_MODELS_WEIGHT_PATHS_H_

#include <string>
#include <utility>
#include <vector>

#include "berth/keras/layers.h"

namespace berth::keras {

// Returns "max_pooling2d" for "MaxPooling2D" (layer_state.cc).
std::string snake_case(const std::string& type);

struct WeightPaths {
  // The weights that exist; those that are shared stand once.
  std::vector<std::pair<std::string, Variable>> weights;
  // Layers that are not built, with a slash after each name.
  std::vector<std::pair<std::string, LayerState*>> unbuilt;
};
WeightPaths weight_paths(const Layer& root);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_WEIGHT_PATHS_H_
