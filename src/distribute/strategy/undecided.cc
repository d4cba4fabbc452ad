#include "distribute/strategy/undecided.h"

#include <fmt/format.h>

#include <map>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "distribute/strategy/strategy_core.h"
#include "tensor/shards.h"

namespace berth::distribute {

Device& Undecided::home(const DeviceScope* scope) const {
  const bool asked = scope && (scope->name.type || scope->name.id);
  if (!asked) return DeviceManager::get().host();
  throw errors::InvalidArgument(fmt::format(
      "a variable is made in device(\"{}\"){} in the scope of an AutoStrategy, "
      "which decides where variables are; expected no device, or a "
      "PipelineStrategy, whose stages device scopes can say",
      scope->name.short_str(), where_text(nullptr, scope->site)));
}

void Undecided::adopt(const Tensor& handle, bool engine) const {
  const VariableState& v = variable_state(handle);
  if (v.synchronization == VariableSynchronization::kOnRead) {
    throw errors::Unimplemented(fmt::format(
        "variable \"{}\"{} synchronises on reading, which is for run(); an "
        "AutoStrategy has fit(), evaluate() and predict() alone",
        v.name, where_text(nullptr, v.site)));
  }
  const std::lock_guard lock(mutex_);
  adopted_.push_back({handle, engine});
}

void Undecided::note_updates(const Graph& step) const {
  std::map<const VariableState*, Tensor> owner;
  for (const Node& n : step.nodes) {
    if (n.op->update_value() < 0) continue;
    const auto each = [&](const auto& see) {
      for (const ValueRef& v : n.inputs) {
        if (const Tensor& w = step[v.node].variable; w.defined()) see(w);
      }
    };
    Tensor of;
    each([&](const Tensor& w) {
      if (variable_state(w).trainable) of = w;
    });
    each([&](const Tensor& w) {
      const VariableState& v = variable_state(w);
      if (of.defined() && !v.trainable && v.shape == variable_state(of).shape) {
        owner[&v] = of;
      }
    });
  }
  const std::lock_guard lock(mutex_);
  for (Adopted& a : adopted_) {
    const auto it = owner.find(&variable_state(a.handle));
    if (it == owner.end()) continue;
    a.engine = true;
    a.owner = it->second;
  }
}

void Undecided::note_layer(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (seen_.insert(path).second) paths_.push_back(path);
}

std::vector<std::string> Undecided::paths() const {
  const std::lock_guard lock(mutex_);
  return paths_;
}

std::vector<Undecided::Adopted> Undecided::adopted() const {
  const std::lock_guard lock(mutex_);
  return adopted_;
}

StrategyCore::StrategyCore(std::vector<std::string> devices,
                           const AutoStrategyOptions& options, Site site)
    : StrategyCore(StrategyKind::kAuto, {.devices = std::move(devices)}, site) {
  if (options.memory_bytes_per_device < 0 || options.most_micro_batches < 1 ||
      options.most_copies < 0) {
    throw errors::InvalidArgument(fmt::format(
        "AutoStrategy: memory_bytes_per_device is {}, most_micro_batches {}, "
        "most_copies {}{}; expected at least 0, 1 and 0",
        options.memory_bytes_per_device, options.most_micro_batches,
        options.most_copies, where_text(nullptr, site)));
  }
  // One replica has all devices until the choice.
  std::vector<Device*> all;
  for (const auto& replica : replicas_) all.push_back(replica[0]);
  replicas_ = {all};
  undecided_ = std::make_unique<Undecided>(options, site);
}

StrategyCore::~StrategyCore() = default;

std::string StrategyCore::device_of_layer(const char* path) const {
  if (undecided_) undecided_->note_layer(path);
  return pipeline_ ? pipeline_->device_of_layer(path) : std::string();
}

void StrategyCore::become(StrategyCore& chosen,
                          std::shared_ptr<const ParallelPlan> plan) {
  const std::vector<Undecided::Adopted> variables = undecided_->adopted();
  kind_ = chosen.kind_;
  options_ = chosen.options_;
  replicas_ = chosen.replicas_;
  slices_ = chosen.slices_;
  {
    const std::lock_guard lock(mutex_);
    shares_ = chosen.shares_;
    key_ = chosen.key_.load();
  }
  pipeline_ = std::move(chosen.pipeline_);
  layouts_ = std::move(chosen.layouts_);
  choice_ = std::move(plan);
  undecided_.reset();
  for (const auto& [handle, engine, owner] : variables) settle(handle, engine);
  for (const auto& [handle, engine, owner] : variables) {
    const VariableState& v = variable_state(handle);
    const int axis = owner.defined() ? variable_state(owner).split_axis : -1;
    if (axis >= 0) set_split_axis(handle, axis, this);
    const bool waits =
        pipeline_ || v.split_axis >= 0 || is_to_divide(handle, engine);
    if (!waits) move_variable(handle, *replicas_[0][0], this);
  }
}

}  // namespace berth::distribute
