#include "distribute/strategy/strategy_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/diagnostics.h"
#include "base/thread_pool.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/data_parallel/shard_step.h"
#include "distribute/data_parallel/shares.h"
#include "distribute/strategy/current_strategy.h"
#include "distribute/strategy/device_list.h"
#include "distribute/strategy/undecided.h"
#include "op/device_scope.h"
#include "tensor/shards.h"

namespace berth::distribute {

namespace {

constexpr int kFineSlices = 32;  // for shares that are not equal

const char* name_of(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kOneDevice:
      return "OneDeviceStrategy";
    case StrategyKind::kMirrored:
      return "MirroredStrategy";
    case StrategyKind::kCentralStorage:
      return "CentralStorageStrategy";
    case StrategyKind::kParameterServer:
      return "ParameterServerStrategy";
    case StrategyKind::kMultiWorkerMirrored:
      return "MultiWorkerMirroredStrategy";
    case StrategyKind::kPipeline:
      return "PipelineStrategy";
    case StrategyKind::kModelParallel:
      return "ModelParallel";
    case StrategyKind::kAuto:
      return "AutoStrategy";
  }
  return "";
}

const char* algorithm_of(CrossDeviceOps ops) {
  switch (ops) {
    case CrossDeviceOps::kAuto:
      return "auto";
    case CrossDeviceOps::kRing:
      return "ring";
    case CrossDeviceOps::kHierarchicalCopyAllReduce:
      return "hierarchical";
    case CrossDeviceOps::kReductionToOneDevice:
      return "one_device";
    case CrossDeviceOps::kDirect:
      return "direct";
    case CrossDeviceOps::kNcclAllReduce:
      return "nccl";
  }
  return "auto";
}

std::string names_of(const std::vector<Device*>& devices) {
  std::string s;
  for (const Device* d : devices) {
    s += (s.empty() ? "" : ", ") + d->short_name();
  }
  return s;
}

// Divides the list of devices into one list per replica.
std::vector<std::vector<Device*>> cut(const std::vector<Device*>& devices,
                                      int per_replica, const std::string& name,
                                      Site site) {
  if (per_replica < 1 ||
      devices.size() % static_cast<size_t>(per_replica) != 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: {} devices ({}), devices_per_replica is {}{}; expected a number "
        "of at least 1 that divides the number of devices",
        name, devices.size(), names_of(devices), per_replica,
        where_text(nullptr, site)));
  }
  std::vector<std::vector<Device*>> replicas;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i % static_cast<size_t>(per_replica) == 0) replicas.emplace_back();
    replicas.back().push_back(devices[i]);
  }
  return replicas;
}

void check_shares(const std::vector<double>& w, size_t replicas,
                  const std::string& name, Site site) {
  if (w.empty()) return;
  double sum = 0;
  bool good = w.size() == replicas;
  std::string text;
  for (double x : w) {
    good = good && std::isfinite(x) && x >= 0;
    sum += x;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", x);
  }
  if (good && sum > 0 && std::isfinite(sum)) return;
  throw errors::InvalidArgument(fmt::format(
      "{}: shares are {{{}}}, there are {} replicas{}; expected one number of "
      "at least 0 for each, not all 0",
      name, text, replicas, where_text(nullptr, site)));
}

int checked_slices(const StrategyOptions& options, size_t replicas,
                   const std::string& name, Site site) {
  int slices = options.slices;
  if (slices == 0 && !options.shares.equal()) slices = kFineSlices;
  const bool fits = slices >= static_cast<int>(replicas);
  if (slices == 0 || (fits && slices <= ThreadPool::kMaxChunks)) return slices;
  throw errors::InvalidArgument(fmt::format(
      "{}: {} slices for {} replicas{}; expected {} to {}, or 0 and equal "
      "shares",
      name, slices, replicas, where_text(nullptr, site), replicas,
      ThreadPool::kMaxChunks));
}

uint64_t next_serial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

uint64_t hash_of(const std::vector<int>& shares) {
  uint64_t h = 14695981039346656037ull;  // FNV-1a
  for (int n : shares) h = (h ^ static_cast<uint64_t>(n)) * 1099511628211ull;
  return h;
}

}  // namespace

