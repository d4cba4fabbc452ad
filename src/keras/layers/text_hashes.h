// TensorFlow's hashes of text.

#ifndef BERTH_KERAS_LAYERS_TEXT_HASHES_H_
#define BERTH_KERAS_LAYERS_TEXT_HASHES_H_

#include <cstdint>
#include <string_view>

#include "berth/keras/preprocessing_layers.h"

namespace berth::keras {

uint64_t fast_hash(std::string_view text);
uint64_t salted_hash(std::string_view text, const Salt& salt);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_TEXT_HASHES_H_
