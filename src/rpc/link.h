// Link: authenticated sockets between the tasks of a running cluster.
//
// The member makes one and passes it to the parts that move bytes between
// tasks, such as the exchange. A socket belongs to one generation: when that
// ends, by a failure or because all are done, all its open sockets are shut
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

using cluster::ClusterFailure;
using distribute::ClusterSpec;
using distribute::TaskId;

// The purpose of a socket selects the accept() callback that gets it.
enum class Purpose : uint8_t {
  kControl = 1,   // gRPC; used by members only
  kCall = 2,      // services; used by members only
  kExchange = 3,  // cluster::Exchange
  kProbe = 4,     // closed once both are proved: `berth cluster --check`
  kWho = 5,       // refused with the answer: who coordinates (succession.h)
};

// How two tasks of one host are connected; others always use TCP.
enum class Route : uint8_t {
  kTcp,
  kUnix,  // can pass file descriptors (SCM_RIGHTS)
};

class Connection;

// A socket that another task dialled. Blocking, without Nagle's delay.
struct Accepted {
  Socket socket;
  TaskId from;
  std::string channel;  // the dialler's
  Route route = Route::kTcp;
  std::shared_ptr<Connection>
      connection;  // of calls over gRPC, instead of the socket
};

class Link {
 public:
  virtual ~Link() = default;

  virtual const TaskId& task() const = 0;
  // The tasks that train in this generation, by rank; fewer after a shrink.
  virtual std::vector<TaskId> ranks() const = 0;
  virtual uint64_t generation() const = 0;
  // Whether it is on the same machine, in the same network namespace: memory
  // and Unix sockets are shared.
  virtual bool same_host(const TaskId& task) const = 0;
  // The task's host_id(): every task groups the others by host in the same way.
  virtual std::string host_of(const TaskId& task) const = 0;
  // Whether all tasks have addresses of this machine alone.
  virtual bool loopback_only() const { return true; }
  // "worker:1 (10.0.0.2:2222)", for messages.
  virtual std::string name_of(const TaskId& task) const = 0;
  // JoinOptions::call_timeout_seconds.
  virtual double timeout_seconds() const = 0;

  // Connects to a task of this generation; both ends authenticate. `channel`:
  // at most 256 bytes, passed to the other end. Throws the failure of the
  // generation if it has one, errors::Unavailable for a task that cannot be
  // reached, errors::PermissionDenied with the reason of a refusal,
  // errors::DeadlineExceeded; 0 seconds: timeout_seconds().
  virtual Socket dial(const TaskId& to, Purpose purpose,
                      const std::string& channel, Route route = Route::kTcp,
                      double timeout_seconds = 0) = 0;

  // Dials as dial() does; returns a connection (connection.h).
  virtual std::shared_ptr<Connection> dial_connection(
      const TaskId& to, Purpose purpose, const std::string& channel,
      Route route);

  // `fn` gets the sockets of this purpose that others dial, also earlier ones,
  // on a thread of the link: it must not block. An empty `fn` stops that;
  // sockets then wait (for their generation) for a new one.
  virtual void accept(Purpose purpose, std::function<void(Accepted)> fn) = 0;

  // Reports that the connection to `peer` broke although it was not closed. The
  // coordinator decides whose fault it is; then the generation ends on all
  // tasks. Returns at once; wait_for_failure() throws the result.
  virtual void lost(const TaskId& peer, const std::string& cause,
                    int64_t step = -1) = 0;
  // Ends the generation on all tasks; `task` is to blame. Returns at once. If
  // there are several, the coordinator takes the first.
  virtual void fail(errors::Code code, const TaskId& task,
                    const std::string& cause, int64_t step = -1) = 0;
  // Call after lost() or fail(): waits until the generation has ended and
  // throws its failure, the same on all tasks. Throws one made of `cause` if
  // the coordinator does not answer within the time after which a task is dead.
  [[noreturn]] virtual void wait_for_failure(const std::string& cause) = 0;

  // Throws the failure of this generation, if any.
  virtual void check() const = 0;
  // `fn` is called once, when the current generation ends; at once if it has.
  // `failure` is null if all are done. Must not block.
  virtual void on_end(
      std::function<void(const ClusterFailure* failure)> fn) = 0;
  // The current step of this task, for failure messages. Lock-free.
  virtual void at_step(int64_t step) = 0;
};

// Called by the first Member::exchange() in a generation, on tasks that train;
// the result is destroyed before the link, and before the exchange of the next
// generation is made. Defined in src/rpc/exchange*.
std::unique_ptr<cluster::Exchange> make_exchange(Link& link);

}  // namespace berth::rpc

#endif  // BERTH_RPC_LINK_H_
