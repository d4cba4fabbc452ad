// What checkpoints keep of layers, optimizers, metrics and models.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "berth/distribute.h"
#include "berth/errors.h"
#include "berth/keras/checkpoint_callbacks.h"
#include "berth/ops/array.h"
#include "berth/train.h"
#include "keras/models/layer_state.h"
#include "keras/models/pending_weights.h"
#include "keras/models/weight_paths.h"
#include "keras/optimizers/optimizer_base.h"
#include "keras/training/training.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

// Where the name of a slot has that of a variable: "adam/dense/kernel/m" and
// "dense/kernel" give 5; npos: nowhere.
size_t place_of_owner(const std::string& slot, const std::string& owner) {
  const size_t last = slot.rfind('/');
  if (last == std::string::npos || last < owner.size()) {
    return std::string::npos;
  }
  const size_t at = last - owner.size();
  const bool begins = at == 0 || slot[at - 1] == '/';
  return begins && slot.compare(at, owner.size(), owner) == 0
             ? at
             : std::string::npos;
}

}  // namespace

std::vector<train::NamedVariable> OptimizerBase::named_variables(
    const std::vector<Variable>& near) {
  if (!near.empty()) make(&near[0]);
  const std::vector<Variable> all = variables();
  std::lock_guard lock(mutex_);
  std::vector<train::NamedVariable> list;
  const std::string own = name_ + "/";
  for (const Variable& v : all) {
    std::string name = v.name();
    if (name.starts_with(own)) name.erase(0, own.size());
    list.push_back({name, v});
    train::NamedVariable& slot = list.back();
    size_t longest = 0;
    for (const auto& [impl, trained] : trained_) {
      const std::string& owner = trained.variable.name();
      const size_t at = place_of_owner(name, owner);
      if (at == std::string::npos || owner.size() < longest) continue;
      // Two variables of one name have slots of their own.
      const bool its_own = std::any_of(
          trained.slots.begin(), trained.slots.end(), [&](const Variable& s) {
            return s.handle().impl() == v.handle().impl();
          });
      if (owner.size() == longest && !its_own) continue;
      longest = owner.size();
      slot.slot_of = trained.variable;
      slot.name = name.substr(0, at) + "{}" + name.substr(at + owner.size());
    }
  }
  return list;
}

void OptimizerBase::make_slots(const std::vector<Variable>& variables) {
  if (variables.empty()) return;
  // Only which of them have gradients counts.
  make_all(Tensors(variables.size(), constant(0.f)), variables, t_state.site);
}

namespace {

// Puts values of layers that are not built aside for their build().
bool restore_weight_later(const Layer& root, const std::string& path,
                          std::function<void(const Variable&)> put) {
  LayerState* layer = nullptr;
  std::string rest;
  for (const auto& [prefix, state] : weight_paths(root).unbuilt) {
    if (!path.starts_with(prefix)) continue;
    const std::string name = path.substr(prefix.size());
    if (layer != nullptr && name.size() >= rest.size()) continue;
    layer = state;
    rest = name;
  }
  // Parts that are made in build() have no paths yet.
  if (layer == nullptr || rest.find('/') != std::string::npos) return false;
  put_when_made(*layer, rest, std::move(put));
  return true;
}

void put_value(const Variable& v, const Tensor& value) {
  if (!(value.shape() == v.shape()) || value.dtype() != v.dtype()) {
    throw errors::InvalidArgument(fmt::format(
        "the checkpoint has {} {} for the weight \"{}\", which is {} {}; "
        "expected the model that was saved",
        name_of(value.dtype()), value.shape().str(), v.name(),
        name_of(v.dtype()), v.shape().str()));
  }
  v.assign(value);
}

std::vector<train::NamedVariable> named_weights(const Layer& root) {
  std::vector<train::NamedVariable> list;
  for (auto& [path, v] : weight_paths(root).weights) list.push_back({path, v});
  return list;
}

class TrackedLayer final : public train::Tracked {
 public:
  explicit TrackedLayer(Layer layer) : layer_(std::move(layer)) {}
  std::string kind() const override { return "Layer"; }
  std::vector<train::NamedVariable> variables() const override {
    return named_weights(layer_);
  }
  bool restore_later(const std::string& name, const Tensor& value) override {
    return restore_weight_later(
        layer_, name, [value](const Variable& v) { put_value(v, value); });
  }

