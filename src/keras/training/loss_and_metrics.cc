// The parts of a step: targets, weights, losses, metrics.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/clip.h"
#include "berth/ops/math.h"
#include "distribute/parameter_server/coordinator.h"
#include "keras/models/layer_state.h"
#include "keras/models/masks.h"
#include "keras/training/training.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth::keras {

namespace {

// Length of the first axis, as a float.
Tensor count_rows(const Tensor& y) {
  const Tensor numbers = math::cast(y, float32);
  return size_ratio(numbers, numbers[{0}]);
}

// Losses and metrics are computed in float32 at least.
Tensor in_float(const Tensor& t) {
  const bool half = t.dtype() == bfloat16 || t.dtype() == float16;
  if (!half) return t;
  const Tensor cast = math::cast(t, float32, t_state.site);
  if (const Tensor mask = Masks::of(t); mask.defined()) Masks::set(cast, mask);
  return cast;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string s;
  for (const std::string& n : names) {
    s += fmt::format("{}\"{}\"", s.empty() ? "" : ", ", n);
  }
  return s.empty() ? "none: the model's inputs and outputs have no names" : s;
}

// The place of `name` among the outputs.
size_t output_named(const Model::Training& t, const char* what,
                    const std::string& name) {
  const auto& names = t.model.base()->state().output_names;
  const auto at = std::find(names.begin(), names.end(), name);
  if (at != names.end()) return static_cast<size_t>(at - names.begin());
  throw errors::InvalidArgument(fmt::format(
      "compile of model \"{}\": {} name an output \"{}\"{}; expected one of {}",
      t.model.name(), what, name, where_text(nullptr, t.compiled_at),
      names_text(names)));
}

// `list` per output; `absent` where names leave one out.
template <class T>
std::vector<T> by_output(const Model::Training& t, const char* what,
                         const PerOutput<T>& list, size_t n, const T& absent) {
  std::vector<T> all(n, absent);
  if (list.names.empty()) {
    if (list.size() == n) return list;
    throw errors::InvalidArgument(fmt::format(
        "model \"{}\" has {} outputs and {} {}{}; expected one per output",
        t.model.name(), n, list.size(), what,
        where_text(nullptr, t.compiled_at)));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    all.at(output_named(t, what, list.names[i])) = list[i];
  }
  return all;
}

}  // namespace

NamedTensors::NamedTensors(const Tensors& in_order) {
  for (const Tensor& t : in_order) items_.emplace_back("", t);
}

Tensors in_order(const char* what, const NamedTensors& tensors,
                 const std::vector<std::string>& names, Site site) {
  Tensors list;
  size_t named = 0;
  for (const auto& [name, t] : tensors.items()) named += !name.empty();
  if (named == 0) {
    for (const auto& [name, t] : tensors.items()) list.push_back(t);
    return list;
  }
  list.resize(names.size());
  for (const auto& [name, t] : tensors.items()) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end() || list[at - names.begin()].defined()) {
      throw errors::InvalidArgument(
          fmt::format("{}: \"{}\" is {}{}; expected each of {} once", what,
                      name, at == names.end() ? "unknown" : "there twice",
                      where_text(nullptr, site), names_text(names)));
    }
    list[static_cast<size_t>(at - names.begin())] = t;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (list[i].defined()) continue;
    throw errors::InvalidArgument(
        fmt::format("{}: \"{}\" is missing{}; expected each of {} once", what,
                    names[i], where_text(nullptr, site), names_text(names)));
  }
  return list;
}

ModelBase* Model::Training::own_steps() const {
  return dynamic_cast<ModelBase*>(model.base().get());
}

namespace {

bool is_taken(const std::vector<std::pair<std::string, Metric>>& rows,
              const std::string& name) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row.first == name; });
}

bool is_one_of(const std::vector<Metric>& list, const Metric& m) {
  return std::any_of(list.begin(), list.end(), [&](const Metric& other) {
    return other.base() == m.base();
  });
}

