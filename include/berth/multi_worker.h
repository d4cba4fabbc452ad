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

// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_MULTI_WORKER_H_
#define BERTH_MULTI_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  // Signals that are notices if termination_watcher_fn is empty, such as those
  // of `srun --signal`; empty: SIGTERM.
  std::vector<int> signals = {};
  // A file whose appearance is a notice as well, as some clouds announce it.
  std::string notice_file = {};
};

// How tasks come and go in elastic().
struct ElasticOptions {
  int min = 1;  // with fewer tasks the others wait, for at most timeout_seconds
  int max = 0;  // more wait as spares; 0: all tasks of the cluster
  double timeout_seconds = 600;
  // Errors of `train` in tasks that live; lost and added tasks do not count.
  int most_restarts = 10;
  // State is copied after so many steps: as many are repeated after a loss.
  int steps_per_copy = 1;
  // When a task is told to end: it hands over, leaves, and exits. The others go
  // on without it.
  TerminationConfig termination_config = {};
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
  // Calls `train` with the tasks that are there, and again each time a task was
  // lost, added, or told to end; returns when `train` has returned in all
  // tasks. In each Model::fit of `train` weights, optimizer, metrics, position
  // in the data, random numbers and callbacks go on from the last step that all
  // tasks finished: from memory, and in new tasks from that of another one. An
  // earlier fit of `train`, and what it returned, is not repeated; everything
  // else in `train` is. A batch keeps its size and is shared by the replicas
  // that are there; with StrategyOptions::slices bits do not depend on them. If
  // all tasks are lost, fit goes on from callbacks::BackupAndRestore, if there
  // is one. Tasks have the places of the ClusterSpec, whether they are there or
  // not; JoinOptions::min_tasks says how many are enough to begin. When the
  // coordinator is lost, the first task that is left takes over (docs/
  // cluster.md says where not). Throws what `train` throws,
  // errors::InvalidArgument for options that do not fit, and
  // errors::DeadlineExceeded naming missing tasks
  // (PyTorch's torch.distributed.elastic, Horovod's hvd.elastic.run).
  void elastic(const std::function<void()>& train, ElasticOptions options = {},
               Site site = Site::here()) const;

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
  struct Again;
  void run_again(const std::function<void()>& fit, const Again& how) const;

  ClusterResolver resolver_;
};

}  // namespace berth::distribute

#endif  // BERTH_MULTI_WORKER_H_
