// Connections to and from other tasks.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "berth/device/build_id.h"
#include "rpc/grpc_socket.h"
#include "rpc/rpc_member.h"

namespace berth::rpc {

namespace {

Refusal not_yet() {
  return {errors::Code::kUnavailable,
          "not yet: the cluster forms there, ask again"};
}

}  // namespace

// Whether an authenticated task may have this connection or stream now.
std::optional<Refusal> RpcMember::admit(const Hello& hello, bool stream) {
  const auto refuse = [](std::string why) {
    return Refusal{errors::Code::kPermissionDenied, std::move(why)};
  };
  if (std::find(tasks_.begin(), tasks_.end(), hello.from) == tasks_.end()) {
    return refuse(hello.from.str() + " does not take part in this cluster");
  }
  const auto purpose = static_cast<Purpose>(hello.purpose);
  if (purpose == Purpose::kProbe && !stream) return std::nullopt;
  if (purpose == Purpose::kControl) {
    if (coordinator_ || (by_grpc() && !stream)) return std::nullopt;
    return refuse("this task does not coordinate the cluster");
  }
  if (purpose != Purpose::kCall && purpose != Purpose::kExchange) {
    return refuse("a connection for an unknown purpose");
  }
  if (stream != by_grpc()) {
    return refuse(fmt::format("the transports differ: it is '{}' here",
                              options_.transport));
  }
  Lock lock(mutex_);
  if (hello.generation > generation_ ||
      (hello.generation == generation_ && phase_ == Phase::kForming)) {
    return not_yet();
  }
  if (hello.generation < generation_ || phase_ != Phase::kRunning) {
    return Refusal{
        errors::Code::kFailedPrecondition,
        fmt::format("generation {} of the cluster is over", hello.generation)};
  }
  // A lost task returns with its new incarnation.
  if (!table_.contains(hello.from)) return not_yet();
  return std::nullopt;
}

void RpcMember::on_admitted(Socket socket, const Hello& hello, Route route) {
  if (static_cast<Purpose>(hello.purpose) == Purpose::kProbe) return;
  if (static_cast<Purpose>(hello.purpose) == Purpose::kControl) {
    hub_->add(std::move(socket), hello.from);
    return;
  }
  deliver({std::move(socket), hello.from, hello.channel, route},
          static_cast<Purpose>(hello.purpose), hello.generation);
}

GrpcStream::Events RpcMember::on_stream(std::shared_ptr<GrpcStream> stream,
                                        const Hello& hello) {
  if (static_cast<Purpose>(hello.purpose) == Purpose::kControl) {
    return take_control(std::move(stream), hello.from);
  }
  const auto purpose = static_cast<Purpose>(hello.purpose);
  auto connection = std::make_shared<GrpcConnection>();
  GrpcStream::Events events = connection->events();
  connection->attach(std::move(stream));
  Accepted accepted{Socket(), hello.from, hello.channel, Route::kTcp, nullptr};
  if (purpose == Purpose::kCall) {
    accepted.connection = std::move(connection);
  } else {
    accepted.socket = socket_over(std::move(connection), threads_);
  }
  deliver(std::move(accepted), purpose, hello.generation);
  return events;
}

std::shared_ptr<SocketSet> RpcMember::set_of(const TaskId& task) {
  std::shared_ptr<SocketSet>& set = sockets_[task];
  if (!set) set = std::make_shared<SocketSet>();
  return set;
}

void RpcMember::deliver(Accepted accepted, Purpose purpose,
                        uint64_t generation) {
  std::function<void(Accepted)> fn;
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(mutex_);
    if (phase_ != Phase::kRunning || generation != generation_) return;
    if (accepted.connection) {
      set_of(accepted.from)->add(accepted.connection);
    } else {
      accepted.socket.enter(set_of(accepted.from));
    }
    if (purpose == Purpose::kCall) {
      calls = calls_;
    } else if (const auto found = acceptors_.find(purpose);
               found != acceptors_.end()) {
      fn = found->second;
    } else {
      if (unclaimed_.size() < 65536) {
        unclaimed_.emplace_back(purpose, std::move(accepted));
      }
      return;
    }
  }
  if (calls) {
    calls->accepted(std::move(accepted));
  } else if (fn) {
    fn(std::move(accepted));
  }
}

void RpcMember::accept(Purpose purpose, std::function<void(Accepted)> fn) {
  std::vector<Accepted> waiting;
  {
    Lock lock(mutex_);
    if (!fn) {
      acceptors_.erase(purpose);
      return;
    }
    acceptors_[purpose] = fn;
    for (auto& [p, accepted] : unclaimed_) {
      if (p == purpose) waiting.push_back(std::move(accepted));
    }
    std::erase_if(unclaimed_,
                  [&](const auto& u) { return u.first == purpose; });
  }
  for (Accepted& a : waiting) fn(std::move(a));
}

Hello RpcMember::hello_to(const TaskId& to, Purpose purpose,
                          const std::string& channel) const {
  Hello h;
  h.cluster = cluster_hash_;
  h.build = BERTH_BUILD_ID;
  {
    std::lock_guard lock(mutex_);
    h.generation = generation_;
  }
  h.from = task_;
  h.to = to;
  h.purpose = static_cast<uint8_t>(purpose);
  h.channel = channel;
  h.nonce = random_nonce();
  return h;
}

