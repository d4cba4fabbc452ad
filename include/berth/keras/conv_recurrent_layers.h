// conv_recurrent_layers: LSTMs with convolutions as products, for sequences of
// images (tf.keras.layers.ConvLSTM2D).
//
// They act like all layers (layers.h), and share its thread rule. Inputs are
// [batch, time, pixels..., channels]; a mask [batch, time] that comes with them
// (Masking) leaves states and output unchanged.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_CONV_RECURRENT_LAYERS_H_
#define BERTH_KERAS_CONV_RECURRENT_LAYERS_H_

#include <optional>
#include <string>

#include "berth/keras/layers.h"
#include "berth/keras/volume_layers.h"

namespace berth::keras {

// Strides, dilation_rate and padding apply to the products of the inputs; those
// of the states keep the size.
template <class Size>
struct ConvLSTMOptions {
  Size strides = 1;
  std::string padding = "valid";  // or "same"
  Size dilation_rate = 1;
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            // rate, of the inputs, in training
  double recurrent_dropout = 0;  // rate, of the states, in training
  std::optional<int64_t> seed = std::nullopt;
  bool return_sequences = false;  // the outputs of all steps, not only the last
  bool return_state = false;      // also the last states h, c
  bool go_backwards = false;      // from the last step to the first
  std::string name = {};
  OwnPolicy dtype = {};
};
using ConvLSTM1DOptions = ConvLSTMOptions<int64_t>;
using ConvLSTM2DOptions = ConvLSTMOptions<Size2D>;
using ConvLSTM3DOptions = ConvLSTMOptions<Size3D>;

// [n, t, s, c] -> [n, os, filters], with return_sequences [n, t, os, filters];
// the same for [n, t, h, w, c] and [n, t, d, h, w, c] (Shi et al. 2015).
// Weights kernel [size..., c, 4 filters], recurrent_kernel [size..., filters, 4
// filters], bias [4 filters]: the gates input, forget, cell, output. The number
// of steps must be known.
struct ConvLSTM1D : Layer {
  ConvLSTM1D(int64_t filters, int64_t kernel_size,
             ConvLSTM1DOptions options = {}, Site site = Site::here());
};
struct ConvLSTM2D : Layer {
  ConvLSTM2D(int64_t filters, Size2D kernel_size,
             ConvLSTM2DOptions options = {}, Site site = Site::here());
};
struct ConvLSTM3D : Layer {
  ConvLSTM3D(int64_t filters, Size3D kernel_size,
             ConvLSTM3DOptions options = {}, Site site = Site::here());
};

namespace layers {
using keras::ConvLSTM1D;
using keras::ConvLSTM2D;
using keras::ConvLSTM3D;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_CONV_RECURRENT_LAYERS_H_
