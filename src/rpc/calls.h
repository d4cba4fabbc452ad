// Calls: services of this task, and calls of those of others.
//
// One pipe per caller and service: the thread that reads it runs the handler
// and answers, so calls of one sender to one service run one after another, and
// all others side by side. A caller writes what fits at once and leaves the
// rest to a thread of the pipe's; another reads answers. Thread-safe.

#ifndef BERTH_RPC_CALLS_H_
#define BERTH_RPC_CALLS_H_

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "cluster/member.h"
#include "rpc/link.h"
#include "rpc/threads.h"

namespace berth::rpc {

using cluster::Handler;
using cluster::Message;

// One generation of calls; services outlive it.
class Services {
 public:
  void serve(const std::string& name, Handler handler);
  // Waits for the service; empty when `ended` became true.
  Handler find(const std::string& name, const std::function<bool()>& ended);
  void wake();
  // Lets go of the handlers and of what they hold.
  void clear();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Handler> handlers_;
};

class Calls {
 public:
  // `may_go`: tasks that may be lost while the generation goes on.
  Calls(Link& link, Services& services, bool same_host_by_unix,
        std::function<bool(const TaskId&)> may_go);
  // Answers what is open with the failure, or with errors::Cancelled; waits
  // for handlers that run.
  ~Calls();

  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double timeout_seconds);
  // A socket or pipe that a caller dialled.
  void accepted(Accepted accepted);
  // Calls whose time is over throw. Every few hundredths of a second.
  void tick();
  // Calls of this task throw errors::Unavailable; later ones dial anew.
  void drop(const TaskId& task, const std::string& message);
  // The generation is over: `failure` is null when all are done.
  void end(const Failure* failure);

  class Caller;

 private:
  void answer(Accepted accepted);

  Link& link_;
  Services& services_;
  const bool by_unix_;
  const std::function<bool(const TaskId&)> may_go_;
  std::mutex mutex_;
  std::map<std::pair<TaskId, std::string>, std::shared_ptr<Caller>> callers_;
  std::shared_ptr<const Failure> failure_;
  bool ended_ = false;
  Threads threads_;
};

// Reads one message; "" or what went wrong with the connection. Throws
// errors::DataLoss for bytes that are none, errors::ResourceExhausted.
std::string read_message(Pipe& pipe, struct MessageHead* head,
                         Message* message);

}  // namespace berth::rpc

#endif  // BERTH_RPC_CALLS_H_
