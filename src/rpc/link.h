// Link: authenticated sockets between the tasks of a running cluster.
//
// The member makes one and hands it to what moves bytes between tasks, such as
// the exchange. A socket belongs to one generation: when that ends, by a
// failure or because all are done, every socket of it that is alive is shut
// down (both ends read 0 bytes), then the listeners of on_end() are called. All
// calls are thread-safe.

#ifndef BERTH_RPC_LINK_H_
#define BERTH_RPC_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "cluster/exchange.h"
#include "cluster/member.h"
#include "rpc/socket.h"

namespace berth::rpc {

using cluster::Failure;
using distribute::ClusterSpec;
using distribute::TaskId;

// What a socket is for: it is handed to whom accept() was called for.
enum class Purpose : uint8_t {
  kControl = 1,   // gRPC; the members' own
  kCall = 2,      // services; the members' own
  kExchange = 3,  // cluster::Exchange
  kProbe = 4,     // closed once both are proved: `berth cluster --check`
};

// How two tasks of one host are connected; others always by TCP.
enum class Route : uint8_t {
  kTcp,
  kUnix,  // file descriptors may be sent (SCM_RIGHTS)
};

class Pipe;

// A socket that another task dialled. Blocking, without Nagle's delay.
struct Accepted {
  Socket socket;
  TaskId from;
  std::string channel;  // the dialler's
  Route route = Route::kTcp;
  std::shared_ptr<Pipe> pipe;  // of calls over gRPC, instead of the socket
};

class Link {
 public:
  virtual ~Link() = default;

  virtual const TaskId& task() const = 0;
  // Who train in this generation, in order of ranks; fewer after a shrink.
  virtual std::vector<TaskId> ranks() const = 0;
  virtual uint64_t generation() const = 0;
  // One machine and one network namespace: memory and Unix sockets are shared.
  virtual bool same_host(const TaskId& task) const = 0;
  // The task's host_id(): every task groups all others by host alike.
  virtual std::string host_of(const TaskId& task) const = 0;
  // "worker:1 (10.0.0.2:2222)", for messages.
  virtual std::string name_of(const TaskId& task) const = 0;
  // JoinOptions::call_timeout_seconds.
  virtual double timeout_seconds() const = 0;

  // Connects to a task of this generation and proves both ends to each other.
  // `channel`: at most 256 bytes, handed to the other end. Throws the failure
  // of the generation when it has one, errors::Unavailable for a task that
  // cannot be reached, errors::PermissionDenied with the reason of one that
  // refuses, errors::DeadlineExceeded; 0 seconds: timeout_seconds().
  virtual Socket dial(const TaskId& to, Purpose purpose,
                      const std::string& channel, Route route = Route::kTcp,
                      double timeout_seconds = 0) = 0;

  // The same as a pipe (pipe.h).
  virtual std::shared_ptr<Pipe> dial_pipe(const TaskId& to, Purpose purpose,
                                          const std::string& channel,
                                          Route route);

  // `fn` gets the sockets of this purpose that others dial, also those that
  // came before, on a thread of the link's: it must not block. An empty `fn`
  // ends that; sockets wait (for their generation) until there is another.
  virtual void accept(Purpose purpose, std::function<void(Accepted)> fn) = 0;

  // Says that the connection to `peer` broke although nobody closed it. The
  // coordinator decides whose fault that is; then the generation ends on all
  // tasks. Returns at once; wait_for_failure() has the answer.
  virtual void lost(const TaskId& peer, const std::string& cause,
                    int64_t step = -1) = 0;
  // Ends the generation on all tasks; `task` is whose fault it is. Returns at
  // once. Of several the coordinator takes the first.
  virtual void fail(errors::Code code, const TaskId& task,
                    const std::string& cause, int64_t step = -1) = 0;
  // After lost() or fail(): waits until the generation has ended and throws its
  // failure, the same on all tasks. Throws one made of `cause` when the
  // coordinator does not answer within the time after which a task is dead.
  [[noreturn]] virtual void wait_for_failure(const std::string& cause) = 0;

  // Throws the failure of this generation, if there is one.
  virtual void check() const = 0;
  // Called once, when the generation that runs now ends; at once if it has.
  // `failure` is null when all are done. Must not block.
  virtual void on_end(std::function<void(const Failure* failure)> fn) = 0;
  // The step that this task is in, for messages of failures. Lock-free.
  virtual void at_step(int64_t step) = 0;
};

// Made by the first call of Member::exchange() in a generation, on tasks that
// train; destroyed before the link, and before the next generation's is made.
// src/rpc/exchange*.
std::unique_ptr<cluster::Exchange> make_exchange(Link& link);

}  // namespace berth::rpc

#endif  // BERTH_RPC_LINK_H_
