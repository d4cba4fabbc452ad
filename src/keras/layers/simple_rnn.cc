// SimpleRNN and SimpleRNNCell.

#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/gated_layer.h"
#include "keras/layers/rnn.h"

namespace berth::keras {

namespace {

class SimpleRNNCellBase final : public GateCell {
 public:
  template <class Options>
  SimpleRNNCellBase(int64_t units, const Options& o, Site site)
      : GateCell("SimpleRNNCell", units, 1, gate_options(o), o.name, site) {}

  Tensors step(const Tensor& part, const Tensors& states,
               const Tensors& constants) const override {
    const Tensor h = activate(part + recurrent(states[0], constants));
    return {h, h};
  }
};

}  // namespace

SimpleRNNCell::SimpleRNNCell(int64_t units, SimpleRNNCellOptions options,
                             Site site)
    : Layer(described<SimpleRNNCellBase, gate_fields<SimpleRNNCellOptions>>(
          site, units, options)) {}
SimpleRNN::SimpleRNN(int64_t units, SimpleRNNOptions options, Site site)
    : RecurrentLayer(gated_layer<SimpleRNNCellBase>(
          "SimpleRNN", "simple_rnn_cell", units, options, site)) {
  describe<gate_fields<SimpleRNNOptions>>(*this, units, options);
}
void add_simple_rnn_classes(Classes& c) {
  c.layers["SimpleRNNCell"] =
      &layer_of<SimpleRNNCell, gate_fields<SimpleRNNCellOptions>>;
  c.layers["SimpleRNN"] = &layer_of<SimpleRNN, gate_fields<SimpleRNNOptions>>;
}

}  // namespace berth::keras
