// Dropout that draws once for several elements.

#ifndef BERTH_KERAS_LAYERS_NOISE_SHAPE_H_
#define BERTH_KERAS_LAYERS_NOISE_SHAPE_H_

#include <vector>

#include "berth/keras/layers.h"

namespace berth::keras {

// A Dropout whose draws have this shape, -1 where they have the input's length
// (nn::DropoutOptions).
Layer dropout_with_noise_shape(double rate, std::vector<int64_t> noise_shape,
                               DropoutOptions options, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_NOISE_SHAPE_H_
