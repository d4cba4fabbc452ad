// RnnBase: runs a cell unrolled, as a loop, or as one op.

#include "keras/layers/rnn.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/layers/gated_layer.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"
#include "op/dispatcher.h"

namespace berth::keras {

namespace {

// Steps that a trace unrolls without being told: a longer sequence is a loop,
// which is compiled sooner.
constexpr int64_t kUnrolled = 64;

// Zeros [batch, 1] for a batch that is not known yet.
Tensor zero_column(const Tensor& x, Site site) {
  const int64_t n = x.shape()[0];
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : float32;
  if (n >= 0) return zeros({n, 1}, dtype, site);
  std::vector<int64_t> all;
  for (int i = 1; i < x.rank(); ++i) all.push_back(i);
  // Zeros, made without first elements: x may be empty.
  const Tensor zero = zeros_like(math::cast(x, dtype, site), site);
  return expand_dims(math::reduce_sum(zero, {.axis = all}, site), -1, site);
}

// What is kept between calls is float32.
Tensor in_dtype(const Tensor& x, DType dtype, Site site) {
  return x.dtype() == dtype ? x : math::cast(x, dtype, site);
}

}  // namespace

// One call: the sequence, the states before it, the mask if any.
struct RnnBase::Call {
  Tensor x, mask;
  Tensors states, constants;
  bool parts = false;  // x is what GateCell::project() made
  int64_t steps = 0;   // -1: unknown
};

RnnBase::RnnBase(const char* type, Layer cell, MakeCell make_cell,
                 const RNNOptions& options, Site site)
    : RecurrentBase(type, options.name, site),
      cell_(track(std::move(cell))),
      base_(cell_of(cell_, *this)),
      gates_(dynamic_cast<GateCell*>(&base_)),
      make_cell_(std::move(make_cell)),
      o_(options) {
  if (auto* stacked = dynamic_cast<StackedCells*>(&base_)) {
    carried_ = stacked->last_cells_state();
  }
}

void RnnBase::build(const std::vector<Shape>& inputs) {
  Shape x = inputs[0];
  if (x.rank() < 3) {
    fail_in(state(), "{}: the input is {}; expected [batch, time, features]",
            state().type, x.str());
  }
  x.erase(1);
  build_cell(cell_, x);
}

RnnBase::Call RnnBase::parse(const Tensors& inputs) const {
  Call c;
  c.x = inputs[0];
  if (c.x.rank() < 3) {
    fail_in(state(), "{}: the input is {}; expected [batch, time, features]",
            state().type, c.x.shape().str());
  }
  c.steps = c.x.shape()[1];
  size_t end = inputs.size();
  if (end > 1 && inputs[end - 1].dtype() == bool_) {
    c.mask = inputs[--end];
  } else {
    c.mask = mask_of(c.x);
  }
  c.states.assign(inputs.begin() + 1,
                  inputs.begin() + static_cast<ptrdiff_t>(end));
  const std::vector<int64_t> sizes = base_.state_size();
  if (!c.states.empty() && c.states.size() != sizes.size()) {
    fail_in(state(), "{}: got {} initial states; expected {} or none",
            state().type, c.states.size(), sizes.size());
  }
  for (size_t i = 0; i < c.states.size(); ++i) {
    const Shape want{c.x.shape()[0], sizes[i]};
    if (!c.states[i].shape().compatible_with(want)) {
      fail_in(state(), "{}: the initial state {} is {}; expected {}",
              state().type, i, c.states[i].shape().str(), want.str());
    }
  }
  if (c.mask.defined() &&
      !c.mask.shape().compatible_with({c.x.shape()[0], c.steps})) {
    fail_in(state(), "{}: the mask is {}, the input {}; expected [batch, time]",
            state().type, c.mask.shape().str(), c.x.shape().str());
  }
  return c;
}

// At the first call of a known batch, outside of what is traced.
void RnnBase::make_states(const Call& c) {
  LayerState& s = state();
  std::lock_guard lock(s.build.mutex);
  const int64_t n = c.x.shape()[0];
  if (!states_.empty()) {
    const int64_t have = states_[0].shape()[0];
    if (n < 0 || n == have) return;
    fail_in(state(),
            "{}: the batch is {}, and the states that it keeps are "
            "of a batch of {}; expected the same batch at each call",
            s.type, n, have);
  }
  if (n < 0) {
    fail_in(state(),
            "{}: a stateful layer needs to know its batch; the input is {}",
            s.type, c.x.shape().str());
  }
  const Lifted lifted;
  for (const int64_t width : base_.state_size()) {
    states_.push_back(add_weight("rnn_state", {n, width}, "zeros", false));
  }
}

Tensors RnnBase::call(const Tensors& inputs, bool training) {
  Call c = parse(inputs);
  const Tensor batch = zero_column(c.x, site());
  const bool described = o_.stateful && c.x.shape()[0] < 0;
  if (o_.stateful && !described) make_states(c);
  if (c.states.empty() && o_.stateful && !described) {
    for (const Variable& v : states_) {
      c.states.push_back(in_dtype(v.value(site()), batch.dtype(), site()));
    }
  }
  if (c.states.empty()) c.states = base_.get_initial_state(batch);
  c.constants = base_.get_constants(batch, training);
  const Tensors y = run(c, training);  // outputs, then states
  if (o_.stateful && !described) {
    for (size_t i = 0; i < states_.size(); ++i) {
      states_[i].assign(in_dtype(y[i + 1], float32, site()), site());
    }
  }
  return o_.return_state ? y : Tensors{y[0]};
}

Tensors RnnBase::run(const Call& call, bool training) {
  Call c = call;
  if (o_.go_backwards) {
    c.x = reverse(c.x, {1}, site());
    if (c.mask.defined()) c.mask = reverse(c.mask, {1}, site());
  }
  if (gates_ && c.x.rank() == 3) {
    c.x = gates_->project(c.x, c.constants);
    c.parts = true;
    if (c.steps != 0 && !gates_->drops_states(training)) {
      const Tensors y = gates_->sequence(c.x, c.states, c.mask);
      if (!y.empty()) return at_once(c, y);
    }
  }
  const bool unroll =
      !tracing() || o_.unroll || (c.steps >= 0 && c.steps <= kUnrolled);
  if (unroll && c.steps < 0) {
    fail_in(state(),
            "{}: the input is {}; expected a known time axis to "
            "unroll: give it in Input(), or leave unroll away",
            state().type, c.x.shape().str());
  }
  if (c.steps == 0) return no_steps(c);
  return unroll ? unrolled(c, training) : looped(c, training);
}

// The results of GateCell::sequence() as those of the steps.
Tensors RnnBase::at_once(const Call& c, const Tensors& y) const {
  const Tensor last = last_step(y[0]);
  Tensor output = o_.return_sequences ? y[0] : last;
  if (c.mask.defined() && o_.zero_output_for_mask) {
    const Tensor there = expand_dims(c.mask, -1, site());
    const Tensor kept = where(there, y[0], zeros_like(y[0], site()), site());
    output = o_.return_sequences ? kept : last_step(kept);
  }
  Tensors result{output, last};
  result.insert(result.end(), y.begin() + 1, y.end());
  return result;
}

Tensor RnnBase::last_step(const Tensor& y) const {
  const Shape& s = y.shape();
  const int64_t n = s[0] < 0 ? kUnknownDim : s[0];
  return reshape(strided_slice(y, {0, -1, 0}, {0, 0, 0},
                               {.begin_mask = 5, .end_mask = 7}, site()),
                 {n, s[2]}, site());
}

// What an empty sequence gives: zeros, and the states as they were.
Tensors RnnBase::no_steps(const Call& c) const {
  const Tensor& h = c.states[0];
  const int64_t width = base_.output_size();
  const Tensor column = slice(h, {0, 0}, {-1, 1}, site());
  const Tensor last = math::add(zeros_like(column, site()),
                                zeros({1, width}, h.dtype(), site()), site());
  Tensors y{o_.return_sequences
                ? tile(expand_dims(last, 1, site()), {1, 0, 1}, site())
                : last};
  y.insert(y.end(), c.states.begin(), c.states.end());
  return y;
}

// {output, new states...} of one step; `mask` [batch, 1] or an empty tensor.
Tensors RnnBase::step(const Call& c, const Tensor& x, const Tensors& states,
                      const Tensor& mask, bool training) {
  Tensors y;
  if (c.parts) {
    y = gates_->step(x, states, c.constants);
  } else {
    Tensors in{x};
    in.insert(in.end(), states.begin(), states.end());
    in.insert(in.end(), c.constants.begin(), c.constants.end());
    y = cell_(in, training);
  }
  if (y.size() != 1 + states.size()) {
    fail_in(state(),
            "{}: the cell gave {} tensors; expected an output and {} states",
            state().type, y.size(), states.size());
  }
  if (!mask.defined()) return y;
  const Tensor& before = states[carried_];
  const bool carries =
      !o_.zero_output_for_mask && before.shape().compatible_with(y[0].shape());
  y[0] = where(mask, y[0], carries ? before : zeros_like(y[0], site()), site());
  for (size_t i = 0; i < states.size(); ++i) {
    y[i + 1] = where(mask, y[i + 1], states[i], site());
  }
  return y;
}

Tensors RnnBase::unrolled(const Call& c, bool training) {
  const Tensors xs = unstack(c.x, 1, site());
  Tensors masks;
  if (c.mask.defined()) {
    masks = unstack(expand_dims(c.mask, -1, site()), 1, site());
  }
  Tensors states = c.states, outputs;
  for (size_t t = 0; t < xs.size(); ++t) {
    Tensors y =
        step(c, xs[t], states, masks.empty() ? Tensor() : masks[t], training);
    if (!o_.return_sequences) outputs.clear();
    outputs.push_back(y[0]);
    states.assign(y.begin() + 1, y.end());
  }
  Tensors result{o_.return_sequences ? stack(outputs, 1, site()) : outputs[0]};
  result.insert(result.end(), states.begin(), states.end());
  return result;
}

// The variables of the loop: the step, all outputs [time, batch, width] or the
// last one, the states.
Tensors RnnBase::looped(const Call& c, bool training) {
  std::vector<int64_t> order(static_cast<size_t>(c.x.rank()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::swap(order[0], order[1]);
  const Tensor xs = transpose(c.x, order, site());
  Tensor masks;
  if (c.mask.defined()) {
    masks = expand_dims(transpose(c.mask, {1, 0}, site()), -1, site());
  }
  const Tensor steps =
      gather(shape(xs, int64, site()), constant(int64_t{0}, site()), 0, site());
  const Tensor last = no_steps(c).front();
  Tensors vars{constant(int64_t{0}, site()),
               o_.return_sequences ? looped_outputs(c, xs) : last};
  vars.insert(vars.end(), c.states.begin(), c.states.end());
  vars = while_loop(
      [&](const Tensors& v) { return math::less(v[0], steps, site()); },
      [&](const Tensors& v) {
        const Tensor mask =
            masks.defined() ? gather(masks, v[0], 0, site()) : Tensor();
        const Tensors y = step(c, gather(xs, v[0], 0, site()),
                               Tensors(v.begin() + 2, v.end()), mask, training);
        Tensors next{v[0] + 1, y[0]};
        if (o_.return_sequences) {
          next[1] =
              tensor_scatter_nd_update(v[1], reshape(v[0], {1, 1}, site()),
                                       expand_dims(y[0], 0, site()), site());
        }
        next.insert(next.end(), y.begin() + 1, y.end());
        return next;
      },
      vars, {.max_iterations = c.steps}, site());
  Tensors result(vars.begin() + 1, vars.end());
  if (o_.return_sequences) result[0] = transpose(result[0], {1, 0, 2}, site());
  return result;
}

// Zeros [time, batch, width].
Tensor RnnBase::looped_outputs(const Call& c, const Tensor& xs) const {
  const Tensor& h = c.states[0];
  const int64_t width = base_.output_size();
  std::vector<int64_t> begin(static_cast<size_t>(xs.rank()), 0);
  std::vector<int64_t> size(begin.size(), 1);
  size[0] = size[1] = -1;
  const Shape& s = xs.shape();
  const int64_t t = s[0] < 0 ? kUnknownDim : s[0];
  const int64_t n = s[1] < 0 ? kUnknownDim : s[1];
  if (t >= 0 && n >= 0) return zeros({t, n, width}, h.dtype(), site());
  Tensor column = slice(xs, begin, size, site());
  if (xs.rank() > 3) {
    std::vector<int64_t> axes;
    for (int i = 3; i < xs.rank(); ++i) axes.push_back(i);
    column = squeeze(column, axes, site());
  }
  return math::add(math::cast(zeros_like(column, site()), h.dtype(), site()),
                   zeros({1, 1, width}, h.dtype(), site()), site());
}

Tensors RnnBase::compute_mask(const Tensors& inputs, const Tensors& masks) {
  if (!o_.return_sequences || inputs.empty()) return {};
  const Tensor& last = inputs.back();
  if (inputs.size() > 1 && last.dtype() == bool_) return {last};
  return {masks[0]};
}

void RnnBase::reset_states() {
  if (!o_.stateful) {
    throw errors::FailedPrecondition(fmt::format(
        "reset_states: \"{}\" keeps no states; expected {{.stateful = true}}",
        name()));
  }
  for (const Variable& v : states_) {
    v.assign(zeros(v.shape(), v.dtype(), site()), site());
  }
}

std::shared_ptr<RnnBase> RnnBase::copy(const std::string& name,
                                       bool backwards) const {
  if (!make_cell_) {
    fail_in(state(),
            "Bidirectional: \"{}\" has a cell of your own, of which it can "
            "make no copy; expected LSTM, GRU, SimpleRNN, or a backward_layer",
            this->name());
  }
  RNNOptions o = o_;
  o.name = name;
  o.go_backwards = backwards;
  return std::make_shared<RnnBase>(state().type.c_str(), make_cell_(name),
                                   make_cell_, o, site());
}

RnnBase& rnn_of(const Layer& layer, const LayerBase& owner) {
  auto* base = dynamic_cast<RnnBase*>(layer.base().get());
  if (base) return *base;
  fail_in(owner.state(),
          "{}: \"{}\" is a {}; expected an RNN, LSTM, GRU or SimpleRNN",
          owner.state().type, layer.name(), layer.base()->state().type);
}

namespace {

struct RnnArgs {
  std::optional<Layer> cell;
  RNNOptions o;
  void fields(Fields& f) {
    f.must("cell", cell);
    rnn_fields(f, o);
    f("name", o.name);
  }
  Layer make(Site site) const { return RNN(*cell, o, site); }
};

}  // namespace

RNN::RNN(Layer cell, RNNOptions options, Site site)
    : RecurrentLayer(
          std::make_shared<RnnBase>("RNN", cell, nullptr, options, site)) {
  describe(*this, RnnArgs{cell, options});
}
RNN::RNN(std::vector<Layer> cells, RNNOptions options, Site site)
    : RNN(StackedRNNCells(std::move(cells), {}, site), options, site) {}

void add_rnn_classes(Classes& c) { c.layers["RNN"] = &layer_of<RnnArgs>; }

std::vector<Variable> RecurrentLayer::states() const {
  auto* layer = dynamic_cast<RecurrentBase*>(base().get());
  return layer ? layer->states() : std::vector<Variable>();
}

void RecurrentLayer::reset_states() const {
  if (auto* layer = dynamic_cast<RecurrentBase*>(base().get())) {
    layer->reset_states();
  }
}

void reset_states(const Layer& layer) {
  if (auto* rnn = dynamic_cast<RnnBase*>(layer.base().get())) {
    if (rnn->options().stateful) rnn->reset_states();
  }
  for (const Layer& part : layer.base()->state().parts) reset_states(part);
}

}  // namespace berth::keras
