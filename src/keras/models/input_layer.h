// The layer that declares an input: it hands it on after a look at its shape.

#ifndef BERTH_KERAS_MODELS_INPUT_LAYER_H_
#define BERTH_KERAS_MODELS_INPUT_LAYER_H_

#include "berth/keras/layers.h"

namespace berth::keras {

class InputLayerBase final : public LayerBase {
 public:
  InputLayerBase(const Shape& shape, const InputOptions& o, Site site,
                 int64_t batch = kUnknownDim);
  // With the batch in front.
  const TensorSpec& spec() const { return spec_; }
  Tensors call(const Tensors& inputs, bool training) override;

 private:
  TensorSpec spec_;
};

// What an InputLayer declares.
KerasTensor described_input(const std::shared_ptr<LayerBase>& layer);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_INPUT_LAYER_H_
