// OptimizerBase: slots, clipping, decay, averages, steps.

#include "keras/optimizers/optimizer_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "keras/optimizers/lint_replicas.h"
#include "keras/optimizers/update_context.h"
#include "op/device_scope.h"
#include "op/replica_scope.h"
#include "op/with_room.h"
#include "tensor/shards.h"

namespace berth::keras {

OptimizerBase::OptimizerBase(std::string name, LearningRate learning_rate,
                             OptimizerOptions options)
    : name_(options.name.empty() ? std::move(name) : options.name),
      initial_rate_(learning_rate.schedule() ? 0 : learning_rate.value()),
      schedule_(learning_rate.schedule()),
      options_(std::move(options)) {
  check_option("learning_rate", initial_rate_);
  const OptimizerOptions& o = options_;
  check_option("weight_decay", o.weight_decay);
  check_option("clipnorm", o.clipnorm);
  check_option("clipvalue", o.clipvalue);
  check_option("global_clipnorm", o.global_clipnorm);
  check_option("ema_momentum", o.ema_momentum, 0, 1);
  check_option("loss_scale_factor", o.loss_scale_factor);
  check_option("ema_overwrite_frequency",
               static_cast<double>(o.ema_overwrite_frequency));
  check_option("gradient_accumulation_steps",
               static_cast<double>(o.gradient_accumulation_steps));
  if ((o.clipnorm > 0) + (o.clipvalue > 0) + (o.global_clipnorm > 0) > 1) {
    throw errors::InvalidArgument(fmt::format(
        "{}: clipnorm is {}, clipvalue {}, global_clipnorm {}; expected at "
        "most one of them",
        name_, o.clipnorm, o.clipvalue, o.global_clipnorm));
  }
}

void OptimizerBase::check_option(const char* what, double value, double low,
                                 double high) const {
  if (value >= low && value <= high) return;
  throw errors::InvalidArgument(fmt::format("{}: {} is {}; expected {} to {}",
                                            name_, what, value, low, high));
}
void OptimizerBase::check_option(const char* what, double value) const {
  if (std::isfinite(value) && value >= 0) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: {} is {}; expected a number of at least 0", name_, what, value));
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
  learning_rate_ =
      Variable(constant(static_cast<float>(schedule_ ? schedule_(int64_t{0})
                                                     : initial_rate_)),
               options("learning_rate"), site);
  iterations_ = Variable(constant(int64_t{0}), options("iterations"), site);
  counters_ = make_counters(first ? first->dtype() : float32);
  all_ = {learning_rate_, iterations_};
  all_.insert(all_.end(), counters_.begin(), counters_.end());
}

Variable OptimizerBase::counter(const char* name, double value,
                                DType dtype) const {
  return Variable(
      scalar(value, dtype),
      {.name = fmt::format("{}/{}", name_, name), .trainable = false},
      t_state.site);
}

Variable OptimizerBase::make_slot(const Variable& like, const char* name,
                                  const Shape& shape, double value) {
  const Site site = t_state.site;
  const std::string full = fmt::format("{}/{}/{}", name_, like.name(), name);
  Variable v;
  with_room(full, [&] {
    v = Variable(fill(shape, value, like.dtype(), site),
                 {.name = full, .trainable = false}, site);
  });
  const VariableState& of = variable_state(like.handle());
  if (of.split_axis >= 0 && shape == of.shape) {
    set_split_axis(v.handle(), of.split_axis, of.strategy);
  }
  all_.push_back(v);
  return v;
}

OptimizerBase::Trained& OptimizerBase::trained(const Variable& v) {
  std::lock_guard lock(mutex_);
  auto [it, fresh] = trained_.try_emplace(v.handle().impl());
  Trained& t = it->second;
  if (!fresh) return t;
  t.variable = v;
  const Site site = t_state.site;
  const Lifted lifted;
  const OnDevice on(variable_state(v.handle()).device);
  const std::vector<const char*> names = slot_names();
  for (size_t i = 0; i < names.size(); ++i) {
    t.slots.push_back(make_slot(v, names[i], slot_shape(i, v.shape()),
                                initial_slot_value(i)));
  }
  if (options_.gradient_accumulation_steps > 1) {
    t.accumulator = make_slot(v, "gradient_accumulator", v.shape(), 0);
  }
  if (options_.use_ema) {
    t.average = make_slot(v, "average", v.shape(), 0);
    // A variable that no step has seen yet is its own average.
    t.average.assign(v.value(site), site);
  }
  return t;
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

void OptimizerBase::make_all(const Tensors& grads,
                             const std::vector<Variable>& variables,
                             Site site) {
  size_t first = 0;
  while (!grads[first].defined()) ++first;
  set_site(site);
  make(&variables[first]);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) trained(variables[i]);
  }
}