bool is_weighted(const CompileOptions& o, const Metric& m) {
  return is_one_of(o.weighted_metrics, m) ||
         std::any_of(o.weighted_metrics_by_output.begin(),
                     o.weighted_metrics_by_output.end(),
                     [&](const auto& row) { return is_one_of(row.second, m); });
}

bool adds_loss(const LayerState& s) {
  return !s.losses.regularized.empty() || !s.losses.added.empty() ||
         std::any_of(s.parts.begin(), s.parts.end(), [](const Layer& part) {
           return adds_loss(part.base()->state());
         });
}

}  // namespace

bool Model::Training::adds_losses() const {
  return adds_loss(model.base()->state());
}

std::vector<Loss> Model::Training::losses_of(size_t n) const {
  if (!options->losses.empty()) {
    return by_output(*this, "losses", options->losses, n, Loss());
  }
  return std::vector<Loss>(n, options->loss);
}

std::vector<std::vector<std::pair<std::string, Metric>>>
Model::Training::metrics_of(size_t n) const {
  std::vector<std::vector<std::pair<std::string, Metric>>> all(
      std::max<size_t>(n, 1));
  for (const Metric& m : options->metrics) all[0].emplace_back(m.name(), m);
  for (const Metric& m : options->weighted_metrics) {
    all[0].emplace_back(
        is_taken(all[0], m.name()) ? "weighted_" + m.name() : m.name(), m);
  }
  for (const auto& [output, list] : options->metrics_by_output) {
    const size_t at = output_named(*this, "metrics", output);
    for (const Metric& m : list) {
      all.at(at).emplace_back(n > 1 ? output + "_" + m.name() : m.name(), m);
    }
  }
  for (const auto& [output, list] : options->weighted_metrics_by_output) {
    const size_t at = output_named(*this, "weighted_metrics", output);
    for (const Metric& m : list) {
      const std::string name = n > 1 ? output + "_" + m.name() : m.name();
      all.at(at).emplace_back(
          is_taken(all.at(at), name) ? "weighted_" + name : name, m);
    }
  }
  return all;
}

StepData Model::Training::split(Tensors inputs, const Tensors& targets,
                                size_t n, bool lenient) const {
  std::vector<Loss> losses;
  try {
    losses = losses_of(n);
  } catch (const errors::InvalidArgument&) {
    if (!options->losses.names.empty()) throw;
  }
  const auto metrics = metrics_of(n);
  // Which outputs have a target.
  std::vector<size_t> at;
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i].defined() || !metrics[i].empty()) at.push_back(i);
  }
  const size_t t = at.size();
  const bool fits = t > 0 && (targets.size() == t || targets.size() == t + 1 ||
                              targets.size() == 2 * t);
  if (!fits) {
    if (lenient) return {std::move(inputs), targets, {}};
    throw errors::InvalidArgument(fmt::format(
        "model \"{}\" has {} outputs, {} targets and {} losses{}; expected one "
        "target (and one loss) per output, then no sample weights, or one "
        "tensor of them, or one per target",
        model.name(), n, targets.size(),
        options->losses.empty() ? size_t{1} : options->losses.size(),
        where_text(nullptr, compiled_at)));
  }
  StepData data{std::move(inputs), Tensors(n), {}};
  for (size_t i = 0; i < t; ++i) data.y[at[i]] = targets[i];
  if (targets.size() == t + 1) {
    data.sample_weight = {targets[t]};
  } else if (targets.size() == 2 * t) {
    data.sample_weight.resize(n);
    for (size_t i = 0; i < t; ++i) data.sample_weight[at[i]] = targets[t + i];
  }
  return data;
}

