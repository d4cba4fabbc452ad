// StrategyCore: what a Strategy handle shares: its replicas and options.
//
// Immutable but for the shares, which fit moves between steps. Thread-safe.

#ifndef BERTH_DISTRIBUTE_STRATEGY_CORE_H_
#define BERTH_DISTRIBUTE_STRATEGY_CORE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "berth/cluster.h"
#include "berth/distribute.h"
#include "berth/errors.h"
#include "device/device.h"
#include "distribute/split_batch.h"
#include "op/replica_scope.h"

namespace berth::distribute {

enum class StrategyKind : uint8_t {
  kOneDevice,
  kMirrored,
  kCentralStorage,
  kParameterServer,
  kMultiWorkerMirrored,
};

class ParameterServers;  // distribute/parameter_servers.h
class TaskLink;          // distribute/task_link.h

class StrategyCore final : public StrategyScope,
                           public std::enable_shared_from_this<StrategyCore> {
 public:
  // Throws errors::InvalidArgument: unknown or repeated devices, shares or
  // slices that do not fit; `site` is the user's line.
  StrategyCore(StrategyKind kind, StrategyOptions options, Site site);
  // Of one task of several, which all make it at the same time. Throws
  // errors::InvalidArgument, in all tasks, when their options do not fit.
  StrategyCore(std::shared_ptr<TaskLink> link, StrategyOptions options,
               Site site);

  StrategyKind kind() const { return kind_; }
  // A number that no other strategy of the process has or had.
  uint64_t serial() const { return serial_; }
  const StrategyOptions& options() const { return options_; }
  const std::string& name() const override { return name_; }
  // Of all tasks.
  int num_replicas() const override {
    return link_ ? tasks_.first.back() : num_here();
  }
  // Of this task: the first of all, and how many.
  int first_here() const { return tasks_.first_here(); }
  int num_here() const { return static_cast<int>(replicas_.size()); }
  // By replica of this task: its devices.
  const std::vector<std::vector<Device*>>& replicas() const {
    return replicas_;
  }
  Device& home(const DeviceScope* scope) const override;
  void adopt(const Tensor& handle) const override;

  // Slices that batches are cut into: the option, else 32 for unequal or
  // automatic shares, else 0.
  int slices() const { return slices_; }
  // How many of slices() each replica has now; empty when slices() is 0.
  std::vector<int> shares() const;
  // Moves slices; later steps use other plans. Throws errors::InvalidArgument
  // unless the sum is slices().
  void set_shares(std::vector<int> shares);
  // Changes with each set_shares() to shares that are new; the same shares
  // have the same key.
  uint64_t shares_key() const { return key_.load(); }
  // Examples per replica of a batch.
  std::vector<int64_t> examples(int64_t batch) const;
  // The same as a description for the rewrite of a step.
  SplitPlan split_plan() const;
  // The same for the replicas of this task alone, counted from 0.
  SplitPlan plan_here() const;

  // The way to other tasks; null: there are none.
  const std::shared_ptr<TaskLink>& link() const { return link_; }
  const TaskPart& tasks() const { return tasks_; }
  // Makes this task the only one that writes files and prints.
  bool is_chief() const { return tasks_.rank == 0; }
  // Examples of the next steps by rank, when each task brings its own; empty:
  // every task has the whole batch, and takes its part.
  // They hold for steps on batches whose first tensor is `of`.
  void set_task_rows(const std::vector<int64_t>& rows, const Tensor& of);
  // Before a step on this batch.
  void use_batch(const Tensor& first) {
    if (rows_of_.load() != nullptr && rows_of_.load() != first.impl()) {
      set_task_rows({}, Tensor());
    }
  }
  // Calls `write` in the chief; returns in all tasks when it has. All make the
  // same calls. What it throws ends the cluster.
  void on_chief(const std::string& what,
                const std::function<void()>& write) const;
  // Numbers for so many meetings of a trace with other tasks; ascending.
  int64_t reserve_meetings(int64_t count) { return meetings_.fetch_add(count); }
  // After a failure: waits until every task is back, or, with `shrink`, goes on
  // with those that are left: their replicas are the strategy's then, and share
  // batches as before. Steps are compiled again, as in tasks that have started
  // anew.
  void form_again(double timeout_seconds, bool shrink = false);
  // Gives all tasks the random state of the first. All call it.
  void share_random_state() const;
  // The same of the values of variables, before the next step. All call it.
  void share_variables();
  // Where this task stands among all of the cluster, also those that are lost.
  int place() const;
  // A step failed here: ends it in all tasks. Throws the cluster's error when
  // that is the cause, the same in all tasks; else returns.
  void failed(const errors::Error& e) const;

  // Who has the variables and runs the steps; null: this process. Throws
  // errors::FailedPrecondition when a ParameterServerStrategy has ended.
  std::shared_ptr<ParameterServers> servers() const;
  void set_servers(const std::shared_ptr<ParameterServers>& servers) {
    servers_ = servers;
  }

 private:
  void check_communication(Site site) const;
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
  std::shared_ptr<TaskLink> link_;
  TaskPart tasks_;  // rows: guarded by mutex_
  mutable std::mutex mutex_;
  std::vector<int> shares_;
  uint64_t rows_key_ = 0;
  std::atomic<const void*> rows_of_{nullptr};
  std::atomic<int64_t> meetings_{0};
  std::atomic<uint64_t> key_{0};
  std::weak_ptr<ParameterServers> servers_;
  // How the tasks began: who had how many replicas, in order of ranks.
  std::vector<std::pair<TaskId, int>> began_;
  std::vector<TaskId> now_;  // who trains
  uint64_t shared_ = 0;      // how often share_variables() was called
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_CORE_H_
