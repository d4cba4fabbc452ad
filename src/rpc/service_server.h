// ServiceCalls: answers calls of this task's services and calls those of other
// tasks, during one generation.
//
// There is one connection per caller and service. The thread that reads it runs
// the handler and answers, so calls of one sender to one service run in order,
// and all others run in parallel. A caller writes what fits at once and leaves
// the rest to the connection's sender thread; another thread reads answers.
// Thread-safe.

#ifndef BERTH_RPC_SERVICE_SERVER_H_
#define BERTH_RPC_SERVICE_SERVER_H_

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

// The handlers of this task by name; they outlive generations.
class Services {
 public:
  void serve(const std::string& name, Handler handler);
  // Waits for the service; empty once `ended` is true.
  Handler find(const std::string& name, const std::function<bool()>& ended);
  void wake();
  // Releases the handlers and what they hold.
  void clear();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Handler> handlers_;
};

class ServiceClient;

class ServiceCalls {
 public:
  // `may_go`: tasks that may be lost without ending the generation.
  ServiceCalls(Link& link, Services& services, bool same_host_by_unix,
               std::function<bool(const TaskId&)> may_go);
  // Answers open calls with the failure, or with errors::Cancelled; waits for
  // running handlers.
  ~ServiceCalls();

  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double timeout_seconds);
  // Takes a socket or connection that a caller dialled.
  void accepted(Accepted accepted);
  // Fails calls that have timed out. Call it every few hundredths of a second.
  void tick();
  // Open calls to this task throw errors::Unavailable; later ones dial again.
  void drop(const TaskId& task, const std::string& message);
  // Ends the generation; `failure` is null if all tasks are done.
  void end(const ClusterFailure* failure);

 private:
  void answer(Accepted accepted);

  Link& link_;
  Services& services_;
  const bool by_unix_;
  const std::function<bool(const TaskId&)> may_go_;
  std::mutex mutex_;
  std::map<std::pair<TaskId, std::string>, std::shared_ptr<ServiceClient>>
      clients_;
  std::shared_ptr<const ClusterFailure> failure_;
  bool ended_ = false;
  Threads threads_;
};

// Reads one message; returns "" or why the connection failed. Throws
// errors::DataLoss for invalid bytes, errors::ResourceExhausted.
std::string read_message(Connection& connection, struct MessageHead* head,
                         Message* message);

}  // namespace berth::rpc

#endif  // BERTH_RPC_SERVICE_SERVER_H_
