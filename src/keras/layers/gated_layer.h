// What LSTM, GRU and SimpleRNN share: their options as fields, a layer of one
// of their cells.

#ifndef BERTH_KERAS_LAYERS_GATED_LAYER_H_
#define BERTH_KERAS_LAYERS_GATED_LAYER_H_

#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/rnn.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

template <class Options>
GateOptions gate_options(const Options& o) {
  std::string recurrent_activation;
  if constexpr (requires { o.recurrent_activation; }) {
    recurrent_activation = o.recurrent_activation;
  }
  return {.activation = o.activation,
          .recurrent_activation = std::move(recurrent_activation),
          .use_bias = o.use_bias,
          .kernel_initializer = o.kernel_initializer,
          .recurrent_initializer = o.recurrent_initializer,
          .bias_initializer = o.bias_initializer,
          .kernel = {.regularizer = o.kernel_regularizer,
                     .constraint = o.kernel_constraint},
          .recurrent = {.regularizer = o.recurrent_regularizer,
                        .constraint = o.recurrent_constraint},
          .bias = {.regularizer = o.bias_regularizer,
                   .constraint = o.bias_constraint},
          .dropout = o.dropout,
          .recurrent_dropout = o.recurrent_dropout,
          .seed = o.seed};
}

template <class Options>
RNNOptions rnn_options(const Options& o) {
  return {.return_sequences = o.return_sequences,
          .return_state = o.return_state,
          .go_backwards = o.go_backwards,
          .stateful = o.stateful,
          .unroll = o.unroll,
          .zero_output_for_mask = o.zero_output_for_mask,
          .name = o.name};
}

// A layer "lstm" has a cell "lstm/lstm_cell", and copies have cells of theirs.
template <class Cell, class Options>
std::shared_ptr<RnnBase> gated_layer(const char* type, const char* cell_name,
                                     int64_t units, const Options& options,
                                     Site site) {
  const auto make = [=](const std::string& layer) {
    Options own = options;
    own.name = layer + "/" + cell_name;
    return Layer(std::make_shared<Cell>(units, own, site));
  };
  RNNOptions o = rnn_options(options);
  if (o.name.empty()) o.name = next_layer_name(type);
  auto base = std::make_shared<RnnBase>(type, make(o.name), make, o, site);
  base->regularize_outputs(options.activity_regularizer);
  return base;
}

// The fields of gates, as far as Options have them.
template <class Options>
void gate_option_fields(Fields& f, Options& o) {
  f.activation("activation", o.activation);
  if constexpr (requires { o.recurrent_activation; }) {
    f.activation("recurrent_activation", o.recurrent_activation);
  }
  f("use_bias", o.use_bias);
  f("kernel_initializer", o.kernel_initializer);
  f("recurrent_initializer", o.recurrent_initializer);
  f("bias_initializer", o.bias_initializer);
  if constexpr (requires { o.unit_forget_bias; }) {
    f("unit_forget_bias", o.unit_forget_bias);
  }
  f("kernel_regularizer", o.kernel_regularizer);
  f("recurrent_regularizer", o.recurrent_regularizer);
  f("bias_regularizer", o.bias_regularizer);
  if constexpr (requires { o.activity_regularizer; }) {
    f("activity_regularizer", o.activity_regularizer);
  }
  f("kernel_constraint", o.kernel_constraint);
  f("recurrent_constraint", o.recurrent_constraint);
  f("bias_constraint", o.bias_constraint);
  f("dropout", o.dropout);
  f("recurrent_dropout", o.recurrent_dropout);
  if constexpr (requires { o.reset_after; }) f("reset_after", o.reset_after);
  f("seed", o.seed);
}
// The fields of RNN, and of a layer of gates.
template <class Options>
void rnn_fields(Fields& f, Options& o) {
  f("return_sequences", o.return_sequences);
  f("return_state", o.return_state);
  f("go_backwards", o.go_backwards);
  f("stateful", o.stateful);
  f("unroll", o.unroll);
  f("zero_output_for_mask", o.zero_output_for_mask);
}

// The fields of a cell and of its layer.
template <class Options>
void gate_fields(Fields& f, int64_t& units, Options& o) {
  f.must("units", units);
  gate_option_fields(f, o);
  if constexpr (requires { o.return_sequences; }) rnn_fields(f, o);
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_GATED_LAYER_H_
