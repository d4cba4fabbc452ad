// image_layers: more convolutions, pools and what changes the size of images
// (tf.keras.layers).
//
// Images are [n, h, w, c], sequences [n, s, c], channels last. They act like
// all layers (layers.h), and share its thread rule.

#ifndef BERTH_KERAS_IMAGE_LAYERS_H_
#define BERTH_KERAS_IMAGE_LAYERS_H_

#include "berth/keras/layers.h"

namespace berth::keras {

struct Pooling1DOptions {
  std::optional<int64_t> strides = std::nullopt;  // pool_size when absent
  std::string padding = "valid";                  // or "same"
  std::string name = {};
};
// Largest, or mean, of each window: [n, s, c] -> [n, os, c].
struct MaxPooling1D : Layer {
  explicit MaxPooling1D(int64_t pool_size = 2, Pooling1DOptions options = {},
                        Site site = Site::here());
};
struct AveragePooling1D : Layer {
  explicit AveragePooling1D(int64_t pool_size = 2,
                            Pooling1DOptions options = {},
                            Site site = Site::here());
};

struct GlobalPoolingOptions {
  bool keepdims = false;
  std::string name = {};
};
// Largest, or mean, per channel: [n, s, c] or [n, h, w, c] -> [n, c], or with
// axes of length 1 kept.
struct GlobalMaxPooling1D : Layer {
  explicit GlobalMaxPooling1D(GlobalPoolingOptions options = {},
                              Site site = Site::here());
};
struct GlobalMaxPooling2D : Layer {
  explicit GlobalMaxPooling2D(GlobalPoolingOptions options = {},
                              Site site = Site::here());
};
struct GlobalAveragePooling1D : Layer {
  explicit GlobalAveragePooling1D(GlobalPoolingOptions options = {},
                                  Site site = Site::here());
};
struct GlobalAveragePooling2D : Layer {
  explicit GlobalAveragePooling2D(GlobalPoolingOptions options = {},
                                  Site site = Site::here());
};

namespace layers {
using keras::AveragePooling1D;
using keras::GlobalAveragePooling1D;
using keras::GlobalAveragePooling2D;
using keras::GlobalMaxPooling1D;
using keras::GlobalMaxPooling2D;
using keras::MaxPooling1D;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_IMAGE_LAYERS_H_
