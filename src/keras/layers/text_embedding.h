// Layers of language models that Keras does not have.

#ifndef BERTH_KERAS_LAYERS_TEXT_EMBEDDING_H_
#define BERTH_KERAS_LAYERS_TEXT_EMBEDDING_H_

#include <string>

#include "berth/keras/layers.h"

namespace berth::keras {

// Where ids [n, s] are not 0, for attention: bool [n, 1, 1, s].
Layer padding_mask(const std::string& name, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_TEXT_EMBEDDING_H_
