// recurrent_layers: layers that process a sequence step by step, and the masks
// that select steps (tf.keras.layers).
//
// They act like all layers (layers.h), and share its thread rule; a stateful
// one may run on one thread at a time. Inputs are [batch, time, features].
//
//   keras::Layer lstm = keras::LSTM(64, {.return_sequences = true});
//   lstm(x);                       // [batch, time, 64]
//   lstm(Tensors{x, h, c});        // from the states h, c [batch, 64]
//   lstm(Tensors{x, mask});        // mask: bool [batch, time]
//   lstm(Tensors{x, h, c, mask});
//
// A masked step (false) leaves the states unchanged and returns the first state
// as its output, or zeros with zero_output_for_mask.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_RECURRENT_LAYERS_H_
#define BERTH_KERAS_RECURRENT_LAYERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/keras/constraints.h"
#include "berth/keras/layers.h"
#include "berth/keras/regularizers.h"

namespace berth::keras {

// Returns the mask of a tensor that a layer made, or an empty tensor: bool
// [batch, time], x._keras_mask in Keras. Masks live as long as the outermost
// layer that runs on this thread, or MaskScope.
Tensor mask_of(const Tensor& x);

// Keeps the masks of all layers called on this thread until its end, so that
// they are passed between layers that are called outside a model:
//   const keras::MaskScope masks;
//   Tensor y = lstm(embedding(ids));
class MaskScope {
 public:
  MaskScope();
  ~MaskScope();
  MaskScope(const MaskScope&) = delete;
  MaskScope& operator=(const MaskScope&) = delete;

 private:
  friend struct Masks;  // keras/masks.h
  MaskScope* const outer_;
  std::vector<std::pair<Tensor, Tensor>> masks_;
};

using MaskingOptions = NameOptions;
// Masks the steps at which every feature is `mask_value`, and sets them to 0:
// [batch, time, ...] -> the same.
struct Masking : Layer {
  explicit Masking(double mask_value = 0, MaskingOptions options = {},
                   Site site = Site::here());
};

// One step of a recurrent layer. Derive from it for a cell of your own, and
// pass it to RNN:
//   class Mean : public keras::RNNCellBase {
//    public:
//     Mean() : RNNCellBase("mean") {}
//     std::vector<int64_t> state_size() const override { return {8}; }
//     Tensors call(const Tensors& in, bool) override {
//       const Tensor h = (in[0] + in[1]) * 0.5;
//       return {h, h};
//     }
//   };
//   auto layer = keras::RNN(keras::make_layer<Mean>());
class RNNCellBase : public LayerBase {
 public:
  using LayerBase::LayerBase;