std::string RpcMember::address_of(const TaskId& task) const {
  const auto found = table_.find(task);
  if (found != table_.end()) return found->second.address;
  const std::string& known = spec_.task_address(task.job, task.index);
  return task == head_ && !rendezvous_.empty() ? rendezvous_ : known;
}

std::string RpcMember::name_of(const TaskId& task) const {
  std::lock_guard lock(mutex_);
  return named(task, address_of(task));
}

void RpcMember::refuse(const TaskId& to, const Refusal& refusal) const {
  errors::raise(refusal.code, fmt::format("{} refuses {}: {}", name_of(to),
                                          task_.str(), refusal.reason));
}

// A connection for gRPC.
Socket RpcMember::connect_to(const TaskId& to, const std::string& address,
                             Deadline deadline) {
  check_address(to, address);
  std::string why;
  Socket s = connect_tcp(parse_endpoint(address), deadline, &why);
  if (!s) throw errors::Unavailable(why);
  const auto refusal = introduce(s.fd(), hello_to(to, Purpose::kControl, ""),
                                 options_.secret, deadline, &why);
  if (refusal) refuse(to, *refusal);
  if (!why.empty()) throw errors::Unavailable(why);
  return s;
}

Socket RpcMember::dial_grpc() {
  const std::string address = rendezvous_.empty()
                                  ? spec_.task_address(head_.job, head_.index)
                                  : rendezvous_;
  Socket s = connect_to(head_, address, after(5));
  if (own_address_.empty()) {
    Lock lock(mutex_);
    own_address_ = fmt::format("{}:{}", own_host(s.fd()), port_);
  }
  return s;
}

Socket RpcMember::dial(const TaskId& to, Purpose purpose,
                       const std::string& channel, Route route,
                       double timeout_seconds) {
  return dial_any(to, purpose, channel, route, timeout_seconds, true).socket;
}

std::shared_ptr<Connection> RpcMember::dial_connection(
    const TaskId& to, Purpose purpose, const std::string& channel,
    Route route) {
  Dialled d = dial_any(to, purpose, channel, route, 0, false);
  if (d.connection) return d.connection;
  return connection_of(std::move(d.socket));
}

RpcMember::Dialled RpcMember::dial_any(const TaskId& to, Purpose purpose,
                                       const std::string& channel, Route route,
                                       double timeout_seconds, bool as_socket) {
  if (timeout_seconds <= 0) timeout_seconds = options_.call_timeout_seconds;
  const Deadline deadline = after(timeout_seconds);
  for (;;) {
    std::shared_ptr<SocketSet> set;
    {
      Lock lock(mutex_);
      check_locked();
      if (const auto gone = gone_.find(to); gone != gone_.end()) {
        throw errors::Unavailable(gone->second);
      }
      set = set_of(to);
    }
    bool again = false;
    Dialled d = dial_once(to, purpose, channel, route, deadline, &again);
    if (d.connection && as_socket) {
      d.socket = socket_over(std::move(d.connection), threads_);
    }
    if (d.connection) set->add(d.connection);
    if (d.socket) d.socket.enter(set);
    if (d) return d;
    if (!again || Clock::now() >= deadline) {
      throw errors::DeadlineExceeded(
          fmt::format("{} did not take a connection of {} within {:g} s",
                      name_of(to), task_.str(), timeout_seconds));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

RpcMember::Dialled RpcMember::dial_once(const TaskId& to, Purpose purpose,
                                        const std::string& channel, Route route,
                                        Deadline deadline, bool* again) {
  std::string address;
  uint64_t incarnation = 0;
  {
    Lock lock(mutex_);
    address = address_of(to);
    if (const auto e = table_.find(to); e != table_.end()) {
      incarnation = e->second.incarnation;
    }
  }
  const Hello hello = hello_to(to, purpose, channel);
  std::string why;
  std::optional<Refusal> refusal;
  Dialled d;
  Socket& s = d.socket;
  if (by_grpc()) {
    d.connection = std::make_shared<GrpcConnection>();
    d.connection->attach(hub_->open(
        address, hello, [&] { return connect_to(to, address, deadline); },
        d.connection->events()));
    refusal = d.connection->wait_open(deadline);
    // A closed connection is not reused.
    if (refusal && refusal->code == errors::Code::kUnavailable &&
        !refusal->reason.starts_with("not yet")) {
      hub_->forget(to);
      throw errors::Unavailable(refusal->reason);
    }
  } else {
    if (route == Route::kUnix) {
      s = connect_unix(fmt::format("berth-{:x}", incarnation), &why);
    } else {
      check_address(to, address);
      s = connect_tcp(parse_endpoint(address), deadline, &why);
    }
    if (!s) throw errors::Unavailable(why);
    refusal = introduce(s.fd(), hello, options_.secret, deadline, &why);
  }
  if (!why.empty()) {
    if (why == "timed out") return {};
    throw errors::Unavailable(why);
  }
  if (!refusal) return d;
  if (refusal->code == errors::Code::kFailedPrecondition) {
    // The generation is over there, and will be here soon.
    wait_for_failure(refusal->reason);
  }
  if (refusal->code != errors::Code::kUnavailable &&
      refusal->code != errors::Code::kDeadlineExceeded) {
    refuse(to, *refusal);
  }
  *again = refusal->code == errors::Code::kUnavailable;
  return {};
}

}  // namespace berth::rpc
