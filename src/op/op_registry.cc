#include "op/op_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>

#include "berth/errors.h"
#include "op/update_rules.h"

namespace berth {

OpBuilder::OpBuilder(OpRegistry* registry, std::string name)
    : registry_(registry), def_(std::make_unique<OpDef>()) {
  def_->name_ = std::move(name);
}

OpBuilder::~OpBuilder() noexcept(false) {
  if (registry_ && def_ && std::uncaught_exceptions() == exceptions_) {
    registry_->add(std::move(def_));
  }
}

std::shared_ptr<const OpDef> OpBuilder::detach() {
  def_->id_ = kDetachedOp;
  return std::move(def_);
}

OpBuilder& OpBuilder::input(std::string name, DTypeSet types) {
  def_->inputs_.push_back({.name = std::move(name), .types = types});
  return *this;
}
OpBuilder& OpBuilder::free_input(std::string name, DTypeSet types) {
  input(std::move(name), types);
  def_->inputs_.back().free_dtype = true;
  return *this;
}
OpBuilder& OpBuilder::optional_input(std::string name, DTypeSet types) {
  input(std::move(name), types);
  def_->inputs_.back().optional = true;
  return *this;
}
OpBuilder& OpBuilder::variadic_input(std::string name, DTypeSet types) {
  input(std::move(name), types);
  def_->inputs_.back().variadic = true;
  return *this;
}
OpBuilder& OpBuilder::any_inputs(std::string name, DTypeSet types) {
  variadic_input(std::move(name), types);
  def_->inputs_.back().free_dtype = true;
  def_->inputs_.back().optional = true;
  return *this;
}
OpBuilder& OpBuilder::free_variadic_input(std::string name, DTypeSet types) {
  variadic_input(std::move(name), types);
  def_->inputs_.back().free_dtype = true;
  return *this;
}
OpBuilder& OpBuilder::reads_variable(std::string name) {
  input(std::move(name), kResourceType);
  def_->inputs_.back().access = Access::kReadsVariable;
  def_->has_variables_ = true;
  return *this;
}
OpBuilder& OpBuilder::writes_variable(std::string name, Access access) {
  input(std::move(name), kResourceType);
  def_->inputs_.back().access = access;
  def_->has_variables_ = true;
  def_->stateful_ = true;
  return *this;
}
OpBuilder& OpBuilder::writes_variables(std::string name) {
  free_variadic_input(std::move(name), kAllTypes | kResourceType);
  def_->inputs_.back().access = Access::kWritesVariable;
  def_->has_variables_ = true;
  def_->stateful_ = true;
  return *this;
}
OpBuilder& OpBuilder::output(std::string name) {
  def_->outputs_.push_back(std::move(name));
  return *this;
}
OpBuilder& OpBuilder::ref_input() {
  def_->inputs_.back().ref = true;
  return *this;
}
OpBuilder& OpBuilder::host_input() {
  def_->inputs_.back().on_host = true;
  return *this;
}
OpBuilder& OpBuilder::ref_output() {
  def_->ref_outputs_ |= uint64_t{1} << ((def_->outputs_.size() - 1) & 63);
  return *this;
}
OpBuilder& OpBuilder::host_output() {
  def_->host_outputs_ |= uint64_t{1} << ((def_->outputs_.size() - 1) & 63);
  return *this;
}
OpBuilder& OpBuilder::num_outputs(NumOutputsFn fn) {
  def_->num_outputs_ = fn;
  return *this;
}
OpBuilder& OpBuilder::attr(std::string name, AttrValue default_value) {
  def_->attrs_.push_back({std::move(name), std::move(default_value), false});
  return *this;
}
OpBuilder& OpBuilder::required_attr(std::string name, AttrValue type) {
  def_->attrs_.push_back({std::move(name), std::move(type), true});
  return *this;
}
OpBuilder& OpBuilder::any_attrs() {
  def_->any_attrs_ = true;
  return *this;
}
OpBuilder& OpBuilder::infer(InferFn fn) {
  def_->infer_ = fn;
  return *this;
}
OpBuilder& OpBuilder::gradient(GradientFn fn) {
  def_->gradient_ = fn;
  return *this;
}
OpBuilder& OpBuilder::decompose(DecomposeFn fn) {
  def_->decompose_ = fn;
  return *this;
}
OpBuilder& OpBuilder::cost(CostFn fn) {
  def_->cost_ = fn;
  return *this;
}
OpBuilder& OpBuilder::split(SplitFn fn) {
  def_->split_ = fn;
  return *this;
}
OpBuilder& OpBuilder::kind(OpKind kind) {
  def_->kind_ = kind;
  return *this;
}
OpBuilder& OpBuilder::elementwise() {
  def_->elementwise_ = true;
  if (!def_->infer_) def_->infer_ = &infer_broadcast;
  if (!def_->split_) def_->split_ = &split_elementwise;
  return *this;
}
OpBuilder& OpBuilder::updates_with(std::string_view value) {
  const auto& inputs = def_->inputs_;
  const auto it = std::find_if(inputs.begin(), inputs.end(), [&](auto& arg) {
    return arg.name == value && arg.access == Access::kValue;
  });
  if (it == inputs.end() || !def_->outputs_.empty() || !def_->stateful_) {
    throw errors::InvalidArgument(fmt::format(
        "cannot register op '{}': updates with '{}'; expected the name of an "
        "input that is no variable, writes_variable(), and no output",
        def_->name(), value));
  }
  def_->update_value_ = static_cast<int>(it - inputs.begin());
  return attr("shared", false);
}
OpBuilder& OpBuilder::update(std::string_view gradient) {
  updates_with(gradient);
  def_->update_ = true;
  if (!def_->infer_) def_->infer_ = &infer_update;
  if (!def_->split_) def_->split_ = &split_update;
  if (!def_->cost_) def_->cost_ = &cost_update;
  return *this;
}
OpBuilder& OpBuilder::commutative() {
  def_->commutative_ = true;
  return *this;
}
OpBuilder& OpBuilder::stateful() {
  def_->stateful_ = true;
  return *this;
}
OpBuilder& OpBuilder::random() {
  def_->random_ = true;
  return *this;
}
OpBuilder& OpBuilder::metadata() {
  def_->metadata_ = true;
  return *this;
}
OpBuilder& OpBuilder::not_differentiable() {
  def_->not_differentiable_ = true;
  return *this;
}
OpBuilder& OpBuilder::doc(std::string text) {
  def_->doc_ = std::move(text);
  return *this;
}

struct OpRegistry::Impl {
  mutable std::mutex mutex;
  std::array<std::unique_ptr<OpDef>, kMaxOps> ops;
  std::atomic<int> count{0};
  std::map<std::string, const OpDef*, std::less<>> by_name;
};

OpRegistry::OpRegistry() : impl_(std::make_unique<Impl>()) {}
OpRegistry::~OpRegistry() = default;

OpRegistry& OpRegistry::get() {
  // Never destroyed, as immortal() has it; its constructor is private.
  static OpRegistry& registry = *[] {
    auto r = std::unique_ptr<OpRegistry>(new OpRegistry);
    register_all_ops(*r);
    return r.release();
  }();
  return registry;
}

void OpRegistry::add(std::unique_ptr<OpDef> def) {
  auto refuse = [&](const char* why) {
    throw errors::InvalidArgument(
        fmt::format("cannot register op '{}': {}", def->name(), why));
  };
  if (!def->infer_) refuse("it has no shape rule; call .infer()");
  if (!def->gradient_ && !def->decompose_ && !def->not_differentiable_) {
    refuse(
        "it has neither .gradient() nor .decompose(); say "
        ".not_differentiable() if that is meant");
  }
  for (size_t i = 0; i + 1 < def->inputs_.size(); ++i) {
    if (def->inputs_[i].variadic) refuse("only the last input may repeat");
    if (def->inputs_[i].optional && !def->inputs_[i + 1].optional) {
      refuse("after an optional input all must be optional");
    }
  }
  std::lock_guard lock(impl_->mutex);
  if (impl_->by_name.count(def->name())) refuse("the name is taken");
  const int id = impl_->count.load();
  if (id == kMaxOps) refuse("the registry is full");
  def->id_ = static_cast<uint16_t>(id);
  impl_->by_name[def->name()] = def.get();
  impl_->ops[id] = std::move(def);
  impl_->count.store(id + 1, std::memory_order_release);
}

const OpDef* OpRegistry::find(std::string_view name) const {
  std::lock_guard lock(impl_->mutex);
  const auto it = impl_->by_name.find(name);
  return it == impl_->by_name.end() ? nullptr : it->second;
}

const OpDef& OpRegistry::lookup(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  std::string near;
  for (const OpDef* op : all()) {
    const bool similar = op->name().find(name) != std::string::npos ||
                         (name.size() > 3 && op->name().find(name.substr(
                                                 0, 4)) != std::string::npos);
    if (similar && near.size() < 80) near += " " + op->name();
  }
  throw errors::NotFound(fmt::format("there is no op '{}'{}", name,
                                     near.empty() ? "" : "; similar:" + near));
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> list;
  const int n = impl_->count.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) list.push_back(impl_->ops[i].get());
  return list;
}

}  // namespace berth
