// Optimizer: the handle, and names.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "berth/errors.h"
#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "keras/config/custom_objects.h"
#include "keras/optimizers/optimizer_base.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

struct NamedOptimizer {
  const char* name;
  Optimizer (*make)();
};

constexpr NamedOptimizer kOptimizers[] = {
    {"sgd", []() -> Optimizer { return SGD(); }},
    {"adam", []() -> Optimizer { return Adam(); }},
    {"adamw", []() -> Optimizer { return AdamW(); }},
    {"adamax", []() -> Optimizer { return Adamax(); }},
    {"nadam", []() -> Optimizer { return Nadam(); }},
    {"lamb", []() -> Optimizer { return Lamb(); }},
    {"lion", []() -> Optimizer { return Lion(); }},
    {"rmsprop", []() -> Optimizer { return RMSprop(); }},
    {"adagrad", []() -> Optimizer { return Adagrad(); }},
    {"adadelta", []() -> Optimizer { return Adadelta(); }},
    {"adafactor", []() -> Optimizer { return Adafactor(); }},
    {"ftrl", []() -> Optimizer { return Ftrl(); }},
};

Optimizer optimizer_by_name(const std::string& name) {
  std::string low = name;
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  std::string known;
  for (const NamedOptimizer& o : kOptimizers) {
    if (low == o.name) return o.make();
    known += fmt::format("{}{}", known.empty() ? "" : ", ", o.name);
  }
  if (const OptimizerFactory own = find_custom_object(name).optimizer) {
    return own(Config());
  }
  throw errors::InvalidArgument(fmt::format(
      "there is no optimizer \"{}\"; expected one of {}", name, known));
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
Tensor Optimizer::scale_loss(const Tensor& loss, Site site) const {
  return base_->scale_loss(loss, site);
}
Variable Optimizer::learning_rate() const { return base_->learning_rate(); }
const LearningRateSchedule& Optimizer::schedule() const {
  return base_->schedule();
}
Variable Optimizer::iterations() const { return base_->iterations(); }
std::vector<Variable> Optimizer::variables() const {
  return base_->variables();
}
const std::string& Optimizer::name() const { return base_->name(); }

void Optimizer::build(const std::vector<Variable>& variables) const {
  base_->make_slots(variables);
}

void Optimizer::set_learning_rate(double rate, Site site) const {
  if (schedule()) {
    throw errors::FailedPrecondition(fmt::format(
        "{}: set_learning_rate({}){}: a schedule sets its rate; expected an "
        "optimizer that was made with a number",
        name(), rate, where_text(nullptr, site)));
  }
  learning_rate().assign(constant(static_cast<float>(rate)), site);
}

void Optimizer::exclude_from_weight_decay(
    const std::vector<Variable>& variables,
    const std::vector<std::string>& names) const {
  base_->exclude_from_weight_decay(variables, names);
}

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables,
                                         Site site) const {
  const std::vector<Variable> means = base_->averages(variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (means[i].defined()) variables[i].assign(means[i].value(site), site);
  }
}

void Optimizer::swap_averages(const std::vector<Variable>& variables,
                              Site site) const {
  const std::vector<Variable> means = base_->averages(variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!means[i].defined()) continue;
    const Tensor now = variables[i].value(site);
    variables[i].assign(means[i].value(site), site);
    means[i].assign(now, site);
  }
}

}  // namespace berth::keras
