// StrategyCore: the shared state of a Strategy handle: its replicas and
// options.
//
// Immutable except for the shares, which fit moves between steps. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_STRATEGY_CORE_H_
#define BERTH_DISTRIBUTE_STRATEGY_STRATEGY_CORE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "berth/auto_strategy.h"
#include "berth/cluster.h"
#include "berth/distribute.h"
#include "berth/errors.h"
#include "device/device.h"
#include "distribute/data_parallel/split_batch.h"
#include "distribute/pipeline/pipeline.h"
#include "distribute/strategy/layouts.h"
#include "op/replica_scope.h"

namespace berth::distribute {

enum class StrategyKind : uint8_t {
  kOneDevice,
  kMirrored,
  kCentralStorage,
  kParameterServer,
  kMultiWorkerMirrored,
  kPipeline,
  kModelParallel,
  kAuto,  // not chosen yet (strategy/undecided.h)
};

class Undecided;           // distribute/strategy/undecided.h
struct ShardPlan;          // distribute/data_parallel/shard_step.h
class ParameterServers;    // distribute/parameter_server/coordinator.h
class CollectiveExecutor;  // distribute/multi_worker/gradient_exchange.h
struct ElasticRun;         // distribute/multi_worker/elastic_run.h

class StrategyCore final : public StrategyScope,
                           public std::enable_shared_from_this<StrategyCore> {
 public:
  // Throws errors::InvalidArgument for unknown or repeated devices, and for
  // shares or slices that do not fit; `site` is the user's line.
  StrategyCore(StrategyKind kind, StrategyOptions options, Site site);
  // For one of several tasks, which all call it at the same time. Throws
  // errors::InvalidArgument, in all tasks, if their options do not match.
  StrategyCore(std::shared_ptr<CollectiveExecutor> link,
               StrategyOptions options, Site site);
  // A pipeline: one replica on all devices. Throws errors::InvalidArgument.
  StrategyCore(std::vector<std::string> devices, PipelineOptions options,
               Site site);
  // A pipeline whose stages, along an axis of the mesh, divide layers.
  StrategyCore(const LayoutMap& map, const std::string& stage_dim_name,
               PipelineOptions options, Site site);
  // Split layers: one replica on all devices of the mesh. Throws
  // errors::InvalidArgument.
  StrategyCore(const LayoutMap& map, const ModelParallelOptions& options,
               Site site);

  // One that chooses later. Throws errors::InvalidArgument.
  StrategyCore(std::vector<std::string> devices,
               const AutoStrategyOptions& options, Site site);
  ~StrategyCore() override;

  StrategyKind kind() const { return kind_; }
  // A number that no other strategy of the process has or had.
  uint64_t serial() const { return serial_; }
  const StrategyOptions& options() const { return options_; }
  const std::string& name() const override { return name_; }
  // Replicas of all tasks.
  int num_replicas() const override {
    return link_ ? tasks_.first.back() : num_here();
  }
  // Replicas of this task: the number of the first, and how many.
  int first_here() const { return tasks_.first_here(); }
  int num_here() const { return static_cast<int>(replicas_.size()); }
  // The devices of each replica of this task.
  const std::vector<std::vector<Device*>>& replicas() const {
    return replicas_;
  }
  Device& home(const DeviceScope* scope) const override;
  void adopt(const Tensor& handle) const override;
  std::string device_of_layer(const char* path) const override;
  int micro_batches() const override {
    return pipeline_ ? pipeline_->options().micro_batches : 1;
  }
  // Null: the strategy is not a pipeline.
  Pipeline* pipeline() const { return pipeline_.get(); }
  // What waits for a choice; null: the strategy is none that chooses, or has.
  const Undecided* undecided() const { return undecided_.get(); }
  // What an AutoStrategy chose; null: nothing yet, or it is none.
  const ParallelPlan* choice() const { return choice_.get(); }
  // Takes over what `chosen` is: its variables move to where that has them.
  // Call between steps.
  void become(StrategyCore& chosen, std::shared_ptr<const ParallelPlan> plan);
  // Divides the variable as the layout says. Throws errors::InvalidArgument for
  // one that does not fit, and where the strategy divides no layers.
  void lay_out(const Tensor& handle, const AxisNames& layout) const;
  // Null: the strategy divides no layers.
  const Layouts* layouts() const { return layouts_.get(); }

  // Slices that batches are split into: the option, else 32 for unequal or
  // automatic shares, else 0.
  int slices() const { return slices_; }
  // How many of slices() each replica has now; empty when slices() is 0.
  std::vector<int> shares() const;
  // Moves slices; later steps use other plans. Throws errors::InvalidArgument
  // unless they add up to slices().
  void set_shares(std::vector<int> shares);
  // Changes with each set_shares() to new shares; equal shares have equal keys.
  uint64_t shares_key() const { return key_.load(); }
  // Examples per replica of a batch.
  std::vector<int64_t> examples(int64_t batch) const;
  // The strategy as a description for the rewrite of a step; micro-batches of a
  // pipeline are replicas on the same devices.
  SplitPlan split_plan() const;
  // That description for the replicas of this task only, counted from 0.
  SplitPlan plan_here() const;
  // How layers are divided over the devices of the first replica. Needs
  // layouts().
  SplitPlan layer_plan() const;
  // What the option `sharding` divides; nothing where devices share a memory.
  ShardPlan shard_plan() const;

  // The link to other tasks; null: there are none.
  const std::shared_ptr<CollectiveExecutor>& link() const { return link_; }
  const TaskPart& tasks() const { return tasks_; }
  // Whether this task is the chief, the only one that writes files and prints.
  bool is_chief() const { return tasks_.rank == 0; }
  // Sets the examples of the next steps by rank, if each task brings its own;
  // empty: every task has the whole batch and takes its part. They hold for
  // steps on batches whose first tensor is `of`.
  void set_task_rows(const std::vector<int64_t>& rows, const Tensor& of);
  // Call before a step on this batch.
  void use_batch(const Tensor& first) {
    if (rows_of_.load() != nullptr && rows_of_.load() != first.impl()) {
      set_task_rows({}, Tensor());
    }
  }
  // Calls `write` in the chief; returns in all tasks when it is done. All tasks
  // make the same calls. An exception from `write` ends the cluster.
  void on_chief(const std::string& what,
                const std::function<void()>& write) const;
  // Reserves ascending numbers for meetings of a trace with other tasks.
  int64_t reserve_meetings(int64_t count) { return meetings_.fetch_add(count); }
  // After a failure: waits until every task is back. With `shrink` it continues
  // with the remaining tasks: their replicas become those of the strategy.
  // Steps are compiled again, as in restarted tasks.
  void form_again(double timeout_seconds, bool shrink = false);
  // What elastic() keeps while it runs; else null.
  const std::shared_ptr<ElasticRun>& elastic_run() const { return elastic_; }
  void set_elastic_run(std::shared_ptr<ElasticRun> run) {
    elastic_ = std::move(run);
  }
  // Gives all tasks the random state of the first. All tasks call it.
  void share_random_state() const;
  // The position of this task in the whole cluster, lost tasks included.
  int place() const;
  // Call when a step failed here: ends it in all tasks. Throws the cluster's
  // error if that is the cause, the same in all tasks; otherwise returns.
  void failed(const errors::Error& e) const;

  // The servers that keep variables and run steps; null: this process does.
  // Throws errors::FailedPrecondition if a ParameterServerStrategy has ended.
  std::shared_ptr<ParameterServers> servers() const;
  void set_servers(const std::shared_ptr<ParameterServers>& servers) {
    servers_ = servers;
  }

 private:
  StrategyCore(const Layouts::Grid& grid, Site site);
  std::vector<Device*> devices_of_scopes() const;
  void check_communication(Site site) const;
  void check_sharding(Site site) const;
  bool is_to_divide(const Tensor& handle, bool engine) const;
  void settle(const Tensor& handle, bool engine) const;
  void cut_slices(std::vector<double> weights, size_t replicas, Site site);
  void meet_tasks(Site site);
  std::vector<double> weights_now() const;
  uint64_t steps_key() const;

  const uint64_t serial_;
  StrategyKind kind_;
  StrategyOptions options_;
  std::string name_;
  std::vector<std::vector<Device*>> replicas_;
  int slices_ = 0;
  std::shared_ptr<CollectiveExecutor> link_;
  TaskPart tasks_;  // rows: guarded by mutex_
  mutable std::mutex mutex_;
  std::vector<int> shares_;
  uint64_t rows_key_ = 0;
  std::atomic<const void*> rows_of_{nullptr};
  std::atomic<int64_t> meetings_{0};
  std::atomic<uint64_t> key_{0};
  std::weak_ptr<ParameterServers> servers_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<const Layouts> layouts_;
  std::unique_ptr<Undecided> undecided_;
  std::shared_ptr<const ParallelPlan> choice_;
  // The initial replicas of each task, in order of ranks.
  std::vector<std::pair<TaskId, int>> began_;
  std::vector<TaskId> now_;  // the tasks that train
  std::shared_ptr<ElasticRun> elastic_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_STRATEGY_CORE_H_