StrategyCore::StrategyCore(StrategyKind kind, StrategyOptions options,
                           Site site)
    : serial_(next_serial()),
      kind_(kind),
      options_(std::move(options)),
      name_(name_of(kind)) {
  const std::vector<Device*> devices =
      devices_named(options_.devices, name_, site);
  replicas_ = cut(devices, options_.devices_per_replica, name_, site);
  check_communication(site);
  check_sharding(site);
  cut_slices(options_.shares.weights(), replicas_.size(), site);
}

StrategyCore::StrategyCore(std::vector<std::string> devices,
                           PipelineOptions options, Site site)
    : StrategyCore(
          StrategyKind::kPipeline,
          {.devices = devices,
           .devices_per_replica = std::max(1, static_cast<int>(devices.size())),
           .slices = options.slices},
          site) {
  std::vector<DeviceId> ids;
  for (const Device* d : replicas_[0]) ids.push_back(d->id());
  pipeline_ =
      std::make_unique<Pipeline>(std::move(options), std::move(ids), site);
}

StrategyCore::StrategyCore(const LayoutMap& map,
                           const ModelParallelOptions& options, Site site)
    : StrategyCore(Layouts::grid_of(map.mesh(), options.batch_dim_name, site),
                   site) {
  if (options.shares.automatic()) {
    throw errors::InvalidArgument(fmt::format(
        "{}: shares are Auto{}; expected a whole number for each device of a "
        "replica",
        name_, where_text(nullptr, site)));
  }
  layouts_ = std::make_unique<Layouts>(map, options, site);
}

StrategyCore::StrategyCore(const LayoutMap& map,
                           const std::string& stage_dim_name,
                           PipelineOptions options, Site site)
    : StrategyCore(
          Layouts::grid_of(map.mesh(), stage_dim_name, site).devices,
          {.micro_batches = options.micro_batches, .slices = options.slices},
          site) {
  layouts_ = std::make_unique<Layouts>(
      map, ModelParallelOptions{.batch_dim_name = stage_dim_name}, site);
  std::vector<DeviceId> ids;
  for (const Device* d : devices_of_scopes()) ids.push_back(d->id());
  pipeline_ =
      std::make_unique<Pipeline>(std::move(options), std::move(ids), site);
}

// Those that device scopes count: of a pipeline whose stages divide layers, the
// first of each stage.
std::vector<Device*> StrategyCore::devices_of_scopes() const {
  const std::vector<Device*>& all = replicas_[0];
  if (!layouts_ || kind_ != StrategyKind::kPipeline) return all;
  std::vector<Device*> firsts;
  for (size_t d = 0; d < all.size(); d += layouts_->shares().size()) {
    firsts.push_back(all[d]);
  }
  return firsts;
}

StrategyCore::StrategyCore(const Layouts::Grid& grid, Site site)
    : StrategyCore(StrategyKind::kModelParallel,
                   {.devices = grid.devices,
                    .devices_per_replica =
                        static_cast<int>(grid.devices.size()) / grid.replicas},
                   site) {}

void StrategyCore::check_communication(Site site) const {
  if (options_.communication.bytes_per_pack < 0 ||
      !(options_.communication.timeout_seconds >= 0)) {
    throw errors::InvalidArgument(fmt::format(
        "{}: bytes_per_pack is {}, timeout_seconds {}{}; expected numbers of "
        "at least 0",
        name_, options_.communication.bytes_per_pack,
        options_.communication.timeout_seconds, where_text(nullptr, site)));
  }
}

void StrategyCore::check_sharding(Site site) const {
  if (options_.sharding == Sharding::kNone) return;
  std::set<std::string> memories;
  for (const auto& replica : replicas_) {
    memories.insert(memory_of(replica[0]->id()));
  }
  const std::string host = memory_of(DeviceManager::get().host().id());
  const CrossDeviceOps ops = options_.cross_device_ops;
  const char* expected = nullptr;
  if (kind_ != StrategyKind::kMirrored) {
    expected = "MirroredStrategy, which alone has it";
  } else if (options_.devices_per_replica != 1) {
    expected =
        "devices_per_replica 1: a replica of several devices divides "
        "its layers";
  } else if (ops != CrossDeviceOps::kAuto && ops != CrossDeviceOps::kDirect) {
    expected = "cross_device_ops kAuto or kDirect: each device adds its part";
  } else if (memories.size() > 1 &&
             (memories.size() != replicas_.size() || memories.contains(host))) {
    expected = "devices that all have a memory of their own, or all the same";
  }
  if (expected == nullptr) return;
  throw errors::InvalidArgument(
      fmt::format("{}: sharding is asked for{}; expected {}", name_,
                  where_text(nullptr, site), expected));
}

