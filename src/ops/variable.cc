// Variables: reading and assigning are ops.

#include "berth/variable.h"

#include <fmt/format.h>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "device/device_manager.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "op/with_room.h"
#include "ops/autocast.h"
#include "ops/families.h"
#include "ops/named_call.h"
#include "ops/replica_part.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

void assign(const OpDef& op, const Tensor& handle, const Tensor& value) {
  const Tensor* in[] = {&handle, &value};
  apply(op, in, nullptr, {});
}

// value / n, as the dtype can.
Tensor divided(const Tensor& value, size_t n) {
  const OpDef& div =
      op_named(is_inexact(value.dtype()) ? "RealDiv" : "FloorDiv");
  return call1(div, value, scalar_like(value, static_cast<double>(n)));
}

// Outside of replicas: what the parts of replicas become, so that they
// aggregate to the value.
void assign_parts(const OpDef& op, const Tensor& handle, const Tensor& value,
                  const char* what) {
  const VariableState& v = variable_state(handle);
  Tensor part = value;
  if (v.aggregation == VariableAggregation::kSum) {
    if (op.input(0).access != Access::kOverwritesVariable) {
      throw errors::InvalidArgument(fmt::format(
          "{}() of \"{}\" outside of replicas{}: it is the sum of what {} "
          "replicas have, each its own; expected assign(), or the call in "
          "strategy.run()",
          what, v.name, where_text(), v.parts.size() + 1));
    }
    part = divided(value, v.parts.size() + 1);
  }
  assign(op, handle, part);
  for (const Tensor& p : v.parts) assign(op, p, part);
}

// What the thread's replica has of a variable; else the variable.
const Tensor& own_part(const Tensor& handle) {
  const int replica = replica_op_by_op();
  const VariableState& v = variable_state(handle);
  if (replica <= 0 || v.parts.empty()) return handle;
  return v.parts.at(static_cast<size_t>(replica - 1));
}

// An assignment by the user: in a replica, what all replicas write together.
void assign(const OpDef& op, const Tensor& handle, const Tensor& value,
            const char* what) {
  if (t_state.replica != nullptr) {
    return assign(op, handle, t_state.replica->to_write(handle, value, what));
  }
  if (!variable_state(handle).parts.empty()) {
    if (replica_op_by_op() >= 0) return assign(op, own_part(handle), value);
    return assign_parts(op, handle, value, what);
  }
  assign(op, handle, value);
}

// What the parts of replicas are together.
Tensor aggregated(const Tensor& handle) {
  static const OpDef& read = op_named("ReadVariableOp");
  const VariableState& v = variable_state(handle);
  if (v.aggregation == VariableAggregation::kNone) {
    throw errors::InvalidArgument(fmt::format(
        "\"{}\" is read outside of replicas{}: each of {} replicas has a value "
        "of its own, and its aggregation is none; expected one made with "
        "{{.aggregation = VariableAggregation::kSum}}, kMean or "
        "kOnlyFirstReplica",
        v.name, where_text(), v.parts.size() + 1));
  }
  Tensor sum = call1(read, handle);
  if (v.aggregation == VariableAggregation::kOnlyFirstReplica) return sum;
  const OnDevice home(v.device);
  for (const Tensor& p : v.parts) {
    sum = call1(op_of<"AddV2">(), sum,
                call1(op_of<"Identity">(), call1(read, p)));
  }
  return v.aggregation == VariableAggregation::kMean
             ? divided(sum, v.parts.size() + 1)
             : sum;
}

constinit thread_local DType t_autocast = float32;

Tensor made_of(const Tensor& initial, const VariableOptions& options,
               Site site) {
  const StrategyScope* strategy = t_state.strategy;
  Device* device =
      strategy ? &strategy->home(t_state.scope)
               : scope_device(fmt::format("Variable '{}'", options.name));
  if (device == nullptr || initial.dtype() == string_) {
    device = initial.impl()->block->device;
  }
  Tensor handle = make_variable(*device, options.name, initial.dtype(),
                                initial.shape(), options.trainable, site);
  VariableState& state = variable_state(handle);
  state.asked = t_state.scope && t_state.scope->kind != ScopeKind::kEngine &&
                !t_state.scope->name.str().empty();
  state.synchronization = options.synchronization;
  state.aggregation = options.aggregation;
  if (options.shape && !options.shape->is_fully_defined()) {
    state.fits = options.shape;
  }
  state.any_shape = options.any_shape;
  // What rebinds is one for all replicas, which read it outside of plans alone.
  if (strategy && !state.rebinds()) strategy->adopt(handle);
  // Initialisation runs outside traces and tapes.
  const DispatchGuard eager(nullptr);
  static const OpDef& op = op_named("AssignVariableOp");
  assign(op, handle, initial);
  for (const Tensor& part : state.parts) assign(op, part, initial);
  return handle;
}

