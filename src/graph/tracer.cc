#include "graph/tracer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/callable.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {
std::atomic<uint64_t> trace_serial{0};
thread_local const TracedAs* t_traced_as = nullptr;

std::string base_name(const OpDef& op) {
  const std::string& name = op.name();
  return name[0] == '_' ? name.substr(1) : name;
}
}  // namespace

Tracer::Tracer(std::string name, const Tracer* outer)
    : serial_(++trace_serial),
      outer_(outer),
      depth_(outer ? outer->depth_ + 1 : 1) {
  graph_.name = std::move(name);
}

Tracer::~Tracer() { stop(); }

TracedAs::TracedAs(const Node& node)
    : outer_(std::exchange(t_traced_as, this)),
      replica_(node.replica < 0 && outer_ ? outer_->replica_ : node.replica),
      part_(node.part) {}

TracedAs::~TracedAs() { t_traced_as = outer_; }

void Tracer::start() {
  push();
  ++t_state.tracers;
}

void Tracer::stop() {
  if (!pushed()) return;
  pop();
  --t_state.tracers;
}

int32_t Tracer::add_node(const OpDef& op, const Attrs* attrs,
                         std::vector<ValueRef> inputs) {
  Node node;
  node.op = &op;
  node.attrs = AttrsRef::share(attrs);
  node.inputs = std::move(inputs);
  std::vector<SpecView> specs;
  for (const ValueRef& v : node.inputs) specs.push_back(graph_.spec(v).view());
  node.outputs.resize(static_cast<size_t>(op.num_outputs(attrs)));
  infer_outputs(op, attrs, specs, node.outputs);

  const ThreadState& s = t_state;
  if (s.scope) node.requested = s.scope->name.str();
  node.follows = s.follows < graph_.size() ? s.follows : -1;
  // A gradient belongs to whom its forward op does.
  if (node.follows >= 0) node.replica = graph_[node.follows].replica;
  if (s.replica != nullptr) node.replica = s.replica->id();
  if (t_traced_as != nullptr) {
    if (node.replica < 0) node.replica = t_traced_as->replica_;
    node.part = t_traced_as->part_;
  }
  std::string name = s.layer && *s.layer
                         ? fmt::format("{}/{}", s.layer, base_name(op))
                         : base_name(op);
  const int n = names_[name]++;
  if (n > 0) name += "_" + std::to_string(n);
  node.sources = {
      {name, s.site, open_contracts(), s.scope ? s.scope->site : Site{}}};
  node.name = std::move(name);
  order_effects(node);
  return graph_.add(std::move(node));
}

// Reads wait for the last write, a write for the last write and all reads
// since; other effects keep their order among themselves.
void Tracer::order_effects(Node& node) {
  const int32_t id = graph_.size();
  auto wait_for = [&](int32_t before) {
    if (before >= 0) node.controls.push_back(before);
  };
  bool touched = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Access access = node.op->input(static_cast<int>(i)).access;
    const bool handle = graph_.spec(node.inputs[i]).dtype == resource;
    if (!handle) continue;
    touched = true;
    Order& order = effects_[node.inputs[i].node];
    wait_for(order.last_write);
    // A callee may do anything with its variables.
    if (writes(access) || node.op->kind() == OpKind::kCall ||
        node.op->kind() == OpKind::kControl) {
      for (int32_t read : order.reads) wait_for(read);
      order = {id, {}};
    } else {
      order.reads.push_back(id);
    }
  }
  const bool effect = node.op->kind() == OpKind::kControl ? node.has_effect()
                                                          : node.op->stateful();
  if (effect && !touched) {
    wait_for(last_effect_);
    last_effect_ = id;
  }
  std::sort(node.controls.begin(), node.controls.end());
  node.controls.erase(std::unique(node.controls.begin(), node.controls.end()),
                      node.controls.end());
}

Tensor Tracer::add_arg(const TensorSpec& spec) {
  static const OpDef& op = op_named("_Arg");
  Shape shape = spec.shape;
  for (int i = 0; i < shape.rank(); ++i) {
    // Symbols of the outer trace mean the same in here; new ones would not.
    if (shape[i] == kUnknownDim && outer_ == nullptr) shape[i] = next_symbol_--;
  }
  const auto index = static_cast<int64_t>(graph_.args.size());
  const AttrsRef attrs(
      {{"index", index}, {"dtype", spec.dtype}, {"shape", shape}});
  const int32_t id = add_node(op, attrs.get(), {});
  if (!spec.name.empty()) {
    graph_[id].name = spec.name + "_" + std::to_string(index);
    graph_[id].sources[0].name = graph_[id].name;
  }
  graph_.args.push_back(id);
  return make_symbolic(serial_, id, 0, spec.dtype, shape);
}

