// Images seen through a plane transform.

#ifndef BERTH_KERAS_LAYERS_PLANE_TRANSFORM_H_
#define BERTH_KERAS_LAYERS_PLANE_TRANSFORM_H_

#include <array>
#include <cstdint>
#include <string>

#include "berth/tensor.h"

namespace berth::keras {

struct LayerState;

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

#endif  // BERTH_KERAS_LAYERS_PLANE_TRANSFORM_H_
