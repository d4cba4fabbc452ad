// LayerBase and Layer: weights, the first call, every call.

#include <algorithm>
#include <set>
#include <utility>

#include "berth/errors.h"
#include "berth/keras/layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "function/abstract_call.h"
#include "keras/models/keras_node.h"
#include "keras/models/layer_state.h"
#include "keras/models/lint_layers.h"
#include "keras/models/masks.h"
#include "keras/models/pending_weights.h"
#include "keras/models/policy_scope.h"
#include "keras/models/remat.h"
#include "keras/models/weight_limit.h"
#include "op/device_scope.h"
#include "op/with_room.h"
#include "ops/random_key.h"

namespace berth::keras {

LayerBase::LayerBase(const std::string& type, const std::string& name,
                     Site site)
    : state_(std::make_unique<LayerState>()) {
  state_->type = type;
  state_->name = name.empty() ? next_layer_name(type) : name;
  state_->stable_name = intern(state_->name);
  state_->site = site;
  state_->policy = PolicyScope::current();
  state_->remat = RematScope::current();
  if (t_state.scope) {
    state_->scope.device = t_state.scope->name.str();
    state_->scope.site = t_state.scope->site;
  }
  lint_layer_made(*state_);
}
LayerBase::~LayerBase() {
  lint_layer_gone(*state_);
  forget_pending_weights(*state_);
}

void LayerBase::build(const std::vector<Shape>&) {}
const std::string& LayerBase::name() const { return state_->name; }
Site LayerBase::site() const { return state_->site; }
void LayerBase::fail(const std::string& message) const {
  fail_in(*state_, message);
}

Variable LayerBase::add_weight(const std::string& name, const Shape& shape,
                               const Initializer& initializer, bool trainable,
                               VariableAggregation aggregation) {
  return add_weight(
      name, shape, initializer,
      WeightOptions{.trainable = trainable, .aggregation = aggregation});
}

Variable LayerBase::add_weight(const std::string& name, const Shape& shape,
                               const Initializer& initializer,
                               const WeightOptions& options) {
  if (!shape.is_fully_defined()) {
    fail_in(state(),
            "weight \"{}\" would have shape {}; expected known "
            "dimensions: give the input's, all but the batch",
            name, shape.str());
  }
  WeightLimit::take(state_->name + "/" + name, shape);
  Variable v;
  const RandomState drawn = random_state();
  bool again = false;
  with_room(state_->name + "/" + name, [&] {
    // A second try draws what the first one drew.
    if (std::exchange(again, true)) set_random_state(drawn);
    const Tensor initial = initializer(shape, float32);
    if (!(initial.shape() == shape)) {
      fail_in(state(), "the initializer of weight \"{}\" gave {}; expected {}",
              name, initial.shape().str(), shape.str());
    }
    v = Variable(initial,
                 {.name = state_->name + "/" + name,
                  .trainable = options.trainable,
                  .aggregation = options.aggregation},
                 state_->site);
  });
  (options.trainable ? state_->weights.trainable : state_->weights.other)
      .push_back(v);
  if (options.regularizer && options.trainable) {
    state_->losses.regularized.emplace_back(v, options.regularizer);
  }
  if (options.constraint) {
    state_->weights.constraints.emplace_back(v, options.constraint);
  }
  return v;
}

void LayerBase::add_loss(std::function<Tensor()> fn) {
  if (!fn) fail(state_->type + ": add_loss() got an empty function");
  state_->losses.added.push_back(std::move(fn));
}
void LayerBase::add_loss(const Tensor& loss) { CallLosses::add(*state_, loss); }
void LayerBase::add_metric(const Tensor& value, const std::string& name) {
  CallLosses::add_metric(*state_, name, value);
}
void LayerBase::set_activity_regularizer(Regularizer regularizer) {
  state_->losses.activity = std::move(regularizer);
}

Layer LayerBase::track(Layer layer) {
  layer.base()->state().lint.is_part = true;
  state_->parts.push_back(layer);
  return layer;
}

namespace {

void ensure_built(LayerBase& base, const Tensors& inputs) {
  LayerState& s = base.state();
  if (s.build.done.load(std::memory_order_acquire)) return;
  std::lock_guard lock(s.build.mutex);
  if (s.build.done.load(std::memory_order_relaxed)) return;
  std::vector<Shape> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  const Lifted lifted;
  const AutocastScope as_they_are(float32);
  const PolicyScope of_parts(s.policy);
  const size_t losses = s.losses.added.size();  // the constructor's
  // First values that a checkpoint replaces were drawn in another process.
  std::optional<UncountedRandomKeys> uncounted;
  if (has_pending_weights(s)) uncounted.emplace();
  if (const LayerCall* call = LayerCall::current()) s.path = call->path();
  try {
    base.build(shapes);
  } catch (...) {
    s.weights.trainable.clear();
    s.weights.other.clear();
    s.losses.regularized.clear();
    s.losses.added.resize(losses);
    s.weights.constraints.clear();
    throw;
  }
  weights_are_made(s);
  s.build.done.store(true, std::memory_order_release);
}

void check_inputs(const LayerBase& base, const Tensors& inputs) {
  const LayerState& s = base.state();
  if (inputs.empty()) fail_in(s, s.type + ": called without inputs");
  for (const Tensor& t : inputs) {
    if (!t.defined()) fail_in(s, s.type + ": an input is an empty tensor");
  }
}

void note_shapes(LayerState& s, const Tensors& inputs, const Tensors& outputs) {
  std::lock_guard lock(s.build.mutex);
  if (!s.build.output_shapes.empty()) return;
  for (const Tensor& t : inputs) s.build.input_specs.push_back(t.spec());
  for (const Tensor& t : outputs) s.build.output_shapes.push_back(t.shape());
}

void collect(const LayerState& s, bool trainable, bool other,
             std::vector<Variable>* out) {
  auto add = [&](const std::vector<Variable>& list) {
    for (const Variable& v : list) {
      const bool there =
          std::any_of(out->begin(), out->end(), [&](const Variable& o) {
            return o.handle().impl() == v.handle().impl();
          });
      if (!there) out->push_back(v);
    }
  };
  const bool learns = s.weights.learns.load(std::memory_order_relaxed);
  if (learns ? trainable : other) add(s.weights.trainable);
  if (other) add(s.weights.other);
  for (const Layer& part : s.parts) {
    collect(part.base()->state(), trainable, other, out);
  }
}

// The penalty of outputs `y`, per example: it does not grow with the batch.
Tensor penalty_of(const LayerState& s, const Tensor& y) {
  const Tensor all = s.losses.activity(y);
  if (y.rank() == 0) return all;
  if (y.shape()[0] > 0) return all * (1 / static_cast<double>(y.shape()[0]));
  const Tensor n = reshape(slice(shape(y), {0}, {1}), {});
  return all / math::cast(n, all.dtype());
}

// Calls fn(state) for a layer and its parts, once each.
template <class Fn>
void each_state(const LayerState& root, const Fn& fn) {
  std::set<const LayerState*> seen;
  const auto visit = [&](const auto& self, const LayerState& s) -> void {
    if (!seen.insert(&s).second) return;
    fn(s);
    for (const Layer& part : s.parts) self(self, part.base()->state());
  };
  visit(visit, root);
}

}  // namespace

Layer::Layer(std::shared_ptr<LayerBase> base) : base_(std::move(base)) {
  if (base_ == nullptr) {
    throw errors::InvalidArgument(
        "a Layer was made of a null pointer; expected one to a LayerBase: "
        "write keras::make_layer<YourLayer>()");
  }
}

Tensors Layer::operator()(const Tensors& x,
                          std::optional<bool> training) const {
  LayerBase& base = *base_;
  const LayerCall call(base.state(), training);
  check_inputs(base, x);
  const bool first = !base.state().build.done.load(std::memory_order_acquire);
  ensure_built(base, x);
  LayerState& s = base.state();
  const bool masks = Masks::wanted();
  const MaskScope scope;
  (tracing() ? s.lint.traced_calls : s.lint.eager_calls)
      .fetch_add(1, std::memory_order_relaxed);
  const Tensors in = inputs_for(s, x);
  Tensors y = s.remat && call.training() && recomputes(base, in)
                  ? recomputed_call(base, in)
                  : base.call(in, call.training());
  cast_outputs(s, &y);
  if (s.losses.activity && CallLosses::wanted()) {
    for (const Tensor& t : y) CallLosses::add(s, penalty_of(s, t));
  }
  if (masks) Masks::pass(base, in, y);
  if (first) note_shapes(base.state(), x, y);
  call.report_scope(x, y);
  return y;
}

Tensor Layer::operator()(const Tensor& x, std::optional<bool> training) const {
  Tensors y = (*this)(Tensors{x}, training);
  if (y.size() != 1) {
    fail_in(base_->state(),
            "{}: has {} outputs; expected 1: call it with a "
            "Tensors list to get them all",
            base_->state().type, y.size());
  }
  return std::move(y[0]);
}

KerasTensors Layer::outputs_of(const KerasTensors& x) const {
  auto node = std::make_shared<KerasNode>(KerasNode{*this, x, {}});
  std::vector<TensorSpec> specs;
  for (const KerasTensor& t : x) {
    specs.push_back(t.node()->outputs[static_cast<size_t>(t.index())]);
  }
  node->outputs = abstract_call(
      [&](const Tensors& in) { return (*this)(in, false); }, specs);
  KerasTensors list;
  for (size_t i = 0; i < node->outputs.size(); ++i) {
    list.emplace_back(node, static_cast<int>(i));
  }
  LayerState& s = base_->state();
  const std::lock_guard lock(s.build.mutex);
  std::erase_if(s.graph.nodes, [](const auto& n) { return n.expired(); });
  s.graph.nodes.push_back(node);
  return list;
}
KerasTensor Layer::operator()(const KerasTensors& x) const {
  KerasTensors list = outputs_of(x);
  if (list.size() != 1) {
    fail_in(base_->state(),
            "{}: has {} outputs; expected 1: call outputs_of() to get them all",
            base_->state().type, list.size());
  }
  return list[0];
}
KerasTensor Layer::operator()(const KerasTensor& x) const {
  return (*this)(KerasTensors{x});
}

const Shape& KerasTensor::shape() const {
  return node_->outputs[static_cast<size_t>(index_)].shape;
}
DType KerasTensor::dtype() const {
  return node_->outputs[static_cast<size_t>(index_)].dtype;
}

bool Layer::built() const { return base_->state().build.done.load(); }
bool Layer::trainable() const { return base_->state().weights.learns.load(); }
void Layer::set_trainable(bool trainable) const {
  base_->state().weights.learns = trainable;
  for (const Layer& part : base_->state().parts) part.set_trainable(trainable);
}
const std::string& Layer::requested_device() const {
  return base_->state().scope.device;
}

std::vector<Variable> Layer::weights() const {
  // Layer by layer, so that a list fits the same layers in another model.
  std::vector<Variable> all;
  const LayerState& s = base_->state();
  for (const auto* list : {&s.weights.trainable, &s.weights.other}) {
    all.insert(all.end(), list->begin(), list->end());
  }
  for (const Layer& part : s.parts) {
    for (const Variable& v : part.weights()) {
      const bool there =
          std::any_of(all.begin(), all.end(), [&](const Variable& o) {
            return o.handle().impl() == v.handle().impl();
          });
      if (!there) all.push_back(v);
    }
  }
  return all;
}

std::vector<Variable> Layer::trainable_variables() const {
  std::vector<Variable> list;
  collect(base_->state(), true, false, &list);
  return list;
}
std::vector<Variable> Layer::non_trainable_variables() const {
  std::vector<Variable> list;
  collect(base_->state(), false, true, &list);
  return list;
}

Tensors Layer::losses() const {
  Tensors list;
  const Site outer = t_state.site;
  each_state(base_->state(), [&](const LayerState& s) {
    set_site(s.site);
    if (s.weights.learns.load(std::memory_order_relaxed)) {
      for (const auto& [v, penalty] : s.losses.regularized) {
        list.push_back(penalty(v.value(s.site)));
        check_loss(s, list.back());
      }
    }
    for (const auto& fn : s.losses.added) {
      list.push_back(fn());
      check_loss(s, list.back());
    }
  });
  set_site(outer);
  return list;
}

std::vector<std::pair<Variable, Constraint>> Layer::constraints() const {
  std::vector<std::pair<Variable, Constraint>> list;
  each_state(base_->state(), [&](const LayerState& s) {
    list.insert(list.end(), s.weights.constraints.begin(),
                s.weights.constraints.end());
  });
  return list;
}

int64_t Layer::count_params() const {
  int64_t n = 0;
  for (const Variable& v : weights()) n += v.shape().num_elements();
  return n;
}

Tensors Layer::get_weights() const {
  Tensors values;
  for (const Variable& v : weights()) values.push_back(v.value());
  return values;
}

void Layer::set_weights(const Tensors& values) const {
  const std::vector<Variable> list = weights();
  const LayerState& s = base_->state();
  if (values.size() != list.size()) {
    fail_in(s, "set_weights: got {} tensors; expected {}{}", values.size(),
            list.size(), list.empty() ? ": build the layer first" : "");
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (!values[i].defined() || !(values[i].shape() == list[i].shape())) {
      fail_in(s, "set_weights: value {} is {}; expected {} for {}", i,
              values[i].defined() ? values[i].shape().str() : "an empty tensor",
              list[i].shape().str(), list[i].name());
    }
  }
  for (size_t i = 0; i < list.size(); ++i) list[i].assign(values[i]);
}

}  // namespace berth::keras
