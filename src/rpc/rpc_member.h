// RpcMember: a task of a running cluster, built on a Listener, a GrpcHub and,
// in one task, the Coordinator. Thread-safe.
//
// Frames of the coordinator arrive on one thread at a time. The mutex is never
// held while sending frames, dialling sockets or running callbacks.

#ifndef BERTH_RPC_RPC_MEMBER_H_
#define BERTH_RPC_RPC_MEMBER_H_

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/member.h"
#include "rpc/coordinator.h"
#include "rpc/grpc_stream.h"
#include "rpc/link.h"
#include "rpc/listener.h"
#include "rpc/service_server.h"
#include "rpc/socket_set.h"
#include "rpc/threads.h"

namespace berth::rpc {

using cluster::ClusterResolver;
using cluster::JoinOptions;

// Returns the option, else BERTH_CLUSTER_SECRET, else the contents of the file
// named by BERTH_CLUSTER_SECRET_FILE; "" if there is none. Throws
// errors::InvalidArgument for a file that cannot be read.
std::string secret_of(const JoinOptions& options);

class RpcMember final : public cluster::Member, public Link {
 public:
  RpcMember(const ClusterResolver& resolver, JoinOptions options, Site site);
  ~RpcMember() override;
  // Waits until all tasks have joined.
  void join();

