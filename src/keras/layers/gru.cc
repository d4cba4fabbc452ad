// GRU and GRUCell.

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/gated_layer.h"
#include "keras/layers/rnn.h"

namespace berth::keras {

namespace {

class GRUCellBase final : public GateCell {
 public:
  template <class Options>
  GRUCellBase(int64_t units, const Options& o, Site site)
      : GateCell("GRUCell", units, 3, gate_options(o), o.name, site),
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

}  // namespace

GRUCell::GRUCell(int64_t units, GRUCellOptions options, Site site)
    : Layer(described<GRUCellBase, gate_fields<GRUCellOptions>>(site, units,
                                                                options)) {}
GRU::GRU(int64_t units, GRUOptions options, Site site)
    : RecurrentLayer(
          gated_layer<GRUCellBase>("GRU", "gru_cell", units, options, site)) {
  describe<gate_fields<GRUOptions>>(*this, units, options);
}
void add_gru_classes(Classes& c) {
  c.layers["GRUCell"] = &layer_of<GRUCell, gate_fields<GRUCellOptions>>;
  c.layers["GRU"] = &layer_of<GRU, gate_fields<GRUOptions>>;
}

}  // namespace berth::keras