void StrategyCore::cut_slices(std::vector<double> weights, size_t replicas,
                              Site site) {
  check_shares(weights, replicas, name_, site);
  slices_ = checked_slices(options_, replicas, name_, site);
  shares_.clear();
  if (slices_ == 0) return;
  if (weights.empty()) {
    for (int64_t n : even_parts(slices_, replicas)) {
      shares_.push_back(static_cast<int>(n));
    }
  } else {
    shares_ = slices_by_weight(weights, slices_);
  }
  key_ = hash_of(shares_);
}

std::shared_ptr<ParameterServers> StrategyCore::servers() const {
  if (kind_ != StrategyKind::kParameterServer) return nullptr;
  if (auto servers = servers_.lock()) return servers;
  throw errors::FailedPrecondition(
      "a ParameterServerStrategy that has ended is asked to run a step; "
      "expected the strategy to live as long as its model trains");
}

Device& StrategyCore::home(const DeviceScope* scope) const {
  // Ops of the engine are placed by the engine.
  if (scope && scope->kind == ScopeKind::kEngine && scope->device) {
    return *scope->device;
  }
  if (undecided_) return undecided_->home(scope);
  const std::vector<Device*> mine = devices_of_scopes();
  const bool central = kind_ == StrategyKind::kCentralStorage &&
                       (replicas_.size() > 1 || mine.size() > 1);
  Device& first = central ? DeviceManager::get().host() : *mine[0];
  if (scope == nullptr || !(scope->name.type || scope->name.id)) {
    return pipeline_ ? DeviceManager::get().host() : first;
  }
  const int number = scope->name.id.value_or(0);
  if (mine.size() > 1 && !central && kind_ != StrategyKind::kModelParallel) {
    int of_type = 0;
    for (Device* d : mine) {
      if (scope->name.type && *scope->name.type != d->type()) continue;
      if (of_type++ == number) return *d;
    }
    throw errors::InvalidArgument(fmt::format(
        "a variable is made in device(\"{}\"){}; a replica of the {} has {}: "
        "expected one of its devices by number, \"/{}:0\" to \"/{}:{}\"",
        scope->name.short_str(), where_text(nullptr, scope->site), name_,
        names_of(mine), mine[0]->type(), mine[0]->type(), mine.size() - 1));
  }
  if (!scope->name.matches(first.name())) {
    const std::string where = where_text(nullptr, scope->site);
    report_once(
        fmt::format("{}\n{}", where, scope->name.str()),
        {"strategy-scope-ignored", debugging::Severity::kLint,
         fmt::format("device(\"{}\"){} does nothing in the scope of a {}: "
                     "variables live with the replicas, and each replica "
                     "computes on a device of its own; for replicas that span "
                     "devices say .devices_per_replica = 2",
                     scope->name.short_str(), where, name_),
         scope->site});
  }
  return first;
}

void StrategyCore::adopt(const Tensor& handle) const {
  VariableState& v = variable_state(handle);
  v.strategy = this;
  keep_core(shared_from_this());
  const bool engine =
      t_state.scope && t_state.scope->kind == ScopeKind::kEngine;
  if (undecided_) return undecided_->adopt(handle, engine);
  settle(handle, engine);
  if (v.synchronization != VariableSynchronization::kOnRead) return;
  const std::vector<Device*>& mine = replicas_[0];
  const auto at = std::find(mine.begin(), mine.end(), v.device);
  const auto number = at == mine.end() ? 0 : at - mine.begin();
  for (size_t r = 1; r < replicas_.size(); ++r) {
    Device& device = *replicas_[r][static_cast<size_t>(number)];
    v.parts.push_back(make_variable(device,
                                    fmt::format("{}/replica_{}", v.name, r),
                                    v.dtype, v.shape, v.trainable, v.site));
  }
}

// What the optimizer makes follows the variable that it is for.
void StrategyCore::settle(const Tensor& handle, bool engine) const {
  if (is_to_divide(handle, engine)) {
    move_variable(handle, DeviceManager::get().host(), this);
  }
  if (!layouts_ || engine || replicas_[0].size() < 2) return;
  const int axis = layouts_->axis_of(variable_state(handle));
  if (axis >= 0) set_split_axis(handle, axis, this);
}

