// The handles: strategies and their descriptions.

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "distribute/strategy/ignored_launcher.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::distribute {

namespace {

std::shared_ptr<StrategyCore> make(StrategyKind kind, StrategyOptions options,
                                   Site site) {
  return std::make_shared<StrategyCore>(kind, std::move(options), site);
}

}  // namespace

MirroredStrategy::MirroredStrategy(StrategyOptions options, Site site)
    : Strategy(make(StrategyKind::kMirrored, std::move(options), site)) {
  note_ignored_launcher("MirroredStrategy", site);
}
MirroredStrategy::MirroredStrategy(std::initializer_list<std::string> devices,
                                   StrategyOptions options, Site site)
    : MirroredStrategy(with_devices(devices, std::move(options), site), site) {}
StrategyOptions MirroredStrategy::with_devices(std::vector<std::string> devices,
                                               StrategyOptions options,
                                               Site site) {
  if (!options.devices.empty() && options.devices != devices) {
    throw errors::InvalidArgument(fmt::format(
        "MirroredStrategy: devices are given twice, and differ{}; expected one "
        "list",
        where_text(nullptr, site)));
  }
  options.devices = std::move(devices);
  return options;
}
OneDeviceStrategy::OneDeviceStrategy(const std::string& device, Site site)
    : Strategy(make(StrategyKind::kOneDevice, {.devices = {device}}, site)) {
  note_ignored_launcher("OneDeviceStrategy", site);
}
CentralStorageStrategy::CentralStorageStrategy(StrategyOptions options,
                                               Site site)
    : Strategy(make(StrategyKind::kCentralStorage, std::move(options), site)) {}

PipelineStrategy::PipelineStrategy(std::vector<std::string> devices,
                                   PipelineOptions options, Site site)
    : Strategy(std::make_shared<StrategyCore>(std::move(devices),
                                              std::move(options), site)) {
  note_ignored_launcher("PipelineStrategy", site);
}
PipelineStrategy::PipelineStrategy(LayoutMap layout_map,
                                   const std::string& stage_dim_name,
                                   PipelineOptions options, Site site)
    : Strategy(std::make_shared<StrategyCore>(layout_map, stage_dim_name,
                                              std::move(options), site)) {
  note_ignored_launcher("PipelineStrategy", site);
}
const PipelineOptions& PipelineStrategy::options() const {
  return core()->pipeline()->options();
}
std::string PipelineStrategy::instructions() const {
  return str(core()->pipeline()->actions(options().micro_batches));
}

ModelParallel::ModelParallel(LayoutMap layout_map, ModelParallelOptions options,
                             Site site)
    : Strategy(std::make_shared<StrategyCore>(layout_map, options, site)) {
  note_ignored_launcher("ModelParallel", site);
}

const std::string& Strategy::name() const { return core_->name(); }
int Strategy::num_replicas_in_sync() const { return core_->num_replicas(); }

std::vector<std::vector<std::string>> Strategy::devices() const {
  std::vector<std::vector<std::string>> names;
  const SplitPlan plan =
      core_->pipeline() ? core_->plan_here() : core_->split_plan();
  for (const auto& replica : plan.replicas) {
    auto& of_replica = names.emplace_back();
    for (const DeviceId d : replica) of_replica.push_back(d.text());
  }
  return names;
}

std::vector<int64_t> Strategy::examples(int64_t batch) const {
  return core_->examples(batch);
}

Tensors Strategy::local_results(const PerReplica& value) const {
  return value.values();
}

int64_t InputContext::get_per_replica_batch_size(
    int64_t global_batch_size) const {
  if (global_batch_size < 0 || global_batch_size % num_replicas_in_sync != 0) {
    throw errors::InvalidArgument(fmt::format(
        "the global batch of {} examples is not divisible by {} replicas; "
        "expected a multiple",
        global_batch_size, num_replicas_in_sync));
  }
  return global_batch_size / num_replicas_in_sync;
}

}  // namespace berth::distribute