void OptimizerBase::update_all(const Tensors& given,
                               const std::vector<Variable>& variables,
                               Site site) {
  make_all(given, variables, site);
  Tensors grads = given;
  if (options_.loss_scale_factor > 0) {
    for (Tensor& g : grads) {
      if (g.defined()) g = g / options_.loss_scale_factor;
    }
  }
  const Tensor before = iterations_.value(site);
  if (schedule_) {
    rate_ =
        math::cast(schedule_(math::cast(before, float32, site)), float32, site);
    learning_rate_.assign(rate_, site);
  } else {
    rate_ = learning_rate_.value(site);
  }
  if (options_.gradient_accumulation_steps > 1) {
    accumulate(grads, variables, site);
  } else {
    step(grads, variables, site);
  }
  if (options_.use_ema) {
    // Keras counts updates here, and calls in a schedule.
    const int64_t n =
        std::max<int64_t>(options_.gradient_accumulation_steps, 1);
    const Tensor updates =
        n > 1 ? math::floordiv(before, constant(n), site) : before;
    average(grads, variables, updates, site);
  }
  iterations_.assign_add(constant(int64_t{1}), site);
  rate_ = {};
}

void OptimizerBase::step(const Tensors& given,
                         const std::vector<Variable>& variables, Site site) {
  const Tensors grads = clipped(given, site);
  if (options_.weight_decay > 0 && !decays_itself()) {
    decay(grads, variables, site);
  }
  set_site(site);
  advance(site);
  for (DType dtype : {float32, float64}) {
    bool begun = false;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || variables[i].dtype() != dtype) continue;
      if (!begun) begin(dtype, site);
      begun = true;
      const Slots& slots = trained(variables[i]).slots;
      set_site(site);
      update(variables[i], slots, grads[i]);
    }
  }
}

Tensors OptimizerBase::clipped(const Tensors& grads, Site site) const {
  const OptimizerOptions& o = options_;
  if (o.global_clipnorm > 0) {
    return clip_by_global_norm(grads, o.global_clipnorm, {}, site).first;
  }
  Tensors list = grads;
  for (Tensor& g : list) {
    if (!g.defined()) continue;
    if (o.clipnorm > 0) g = clip_by_norm(g, o.clipnorm, {}, site);
    if (o.clipvalue > 0) g = clip_by_value(g, -o.clipvalue, o.clipvalue, site);
  }
  return list;
}

bool OptimizerBase::decays(const Variable& v) const {
  for (const Variable& u : undecayed_) {
    if (u.handle().impl() == v.handle().impl()) return false;
  }
  for (const std::string& part : undecayed_names_) {
    if (v.name().find(part) != std::string::npos) return false;
  }
  return true;
}

void OptimizerBase::exclude_from_weight_decay(
    const std::vector<Variable>& variables,
    const std::vector<std::string>& names) {
  undecayed_.insert(undecayed_.end(), variables.begin(), variables.end());
  undecayed_names_.insert(undecayed_names_.end(), names.begin(), names.end());
}