ValueRef Tracer::capture(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  if (const auto it = captured_.find(&impl); it != captured_.end()) {
    return it->second;
  }
  // A capture is made where it stands, whatever scope its user is in.
  const ThreadState saved = t_state;
  t_state.scope = nullptr;
  t_state.follows = -1;
  struct Restore {
    const ThreadState& saved;
    const TracedAs* const as = std::exchange(t_traced_as, nullptr);
    ~Restore() {
      t_state.scope = saved.scope;
      t_state.follows = saved.follows;
      t_traced_as = as;
    }
  } restore{saved};
  ValueRef value;
  if (impl.kind == TensorKind::kVariable) {
    static const OpDef& op = op_named("VarHandleOp");
    const VariableState& v = *impl.variable;
    if (v.rebinds()) {
      throw Untraceable<errors::InvalidArgument>(fmt::format(
          "variable '{}', {}, is used in \"{}\"{}; expected one of numbers "
          "whose shape is fixed: outside of a trace others work, op by op",
          v.name, v.dtype == string_ ? "of text" : "whose shape may change",
          graph_.name, where_text()));
    }
    const AttrsRef attrs(
        {{"shared_name", v.name}, {"dtype", v.dtype}, {"shape", v.shape}});
    value = {add_node(op, attrs.get(), {}), 0};
    Node& node = graph_[value.node];
    node.variable = t;
    node.sources = {{v.name, v.site, open_contracts()}};
    variables_.push_back(t);
  } else {
    static const OpDef& op = op_named("Const");
    Tensor constant = t;
    const bool host =
        impl.block->device->memory().host_addressable && impl.dtype != string_;
    if (host && impl.shape.rank() == 0) {
      synchronize(impl.block->ready);
      const std::string bytes(reinterpret_cast<const char*>(impl.data()),
                              size_of(impl.dtype));
      auto [it, fresh] = scalars_.try_emplace({impl.dtype, bytes});
      if (!fresh) return it->second;
    }
    if (impl.block->borrowed.load()) {
      // The graph's copy must not move when the variable is written.
      constant = own_copy(t, *impl.block->device);
    }
    value = {add_node(op, AttrsRef({{"value", constant}}).get(), {}), 0};
    if (host && impl.shape.rank() == 0) {
      const std::string bytes(reinterpret_cast<const char*>(impl.data()),
                              size_of(impl.dtype));
      scalars_[{impl.dtype, bytes}] = value;
      return value;  // scalars are found by value, not by address
    }
  }
  captured_[&impl] = value;
  keep_.push_back(t);
  return value;
}

bool Tracer::sees(uint64_t trace) const {
  return trace == serial_ || (outer_ != nullptr && outer_->sees(trace));
}

ValueRef Tracer::capture_outer(const Tensor& t) {
  if (const auto it = captured_.find(t.impl()); it != captured_.end()) {
    return it->second;
  }
  const DeviceScope* scope = std::exchange(t_state.scope, nullptr);
  TensorSpec spec = t.spec();
  const Tensor arg = add_arg(spec);
  t_state.scope = scope;
  const ValueRef value = {arg.impl()->node, 0};
  captured_[t.impl()] = value;
  keep_.push_back(t);
  outer_values_.push_back(t);
  return value;
}

ValueRef Tracer::value_of(const Tensor& t) {
  if (!t.defined()) {
    throw errors::InvalidArgument(
        fmt::format("an empty tensor was used while tracing \"{}\"{}",
                    graph_.name, where_text()));
  }
  const TensorImpl& impl = *t.impl();
  if (impl.kind != TensorKind::kSymbolic) return capture(t);
  if (impl.trace != serial_ && outer_ != nullptr && outer_->sees(impl.trace)) {
    return capture_outer(t);
  }
  if (impl.trace != serial_) {
    throw errors::FailedPrecondition(fmt::format(
        "a tensor of another trace was used while tracing \"{}\"{}; expected "
        "an argument, a constant, a variable or a value computed here: pass it "
        "as an argument",
        graph_.name, where_text()));
  }
  return {impl.node, impl.output};
}

void Tracer::apply(const OpDef& op, std::span<const Tensor* const> in,
                   const Attrs* attrs, std::span<Tensor> out) {
  if (op.kind() == OpKind::kCall) {
    op.attr<std::shared_ptr<Callable>>(attrs, "f")->call(in, out);
    return;
  }
  std::vector<ValueRef> inputs;
  inputs.reserve(in.size());
  for (const Tensor* t : in) inputs.push_back(value_of(*t));
  const int32_t id = add_node(op, attrs, std::move(inputs));
  for (size_t i = 0; i < out.size(); ++i) {
    const OutSpec& spec = graph_[id].outputs[i];
    out[i] = make_symbolic(serial_, id, static_cast<int32_t>(i), spec.dtype,
                           spec.shape);
  }
}

Graph Tracer::finish(std::span<const Tensor> outputs) {
  for (const Tensor& t : outputs) graph_.outputs.push_back(value_of(t));
  stop();
  return std::move(graph_);
}

}  // namespace berth
