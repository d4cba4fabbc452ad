// Layers that take a cell through a sequence.

#ifndef BERTH_KERAS_LAYERS_RNN_H_
#define BERTH_KERAS_LAYERS_RNN_H_

#include <memory>
#include <string>
#include <vector>

#include "keras/layers/recurrent_cells.h"

namespace berth::keras {

// What Bidirectional asks of a layer, and what resets.
class RecurrentBase : public LayerBase {
 public:
  using LayerBase::LayerBase;
  virtual std::vector<Variable> states() const = 0;
  virtual void reset_states() = 0;
};

class RnnBase final : public RecurrentBase {
 public:
  // Makes a cell anew, named so; for copies.
  using MakeCell = std::function<Layer(const std::string& name)>;

  // `make_cell` null: `cell` is the user's, and there are no copies.
  RnnBase(const char* type, Layer cell, MakeCell make_cell,
          const RNNOptions& options, Site site);

  void build(const std::vector<Shape>& inputs) override;
  Tensors call(const Tensors& inputs, bool training) override;
  Tensors compute_mask(const Tensors& inputs, const Tensors& masks) override;
  std::vector<Variable> states() const override { return states_; }
  void reset_states() override;

  const RNNOptions& options() const { return o_; }
  // Masked steps put out zeros.
  void zero_masked_outputs() { o_.zero_output_for_mask = true; }
  void regularize_outputs(Regularizer regularizer) {
    set_activity_regularizer(std::move(regularizer));
  }
  // A layer of the same options and a cell of its own.
  std::shared_ptr<RnnBase> copy(const std::string& name, bool backwards) const;

 private:
  struct Call;

  Call parse(const Tensors& inputs) const;
  void make_states(const Call& call);
  Tensors run(const Call& call, bool training);
  Tensors step(const Call& call, const Tensor& x, const Tensors& states,
               const Tensor& mask, bool training);
  Tensors unrolled(const Call& call, bool training);
  Tensors looped(const Call& call, bool training);
  Tensor looped_outputs(const Call& call, const Tensor& xs) const;
  Tensors at_once(const Call& call, const Tensors& results) const;
  Tensor last_step(const Tensor& outputs) const;
  Tensors no_steps(const Call& call) const;

  Layer cell_;
  RNNCellBase& base_;
  GateCell* const gates_;  // null: a cell of another kind
  const MakeCell make_cell_;
  RNNOptions o_;
  size_t carried_ = 0;  // the state that a masked step puts out
  std::vector<Variable> states_;
};

// Returns the layer of a handle. Throws errors::InvalidArgument, as of
// `owner`, when it is of another kind.
RnnBase& rnn_of(const Layer& layer, const LayerBase& owner);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_RNN_H_
