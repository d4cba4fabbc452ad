// volume_layers: convolutions and pools of volumes, and pools to a given size
// (tf.keras.layers).
//
// Volumes are [n, d, h, w, c], channels last; d, h, w must be known. They act
// like all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_VOLUME_LAYERS_H_
#define BERTH_KERAS_VOLUME_LAYERS_H_

#include "berth/keras/element_layers.h"
#include "berth/keras/image_layers.h"

namespace berth::keras {

// Depth, height and width: 3, or {3, 5, 5}.
struct Size3D {
  Size3D(int64_t all) : d(all), h(all), w(all) {}  // NOLINT
  Size3D(int64_t d, int64_t h, int64_t w) : d(d), h(h), w(w) {}
  int64_t d, h, w;
};

using Conv3DOptions = ConvOptions<Size3D>;
// Correlation with a kernel [kd, kh, kw, c / groups, filters]:
// [n, d, h, w, c] -> [n, od, oh, ow, filters].
struct Conv3D : Layer {
  Conv3D(int64_t filters, Size3D kernel_size, Conv3DOptions options = {},
         Site site = Site::here());
};
// The transpose of a convolution, kernel [kd, kh, kw, filters, c]; sizes as for
// Conv2DTranspose. groups must be 1.
struct Conv3DTranspose : Layer {
  Conv3DTranspose(int64_t filters, Size3D kernel_size,
                  Conv3DOptions options = {}, Site site = Site::here());
};

using Pooling3DOptions = PoolingOptions<Size3D>;
// The maximum, or the mean, of each window: [n, d, h, w, c] -> [n, od, oh, ow,
// c].
struct MaxPooling3D : Layer {
  explicit MaxPooling3D(Size3D pool_size = 2, Pooling3DOptions options = {},
                        Site site = Site::here());
};
struct AveragePooling3D : Layer {
  explicit AveragePooling3D(Size3D pool_size = 2, Pooling3DOptions options = {},
                            Site site = Site::here());
};
// The maximum, or the mean, per channel: [n, d, h, w, c] -> [n, c], or with
// axes of length 1 kept.
struct GlobalMaxPooling3D : Layer {
  explicit GlobalMaxPooling3D(GlobalPoolingOptions options = {},
                              Site site = Site::here());
};
struct GlobalAveragePooling3D : Layer {
  explicit GlobalAveragePooling3D(GlobalPoolingOptions options = {},
                                  Site site = Site::here());
};

// The maximum, or the mean, of each of output_size nearly equal parts of every
// axis of the pixels; part i of an axis of length l is [floor(i l / size),
// ceil((i + 1) l / size)).
struct AdaptiveMaxPooling1D : Layer {
  explicit AdaptiveMaxPooling1D(int64_t output_size, NameOptions options = {},
                                Site site = Site::here());
};
struct AdaptiveMaxPooling2D : Layer {
  explicit AdaptiveMaxPooling2D(Size2D output_size, NameOptions options = {},
                                Site site = Site::here());
};
struct AdaptiveMaxPooling3D : Layer {
  explicit AdaptiveMaxPooling3D(Size3D output_size, NameOptions options = {},
                                Site site = Site::here());
};
struct AdaptiveAveragePooling1D : Layer {
  explicit AdaptiveAveragePooling1D(int64_t output_size,
                                    NameOptions options = {},
                                    Site site = Site::here());
};
struct AdaptiveAveragePooling2D : Layer {
  explicit AdaptiveAveragePooling2D(Size2D output_size,
                                    NameOptions options = {},
                                    Site site = Site::here());
};
struct AdaptiveAveragePooling3D : Layer {
  explicit AdaptiveAveragePooling3D(Size3D output_size,
                                    NameOptions options = {},
                                    Site site = Site::here());
};

// Margins of depth, height and width: 1, or {1, {0, 2}, 1}.
struct Margins3D {
  Margins3D(int64_t all) : d(all), h(all), w(all) {}  // NOLINT
  Margins3D(Margin d, Margin h, Margin w) : d(d), h(h), w(w) {}
  Margin d, h, w;
};
// Adds zeros around the pixels; removes pixels; repeats each.
struct ZeroPadding3D : Layer {
  explicit ZeroPadding3D(Margins3D padding = 1, NameOptions options = {},
                         Site site = Site::here());
};
struct Cropping3D : Layer {
  explicit Cropping3D(Margins3D cropping = 1, NameOptions options = {},
                      Site site = Site::here());
};
struct UpSampling3D : Layer {
  explicit UpSampling3D(Size3D size = 2, NameOptions options = {},
                        Site site = Site::here());
};
// Dropout of whole channels.
struct SpatialDropout3D : Layer {
  explicit SpatialDropout3D(double rate, DropoutOptions options = {},
                            Site site = Site::here());
};

namespace layers {
using keras::AdaptiveAveragePooling1D;
using keras::AdaptiveAveragePooling2D;
using keras::AdaptiveAveragePooling3D;
using keras::AdaptiveMaxPooling1D;
using keras::AdaptiveMaxPooling2D;
using keras::AdaptiveMaxPooling3D;
using keras::AveragePooling3D;
using keras::Conv3D;
using keras::Conv3DTranspose;
using keras::Cropping3D;
using keras::GlobalAveragePooling3D;
using keras::GlobalMaxPooling3D;
using keras::MaxPooling3D;
using keras::SpatialDropout3D;
using keras::UpSampling3D;
using keras::ZeroPadding3D;

// Keras' other names.
using AvgPool3D = keras::AveragePooling3D;
using Convolution3D = keras::Conv3D;
using Convolution3DTranspose = keras::Conv3DTranspose;
using GlobalAvgPool3D = keras::GlobalAveragePooling3D;
using GlobalMaxPool3D = keras::GlobalMaxPooling3D;
using MaxPool3D = keras::MaxPooling3D;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_VOLUME_LAYERS_H_
