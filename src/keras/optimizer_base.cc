#include "keras/optimizer_base.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/custom_objects.h"
#include "keras/layer_state.h"
#include "keras/lint_replicas.h"
#include "keras/update_context.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "tensor/variable_state.h"

namespace berth::keras {

OptimizerBase::OptimizerBase(std::string name, double learning_rate)
    : name_(std::move(name)), initial_rate_(learning_rate) {
  if (!std::isfinite(learning_rate) || learning_rate < 0) {
    throw errors::InvalidArgument(
        fmt::format("{}: learning_rate is {}; expected a number of at least 0",
                    name_, learning_rate));
  }
}

OptimizerBase::~OptimizerBase() { forget_replica(*this); }

// Counters live where the first variable does: a step on one device needs no
// transfer for them.
void OptimizerBase::make(const Variable* first) {
  std::lock_guard lock(mutex_);
  if (learning_rate_.defined()) return;
  const Site site = t_state.site;  // the caller's line
  const Lifted lifted;
  const OnDevice on(first ? variable_state(first->handle()).device : nullptr);
  const auto options = [&](const char* what) {
    return VariableOptions{.name = name_ + "/" + what, .trainable = false};
  };
  learning_rate_ = Variable(constant(static_cast<float>(initial_rate_)),
                            options("learning_rate"), site);
  iterations_ = Variable(constant(int64_t{0}), options("iterations"), site);
  counters_ = make_counters(first ? first->dtype() : float32);
  all_ = {learning_rate_, iterations_};
  all_.insert(all_.end(), counters_.begin(), counters_.end());
}

const OptimizerBase::Slots& OptimizerBase::slots_of(const Variable& v) {
  std::lock_guard lock(mutex_);
  auto [it, fresh] = trained_.try_emplace(v.handle().impl());
  Trained& t = it->second;
  if (!fresh) return t.slots;
  t.variable = v;
  const Site site = t_state.site;
  const Lifted lifted;
  const OnDevice on(variable_state(v.handle()).device);
  for (const char* slot : slot_names()) {
    t.slots.push_back(
        Variable(fill(v.shape(), initial_slot_value(), v.dtype(), site),
                 {.name = fmt::format("{}/{}/{}", name_, v.name(), slot),
                  .trainable = false},
                 site));
    all_.push_back(t.slots.back());
  }
  return t.slots;
}

namespace {

// Lint "unused-variables": named once per place, before the first update.
void lint_unused(const Tensors& grads, const std::vector<Variable>& variables) {
  constexpr const char* kId = "unused-variables";
  constexpr int kNamed = 8;
  const std::string where = where_text();
  if (!count_once(kId, where)) return;
  std::string names;
  int unused = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() || ++unused > kNamed) continue;
    names +=
        fmt::format("{}\"{}\"", names.empty() ? "" : ", ", variables[i].name());
  }
  if (unused > kNamed) names += fmt::format(" and {} more", unused - kNamed);
  deliver({kId, debugging::Severity::kLint,
           fmt::format("apply_gradients(){}: {} of {} variables have no "
                       "gradient, since the loss does not depend on them, and "
                       "stay as they are: {}; leave them out, or freeze their "
                       "layers with set_trainable(false)",
                       where, unused, grads.size(), names),
           t_state.site});
}

// Each replica has the gradient of its part of the loss.
Tensors sums_over_replicas(ReplicaScope& replica, const Tensors& grads,
                           Site site) {
  Tensors sums;
  for (const Tensor& g : grads) {
    set_site(site);
    sums.push_back(
        g.defined() ? replica.all_reduce(VariableAggregation::kSum, g) : g);
  }
  return sums;
}

}  // namespace

void OptimizerBase::apply_gradients(const Tensors& grads,
                                    const std::vector<Variable>& variables,
                                    Site site) {
  set_site(site);
  check(grads, variables);
  check_update_context(variables);
  if (t_state.replica != nullptr) {
    const Tensors sums = sums_over_replicas(*t_state.replica, grads, site);
    // All replicas have the same sums, and write the same.
    const Unaggregated same;
    return update_all(sums, variables, site);
  }
  if (eager_steps_.load(std::memory_order_relaxed) <= kStepsToDrift &&
      !tracing()) {
    lint_replicas(*this, eager_steps_.fetch_add(1), variables);
  }
  update_all(grads, variables, site);
}