 private:
  const Layer layer_;
};

class TrackedOptimizer final : public train::Tracked {
 public:
  explicit TrackedOptimizer(std::shared_ptr<OptimizerBase> base)
      : base_(std::move(base)) {}
  std::string kind() const override { return "Optimizer"; }
  std::vector<train::NamedVariable> variables() const override {
    return base_->named_variables();
  }
  void make_slots(const std::vector<Variable>& variables) override {
    base_->make_slots(variables);
  }

 private:
  const std::shared_ptr<OptimizerBase> base_;
};

std::vector<train::NamedVariable> named_totals(const std::string& prefix,
                                               const Metric& m) {
  std::vector<train::NamedVariable> all;
  for (const Variable& v : m.variables()) {  // "accuracy/total"
    all.push_back({prefix + v.name().substr(v.name().rfind('/') + 1), v});
  }
  return all;
}

class TrackedMetric final : public train::Tracked {
 public:
  explicit TrackedMetric(Metric metric) : metric_(std::move(metric)) {}
  std::string kind() const override { return "Metric"; }
  std::vector<train::NamedVariable> variables() const override {
    return named_totals("", metric_);
  }

 private:
  const Metric metric_;
};

constexpr const char* kOptimizer = "optimizer/";
constexpr const char* kMetricPrefix = "metrics/";

// Variables of an optimizer that are made here belong to the strategy of the
// model, as those that its steps make do.
class StepVariables {
 public:
  explicit StepVariables(const Model::Training& t) {
    if (t.core == nullptr || distribute::has_strategy()) return;
    scope_.emplace(t.core, t.compiled_at);
  }

 private:
  std::optional<distribute::StrategyGuard> scope_;
};

class TrackedModel final : public train::Tracked {
 public:
  TrackedModel(Layer layer, std::shared_ptr<Model::Training> training)
      : layer_(std::move(layer)), t_(std::move(training)) {}

  std::string kind() const override { return "Model"; }
  bool has_parts() const override { return true; }
  std::string slot_prefix() const override { return kOptimizer; }

  std::vector<train::NamedVariable> variables() const override {
    std::vector<train::NamedVariable> list = named_weights(layer_);
    if (!t_->options) return list;
    const StepVariables like_in_steps(*t_);
    for (auto& v : t_->options->optimizer.base()->named_variables(
             t_->model.trainable_variables())) {
      v.name = kOptimizer + v.name;
      list.push_back(std::move(v));
    }
    for (const auto& [name, metric] : t_->all_metrics()) {
      for (auto& v : named_totals(kMetricPrefix + name + "/", metric)) {
        list.push_back(std::move(v));
      }
    }
    return list;
  }

  train::ObjectState state() const override {
    return {{}, t_->options ? t_->random_state() : ""};
  }
  void set_state(const train::ObjectState& s) override {
    if (t_->options && !s.text.empty()) t_->set_random_state(s.text);
  }
  void make_slots(const std::vector<Variable>& variables) override {
    if (!t_->options) return;
    const StepVariables like_in_steps(*t_);
    t_->options->optimizer.base()->make_slots(variables);
  }

  bool restore_later(const std::string& name, const Tensor& value) override {
    if (name.starts_with(kMetricPrefix)) return restore_mean(name, value);
    if (!name.starts_with(kOptimizer)) {
      return restore_weight_later(
          layer_, name, [value](const Variable& v) { put_value(v, value); });
    }
    // A slot of a weight that is not made: "optimizer/dense/kernel/m".
    const std::string rest = name.substr(std::string(kOptimizer).size());
    const size_t last = rest.rfind('/');
    if (!t_->options || last == std::string::npos) return false;
    for (size_t at = 0; at < last; at = rest.find('/', at) + 1) {
      const std::string slot = rest.substr(0, at) + "{}" + rest.substr(last);
      const auto put = [slot, value, t = t_](const Variable& v) {
        OptimizerBase& optimizer = *t->options->optimizer.base();
        optimizer.make_slots({v});
        for (const auto& n : optimizer.named_variables()) {
          const bool its = n.slot_of.defined() &&
                           n.slot_of.handle().impl() == v.handle().impl();
          if (its && n.name == slot) put_value(n.variable, value);
        }
      };
      const std::string owner = rest.substr(at, last - at);
      if (restore_weight_later(layer_, owner, put)) return true;
      if (rest.find('/', at) >= last) break;
    }
    return false;
  }

