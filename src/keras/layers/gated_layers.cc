// LSTM, GRU and SimpleRNN: their cells, and RNN layers of them.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/recurrent.h"
#include "keras/config/classes.h"
#include "keras/layers/rnn.h"
#include "keras/models/layer_state.h"

namespace berth::keras {

namespace {

template <class Options>
GateOptions gate_options(const Options& o, std::string recurrent_activation) {
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

class LSTMCellBase final : public GateCell {
 public:
  LSTMCellBase(int64_t units, const LSTMCellOptions& o, Site site)
      : GateCell("LSTMCell", units, 4, gate_options(o, o.recurrent_activation),
                 o.name, site),
        unit_forget_bias_(o.unit_forget_bias) {}

  std::vector<int64_t> state_size() const override { return {units_, units_}; }

  Tensors step(const Tensor& part, const Tensors& states,
               const Tensors& constants) const override {
    const Tensor z = part + recurrent(states[0], constants);
    const Tensor c = activate_gate(gate(z, 1)) * states[1] +
                     activate_gate(gate(z, 0)) * activate(gate(z, 2));
    const Tensor h = activate_gate(gate(z, 3)) * activate(c);
    return {h, h, c};
  }

  Tensors sequence(const Tensor& parts, const Tensors& states,
                   const Tensor& mask) const override {
    if (!has_standard_activations()) return {};
    const nn::LstmResult y = nn::lstm(parts, recurrent_kernel_.value(site()),
                                      states[0], states[1], mask, site());
    return {y.outputs, y.last_cell};
  }

 private:
  void build_bias() override {
    const Initializer start = o_.bias_initializer;
    const int64_t units = units_;
    const Initializer forget([start, units](const Shape&, DType dtype) {
      return concat({start({units}, dtype), ones({units}, dtype),
                     start({2 * units}, dtype)},
                    0);
    });
    bias_ = add_weight("bias", {4 * units_}, unit_forget_bias_ ? forget : start,
                       o_.bias);
  }

  const bool unit_forget_bias_;
};

class GRUCellBase final : public GateCell {
 public:
  GRUCellBase(int64_t units, const GRUCellOptions& o, Site site)
      : GateCell("GRUCell", units, 3, gate_options(o, o.recurrent_activation),
                 o.name, site),
        reset_after_(o.reset_after) {}

  Tensors step(const Tensor& part, const Tensors& states,
               const Tensors& constants) const override {
    const Tensor& before = states[0];
    Tensor update, reset, fresh;
    if (reset_after_) {
      Tensor inner = recurrent(before, constants);
      if (o_.use_bias) inner = nn::bias_add(inner, bias_row(1), site());
      const Tensor gates = activate_gate(gate(part, 0, 2) + gate(inner, 0, 2));
      update = gate(gates, 0);
      reset = gate(gates, 1);
      fresh = gate(part, 2) + reset * gate(inner, 2);
    } else {
      update =
          activate_gate(gate(part, 0) + state_product(before, 0, constants));
      reset =
          activate_gate(gate(part, 1) + state_product(before, 1, constants));
      fresh = gate(part, 2) + state_product(reset * before, 2, constants);
    }
    const Tensor candidate = activate(fresh);
    const Tensor h = candidate + update * (before - candidate);
    return {h, h};
  }

 private:
  void build_bias() override {
    bias_ = add_weight("bias",
                       reset_after_ ? Shape{2, 3 * units_} : Shape{3 * units_},
                       o_.bias_initializer, o_.bias);
  }
  Tensor bias_row(int64_t row) const {
    return reshape(slice(bias_.value(site()), {row, 0}, {1, -1}, site()),
                   {3 * units_}, site());
  }
  Tensor input_bias() const override {
    return reset_after_ ? bias_row(0) : bias_.value(site());
  }
  // One gate's product with the states.
  Tensor state_product(const Tensor& h, int64_t index,
                       const Tensors& constants) const {
    const Tensor mask = state_mask(constants, index);
    return matmul(mask.defined() ? h * mask : h,
                  gate(recurrent_kernel_.value(site()), index), {}, site());
  }

  const bool reset_after_;
};

class SimpleRNNCellBase final : public GateCell {
 public:
  SimpleRNNCellBase(int64_t units, const SimpleRNNCellOptions& o, Site site)
      : GateCell("SimpleRNNCell", units, 1, gate_options(o, ""), o.name, site) {
  }

  Tensors step(const Tensor& part, const Tensors& states,
               const Tensors& constants) const override {
    const Tensor h = activate(part + recurrent(states[0], constants));
    return {h, h};
  }
};

// The options of a layer's cell.
template <class Cell, class Options>
Cell cell_options(const Options& o) {
  Cell c;
  c.activation = o.activation;
  c.use_bias = o.use_bias;
  c.kernel_initializer = o.kernel_initializer;
  c.recurrent_initializer = o.recurrent_initializer;
  c.bias_initializer = o.bias_initializer;
  c.kernel_regularizer = o.kernel_regularizer;
  c.recurrent_regularizer = o.recurrent_regularizer;
  c.bias_regularizer = o.bias_regularizer;
  c.kernel_constraint = o.kernel_constraint;
  c.recurrent_constraint = o.recurrent_constraint;
  c.bias_constraint = o.bias_constraint;
  c.dropout = o.dropout;
  c.recurrent_dropout = o.recurrent_dropout;
  c.seed = o.seed;
  if constexpr (requires { c.recurrent_activation; }) {
    c.recurrent_activation = o.recurrent_activation;
  }
  if constexpr (requires { c.unit_forget_bias; }) {
    c.unit_forget_bias = o.unit_forget_bias;
  }
  if constexpr (requires { c.reset_after; }) c.reset_after = o.reset_after;
  return c;
}

// A layer "lstm" has a cell "lstm/lstm_cell", and copies have cells of theirs.
template <class Cell, class CellOptions, class Options>
std::shared_ptr<RnnBase> gated_layer(const char* type, const char* cell_name,
                                     int64_t units, const Options& options,
                                     Site site) {
  const auto cell = cell_options<CellOptions>(options);
  const auto make = [=](const std::string& layer) {
    CellOptions own = cell;
    own.name = layer + "/" + cell_name;
    return Layer(std::make_shared<Cell>(units, own, site));
  };
  RNNOptions o = rnn_options(options);
  if (o.name.empty()) o.name = next_layer_name(type);
  auto base = std::make_shared<RnnBase>(type, make(o.name), make, o, site);
  base->regularize_outputs(options.activity_regularizer);
  return base;
}

// The fields of a cell and of its layer.
template <class Options>
void gate_fields(Fields& f, int64_t& units, Options& o) {
  f.must("units", units);
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
  if constexpr (requires { o.return_sequences; }) {
    f("return_sequences", o.return_sequences);
    f("return_state", o.return_state);
    f("go_backwards", o.go_backwards);
    f("stateful", o.stateful);
    f("unroll", o.unroll);
    f("zero_output_for_mask", o.zero_output_for_mask);
  }
  f("name", o.name);
}

template <class Made, class Options>
struct GateArgs {
  int64_t units = 0;
  Options o;
  void fields(Fields& f) { gate_fields(f, units, o); }
  Layer make(Site site) const { return Made(units, o, site); }
};

}  // namespace

LSTMCell::LSTMCell(int64_t units, LSTMCellOptions options, Site site)
    : Layer(std::make_shared<LSTMCellBase>(units, options, site)) {
  describe(*this, GateArgs<LSTMCell, LSTMCellOptions>{units, options});
}
GRUCell::GRUCell(int64_t units, GRUCellOptions options, Site site)
    : Layer(std::make_shared<GRUCellBase>(units, options, site)) {
  describe(*this, GateArgs<GRUCell, GRUCellOptions>{units, options});
}
SimpleRNNCell::SimpleRNNCell(int64_t units, SimpleRNNCellOptions options,
                             Site site)
    : Layer(std::make_shared<SimpleRNNCellBase>(units, options, site)) {
  describe(*this,
           GateArgs<SimpleRNNCell, SimpleRNNCellOptions>{units, options});
}

LSTM::LSTM(int64_t units, LSTMOptions options, Site site)
    : RecurrentLayer(gated_layer<LSTMCellBase, LSTMCellOptions>(
          "LSTM", "lstm_cell", units, options, site)) {
  describe(*this, GateArgs<LSTM, LSTMOptions>{units, options});
}
GRU::GRU(int64_t units, GRUOptions options, Site site)
    : RecurrentLayer(gated_layer<GRUCellBase, GRUCellOptions>(
          "GRU", "gru_cell", units, options, site)) {
  describe(*this, GateArgs<GRU, GRUOptions>{units, options});
}
SimpleRNN::SimpleRNN(int64_t units, SimpleRNNOptions options, Site site)
    : RecurrentLayer(gated_layer<SimpleRNNCellBase, SimpleRNNCellOptions>(
          "SimpleRNN", "simple_rnn_cell", units, options, site)) {
  describe(*this, GateArgs<SimpleRNN, SimpleRNNOptions>{units, options});
}

void add_gated_classes(Classes& c);
void add_gated_classes(Classes& c) {
  c.layers["LSTMCell"] = &layer_of<GateArgs<LSTMCell, LSTMCellOptions>>;
  c.layers["GRUCell"] = &layer_of<GateArgs<GRUCell, GRUCellOptions>>;
  c.layers["SimpleRNNCell"] =
      &layer_of<GateArgs<SimpleRNNCell, SimpleRNNCellOptions>>;
  c.layers["LSTM"] = &layer_of<GateArgs<LSTM, LSTMOptions>>;
  c.layers["GRU"] = &layer_of<GateArgs<GRU, GRUOptions>>;
  c.layers["SimpleRNN"] = &layer_of<GateArgs<SimpleRNN, SimpleRNNOptions>>;
}

}  // namespace berth::keras
