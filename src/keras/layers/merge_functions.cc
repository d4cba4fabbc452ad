// Merging layers as functions: layers::add, layers::dot, ...

#include "berth/keras/core_layers.h"
#include "berth/keras/element_layers.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

// What the functions of merges have in common.
template <class T>
T merged(const Layer& layer, const std::vector<T>& x) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return layer(x)[0];
  } else {
    return layer(x);
  }
}

}  // namespace

namespace layers {

Tensor add(const Tensors& x, Site s) { return merged(Add({}, s), x); }
Tensor subtract(const Tensors& x, Site s) { return merged(Subtract({}, s), x); }
Tensor multiply(const Tensors& x, Site s) { return merged(Multiply({}, s), x); }
Tensor average(const Tensors& x, Site s) { return merged(Average({}, s), x); }
Tensor maximum(const Tensors& x, Site s) { return merged(Maximum({}, s), x); }
Tensor minimum(const Tensors& x, Site s) { return merged(Minimum({}, s), x); }
Tensor concatenate(const Tensors& x, int64_t axis, Site s) {
  return merged(Concatenate({.axis = axis}, s), x);
}
Tensor dot(const Tensors& x, DotAxes axes, bool normalize, Site s) {
  return merged(Dot(axes, {.normalize = normalize}, s), x);
}
KerasTensor add(const KerasTensors& x, Site s) { return merged(Add({}, s), x); }
KerasTensor subtract(const KerasTensors& x, Site s) {
  return merged(Subtract({}, s), x);
}
KerasTensor multiply(const KerasTensors& x, Site s) {
  return merged(Multiply({}, s), x);
}
KerasTensor average(const KerasTensors& x, Site s) {
  return merged(Average({}, s), x);
}
KerasTensor maximum(const KerasTensors& x, Site s) {
  return merged(Maximum({}, s), x);
}
KerasTensor minimum(const KerasTensors& x, Site s) {
  return merged(Minimum({}, s), x);
}
KerasTensor concatenate(const KerasTensors& x, int64_t axis, Site s) {
  return merged(Concatenate({.axis = axis}, s), x);
}
KerasTensor dot(const KerasTensors& x, DotAxes axes, bool normalize, Site s) {
  return merged(Dot(axes, {.normalize = normalize}, s), x);
}

}  // namespace layers

}  // namespace berth::keras