void OptimizerBase::decay(const Tensors& grads,
                          const std::vector<Variable>& variables, Site site) {
  for (size_t i = 0; i < grads.size(); ++i) {
    const Variable& v = variables[i];
    if (!grads[i].defined() || !decays(v)) continue;
    set_site(site);
    const Tensor share =
        rate(v.dtype(), site) * scalar(options_.weight_decay, v.dtype());
    v.assign_sub(math::multiply(v.value(site), share, site), site);
  }
}

// Adds gradients up; a step is made every so many times, by their mean.
void OptimizerBase::accumulate(const Tensors& grads,
                               const std::vector<Variable>& variables,
                               Site site) {
  const int64_t n = options_.gradient_accumulation_steps;
  const Tensor turn = math::floormod(
      iterations_.value(site) + constant(int64_t{1}), constant(n), site);
  cond(
      math::equal(turn, constant(int64_t{0}), site),
      [&] {
        Tensors means(grads.size());
        for (size_t i = 0; i < grads.size(); ++i) {
          if (!grads[i].defined()) continue;
          const Variable& sum = trained(variables[i]).accumulator;
          means[i] = (sum.value(site) + grads[i]) / static_cast<double>(n);
          sum.assign(zeros(sum.shape(), sum.dtype(), site), site);
        }
        step(means, variables, site);
      },
      [&] {
        for (size_t i = 0; i < grads.size(); ++i) {
          if (!grads[i].defined()) continue;
          trained(variables[i]).accumulator.assign_add(grads[i], site);
        }
      },
      site);
}

void OptimizerBase::average(const Tensors& grads,
                            const std::vector<Variable>& variables,
                            const Tensor& iterations, Site site) {
  // The first step's average is the variable.
  const Tensor later = math::cast(
      math::not_equal(iterations, constant(int64_t{0}), site), float32, site);
  const Tensor momentum = later * options_.ema_momentum;
  Tensor overwrites;
  if (options_.ema_overwrite_frequency > 0) {
    overwrites = math::equal(
        math::floormod(iterations + constant(int64_t{1}),
                       constant(options_.ema_overwrite_frequency), site),
        constant(int64_t{0}), site);
  }
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Variable& v = variables[i];
    const Variable& mean = trained(v).average;
    set_site(site);
    const Tensor m = as(momentum, v.dtype(), site);
    const Tensor now = v.value(site);
    const Tensor next = m * mean.value(site) + (1.0 - m) * now;
    mean.assign(next, site);
    if (overwrites.defined()) {
      v.assign(where(overwrites, next, now, site), site);
    }
  }
}

Tensor OptimizerBase::scale_loss(const Tensor& loss, Site site) {
  if (options_.loss_scale_factor <= 0) return loss;
  set_site(site);
  return loss * options_.loss_scale_factor;
}

std::vector<Variable> OptimizerBase::averages(
    const std::vector<Variable>& variables) {
  std::vector<Variable> list(variables.size());
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto it = trained_.find(variables[i].handle().impl());
    if (it != trained_.end()) list[i] = it->second.average;
  }
  return list;
}

std::vector<std::vector<Variable>> OptimizerBase::slots_of(
    const std::vector<Variable>& variables) {
  std::vector<Slots> list(variables.size());
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto it = trained_.find(variables[i].handle().impl());
    if (it == trained_.end()) continue;
    list[i] = it->second.slots;
    for (const Variable& v : {it->second.accumulator, it->second.average}) {
      if (v.defined()) list[i].push_back(v);
    }
  }
  return list;
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

Tensor OptimizerBase::next_power(const Variable& power, double beta,
                                 Site site) {
  const Tensor now =
      math::multiply(power.value(site), scalar(beta, power.dtype()), site);
  power.assign(now, site);
  return now;
}

Tensor OptimizerBase::rate(DType dtype, Site site) const {
  return as(rate_, dtype, site);
}

Tensor OptimizerBase::as(const Tensor& t, DType dtype, Site site) {
  return t.dtype() == dtype ? t : math::cast(t, dtype, site);
}

Tensor OptimizerBase::scalar(double value, DType dtype) {
  return dtype == float32 ? constant(static_cast<float>(value))
                          : constant(value);
}

}  // namespace berth::keras
