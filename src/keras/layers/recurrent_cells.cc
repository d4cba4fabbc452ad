// GateCell: weights, products and dropout of gates.

#include "keras/layers/recurrent_cells.h"

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

Tensors RNNCellBase::get_initial_state(const Tensor& batch) const {
  Tensors states;
  const int64_t n = batch.shape()[0];
  for (const int64_t width : state_size()) {
    const Tensor row = zeros({n < 0 ? 1 : n, width}, batch.dtype(), site());
    states.push_back(n < 0 ? math::add(batch, row, site()) : row);
  }
  return states;
}

Tensors RNNCellBase::get_constants(const Tensor&, bool) const { return {}; }

size_t RNNCellBase::num_constants(bool) const { return 0; }

GateCell::GateCell(const char* type, int64_t units, int64_t gates,
                   GateOptions options, const std::string& name, Site site)
    : RNNCellBase(type, name, site),
      units_(units),
      gates_(gates),
      o_(std::move(options)) {
  check_positive(state(), "units", units_);
  check_activation(state(), o_.activation);
  check_activation(state(), o_.recurrent_activation);
  for (const auto& [what, rate] :
       {std::pair("dropout", o_.dropout),
        std::pair("recurrent_dropout", o_.recurrent_dropout)}) {
    if (!(rate >= 0 && rate < 1)) {
      fail_in(state(), "{}: {} is {}; expected 0 <= {} < 1", type, what, rate,
              what);
    }
  }
}

void GateCell::build(const std::vector<Shape>& inputs) {
  in_ = known_channels(state(), inputs[0]);
  kernel_ = add_weight("kernel", {in_, gates_ * units_}, o_.kernel_initializer,
                       o_.kernel);
  recurrent_kernel_ = add_weight("recurrent_kernel", {units_, gates_ * units_},
                                 o_.recurrent_initializer, o_.recurrent);
  if (o_.use_bias) build_bias();
}

void GateCell::build_bias() {
  bias_ = add_weight("bias", {gates_ * units_}, o_.bias_initializer, o_.bias);
}

Tensor GateCell::input_bias() const { return bias_.value(site()); }

Tensors GateCell::get_constants(const Tensor& batch, bool training) const {
  Tensors masks;
  if (!training) return masks;
  const auto add = [&](double rate, int64_t width, int64_t count) {
    for (int64_t i = 0; rate > 0 && i < count; ++i) {
      std::optional<int64_t> seed = o_.seed;
      if (seed) *seed += static_cast<int64_t>(masks.size());
      const Tensor all =
          math::add(batch, ones({1, width}, batch.dtype(), site()), site());
      masks.push_back(nn::dropout(all, rate, {.seed = seed}, site()));
    }
  };
  add(o_.dropout, in_, o_.recurrent_dropout > 0 ? gates_ : 1);
  add(o_.recurrent_dropout, units_, gates_);
  return masks;
}

size_t GateCell::num_constants(bool training) const {
  if (!training) return 0;
  const auto all = static_cast<size_t>(gates_);
  const bool recurrent = o_.recurrent_dropout > 0;
  return (o_.dropout > 0 ? (recurrent ? all : 1) : 0) + (recurrent ? all : 0);
}

int64_t GateCell::num_input_masks(const Tensors& constants) const {
  const auto n = static_cast<int64_t>(constants.size());
  return n >= gates_ && o_.recurrent_dropout > 0 ? n - gates_ : n;
}

Tensor GateCell::state_mask(const Tensors& constants, int64_t gate) const {
  const int64_t first = num_input_masks(constants);
  const auto at = static_cast<size_t>(first + gate);
  return at < constants.size() ? constants[at] : Tensor();
}

Tensor GateCell::project(const Tensor& x, const Tensors& constants) const {
  check_channels(state(), x, in_);
  const Tensor kernel = kernel_.value(site());
  const auto dropped = [&](int64_t i) {
    const Tensor& mask = constants[static_cast<size_t>(i)];
    return x * (x.rank() == 3 ? expand_dims(mask, 1, site()) : mask);
  };
  Tensor y;
  const int64_t masks = num_input_masks(constants);
  if (masks <= 1) {
    y = matmul(masks == 0 ? x : dropped(0), kernel, {}, site());
  } else {
    Tensors parts;
    for (int64_t i = 0; i < gates_; ++i) {
      parts.push_back(matmul(dropped(i), gate(kernel, i), {}, site()));
    }
    y = concat(parts, -1, site());
  }
  return o_.use_bias ? nn::bias_add(y, input_bias(), site()) : y;
}

Tensor GateCell::recurrent(const Tensor& h, const Tensors& constants) const {
  const Tensor kernel = recurrent_kernel_.value(site());
  if (!state_mask(constants, 0).defined()) {
    return matmul(h, kernel, {}, site());
  }
  Tensors parts;
  for (int64_t i = 0; i < gates_; ++i) {
    parts.push_back(
        matmul(h * state_mask(constants, i), gate(kernel, i), {}, site()));
  }
  return concat(parts, -1, site());
}

Tensor GateCell::gate(const Tensor& x, int64_t index, int64_t count) const {
  std::vector<int64_t> begin(static_cast<size_t>(x.rank()), 0);
  std::vector<int64_t> size(static_cast<size_t>(x.rank()), -1);
  begin.back() = index * units_;
  size.back() = count * units_;
  return slice(x, begin, size, site());
}

Tensor GateCell::activate(const Tensor& x) const {
  return apply_activation(o_.activation, x, site());
}
Tensor GateCell::activate_gate(const Tensor& x) const {
  return apply_activation(o_.recurrent_activation, x, site());
}

bool GateCell::has_standard_activations() const {
  return o_.activation == "tanh" && o_.recurrent_activation == "sigmoid";
}

Tensors GateCell::sequence(const Tensor&, const Tensors&, const Tensor&) const {
  return {};
}

Tensors GateCell::call(const Tensors& inputs, bool training) {
  const size_t num_states = state_size().size();
  if (inputs.size() < 1 + num_states) {
    fail_in(state(), "{}: got {} inputs; expected x and {} states",
            state().type, inputs.size(), num_states);
  }
  const auto states_end =
      inputs.begin() + 1 + static_cast<ptrdiff_t>(num_states);
  const Tensors states(inputs.begin() + 1, states_end);
  Tensors constants(states_end, inputs.end());
  if (constants.empty() && training) {
    const Tensor column = slice(states[0], {0, 0}, {-1, 1}, site());
    constants = get_constants(zeros_like(column, site()), training);
  }
  return step(project(inputs[0], constants), states, constants);
}

RNNCellBase& cell_of(const Layer& layer, const LayerBase& owner) {
  auto* cell = dynamic_cast<RNNCellBase*>(layer.base().get());
  if (cell == nullptr) {
    fail_in(owner.state(),
            "{}: the cell is \"{}\", {}; expected one derived from "
            "keras::RNNCellBase",
            owner.state().type, layer.name(), layer.base()->state().type);
  }
  if (cell->state_size().empty()) {
    fail_in(cell->state(),
            "{}: state_size() is empty; expected a "
            "width for at least one state",
            cell->state().type);
  }
  return *cell;
}

void build_cell(const Layer& cell, const Shape& input) {
  LayerState& s = cell.base()->state();
  std::lock_guard lock(s.build.mutex);
  if (s.build.done.load(std::memory_order_relaxed)) return;
  try {
    cell.base()->build({input});
  } catch (...) {
    s.weights.trainable.clear();
    s.weights.other.clear();
    throw;
  }
  s.build.done.store(true, std::memory_order_release);
}

}  // namespace berth::keras
