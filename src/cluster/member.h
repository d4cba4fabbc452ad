// Member: this process as one task of a running cluster.
//
// join() opens the plug-in libberth_rpc.so, listens on the task's one port,
// finds the coordinator and waits until all tasks have joined. From then on the
// member answers heartbeats until leave(). Whatever ends the cluster (a task
// dies, loses its connection, calls abort()) becomes one ClusterFailure, with
// the same text on every task, in bounded time; every later call throws it.
// Thread-safe.

#ifndef BERTH_CLUSTER_MEMBER_H_
#define BERTH_CLUSTER_MEMBER_H_

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/cluster.h"
#include "berth/errors.h"
#include "cluster/exchange.h"
#include "cluster/message.h"

namespace berth::cluster {

using distribute::ClusterResolver;
using distribute::ClusterSpec;
using distribute::JoinOptions;
using distribute::TaskId;

// Why a cluster ended.
struct ClusterFailure {
  errors::Code code = errors::Code::kUnavailable;
  TaskId task;          // to blame
  std::string cause;    // "connection reset by peer"
  int64_t step = -1;    // -1: not known
  std::string message;  // the complete text, as thrown
};

using Handler = std::function<Message(const TaskId& from, Message request)>;

class Member {
 public:
  // Returns when all tasks have joined. Throws errors::InvalidArgument for
  // invalid options or clusters, errors::AlreadyExists for a port in use or an
  // index that is taken, errors::PermissionDenied for a wrong secret or build,
  // errors::DeadlineExceeded naming the missing tasks.
  static std::shared_ptr<Member> join(const ClusterResolver& resolver,
                                      JoinOptions options = {},
                                      Site site = Site::here());
  // Dials a task that has joined, or waits to, and authenticates without
  // joining. Returns why that failed (another secret, another build, another
  // program on the port, a timeout), or nothing.
  static std::optional<std::string> probe(const ClusterResolver& resolver,
                                          const TaskId& to, JoinOptions options,
                                          double timeout_seconds,
                                          Site site = Site::here());
  virtual ~Member() = default;

  virtual const ClusterSpec& spec() const = 0;
  virtual const TaskId& task() const = 0;
  virtual const std::vector<TaskId>& tasks() const = 0;  // that take part
  // Among the tasks that train; -1 for parameter servers and evaluators.
  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;
  virtual bool is_coordinator() const = 0;
  // Starts at 1; each time the cluster forms again it increases by one.
  virtual uint64_t generation() const = 0;
  virtual bool same_host(const TaskId& task) const = 0;

  // Waits until all tasks() have called it with this name.
  virtual void barrier(const std::string& name, double timeout_seconds = 0) = 0;
  // A small store shared by all tasks. get() waits for the key.
  virtual void put(const std::string& key, const std::string& value) = 0;
  virtual std::string get(const std::string& key,
                          double timeout_seconds = 0) = 0;

  // Ends the cluster on all tasks with this cause.
  virtual void abort(errors::Code code, const std::string& cause,
                     int64_t step = -1) = 0;
  virtual std::optional<ClusterFailure> failure() const = 0;
  // Throws the failure, if any.
  virtual void check() const = 0;
  // Calls `fn` once, on a thread of the member, when the cluster fails; at once
  // if it already has. Must not block.
  virtual void on_failure(std::function<void(const ClusterFailure&)> fn) = 0;
  // Reports that this task is done and waits until all are; then closes. Later
  // events in other tasks are not failures.
  virtual void leave(double timeout_seconds = 60) = 0;

  // From now on tasks may come and go: with `min` of them, and at most `max`
  // (0: all), the cluster forms; a task that waits to join, and one that
  // announce_end() told of, end the generation with errors::Aborted; and if the
  // coordinator is lost, the first task that is left takes over. All tasks call
  // it in the same generation, or before they form the next one.
  virtual void set_elastic(int min, int max) = 0;
  // This task will leave: the others form the next generation without it.
  virtual void announce_end() = 0;

  // Forms the cluster again, as the next generation, after a failure: waits
  // until every task is back or, with `shrink`, continues with the remaining
  // tasks (then ranks() are fewer).
  virtual void form_again(double timeout_seconds, bool shrink = false) = 0;

  // Services. Calls of one sender to one service run in the order in which they
  // were made, one after another; all others in parallel. A handler may block
  // and may make calls. If it throws (errors::Error), the caller's call throws
  // that, prefixed with the task's name.
  virtual void serve(const std::string& service, Handler handler) = 0;
  virtual std::future<Message> call(const TaskId& to,
                                    const std::string& service, Message request,
                                    double timeout_seconds = 0) = 0;

  // For tasks that train; throws errors::FailedPrecondition on others.
  virtual Exchange& exchange() = 0;
  // The tasks that train in this generation, in order of ranks.
  virtual std::vector<TaskId> ranks() const = 0;
};

}  // namespace berth::cluster

#endif  // BERTH_CLUSTER_MEMBER_H_