  // Computes {output, new states...} from {x [batch, features], states...,
  // constants...}. build() gets the shape of x only.
  Tensors call(const Tensors& inputs, bool training) override = 0;
  // The width of each state [batch, width]; at least one.
  virtual std::vector<int64_t> state_size() const = 0;
  // The width of the output.
  virtual int64_t output_size() const { return state_size()[0]; }
  // The states before the first step; zeros. `batch` is zeros [batch, 1].
  virtual Tensors get_initial_state(const Tensor& batch) const;
  // Values that are constant over the steps, such as the elements that dropout
  // drops; made once per sequence. None by default.
  virtual Tensors get_constants(const Tensor& batch, bool training) const;
  // Their number; 0 by default.
  virtual size_t num_constants(bool training) const;
};

struct RNNOptions {
  bool return_sequences = false;  // the outputs of all steps, not only the last
  bool return_state = false;      // also the last states, as further outputs
  bool go_backwards = false;      // from the last step to the first
  // The next call begins with the last states; the batch size is that of the
  // first call. reset_states() sets them to zero.
  bool stateful = false;
  // A trace holds every step instead of a loop, which requires a known number
  // of steps; short sequences are always unrolled.
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
  OwnPolicy dtype = {};
};

// Layers with states: the base of RNN, LSTM, GRU, SimpleRNN and Bidirectional.
struct RecurrentLayer : Layer {
  using Layer::Layer;
  // The variables of a stateful layer; none before its first call.
  std::vector<Variable> states() const;
  // Zeros. Throws errors::FailedPrecondition unless the layer is stateful.
  void reset_states() const;
  void reset_state() const { reset_states(); }
};
// Resets the states of each stateful part of a model or layer.
void reset_states(const Layer& layer);

// Calls `cell` for each step: [batch, time, ...] -> [batch, width], with
// return_sequences [batch, time, width]. Several cells are stacked.
struct RNN : RecurrentLayer {
  explicit RNN(Layer cell, RNNOptions options = {}, Site site = Site::here());
  explicit RNN(std::vector<Layer> cells, RNNOptions options = {},
               Site site = Site::here());
};

struct LSTMCellOptions {
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;  // the forget gate's bias begins with ones
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            // rate, of the inputs, in training
  double recurrent_dropout = 0;  // rate, of the states, in training
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// A step of LSTM (Hochreiter and Schmidhuber 1997). Weights kernel
// [in, 4 units], recurrent_kernel [units, 4 units], bias [4 units]: the gates
// input, forget, cell, output. States h, c.
struct LSTMCell : Layer {
  explicit LSTMCell(int64_t units, LSTMCellOptions options = {},
                    Site site = Site::here());
};

struct GRUCellOptions {
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  bool reset_after = true;  // the reset gate acts after the product
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// A step of GRU (Cho et al. 2014). Weights kernel [in, 3 units],
// recurrent_kernel [units, 3 units], bias [3 units], with reset_after
// [2, 3 units]: the gates update, reset, new. State h.
struct GRUCell : Layer {
  explicit GRUCell(int64_t units, GRUCellOptions options = {},
                   Site site = Site::here());
};

struct SimpleRNNCellOptions {
  std::string activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<int64_t> seed = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// activation(x kernel + h recurrent_kernel + bias). State h.
struct SimpleRNNCell : Layer {
  explicit SimpleRNNCell(int64_t units, SimpleRNNCellOptions options = {},
                         Site site = Site::here());
};

// A chain of cells, each of which reads the output of the one before it; one
// cell with the states of all.
struct StackedRNNCells : Layer {
  explicit StackedRNNCells(std::vector<Layer> cells, NameOptions options = {},
                           Site site = Site::here());
};

struct LSTMOptions {
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
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<int64_t> seed = std::nullopt;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// RNN of an LSTMCell: the products of the inputs are computed at once, and with
// the activations above and no recurrent_dropout all steps are one op.
struct LSTM : RecurrentLayer {
  explicit LSTM(int64_t units, LSTMOptions options = {},
                Site site = Site::here());
};

struct GRUOptions {
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  bool reset_after = true;
  std::optional<int64_t> seed = std::nullopt;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// RNN of a GRUCell.
struct GRU : RecurrentLayer {
  explicit GRU(int64_t units, GRUOptions options = {},
               Site site = Site::here());
};

struct SimpleRNNOptions {
  std::string activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;
  double recurrent_dropout = 0;
  std::optional<int64_t> seed = std::nullopt;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  std::string name = {};
  OwnPolicy dtype = {};
};
// RNN of a SimpleRNNCell.
struct SimpleRNN : RecurrentLayer {
  explicit SimpleRNN(int64_t units, SimpleRNNOptions options = {},
                     Site site = Site::here());
};

struct BidirectionalOptions {
  // concat, sum, mul, ave; "" returns both, one after the other.
  std::string merge_mode = "concat";
  // Runs in the other direction; a copy of the layer if absent.
  std::optional<RecurrentLayer> backward_layer = std::nullopt;
  std::string name = {};
  OwnPolicy dtype = {};
};
// A copy of `layer` (an RNN, LSTM, GRU or SimpleRNN; weights of its own) and
// one that runs in the other direction. The states of the first come before
// those of the second. With return_sequences, masked steps output zeros.
struct Bidirectional : RecurrentLayer {
  explicit Bidirectional(RecurrentLayer layer,
                         BidirectionalOptions options = {},
                         Site site = Site::here());
};

// `layer` at each step, all at once: it sees [batch * time, ...].
// [batch, time, ...] -> [batch, time, ...].
struct TimeDistributed : Layer {
  explicit TimeDistributed(Layer layer, NameOptions options = {},
                           Site site = Site::here());
};

namespace layers {
using keras::Bidirectional;
using keras::GRU;
using keras::GRUCell;
using keras::LSTM;
using keras::LSTMCell;
using keras::Masking;
using keras::RNN;
using keras::SimpleRNN;
using keras::SimpleRNNCell;
using keras::StackedRNNCells;
using keras::TimeDistributed;
}  // namespace layers

}  // namespace berth::keras

#endif  // BERTH_KERAS_RECURRENT_LAYERS_H_
