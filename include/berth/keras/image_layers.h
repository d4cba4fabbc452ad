// image_layers: more convolutions, pools and layers that change the size of
// images (tf.keras.layers).
//
// Images are [n, h, w, c], sequences [n, s, c], channels last. They act like
// all layers (layers.h), and share its thread rule.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_IMAGE_LAYERS_H_
#define BERTH_KERAS_IMAGE_LAYERS_H_

#include "berth/keras/layers.h"

namespace berth::keras {

// Options of Conv1D and Conv3D; Size has a length per axis.
template <class Size>
struct ConvOptions {
  std::string activation = {};
  std::string padding = "valid";  // or "same"; in Conv1D "causal": zeros before
  Size strides = 1;
  Size dilation_rate = 1;
  int64_t groups = 1;
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
using Conv1DOptions = ConvOptions<int64_t>;
// Correlation with a kernel [k, c / groups, filters]:
// [n, s, c] -> [n, os, filters].
struct Conv1D : Layer {
  Conv1D(int64_t filters, int64_t kernel_size, Conv1DOptions options = {},
         Site site = Site::here());
};

// The transpose of a convolution, kernel [kh, kw, filters, c]: [n, h, w, c] ->
// [n, oh, ow, filters], where oh is h * stride ("same") or (h - 1) * stride +
// max(extent of the kernel, stride) ("valid"). Options as for Conv2D; groups
// must be 1.
struct Conv2DTranspose : Layer {
  Conv2DTranspose(int64_t filters, Size2D kernel_size,
                  Conv2DOptions options = {}, Site site = Site::here());
};
// Conv2DTranspose of sequences [n, s, c]; groups must be 1 and padding not
// "causal".
struct Conv1DTranspose : Layer {
  Conv1DTranspose(int64_t filters, int64_t kernel_size,
                  Conv1DOptions options = {}, Site site = Site::here());
};

template <class Size>
struct DepthwiseConvOptions {
  int64_t depth_multiplier = 1;
  std::string activation = {};
  std::string padding = "valid";  // or "same"
  Size strides = 1;
  Size dilation_rate = 1;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
using DepthwiseConv2DOptions = DepthwiseConvOptions<Size2D>;
// Each channel with filters of its own, kernel [kh, kw, c, depth_multiplier]:
// [n, h, w, c] -> [n, oh, ow, c * depth_multiplier].
struct DepthwiseConv2D : Layer {
  explicit DepthwiseConv2D(Size2D kernel_size,
                           DepthwiseConv2DOptions options = {},
                           Site site = Site::here());
};
template <class Size>
struct SeparableConvOptions {
  int64_t depth_multiplier = 1;
  std::string activation = {};
  std::string padding = "valid";  // or "same"
  Size strides = 1;
  Size dilation_rate = 1;
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  OwnPolicy dtype = {};
};
using SeparableConv2DOptions = SeparableConvOptions<Size2D>;
// DepthwiseConv2D, then a mix of channels, kernel
// [1, 1, c * depth_multiplier, filters]: -> [n, oh, ow, filters].
struct SeparableConv2D : Layer {
  SeparableConv2D(int64_t filters, Size2D kernel_size,
                  SeparableConv2DOptions options = {},
                  Site site = Site::here());
};

using DepthwiseConv1DOptions = DepthwiseConvOptions<int64_t>;
// DepthwiseConv2D of sequences, with kernels [k, c, depth_multiplier] and
// [1, c * depth_multiplier, filters]: [n, s, c] -> [n, os, ...].
struct DepthwiseConv1D : Layer {
  explicit DepthwiseConv1D(int64_t kernel_size,
                           DepthwiseConv1DOptions options = {},
                           Site site = Site::here());
};
using SeparableConv1DOptions = SeparableConvOptions<int64_t>;
struct SeparableConv1D : Layer {
  SeparableConv1D(int64_t filters, int64_t kernel_size,
                  SeparableConv1DOptions options = {},
                  Site site = Site::here());
};

// Pixels before and after an axis: 1, or {1, 2}.
struct Margin {
  Margin(int64_t both) : before(both), after(both) {}  // NOLINT
  Margin(int64_t before, int64_t after) : before(before), after(after) {}
  int64_t before, after;
};
// Margins of height and width, as Keras has them: 1, {1, 2} for 1 row and 2
// columns on each side, or {{0, 1}, {2, 0}}.
struct Margins2D {
  Margins2D(int64_t all) : h(all), w(all) {}  // NOLINT
  Margins2D(Margin h, Margin w) : h(h), w(w) {}
  Margin h, w;
};
// Adds zeros around the pixels; removes pixels: [n, h, w, c] -> [n, oh, ow, c],
// [n, s, c] -> [n, os, c].
struct ZeroPadding2D : Layer {
  explicit ZeroPadding2D(Margins2D padding = 1, NameOptions options = {},
                         Site site = Site::here());
};
struct ZeroPadding1D : Layer {
  explicit ZeroPadding1D(Margin steps = 1, NameOptions options = {},
                         Site site = Site::here());
};
struct Cropping2D : Layer {
  explicit Cropping2D(Margins2D cropping = 0, NameOptions options = {},
                      Site site = Site::here());
};
struct Cropping1D : Layer {
  explicit Cropping1D(Margin steps = 1, NameOptions options = {},
                      Site site = Site::here());
};
struct UpSampling2DOptions {
  // Or "bilinear", "bicubic", "lanczos3", "lanczos5", which need known h, w.
  std::string interpolation = "nearest";
  std::string name = {};
  OwnPolicy dtype = {};
};
// More pixels: [n, h, w, c] -> [n, h * size, w * size, c]; nearest repeats
// each. h, w must be known, or h and n.
struct UpSampling2D : Layer {
  explicit UpSampling2D(Size2D size = 2, UpSampling2DOptions options = {},
                        Site site = Site::here());
};
struct UpSampling1D : Layer {
  explicit UpSampling1D(int64_t size = 2, NameOptions options = {},
                        Site site = Site::here());
};

using Pooling1DOptions = PoolingOptions<int64_t>;
// The maximum, or the mean, of each window: [n, s, c] -> [n, os, c].
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
  OwnPolicy dtype = {};
};
// The maximum, or the mean, per channel: [n, s, c] or [n, h, w, c] -> [n, c],
// or with axes of length 1 kept.
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
using keras::Conv1D;
using keras::Conv1DTranspose;
using keras::Conv2DTranspose;
using keras::Cropping1D;
using keras::Cropping2D;
using keras::DepthwiseConv1D;
using keras::DepthwiseConv2D;
using keras::GlobalAveragePooling1D;
using keras::GlobalAveragePooling2D;
using keras::GlobalMaxPooling1D;
using keras::GlobalMaxPooling2D;
using keras::MaxPooling1D;
using keras::SeparableConv1D;
using keras::SeparableConv2D;
using keras::UpSampling1D;
using keras::UpSampling2D;
using keras::ZeroPadding1D;
using keras::ZeroPadding2D;

// Keras' other names.
using AvgPool1D = keras::AveragePooling1D;
using AvgPool2D = keras::AveragePooling2D;
using Convolution1D = keras::Conv1D;
using Convolution1DTranspose = keras::Conv1DTranspose;
using Convolution2D = keras::Conv2D;
using Convolution2DTranspose = keras::Conv2DTranspose;
using GlobalAvgPool1D = keras::GlobalAveragePooling1D;
using GlobalAvgPool2D = keras::GlobalAveragePooling2D;
using GlobalMaxPool1D = keras::GlobalMaxPooling1D;
using GlobalMaxPool2D = keras::GlobalMaxPooling2D;
using MaxPool1D = keras::MaxPooling1D;
using MaxPool2D = keras::MaxPooling2D;
using SeparableConvolution1D = keras::SeparableConv1D;
using SeparableConvolution2D = keras::SeparableConv2D;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_IMAGE_LAYERS_H_
