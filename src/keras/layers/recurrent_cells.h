// Cells whose gates begin with a product of the inputs, which a layer takes
// for all steps at once.

#ifndef BERTH_KERAS_LAYERS_RECURRENT_CELLS_H_
#define BERTH_KERAS_LAYERS_RECURRENT_CELLS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "berth/keras/recurrent_layers.h"

namespace berth::keras {

// What LSTM, GRU and SimpleRNN cells have in common.
struct GateOptions {
  std::string activation, recurrent_activation;
  bool use_bias;
  Initializer kernel_initializer, recurrent_initializer, bias_initializer;
  WeightOptions kernel, recurrent, bias;
  double dropout, recurrent_dropout;
  std::optional<int64_t> seed;
};

class GateCell : public RNNCellBase {
 public:
  GateCell(const char* type, int64_t units, int64_t gates, GateOptions options,
           const std::string& name, Site site);

  void build(const std::vector<Shape>& inputs) override;
  Tensors call(const Tensors& inputs, bool training) override;
  Tensors get_constants(const Tensor& batch, bool training) const override;
  size_t num_constants(bool training) const override;
  std::vector<int64_t> state_size() const override { return {units_}; }
  int64_t output_size() const override { return units_; }

  // The inputs' part of all gates, [..., in] -> [..., gates * units].
  // `constants` [batch, in] act on [batch, time, in] alike at each step.
  Tensor project(const Tensor& x, const Tensors& constants) const;
  bool drops_states(bool training) const {
    return training && o_.recurrent_dropout > 0;
  }
  // {output, new states...} of one step from its part and the states.
  virtual Tensors step(const Tensor& part, const Tensors& states,
                       const Tensors& constants) const = 0;
  // All steps of parts [batch, time, gates * units] as one op: {outputs, last
  // states but the first...}, the first being the last output; nothing where
  // there is no such op.
  virtual Tensors sequence(const Tensor& parts, const Tensors& states,
                           const Tensor& mask) const;

 protected:
  // Makes the bias of the inputs, and what else the cell has.
  virtual void build_bias();
  virtual Tensor input_bias() const;
  // The states' part of all gates, dropout applied: [batch, gates * units].
  Tensor recurrent(const Tensor& h, const Tensors& constants) const;
  // The columns of one gate, of a kernel or of parts.
  Tensor gate(const Tensor& x, int64_t index, int64_t count = 1) const;
  Tensor activate(const Tensor& x) const;
  Tensor activate_gate(const Tensor& x) const;
  // The dropped elements of the states for one gate, an empty tensor for none.
  Tensor state_mask(const Tensors& constants, int64_t gate) const;
  bool has_standard_activations() const;

  const int64_t units_, gates_;
  const GateOptions o_;
  int64_t in_ = 0;
  Variable kernel_, recurrent_kernel_, bias_;

 private:
  // The constants: input masks (one, or with recurrent dropout one per gate),
  // then the states' masks, one per gate.
  int64_t num_input_masks(const Tensors& constants) const;
};

class StackedCells final : public RNNCellBase {
 public:
  StackedCells(std::vector<Layer> cells, const NameOptions& options, Site site);
  void build(const std::vector<Shape>& inputs) override;
  Tensors call(const Tensors& inputs, bool training) override;
  std::vector<int64_t> state_size() const override;
  int64_t output_size() const override;
  Tensors get_initial_state(const Tensor& batch) const override;
  Tensors get_constants(const Tensor& batch, bool training) const override;
  size_t num_constants(bool training) const override;
  // Where the states of the last cell begin.
  size_t last_cells_state() const;

 private:
  const std::vector<Layer> cells_;
};

// Returns the cell of a layer. Throws errors::InvalidArgument, as of `owner`,
// when it is none.
RNNCellBase& cell_of(const Layer& layer, const LayerBase& owner);

// Makes the weights of `cell` for inputs of that shape, once. Lifted already.
void build_cell(const Layer& cell, const Shape& input);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_RECURRENT_CELLS_H_