void Model::Training::set_class_weight(const std::map<int64_t, double>& weights,
                                       Site site) {
  for (const auto& [label, weight] : weights) {
    // Labels index a table.
    if (label >= 0 && label < (1 << 20) && std::isfinite(weight) &&
        weight >= 0) {
      continue;
    }
    throw errors::InvalidArgument(fmt::format(
        "class_weight of class {} is {}{}; expected numbers of classes from 0 "
        "to 1048575, and weights of at least 0",
        label, weight, where_text(nullptr, site)));
  }
  if (weights == class_weight_) return;
  class_weight_ = weights;
  train_.reset();
  std::erase_if(elsewhere_,
                [](const auto& run) { return run.first.starts_with("train"); });
}

// One per sample of y: labels, or one-hot.
Tensor Model::Training::class_weights(const Tensor& y) const {
  const int64_t last = class_weight_.rbegin()->first;
  std::vector<float> table(static_cast<size_t>(last) + 2, 1);
  for (const auto& [label, weight] : class_weight_) {
    table[static_cast<size_t>(label)] = static_cast<float>(weight);
  }
  Tensor label = y;
  if (y.rank() > 1 && y.shape()[y.rank() - 1] != 1) {
    label = math::argmax(y, -1, compiled_at);
  } else if (y.rank() > 1) {
    label = squeeze(y, {-1}, compiled_at);
  }
  if (label.dtype() != int64) label = math::cast(label, int64, compiled_at);
  label = clip_by_value(label, constant(int64_t{0}), constant(last + 1),
                        compiled_at);
  return gather(constant(table, {last + 2}), label, 0, compiled_at);
}

Tensor Model::Training::weights_of(const StepData& data, size_t output,
                                   size_t n) const {
  Tensor w;
  if (data.sample_weight.size() == 1) {
    w = data.sample_weight[0];
  } else if (!data.sample_weight.empty()) {
    w = data.sample_weight.at(output);
  }
  if (!weighs_classes()) return w;
  if (n != 1) {
    throw errors::InvalidArgument(fmt::format(
        "fit of model \"{}\": class_weight for {} outputs{}; expected a model "
        "of one output: give sample weights",
        model.name(), n, where_text(nullptr, compiled_at)));
  }
  const Tensor c = class_weights(data.y[output]);
  if (!w.defined()) return c;
  if (w.rank() == c.rank() + 1) w = squeeze(w, {-1}, compiled_at);
  return math::multiply(math::cast(w, float32, compiled_at), c, compiled_at);
}

Tensor Model::Training::total_loss(const StepData& data, const Tensors& outputs,
                                   StepLogs* each) const {
  const size_t n = outputs.size();
  const std::vector<Loss> losses = losses_of(n);
  const PerOutput<double>& given = options->loss_weights;
  const std::vector<double> factors =
      given.empty() ? std::vector<double>(n, 1.0)
                    : by_output(*this, "loss_weights", given, n, 1.0);
  const auto& names = model.base()->state().output_names;
  Tensor sum;
  for (size_t i = 0; i < n; ++i) {
    const Loss& loss = losses[i];
    if (!loss.defined()) continue;
    Tensor one = loss(data.y.at(i), in_float(outputs[i]),
                      weights_of(data, i, n), compiled_at);
    if (one.rank() != 0) {
      throw errors::InvalidArgument(fmt::format(
          "model \"{}\": loss {} is {}; expected a scalar: its reduction is "
          "\"{}\"",
          model.name(), loss.name(), one.shape().str(), loss.reduction()));
    }
    if (n > 1) {
      each->emplace_back(names.size() == n
                             ? names[i] + "_loss"
                             : fmt::format("output_{}_loss", i + 1),
                         one);
    }
    if (factors[i] != 1) {
      one = math::multiply(
          one, math::cast(constant(factors[i]), one.dtype(), compiled_at),
          compiled_at);
    }
    sum = sum.defined() ? math::add(sum, one, compiled_at) : one;
  }
  for (const Tensors& list : {model.losses(), CallLosses::gathered()}) {
    for (const Tensor& added : list) {
      if (!sum.defined()) {
        sum = added;
        continue;
      }
      sum = math::add(sum,
                      added.dtype() == sum.dtype()
                          ? added
                          : math::cast(added, sum.dtype(), compiled_at),
                      compiled_at);
    }
  }
  if (sum.defined()) return sum;
  throw errors::InvalidArgument(
      fmt::format("model \"{}\" has no loss{}; expected {{.loss = \"mse\"}} "
                  "in compile(), or add_loss() in a layer",
                  model.name(), where_text(nullptr, compiled_at)));
}

