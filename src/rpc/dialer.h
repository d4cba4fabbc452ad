// Dialer: the connections to and from the other tasks. It listens, admits,
// delivers and dials; connections of a generation are shut down with it.
// Thread-safe.

#ifndef BERTH_RPC_DIALER_H_
#define BERTH_RPC_DIALER_H_

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/grpc_stream.h"
#include "rpc/link.h"
#include "rpc/listener.h"
#include "rpc/membership.h"
#include "rpc/service_server.h"
#include "rpc/socket_set.h"
#include "rpc/threads.h"

namespace berth::rpc {

class Dialer {
 public:
  // Called on threads of the listener and of gRPC; they must not block.
  struct Events {
    // Another task opened its stream to the coordinator, which runs here.
    std::function<GrpcStream::Events(std::shared_ptr<GrpcStream>,
                                     const TaskId&)>
        on_control;
    std::function<void(const TaskId&, const std::string& why)> on_refused;
    std::function<void(double now)> on_tick;
  };
  // The connections of a generation that has ended, to be shut down without
  // the lock.
  struct Generation {
    std::map<TaskId, std::shared_ptr<SocketSet>> sockets;
    std::vector<std::pair<Purpose, Accepted>> unclaimed;
    std::shared_ptr<ServiceCalls> calls;  // null: there were none
    void shut_down() const {
      for (const auto& [task, set] : sockets) set->end();
    }
  };

  // `link`: what calls of services use.
  Dialer(Membership& membership, Link& link);

  // Listens on the own address, or on all.
  void listen(Events events);
  void stop_listening() { listener_.reset(); }
  // Ends all streams of gRPC and waits for their last callbacks.
  void stop_streams();

  // As in Link and Member.
  Socket dial(const TaskId& to, Purpose purpose, const std::string& channel,
              Route route, double timeout_seconds);
  std::shared_ptr<Connection> dial_connection(const TaskId& to, Purpose purpose,
                                              const std::string& channel,
                                              Route route);
  void accept(Purpose purpose, std::function<void(Accepted)> fn);
  void serve(const std::string& service, Handler handler);
  std::future<Message> call(const TaskId& to, const std::string& service,
                            Message request, double timeout_seconds);
  void tick();

  // What a task answers who asks it for the coordinator; "": nothing.
  std::string ask(const TaskId& to, Deadline deadline);
  // Opens a stream to the coordinator. Throws errors::Unavailable.
  std::shared_ptr<GrpcStream> open_control(GrpcStream::Events events);
  void forget(const TaskId& task) { hub_->forget(task); }

  // Call these two with the lock of the membership held.
  void begin_generation();
  Generation end_generation();
  // Ends the calls of a failed generation and waits for handlers.
  void drop_calls();
  // Shuts down the connections to a lost task.
  void drop(const TaskId& task, const std::string& why);

 private:
  using Lock = Membership::Lock;
  using Phase = Membership::Phase;

  // Either a socket or, unless `as_socket`, a stream of gRPC.
  struct Dialled {
    Socket socket;
    std::shared_ptr<GrpcConnection> connection;
    explicit operator bool() const { return socket || connection; }
  };

  bool listens_everywhere(const Endpoint& own) const;
  std::optional<Refusal> admit(const Hello& hello, bool stream) const;
  void on_admitted(Socket socket, const Hello& hello, Route route);
  GrpcStream::Events on_stream(std::shared_ptr<GrpcStream> stream,
                               const Hello& hello);
  void deliver(Accepted accepted, Purpose purpose, uint64_t generation);
  Hello hello_to(const TaskId& to, Purpose purpose,
                 const std::string& channel) const;
  Dialled dial_any(const TaskId& to, Purpose purpose,
                   const std::string& channel, Route route,
                   double timeout_seconds, bool as_socket);
  Dialled dial_once(const TaskId& to, Purpose purpose,
                    const std::string& channel, Route route, Deadline deadline,
                    bool* again);
  Dialled dial_stream(const TaskId& to, const std::string& address,
                      const Hello& hello, Deadline deadline,
                      std::optional<Refusal>* refusal);
  Socket dial_grpc();
  Socket connect_to(const TaskId& to, const std::string& address,
                    Deadline deadline);
  std::shared_ptr<SocketSet> set_of(const TaskId& task);

  Membership& m_;
  Link& link_;
  const Handshake::Gate socket_gate_, stream_gate_;
  Events events_;

  // Guarded by the membership's mutex.
  std::map<TaskId, std::shared_ptr<SocketSet>> sockets_;
  std::map<Purpose, std::function<void(Accepted)>> acceptors_;
  std::vector<std::pair<Purpose, Accepted>> unclaimed_;
  std::shared_ptr<ServiceCalls> calls_;

  Services services_;
  Threads threads_;
  std::unique_ptr<GrpcHub> hub_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_DIALER_H_