  const ClusterSpec& spec() const override { return spec_; }
  const TaskId& task() const override { return task_; }
  const std::vector<TaskId>& tasks() const override { return tasks_; }
  int rank() const override;
  int num_ranks() const override;
  bool is_coordinator() const override { return task_ == head_; }
  uint64_t generation() const override;
  bool same_host(const TaskId& task) const override;
  void barrier(const std::string& name, double timeout_seconds) override;
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, double timeout_seconds) override;
  void abort(errors::Code code, const std::string& cause,
             int64_t step) override;
  std::optional<Failure> failure() const override;
  void check() const override;
  void on_failure(std::function<void(const Failure&)> fn) override;
  void leave(double timeout_seconds) override;
  void form_again(double timeout_seconds, bool shrink) override;
  void serve(const std::string& service, Handler handler) override;
  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double timeout_seconds) override;
  cluster::Exchange& exchange() override;

  std::vector<TaskId> ranks() const override;
  std::string host_of(const TaskId& task) const override;
  std::string name_of(const TaskId& task) const override;
  double timeout_seconds() const override {
    return options_.call_timeout_seconds;
  }
  Socket dial(const TaskId& to, Purpose purpose, const std::string& channel,
              Route route, double timeout_seconds) override;
  std::shared_ptr<Connection> dial_connection(const TaskId& to, Purpose purpose,
                                              const std::string& channel,
                                              Route route) override;
  void accept(Purpose purpose, std::function<void(Accepted)> fn) override;
  void lost(const TaskId& peer, const std::string& cause,
            int64_t step) override;
  void fail(errors::Code code, const TaskId& task, const std::string& cause,
            int64_t step) override;
  [[noreturn]] void wait_for_failure(const std::string& cause) override;
  void on_end(std::function<void(const Failure* failure)> fn) override;
  void at_step(int64_t step) override { step_ = step; }

 private:
  enum class Phase { kForming, kRunning, kFailed, kDone, kClosed };
  using Lock = std::unique_lock<std::mutex>;

  // rpc_member.cc: start and end.
  void check_options(Site site);
  void listen();
  bool listens_everywhere(const Endpoint& own) const;
  void form(double timeout_seconds, bool shrink);
  void enroll(bool shrink);
  void close_down();
  std::string missing(const std::string& own) const;

  // rpc_control.cc: frames.
  void open_control();
  void post(Frame frame);
  void on_frame(uint64_t serial, const Frame& frame);
  void on_control_closed(uint64_t serial, const Refusal& why);
  void on_go(const Frame& frame);
  void on_gone(const Frame& frame);
  void on_back(const Frame& frame);
  void end_generation(const Failure* failure);
  void lose_coordinator(const std::string& cause);
  void on_tick(double now);
  void from_coordinator(int connection, const Coordinator::FramePtr& frame,
                        bool close);
  void wait_until_sent(Deadline most);
  GrpcStream::Events take_control(std::shared_ptr<GrpcStream> stream,
                                  const TaskId& from);

  // rpc_dial.cc: connections.
  std::optional<Refusal> admit(const Hello& hello, bool stream);
  void on_admitted(Socket socket, const Hello& hello, Route route);
  GrpcStream::Events on_stream(std::shared_ptr<GrpcStream> stream,
                               const Hello& hello);
  void deliver(Accepted accepted, Purpose purpose, uint64_t generation);
  Hello hello_to(const TaskId& to, Purpose purpose,
                 const std::string& channel) const;
  // Either a socket or, unless `as_socket`, a stream of gRPC.
  struct Dialled {
    Socket socket;
    std::shared_ptr<GrpcConnection> connection;
    explicit operator bool() const { return socket || connection; }
  };
  Dialled dial_any(const TaskId& to, Purpose purpose,
                   const std::string& channel, Route route,
                   double timeout_seconds, bool as_socket);
  Dialled dial_once(const TaskId& to, Purpose purpose,
                    const std::string& channel, Route route, Deadline deadline,
                    bool* again);
  Socket dial_grpc();
  Socket connect_to(const TaskId& to, const std::string& address,
                    Deadline deadline);
  void check_address(const TaskId& to, const std::string& address) const;
  std::shared_ptr<SocketSet> set_of(const TaskId& task);
  std::string address_of(const TaskId& task) const;  // with the mutex held
  void refuse(const TaskId& to, const Refusal& refusal) const;

  // Waits until `ready`, the end of the generation or the deadline; every 10 s
  // a line names the missing tasks. Call with the lock held.
  template <class Ready>
  bool wait(Lock& lock, Deadline deadline, const char* what, Ready ready);
  void check_locked() const;
  bool by_grpc() const { return options_.transport == "grpc"; }

  ClusterSpec spec_;
  const TaskId task_;
  const std::string rendezvous_;
  JoinOptions options_;
  TlsFiles tls_;
  std::vector<TaskId> tasks_;
  TaskId head_;  // the coordinator
  uint64_t cluster_hash_ = 0;
  uint64_t incarnation_ = 0;
  std::string own_host_id_, own_address_;
  int port_ = 0;
  double heartbeat_seconds_ = 1;
  Handshake::Gate socket_gate_, stream_gate_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::kForming;
  uint64_t generation_ = 0;
  std::map<TaskId, TaskEntry> table_;
  std::map<TaskId, std::string> gone_;  // lost elastic tasks
  std::optional<Failure> failure_;
  std::optional<Refusal> refused_;
  std::string waiting_;      // missing tasks, from the coordinator
  std::string unreachable_;  // why the coordinator cannot be reached
  std::map<std::string, uint64_t> rounds_;
  std::set<std::pair<std::string, uint64_t>> met_;
  uint64_t next_get_ = 0;
  std::map<uint64_t, std::optional<std::string>> values_;
  std::vector<std::function<void(const Failure*)>> listeners_;
  std::map<TaskId, std::shared_ptr<SocketSet>> sockets_;
  std::map<Purpose, std::function<void(Accepted)>> acceptors_;
  std::vector<std::pair<Purpose, Accepted>> unclaimed_;
  std::shared_ptr<ServiceCalls> calls_;
  std::shared_ptr<GrpcStream> control_;
  uint64_t control_serial_ = 0, closed_serial_ = 0;
  double coordinator_silent_ = 0, since_heartbeat_ = 0, last_tick_ = -1;
  std::atomic<int64_t> step_{-1};

  std::mutex wires_mutex_;
  std::map<int, std::shared_ptr<GrpcStream>> streams_;  // of the coordinator
  int next_wire_ = 1;                                   // 0: this process
  Coordinator::FramePtr encoded_of_;                    // a broadcast frame ...
  std::string encoded_;                                 // ... is encoded once

  Services services_;
  Threads threads_;
  std::mutex exchange_mutex_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<GrpcHub> hub_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<cluster::Exchange> exchange_;
};

template <class Ready>
bool RpcMember::wait(Lock& lock, Deadline deadline, const char* what,
                     Ready ready) {
  waiting_.clear();
  Deadline line = after(10);
  for (;;) {
    if (phase_ != Phase::kRunning || ready()) return true;
    if (Clock::now() >= deadline) return false;
    if (Clock::now() >= line) {
      std::fprintf(stderr, "berth: %s: %s waits%s%s\n", task_.str().c_str(),
                   what, waiting_.empty() ? "" : " ", waiting_.c_str());
      line = after(10);
    }
    changed_.wait_until(lock, std::min(deadline, line));
  }
}

}  // namespace berth::rpc

#endif  // BERTH_RPC_RPC_MEMBER_H_
