// Which steps of a sequence count, beside the tensors that layers hand on.
//
// A layer that runs finds the masks of its inputs by their identity, in the
// scope of the outermost layer; they cost nothing where nobody makes one.

#ifndef BERTH_KERAS_MODELS_MASKS_H_
#define BERTH_KERAS_MODELS_MASKS_H_

#include "berth/keras/recurrent_layers.h"

namespace berth::keras {

struct Masks {
  // True when somebody beyond the layer that runs would see a mask.
  static bool wanted();
  static void set(const Tensor& x, const Tensor& mask);
  static Tensor of(const Tensor& x);
  // Gives the outputs of a layer the masks that it computes for them.
  static void pass(LayerBase& layer, const Tensors& x, const Tensors& y);
};

// `mask` as weights of mean 1: 0 where it is false. 0 everywhere when all is
// masked.
Tensor mask_weights(const Tensor& mask, DType dtype, Site site);

// True for the layers of Keras that hand masks on as they are.
bool passes_masks(const std::string& type);
// Or read them, merge them, or make them.
bool reads_or_passes_masks(const std::string& type);

// The attention mask of a call, which may be empty, without the steps that the
// masks of `values` leave out: bool, broadcast to [n, heads, s, t], or without
// heads [n, s, t].
Tensor attention_mask(const Tensor& given, const Tensors& values, bool heads,
                      Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_MASKS_H_
