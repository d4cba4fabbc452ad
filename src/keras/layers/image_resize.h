// Images of another size.

#ifndef BERTH_KERAS_LAYERS_IMAGE_RESIZE_H_
#define BERTH_KERAS_LAYERS_IMAGE_RESIZE_H_

#include <cstdint>
#include <string>

#include "berth/tensor.h"

namespace berth::keras {

struct LayerState;

enum class Interpolation : uint8_t {
  kNearest,
  kBilinear,
  kBicubic,
  kLanczos3,
  kLanczos5,
  kArea,
};
// Finds one by Keras' name; fails in the layer for another.
Interpolation interpolation_of(const LayerState& s, const std::string& name);

// Fails unless height and width of x [n, h, w, c] are known.
void check_known_pixels(const LayerState& s, const Tensor& x);

// x [n, h, w, c] of floating dtype as [n, height, width, c]: pixels are
// squares, weights outside of the image do not count. `antialias` widens the
// kernel when the image gets smaller.
Tensor resized(const Tensor& x, int64_t height, int64_t width,
               Interpolation kind, bool antialias, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_IMAGE_RESIZE_H_
