// multi_worker: one model on the devices of several processes, with the result
// of one device (tf.distribute.MultiWorkerMirroredStrategy).
//
//   distribute::MultiWorkerMirroredStrategy strategy;  // from TF_CONFIG
//   {
//     auto scope = strategy.scope();
//     model = make_model();
//     model.compile({.optimizer = "adam", .loss = "mse"});
//   }
//   model.fit(x, y, {.batch_size = 256});  // the batch of all tasks together
//
// Every task runs the same program and makes the same calls in the same order.
// Where tasks compute together they wait for each other; what ends one of them
// ends the call in all, with one error. berth/distribute.h describes what
// strategies do.

#ifndef BERTH_MULTI_WORKER_H_
#define BERTH_MULTI_WORKER_H_

#include <functional>
#include <memory>
#include <string>

#include "berth/cluster.h"
#include "berth/distribute.h"
#include "berth/site.h"

namespace berth::cluster {
class Member;
}

namespace berth::distribute {

// When a task is told that its machine will be taken away: preemption.h, and
// callbacks::BackupAndRestore.
struct TerminationConfig {
  // Called after each step: true once this task is to end. Empty: on SIGTERM.
  std::function<bool()> termination_watcher_fn = {};
  // Ends the process once everything is saved. Empty: exits with restart_code.
  // If it returns, errors::Cancelled is thrown.
  std::function<void()> exit_fn = {};
  int restart_code = 143;  // 1 to 255
  // How long training continues after the notice before it saves.
  double grace_period_seconds = 0;
};

// Replicas are those of all tasks, in order of ranks: the chief's first. The
// devices in StrategyOptions are those of this task; shares and slices cover
// all replicas. Each task has copies of the variables, which start with the
// chief's values.
struct MultiWorkerMirroredStrategy : Strategy {
  // Waits until all tasks have joined, once per process and cluster. A process
  // without a cluster, or alone in it, and an evaluator, get a
  // MirroredStrategy. Throws the errors of joining (errors::InvalidArgument,
  // AlreadyExists, PermissionDenied, DeadlineExceeded), and
  // errors::InvalidArgument if the options of tasks do not match.
  explicit MultiWorkerMirroredStrategy(
      ClusterResolver resolver = cluster_resolver::from_environment(),
      StrategyOptions options = {}, JoinOptions join = {},
      Site site = Site::here());
  // For a cluster that has been joined already.
  explicit MultiWorkerMirroredStrategy(std::shared_ptr<cluster::Member> member,
                                       StrategyOptions options = {},
                                       Site site = Site::here());

  // "worker"; "" without a cluster.
  const std::string& task_type() const { return resolver_.task.job; }
  int task_id() const { return resolver_.task.index; }
  const ClusterResolver& cluster_resolver() const { return resolver_; }
  // True in the task that writes files: rank 0, or a task that is alone.
  bool is_chief() const;
  // Calls `fit`; if the cluster fails meanwhile (a task died, lost its
  // connection, or failed), waits until all tasks are back and calls it again,
  // at most `most_restarts` times. With a callback BackupAndRestore made in
  // `fit`, all tasks resume bit for bit from the last backup that all have; a
  // failure before the first one leaves weights that cannot be used. Throws the
  // errors of `fit` otherwise, and errors::DeadlineExceeded naming the missing
  // tasks.
  void wait_and_restore(const std::function<void()>& fit,
                        double timeout_seconds = 600,
                        int most_restarts = 10) const;

  // Restores without waiting for lost tasks: the remaining ones form the
  // cluster again and resume from the last backup that all of them have.
  // Batches keep their size, so the learning rate stays the same: each batch is
  // shared by the remaining replicas. If tasks read files or data of their own,
  // these are redistributed when `fit` makes its dataset, and the interrupted
  // epoch begins again. The chief (else worker 0) cannot be lost: the others
  // wait for it. A task that comes back takes part after the next failure.
  // docs/cluster.md describes this, and a line reports it when it happens.
  void shrink_and_restore(const std::function<void()>& fit,
                          double timeout_seconds = 600,
                          int most_restarts = 10) const;

  // Reports that this task is done, waits until all are, and leaves the
  // cluster: at the end of a program. Does nothing if the process is alone.
  void leave(double timeout_seconds = 60) const;
  // Null if the process is alone.
  std::shared_ptr<cluster::Member> member() const;

 private:
  void restore(const std::function<void()>& fit, double timeout_seconds,
               int most_restarts, bool shrink) const;

  ClusterResolver resolver_;
};

}  // namespace berth::distribute

#endif  // BERTH_MULTI_WORKER_H_
