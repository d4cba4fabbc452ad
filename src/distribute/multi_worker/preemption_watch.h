// PreemptionWatch: whether a task is about to end; the answer is the same in
// all tasks.
//
// While a watch without a termination_watcher_fn lives, its signals are
// recorded instead of ending the process. One thread.

#ifndef BERTH_DISTRIBUTE_MULTI_WORKER_PREEMPTION_WATCH_H_
#define BERTH_DISTRIBUTE_MULTI_WORKER_PREEMPTION_WATCH_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/multi_worker.h"
#include "distribute/multi_worker/gradient_exchange.h"

namespace berth::distribute {

class PreemptionWatch {
 public:
  // `what`: for messages, with the user's line. `tasks`: the tasks that train;
  // null: this one alone. Throws errors::InvalidArgument for an invalid config.
  PreemptionWatch(std::string what, std::shared_ptr<CollectiveExecutor> tasks,
                  TerminationConfig config);
  ~PreemptionWatch();
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  // Returns true once a task is about to end and its grace period is over. All
  // tasks call it after the same steps.
  bool must_save();
  // Leaves the cluster and ends the process. `after`: what goes on from where.
  [[noreturn]] void end(const std::string& after);

 private:
  bool noticed();

  const std::string what_;
  const std::shared_ptr<CollectiveExecutor> tasks_;
  const TerminationConfig config_;
  const std::vector<int> signals_;
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MULTI_WORKER_PREEMPTION_WATCH_H_
