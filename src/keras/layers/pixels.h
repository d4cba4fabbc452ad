// Images of another size, and seen through a plane transform: what layers of
// images are made of.

#ifndef BERTH_KERAS_LAYERS_PIXELS_H_
#define BERTH_KERAS_LAYERS_PIXELS_H_

#include <array>
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

// What is outside of an image: d c b a | a b c d | d c b a; a b c d | a b c d;
// the border; one value.
enum class FillMode : uint8_t { kReflect, kWrap, kNearest, kConstant };
FillMode fill_mode_of(const LayerState& s, const std::string& name);

// Coefficients [n, 1] of the transform that takes each pixel (x, y) of the
// result to ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) of the image,
// k = c0 x + c1 y + 1; an empty tensor is 0.
using PlaneTransform = std::array<Tensor, 8>;

struct TransformOptions {
  FillMode fill_mode = FillMode::kReflect;
  double fill_value = 0;
  bool bilinear = true;  // else the nearest pixel
};
// x [n, h, w, c], h and w known, through a transform per image: like x.
Tensor transformed(const Tensor& x, const PlaneTransform& t,
                   const TransformOptions& options, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_PIXELS_H_
