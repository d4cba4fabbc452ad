// preemption: saving before the machine is taken away
// (tf.distribute.experimental.PreemptionCheckpointHandler).
//
//   train::CheckpointManager manager(checkpoint, "runs/7");
//   distribute::PreemptionCheckpointHandler handler(strategy, manager);
//   while (handler.total_run_calls() < 1000) {
//     handler.run([&] { return strategy.run(step, next_batch()); });
//   }
// When a task receives SIGTERM, all tasks save after the same call, leave the
// cluster and exit with a code that tells the launcher to start them again. In
// fit: callbacks::BackupAndRestore(dir, {.save_before_preemption = true}).

#ifndef BERTH_PREEMPTION_H_
#define BERTH_PREEMPTION_H_

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "berth/multi_worker.h"
#include "berth/site.h"
#include "berth/train.h"

namespace berth::distribute {

// Belongs to one thread. While one lives, SIGTERM does not end the process by
// itself, unless termination_watcher_fn is set.
class PreemptionCheckpointHandler {
 public:
  // Restores the latest checkpoint of `manager`, which must outlive this. All
  // tasks make it at the same time; each has a manager with a folder of its
  // own. Throws errors::InvalidArgument for an invalid config, and the errors
  // of restoring.
  PreemptionCheckpointHandler(const Strategy& strategy,
                              train::CheckpointManager& manager,
                              TerminationConfig termination_config = {},
                              Site site = Site::here());
  ~PreemptionCheckpointHandler();
  PreemptionCheckpointHandler(const PreemptionCheckpointHandler&) = delete;
  PreemptionCheckpointHandler& operator=(const PreemptionCheckpointHandler&) =
      delete;

  // Calls `fn`, then save_checkpoint_if_preempted(). Returns the result of
  // `fn`.
  template <class Fn>
  std::invoke_result_t<Fn> run(Fn&& fn) {
    if constexpr (std::is_void_v<std::invoke_result_t<Fn>>) {
      std::forward<Fn>(fn)();
      count_call();
    } else {
      auto result = std::forward<Fn>(fn)();
      count_call();
      return result;
    }
  }
  // Calls of run() so far, including those before the restart.
  int64_t total_run_calls() const;
  // Saves and ends the process if any task is to end; all tasks call it at the
  // same place. For loops that do not use run().
  void save_checkpoint_if_preempted();

 private:
  void count_call();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::distribute

#endif  // BERTH_PREEMPTION_H_
