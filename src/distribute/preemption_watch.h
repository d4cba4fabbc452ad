// PreemptionWatch: whether a task is to end, the same answer in all tasks.
//
// While one without a termination_watcher_fn lives, SIGTERM is noted instead of
// ending the process. One thread.

#ifndef BERTH_DISTRIBUTE_PREEMPTION_WATCH_H_
#define BERTH_DISTRIBUTE_PREEMPTION_WATCH_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "berth/multi_worker.h"
#include "distribute/strategy_core.h"

namespace berth::distribute {

class PreemptionWatch {
 public:
  // `what`: for messages, with the user's line. `core`: null, or of several
  // tasks. Throws errors::InvalidArgument for a config that makes no sense.
  PreemptionWatch(std::string what, std::shared_ptr<StrategyCore> core,
                  TerminationConfig config);
  ~PreemptionWatch();
  PreemptionWatch(const PreemptionWatch&) = delete;
  PreemptionWatch& operator=(const PreemptionWatch&) = delete;

  // True once a task is to end and its grace period is over. All tasks ask
  // after the same steps.
  bool must_save();
  // Leaves the cluster and ends the process. `saved`: where.
  [[noreturn]] void end(const std::string& saved);

 private:
  bool noticed();

  const std::string what_;
  const std::shared_ptr<StrategyCore> core_;
  const TerminationConfig config_;
  const bool listens_;
  std::optional<std::chrono::steady_clock::time_point> since_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PREEMPTION_WATCH_H_