void Model::Training::update_metrics(const StepData& data,
                                     const Tensors& outputs) const {
  set_site(compiled_at);
  const auto all = metrics_of(outputs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& row : all[i]) {
      const Metric& m = row.second;
      const bool weighted = is_weighted(*options, m);
      m.update_state(data.y.at(i), in_float(outputs.at(i)),
                     weighted ? weights_of(data, i, outputs.size()) : Tensor());
    }
  }
}

Tensor Model::Training::loss_of(const StepData& data, const Tensors& outputs,
                                StepLogs* each) {
  ModelBase* own = own_steps();
  return own ? own->compute_loss(data, outputs)
             : total_loss(data, outputs, each);
}

Tensor Model::Training::log(const StepLogs& logs, const Tensor& counted,
                            std::vector<std::string>* names) {
  if (logs.empty() || !logs[0].second.defined()) {
    throw errors::InvalidArgument(fmt::format(
        "a step of model \"{}\" returned nothing; expected at least "
        "{{\"loss\", loss}}",
        model.name()));
  }
  // The mean over all samples, though batches differ in size; a batch that is
  // not known yet is counted by the step.
  const int64_t batch = counted.rank() > 0 ? counted.shape()[0] : 1;
  const Tensor n =
      batch >= 0 ? constant(static_cast<float>(batch)) : count_rows(counted);
  for (const auto& [name, value] : logs) {
    if (!value.defined() || value.rank() != 0) {
      throw errors::InvalidArgument(fmt::format(
          "a step of model \"{}\" returned \"{}\" as {}; expected a scalar",
          model.name(), name,
          value.defined() ? value.shape().str() : "an empty tensor"));
    }
    const Metric& mean =
        means_.try_emplace(name, metrics::Mean({.name = name})).first->second;
    if (std::find(names->begin(), names->end(), name) == names->end()) {
      names->push_back(name);
    }
    const Tensor v = value.dtype() == float32
                         ? value
                         : math::cast(value, float32, compiled_at);
    mean.total().assign_add(math::multiply(v, n, compiled_at), compiled_at);
    mean.count().assign_add(n, compiled_at);
  }
  return logs[0].second;
}

std::vector<std::pair<std::string, Metric>> Model::Training::logged() const {
  std::vector<std::pair<std::string, Metric>> list;
  for (const std::string& name : tested_ ? test_logs_ : train_logs_) {
    list.emplace_back(name, means_.at(name));
  }
  const auto& names = model.base()->state().output_names;
  for (const auto& of_output : metrics_of(names.size())) {
    list.insert(list.end(), of_output.begin(), of_output.end());
  }
  return list;
}

void Model::Training::reset_metrics() {
  for (const auto& [name, m] : means_) m.reset_state();
  for (const Metric& m : options->metrics) m.reset_state();
  for (const Metric& m : options->weighted_metrics) m.reset_state();
  for (const auto& [output, list] : options->metrics_by_output) {
    for (const Metric& m : list) m.reset_state();
  }
  for (const auto& [output, list] : options->weighted_metrics_by_output) {
    for (const Metric& m : list) m.reset_state();
  }
}

std::vector<std::pair<std::string, double>> Model::Training::results() const {
  std::vector<std::pair<std::string, double>> list;
  if (const auto elsewhere = servers()) {
    std::vector<Variable> states;
    for (const auto& [name, m] : logged()) {
      for (const Variable& v : m.variables()) states.push_back(v);
    }
    elsewhere->refresh(states);
  }
  for (const auto& [name, m] : logged()) list.emplace_back(name, m.result());
  return list;
}

}  // namespace berth::keras
