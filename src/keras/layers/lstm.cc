// LSTM and LSTMCell.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/recurrent.h"
#include "keras/config/classes.h"
#include "keras/layers/gated_layer.h"
#include "keras/layers/rnn.h"

namespace berth::keras {

namespace {

class LSTMCellBase final : public GateCell {
 public:
  template <class Options>
  LSTMCellBase(int64_t units, const Options& o, Site site)
      : GateCell("LSTMCell", units, 4, gate_options(o), o.name, site),
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

}  // namespace

LSTMCell::LSTMCell(int64_t units, LSTMCellOptions options, Site site)
    : Layer(described<LSTMCellBase, gate_fields<LSTMCellOptions>>(site, units,
                                                                  options)) {}

LSTM::LSTM(int64_t units, LSTMOptions options, Site site)
    : RecurrentLayer(gated_layer<LSTMCellBase>("LSTM", "lstm_cell", units,
                                               options, site)) {
  describe<gate_fields<LSTMOptions>>(*this, units, options);
}
void add_lstm_classes(Classes& c) {
  c.layers["LSTMCell"] = &layer_of<LSTMCell, gate_fields<LSTMCellOptions>>;
  c.layers["LSTM"] = &layer_of<LSTM, gate_fields<LSTMOptions>>;
}

}  // namespace berth::keras
