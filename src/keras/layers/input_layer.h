// The layer that declares an input: it hands it on after a look at its shape.

#ifndef BERTH_KERAS_LAYERS_INPUT_LAYER_H_
#define BERTH_KERAS_LAYERS_INPUT_LAYER_H_

#include "berth/keras/layers.h"

namespace berth::keras {

class InputLayerBase final : public LayerBase {
 public:
  InputLayerBase(const Shape& shape, const InputOptions& o, Site site);
  // With an unknown batch in front.
  const TensorSpec& spec() const { return spec_; }
  Tensors call(const Tensors& inputs, bool training) override;

 private:
  TensorSpec spec_;
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_INPUT_LAYER_H_
