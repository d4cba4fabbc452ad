// ServiceClient: calls of this process to one service of one task. Thread-safe.

#ifndef BERTH_RPC_SERVICE_CLIENT_H_
#define BERTH_RPC_SERVICE_CLIENT_H_

#include <deque>
#include <exception>

#include "rpc/connection.h"
#include "rpc/message_frame.h"
#include "rpc/service_server.h"

namespace berth::rpc {

class ServiceClient : public std::enable_shared_from_this<ServiceClient> {
 public:
  // `may_go`: if the task is lost, only its own calls throw that.
  ServiceClient(Link& link, TaskId to, std::string service, Route route,
                bool may_go)
      : link_(link),
        to_(std::move(to)),
        service_(std::move(service)),
        route_(route),
        may_go_(may_go) {}

  void start(Threads& threads);
  std::future<Message> call(Message request, double timeout_seconds);
  void tick();
  // All open calls throw `why`; new ones are refused.
  void end(std::exception_ptr why);
  bool ended() {
    std::lock_guard lock(mutex_);
    return ended_ != nullptr;
  }

 private:
  struct Pending {
    std::promise<Message> promise;
    Deadline deadline;
    double seconds;
    uint64_t logged;  // CallLog
  };

  void connect();
  void run_sender();
  void run_reader();
  // Sends from the front of the queue what the connection takes at once.
  void send_at_once(std::unique_lock<std::mutex>& lock);
  void resolve(const MessageHead& head, Message message);
  void broken(const std::string& cause);

  Link& link_;
  const TaskId to_;
  const std::string service_;
  const Route route_;
  const bool may_go_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Connection> connection_;
  bool connected_ = false, sending_ = false, broken_ = false;
  std::exception_ptr ended_;
  uint64_t next_id_ = 0;
  std::map<uint64_t, Pending> pending_;
  std::deque<OutgoingMessage> queue_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_SERVICE_CLIENT_H_
