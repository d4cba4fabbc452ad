// How layers keep values for gradients (berth/keras/remat.h).

#ifndef BERTH_KERAS_MODELS_REMAT_H_
#define BERTH_KERAS_MODELS_REMAT_H_

#include "berth/keras/layers.h"
#include "berth/keras/remat.h"

namespace berth::keras {

struct RematMode {
  enum class Kind { kFull, kActivations, kLargerThan, kListOfLayers };
  Kind kind = Kind::kFull;
  RematOptions options;
};

// True when the layer, which has a mode, is one to recompute: a tape may be
// recording, and no layer around it is recomputed.
bool recomputes(LayerBase& layer, const Tensors& in);
// layer.call(in, true), recomputed; masks, losses and metrics come out as they
// would.
Tensors recomputed_call(LayerBase& layer, const Tensors& in);
// True inside of a layer whose activations are.
bool recomputes_activations();

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_REMAT_H_