 private:
  // Restores means that a step of the user's logs, before its first trace.
  bool restore_mean(const std::string& name, const Tensor& value) {
    const size_t begin = std::string(kMetricPrefix).size(),
                 last = name.rfind('/');
    if (!t_->options || last <= begin) return false;
    const Metric mean = t_->mean_named(name.substr(begin, last - begin));
    put_value(name.ends_with("/total") ? mean.total() : mean.count(), value);
    return true;
  }

  const Layer layer_;
  const std::shared_ptr<Model::Training> t_;
};

}  // namespace

std::shared_ptr<train::Tracked> tracked(const Layer& layer) {
  return std::make_shared<TrackedLayer>(layer);
}
std::shared_ptr<train::Tracked> Model::tracked() const {
  return std::make_shared<TrackedModel>(*this, training_);
}
std::shared_ptr<train::Tracked> tracked(const Optimizer& optimizer) {
  return std::make_shared<TrackedOptimizer>(optimizer.base());
}
std::shared_ptr<train::Tracked> tracked(const Metric& metric) {
  return std::make_shared<TrackedMetric>(metric);
}

std::map<std::string, Metric> Model::Training::all_metrics() const {
  std::map<std::string, Metric> all = means_;
  const auto& names = model.base()->state().output_names;
  for (const auto& of_output : metrics_of(names.size())) {
    all.insert(of_output.begin(), of_output.end());
  }
  return all;
}

Metric Model::Training::mean_named(const std::string& name) {
  return means_.try_emplace(name, metrics::Mean({.name = name})).first->second;
}

std::string Model::Training::random_state() const {
  nlohmann::json j = nlohmann::json::object();
  if (train_) j["train"] = train_->core().random_state();
  if (test_) j["test"] = test_->core().random_state();
  if (forward_) j["predict"] = forward_->core().random_state();
  for (const auto& [key, e] : elsewhere_) {
    if (!e.ids) continue;
    j["elsewhere"][key] = {{"seed", e.ids->seed},
                           {"ids", e.ids->ids},
                           {"at_once", e.ids->at_once},
                           {"runs", e.runs}};
  }
  return j.dump();
}

void Model::Training::set_random_state(const std::string& text) {
  try {
    const nlohmann::json j = nlohmann::json::parse(text);
    const auto saved = j.value("elsewhere", nlohmann::json::object());
    std::map<std::string, Elsewhere> all;
    for (const auto& [key, e] : saved.items()) {
      Elsewhere& one = all[key];
      one.ids.emplace();
      e.at("seed").get_to(one.ids->seed);
      e.at("ids").get_to(one.ids->ids);
      e.at("at_once").get_to(one.ids->at_once);
      e.at("runs").get_to(one.runs);
    }
    // Traced again: with these numbers.
    if (!elsewhere_.empty()) {
      train_.reset();
      test_.reset();
    }
    elsewhere_ = std::move(all);
    const auto set = [&](const char* name, auto&& step) {
      if (j.contains(name)) {
        step().core().set_random_state(j.at(name).get<std::string>());
      }
    };
    set(
        "train", [&]() -> auto& { return train_step("restore"); });
    set(
        "test", [&]() -> auto& { return test_step("restore"); });
    set(
        "predict", [&]() -> auto& { return forward(); });
  } catch (const nlohmann::json::exception& e) {
    throw errors::DataLoss(fmt::format(
        "model \"{}\": the random state in the checkpoint is damaged ({}); "
        "take an earlier one",
        model.name(), e.what()));
  }
}

}  // namespace berth::keras
