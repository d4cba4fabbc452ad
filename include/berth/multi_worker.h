// multi_worker: one model on the devices of several processes, with the result
// of one device (tf.distribute.MultiWorkerMirroredStrategy).
//
//   distribute::MultiWorkerMirroredStrategy strategy;  // as TF_CONFIG says
//   {
//     auto scope = strategy.scope();
//     model = make_model();
//     model.compile({.optimizer = "adam", .loss = "mse"});
//   }
//   model.fit(x, y, {.batch_size = 256});  // the batch of all tasks together
//
// Every task runs the same program: it makes the same calls in the same order.
// Where tasks compute together they wait for each other; what ends one of them
// ends the call in all, with one error. See berth/distribute.h for what
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

// When a task is told that its machine goes away: preemption.h, and
// callbacks::BackupAndRestore.
struct TerminationConfig {
  // Asked after each step: true once this task is to end. Empty: SIGTERM came.
  std::function<bool()> termination_watcher_fn = {};
  // Ends the process once everything is saved. Empty: exits with restart_code.
  // When it returns, errors::Cancelled is thrown.
  std::function<void()> exit_fn = {};
  int restart_code = 143;  // 1 to 255
  // How long training goes on after the notice before it saves.
  double grace_period_seconds = 0;
};

// Replicas are those of all tasks, in order of ranks: the chief's first. The
// devices in StrategyOptions are those of this task; shares and slices are of
// all replicas. Each task has copies of the variables, which begin with the
// chief's values.
struct MultiWorkerMirroredStrategy : Strategy {
  // Waits until all tasks are there, once per process and cluster. A process
  // without a cluster, or alone in it, and an evaluator, are a
  // MirroredStrategy. Throws what joining throws (errors::InvalidArgument,
  // AlreadyExists, PermissionDenied, DeadlineExceeded), and
  // errors::InvalidArgument when tasks have options that do not fit.
  explicit MultiWorkerMirroredStrategy(
      ClusterResolver resolver = cluster_resolver::from_environment(),
      StrategyOptions options = {}, JoinOptions join = {},
      Site site = Site::here());
  // In a cluster that has been joined.
  explicit MultiWorkerMirroredStrategy(std::shared_ptr<cluster::Member> member,
                                       StrategyOptions options = {},
                                       Site site = Site::here());

  // "worker"; "" when there is no cluster.
  const std::string& task_type() const { return resolver_.task.job; }
  int task_id() const { return resolver_.task.index; }
  const ClusterResolver& cluster_resolver() const { return resolver_; }
  // True in the task that writes files: rank 0, or one that is alone.
  bool is_chief() const;
  // Calls `fit`; when the cluster fails meanwhile (a task died, was cut off, or
  // failed), waits until all tasks are back and calls it again, at most
  // `most_restarts` times. With a callback BackupAndRestore made in `fit`, all
  // go on bit for bit from the last backup that all have; a failure before the
  // first one leaves weights that cannot be used. Throws what `fit` throws
  // otherwise, and errors::DeadlineExceeded naming who is missing.
  void wait_and_restore(const std::function<void()>& fit,
                        double timeout_seconds = 600,
                        int most_restarts = 10) const;

  // The same, but tasks that are lost are not waited for: those that are left
  // form again and go on with the last backup that all of them have. Batches
  // stay as large as they were, so the learning rate stays as it is: each batch
  // is shared by the replicas that are left. Where tasks read files or data of
  // their own, these are dealt out anew when `fit` makes its dataset, and the
  // epoch that was interrupted begins again. The chief (else worker 0) cannot
  // be lost: it is waited for. Who comes back takes part after the next
  // failure. docs/cluster.md says the same, and so does a line when it happens.
  void shrink_and_restore(const std::function<void()>& fit,
                          double timeout_seconds = 600,
                          int most_restarts = 10) const;

  // Says that this task is done, waits until all are, and leaves the cluster:
  // at the end of a program. Does nothing when the process is alone.
  void leave(double timeout_seconds = 60) const;
  // Null when the process is alone.
  std::shared_ptr<cluster::Member> member() const;

 private:
  void restore(const std::function<void()>& fit, double timeout_seconds,
               int most_restarts, bool shrink) const;

  ClusterResolver resolver_;
};

}  // namespace berth::distribute

#endif  // BERTH_MULTI_WORKER_H_