void OptimizerBase::check(const Tensors& grads,
                          const std::vector<Variable>& variables) const {
  if (grads.size() != variables.size()) {
    throw errors::InvalidArgument(fmt::format(
        "{}: got {} gradients for {} variables{}; expected one each", name_,
        grads.size(), variables.size(), where_text()));
  }
  size_t unused = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) {
      ++unused;
      continue;
    }
    const Variable& v = variables[i];
    if (!grads[i].shape().compatible_with(v.shape()) ||
        grads[i].dtype() != v.dtype()) {
      throw errors::InvalidArgument(fmt::format(
          "{}: the gradient of \"{}\" is {}; expected {}{}", name_, v.name(),
          grads[i].spec().str(), TensorSpec{v.shape(), v.dtype(), {}}.str(),
          where_text()));
    }
  }
  if (unused < grads.size()) {
    if (unused > 0) lint_unused(grads, variables);
    return;
  }
  throw errors::InvalidArgument(fmt::format(
      "{}: no variable has a gradient{}; expected a loss that depends on "
      "them: compute it under the tape",
      name_, where_text()));
}

void OptimizerBase::update_all(const Tensors& grads,
                               const std::vector<Variable>& variables,
                               Site site) {
  size_t first = 0;
  while (!grads[first].defined()) ++first;
  set_site(site);
  make(&variables[first]);
  iterations_.assign_add(constant(int64_t{1}), site);
  advance(site);
  for (DType dtype : {float32, float64}) {
    bool begun = false;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || variables[i].dtype() != dtype) continue;
      if (!begun) begin(dtype, site);
      begun = true;
      const Slots& slots = slots_of(variables[i]);
      set_site(site);
      update(variables[i], slots, grads[i]);
    }
  }
}

Variable OptimizerBase::learning_rate() {
  make(nullptr);
  return learning_rate_;
}
Variable OptimizerBase::iterations() {
  make(nullptr);
  return iterations_;
}
std::vector<Variable> OptimizerBase::variables() {
  make(nullptr);
  return all_;
}

Tensor OptimizerBase::rate(DType dtype, Site site) const {
  return as(learning_rate_.value(site), dtype, site);
}

Tensor OptimizerBase::as(const Tensor& t, DType dtype, Site site) {
  return t.dtype() == dtype ? t : math::cast(t, dtype, site);
}

Tensor OptimizerBase::scalar(double value, DType dtype) {
  return dtype == float32 ? constant(static_cast<float>(value))
                          : constant(value);
}

namespace {

Optimizer optimizer_by_name(const std::string& name) {
  if (name == "sgd" || name == "SGD") return SGD();
  if (name == "adam" || name == "Adam") return Adam();
  if (name == "adamw" || name == "AdamW") return AdamW();
  if (name == "rmsprop" || name == "RMSprop") return RMSprop();
  if (name == "adagrad" || name == "Adagrad") return Adagrad();
  if (const OptimizerFactory own = find_custom_object(name).optimizer) {
    return own(Config());
  }
  throw errors::InvalidArgument(
      fmt::format("there is no optimizer \"{}\"; expected sgd, adam, adamw, "
                  "rmsprop or adagrad",
                  name));
}

}  // namespace

Optimizer::Optimizer(const char* name)
    : Optimizer(optimizer_by_name(name ? name : "")) {}
Optimizer::Optimizer(const std::string& name)
    : Optimizer(optimizer_by_name(name)) {}

void Optimizer::apply_gradients(const Tensors& grads,
                                const std::vector<Variable>& variables,
                                Site site) const {
  base_->apply_gradients(grads, variables, site);
}
Variable Optimizer::learning_rate() const { return base_->learning_rate(); }
Variable Optimizer::iterations() const { return base_->iterations(); }
std::vector<Variable> Optimizer::variables() const {
  return base_->variables();
}
const std::string& Optimizer::name() const { return base_->name(); }

}  // namespace berth::keras