void StrategyCore::lay_out(const Tensor& handle,
                           const AxisNames& layout) const {
  if (!layouts_) {
    throw errors::InvalidArgument(fmt::format(
        "variable '{}' has a layout in the scope of a {}; expected that of a "
        "ModelParallel",
        variable_state(handle).name, name_));
  }
  const int axis = layouts_->axis_of(variable_state(handle), layout);
  if (axis >= 0 && replicas_[0].size() > 1) set_split_axis(handle, axis, this);
}

// What the optimizer makes and, with kParameters, what it trains.
bool StrategyCore::is_to_divide(const Tensor& handle, bool engine) const {
  const VariableState& v = variable_state(handle);
  const ShardPlan plan = shard_plan();
  if (!plan.divides() || !is_inexact(v.dtype) ||
      v.shape.num_elements() < static_cast<int64_t>(plan.devices.size())) {
    return false;
  }
  if (v.trainable) return plan.level == Sharding::kParameters;
  return engine;
}

ShardPlan StrategyCore::shard_plan() const {
  ShardPlan plan{.level = options_.sharding, .strategy = this};
  if (plan.level == Sharding::kNone || replicas_.size() < 2) return plan;
  if (same_memory(*replicas_[0][0], *replicas_[1][0])) return plan;
  for (const auto& replica : replicas_) plan.devices.push_back(replica[0]);
  plan.exact = options_.slices > 0;
  const int64_t pack = options_.communication.bytes_per_pack;
  if (pack > 0) plan.pack_bytes = pack;
  return plan;
}

std::vector<int> StrategyCore::shares() const {
  std::lock_guard lock(mutex_);
  return shares_;
}

void StrategyCore::set_shares(std::vector<int> shares) {
  const bool counts =
      std::all_of(shares.begin(), shares.end(), [](int n) { return n >= 0; });
  const int64_t sum = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  const auto replicas = static_cast<size_t>(num_replicas());
  if (!counts || shares.size() != replicas || sum != slices_ || slices_ == 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: {} shares of {} slices in all; expected one share of at least 0 "
        "for each of {} replicas, {} slices in all",
        name_, shares.size(), sum, replicas, slices_));
  }
  std::lock_guard lock(mutex_);
  shares_ = std::move(shares);
  key_ = hash_of(shares_) ^ rows_key_;
}

std::vector<int64_t> StrategyCore::examples(int64_t batch) const {
  if (batch < 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: a batch of {} examples; expected at least 0", name_, batch));
  }
  if (pipeline_) return {batch};
  return examples_of(split_plan(), batch);
}

SplitPlan StrategyCore::split_plan() const {
  SplitPlan plan = plan_here();
  if (pipeline_) {
    plan.replicas.assign(
        static_cast<size_t>(pipeline_->options().micro_batches),
        plan.replicas[0]);
    plan.shares.clear();
  }
  if (!link_) return plan;
  std::vector<std::vector<DeviceId>> mine = std::move(plan.replicas);
  plan.replicas.assign(static_cast<size_t>(num_replicas()), {DeviceId()});
  std::move(mine.begin(), mine.end(), plan.replicas.begin() + first_here());
  std::lock_guard lock(mutex_);
  plan.tasks = tasks_;
  return plan;
}

SplitPlan StrategyCore::layer_plan() const {
  SplitPlan plan = plan_here();
  plan.layers = true;
  plan.adds = pipeline_ != nullptr || replicas_.size() > 1;
  plan.shares = layouts_->shares();
  const size_t width = plan.shares.size();
  plan.replicas.assign(width, {});
  for (size_t d = 0; d < replicas_[0].size(); ++d) {
    plan.replicas[d % width].push_back(replicas_[0][d]->id());
  }
  return plan;
}

SplitPlan StrategyCore::plan_here() const {
  SplitPlan plan;
  for (const auto& replica : replicas_) {
    auto& names = plan.replicas.emplace_back();
    for (const Device* d : replica) names.push_back(d->id());
  }
  plan.shares = shares();
  plan.slices = options_.slices;  // otherwise bits may depend on the replicas
  if (kind_ == StrategyKind::kCentralStorage) plan.central = home(nullptr).id();
  plan.algorithm = algorithm_of(options_.cross_device_ops);
  plan.pack_bytes = options_.communication.bytes_per_pack;
  return plan;
}

}  // namespace berth::distribute