// A new variable keeps its own copy of the value; it is written through the
// op so that every kind of device does it the same way.
Tensor new_variable(const Tensor& initial, const VariableOptions& options,
                    Site site) {
  set_site(site);
  if (!initial.defined() || initial.is_symbolic()) {
    throw Untraceable<errors::InvalidArgument>(fmt::format(
        "Variable '{}': the initial value is {}{}; expected a tensor with "
        "values: create variables outside the traced function",
        options.name,
        initial.defined() ? "computed inside a trace" : "an empty tensor",
        where_text()));
  }
  if (options.shape && !options.shape->compatible_with(initial.shape())) {
    throw errors::InvalidArgument(fmt::format(
        "Variable '{}': the initial value is {}{}; expected a shape that fits "
        "{}",
        options.name, initial.shape().str(), where_text(),
        options.shape->str()));
  }
  if (initial.dtype() == resource) {
    throw errors::InvalidArgument(fmt::format(
        "Variable '{}': the initial value is a Variable's handle{}; expected "
        "its value()",
        options.name, where_text()));
  }
  if (t_state.replica != nullptr && !Unaggregated::active()) {
    throw errors::InvalidArgument(fmt::format(
        "Variable '{}' is made inside strategy.run(){}; expected one made "
        "before, in the scope of the strategy",
        options.name, where_text()));
  }
  Tensor handle;
  with_room(fmt::format("Variable '{}'", options.name),
            [&] { handle = made_of(initial, options, site); });
  return handle;
}

void infer_assign(InferContext& c) {
  if (!c.shape(0).compatible_with(c.shape(1))) {
    c.fail(
        fmt::format("the value has shape {}, the variable {}; expected "
                    "equal shapes",
                    c.shape(1).str(), c.shape(0).str()));
  }
}

std::vector<SplitSignature> split_assign(const InferContext& c) {
  std::vector<SplitSignature> rules;
  for (int8_t axis = 0; axis < c.shape(0).rank(); ++axis) {
    rules.push_back({{axis, axis}, {}});
  }
  return rules;
}

}  // namespace

int& replica_op_by_op() {
  static constinit thread_local int replica = -1;
  return replica;
}

AutocastScope::AutocastScope(DType dtype) : outer_(t_autocast) {
  t_autocast = dtype;
}
AutocastScope::~AutocastScope() { t_autocast = outer_; }

Variable::Variable(const Tensor& initial, VariableOptions options, Site site)
    : handle_(new_variable(initial, options, site)) {}

const std::string& Variable::name() const {
  return variable_state(handle_).name;
}
const Shape& Variable::shape() const { return variable_state(handle_).shape; }
std::optional<Shape> Variable::shape_of_all() const {
  const VariableState& v = variable_state(handle_);
  if (v.any_shape) return std::nullopt;
  return v.fits ? *v.fits : v.shape;
}
DType Variable::dtype() const { return variable_state(handle_).dtype; }
bool Variable::trainable() const { return variable_state(handle_).trainable; }
VariableSynchronization Variable::synchronization() const {
  return variable_state(handle_).synchronization;
}
VariableAggregation Variable::aggregation() const {
  return variable_state(handle_).aggregation;
}
uint64_t Variable::serial() const {
  return defined() ? variable_state(handle_).serial : 0;
}
std::string Variable::device() const {
  return variable_state(handle_).device->str();
}

Tensor Variable::value(Site site) const {
  set_site(site);
  const VariableState& v = variable_state(handle_);
  const bool sum =
      t_state.replica == nullptr && !v.parts.empty() && replica_op_by_op() < 0;
  const Tensor value =
      sum ? aggregated(handle_)
          : call1(op_of<"ReadVariableOp">(), own_part(handle_));
  const DType to = t_autocast;
  if (to == float32 || v.dtype != float32 || !v.trainable) return value;
  return math::cast(value, to, site);
}

const Variable& Variable::assign(const Tensor& value, Site site) const {
  set_site(site);
  berth::assign(op_of<"AssignVariableOp">(), handle_, value, "assign");
  return *this;
}
const Variable& Variable::assign_add(const Tensor& delta, Site site) const {
  set_site(site);
  berth::assign(op_of<"AssignAddVariableOp">(), handle_, delta, "assign_add");
  return *this;
}
const Variable& Variable::assign_sub(const Tensor& delta, Site site) const {
  set_site(site);
  berth::assign(op_of<"AssignSubVariableOp">(), handle_, delta, "assign_sub");
  return *this;
}
const Variable& Variable::assign(double value, Site site) const {
  return assign(fill(shape(), value, dtype(), site), site);
}
const Variable& Variable::operator+=(double delta) const {
  return assign_add(fill(shape(), delta, dtype(), {}), {});
}
const Variable& Variable::operator-=(double delta) const {
  return assign_sub(fill(shape(), delta, dtype(), {}), {});
}
const Variable& Variable::operator*=(const Tensor& factor) const {
  return assign(value({}) * factor, {});
}
const Variable& Variable::operator/=(const Tensor& divisor) const {
  return assign(value({}) / divisor, {});
}
const Variable& Variable::operator*=(double factor) const {
  return assign(value({}) * factor, {});
}
const Variable& Variable::operator/=(double divisor) const {
  return assign(value({}) / divisor, {});
}

void register_variable_ops(OpRegistry& r) {
  r.op("ReadVariableOp")
      .reads_variable("resource")
      .output("value")
      .kind(OpKind::kReadVariable)
      .infer([](InferContext& c) {
        c.set_output(0, c.variable_dtype(0), c.shape(0));
      })
      .gradient([](const GradCall& g) { return Tensors{g.dy()}; });
  for (const char* name :
       {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}) {
    r.op(name)
        .writes_variable("resource", name[6] == 'V'
                                         ? Access::kOverwritesVariable
                                         : Access::kWritesVariable)
        .input("value",
               name[6] == 'V' ? kEveryType | kStringType : kEveryNumber)
        .updates_with("value")
        .infer(&infer_assign)
        .split(&split_assign)
        .not_differentiable();
  }
}

}  // namespace berth
