#include "rpc/dialer.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/environment.h"
#include "berth/device/build_id.h"
#include "rpc/grpc_socket.h"
#include "rpc/succession.h"

namespace berth::rpc {

namespace {

Refusal not_yet() {
  return {errors::Code::kUnavailable,
          "not yet: the cluster forms there, ask again"};
}

}  // namespace

Dialer::Dialer(Membership& membership, Link& link)
    : m_(membership),
      link_(link),
      socket_gate_{m_.options.secret, m_.cluster_hash, BERTH_BUILD_ID, m_.task,
                   [this](const Hello& h) { return admit(h, false); }},
      stream_gate_{m_.options.secret, m_.cluster_hash, BERTH_BUILD_ID, m_.task,
                   [this](const Hello& h) { return admit(h, true); }} {}

// Only what others can reach: on the own address, if this machine knows it. It
// does not know it behind NAT, under a service's name, or where its own name
// resolves to 127.0.1.1; nor do tasks whose address is still to be found.
bool Dialer::listens_everywhere(const Endpoint& own) const {
  if (m_.options.secret.empty() && !m_.tls) return false;  // loopback alone
  if (environment_choice("BERTH_LISTEN", {"address", "all"}) == "all") {
    return true;
  }
  std::vector<std::string> addresses = {m_.rendezvous};
  for (const TaskId& t : m_.tasks) {
    addresses.push_back(m_.spec.task_address(t.job, t.index));
  }
  if (!is_loopback(own)) return !is_here(own);
  return std::any_of(addresses.begin(), addresses.end(), [](const auto& a) {
    return !a.empty() && !is_loopback(parse_endpoint(a));
  });
}

void Dialer::listen(Events events) {
  events_ = std::move(events);
  Endpoint endpoint{"127.0.0.1", 0};
  if (!m_.own_address.empty()) endpoint = parse_endpoint(m_.own_address);
  const bool everywhere = listens_everywhere(endpoint);
  std::vector<Socket> tcp;
  Socket local;
  const bool six = endpoint.host.find(':') != std::string::npos;
  const std::string where =
      fmt::format(fmt::runtime(six || everywhere ? "[{}]:{}" : "{}:{}"),
                  everywhere ? "::" : endpoint.host, endpoint.port);
  if (!m_.tls) {
    tcp = listen_tcp(endpoint, everywhere);
    m_.port = port_of(tcp[0].fd());
    if (!m_.by_grpc()) {
      local = listen_unix(fmt::format("berth-{:x}", m_.incarnation));
    }
  }
  hub_ = std::make_unique<GrpcHub>(
      stream_gate_, m_.tls, where,
      [this](std::shared_ptr<GrpcStream> stream, const Hello& hello) {
        return on_stream(std::move(stream), hello);
      });
  if (m_.tls) m_.port = hub_->port();
  Listener::Limits limits;
  limits.tick_seconds =
      std::clamp(m_.options.dead_after_seconds / 100, 0.005, 0.02);
  listener_ = std::make_unique<Listener>(
      std::move(tcp), std::move(local), socket_gate_, limits,
      Listener::Events{[this](Socket s, const Hello& h, Route r) {
                         on_admitted(std::move(s), h, r);
                       },
                       events_.on_refused, events_.on_tick});
}

void Dialer::stop_streams() {
  hub_->stop();  // the last callbacks use it
  hub_.reset();
  threads_.wait(10);
  services_.clear();
}

void Dialer::begin_generation() {
  sockets_.clear();
  unclaimed_.clear();
  calls_ = std::make_shared<ServiceCalls>(
      link_, services_, !m_.by_grpc(), [this](const TaskId& t) {
        const auto& jobs = m_.options.elastic_jobs;
        return std::find(jobs.begin(), jobs.end(), t.job) != jobs.end();
      });
}

Dialer::Generation Dialer::end_generation() {
  Generation over;
  over.sockets.swap(sockets_);
  over.unclaimed.swap(unclaimed_);
  over.calls = calls_;
  return over;
}

void Dialer::drop_calls() {
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(m_.mutex);
    calls = std::move(calls_);
  }
}

void Dialer::drop(const TaskId& task, const std::string& why) {
  std::shared_ptr<SocketSet> set;
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(m_.mutex);
    if (auto found = sockets_.extract(task)) set = found.mapped();
    calls = calls_;
  }
  if (set) set->end();
  if (calls) calls->drop(task, why);
  hub_->forget(task);
}

void Dialer::serve(const std::string& service, Handler handler) {
  services_.serve(service, std::move(handler));
}

std::future<Message> Dialer::call(const TaskId& to, const std::string& service,
                                  Message request, double timeout_seconds) {
  m_.spec.task_address(to.job, to.index);  // throws for an unknown task
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(m_.mutex);
    m_.check_locked();
    calls = calls_;
  }
  if (!calls) {
    throw errors::FailedPrecondition(m_.task.str() +
                                     ": call() while the cluster forms anew");
  }
  return calls->call(to, service, std::move(request), timeout_seconds);
}

void Dialer::tick() {
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(m_.mutex);
    calls = calls_;
  }
  if (calls) calls->tick();
}

std::shared_ptr<GrpcStream> Dialer::open_control(GrpcStream::Events events) {
  const Hello hello = hello_to(m_.head(), Purpose::kControl, "");
  const std::string address = m_.head_address();
  if (m_.tls && m_.own_address.empty()) {
    std::string why;
    const Socket probe = connect_tcp(parse_endpoint(address), after(5), &why);
    if (!probe) throw errors::Unavailable(why);
    Lock lock(m_.mutex);
    m_.own_address = fmt::format("{}:{}", own_host(probe.fd()), m_.port);
  }
  return hub_->open(
      address, hello, [this] { return dial_grpc(); }, std::move(events));
}

// Whether an authenticated task may have this connection or stream now.
std::optional<Refusal> Dialer::admit(const Hello& hello, bool stream) const {
  const auto refuse = [](std::string why) {
    return Refusal{errors::Code::kPermissionDenied, std::move(why)};
  };
  if (std::find(m_.tasks.begin(), m_.tasks.end(), hello.from) ==
      m_.tasks.end()) {
    return refuse(hello.from.str() + " does not take part in this cluster");
  }
  const auto purpose = static_cast<Purpose>(hello.purpose);
  if (purpose == Purpose::kProbe && !stream) return std::nullopt;
  if (purpose == Purpose::kWho && !stream) {
    Lock lock(m_.mutex);
    return Refusal{errors::Code::kUnavailable, who_answer(m_)};
  }
  if (purpose == Purpose::kControl) {
    if (m_.coordinates() || (m_.by_grpc() && !stream)) return std::nullopt;
    if (m_.takes_over()) return not_yet();
    return refuse("this task does not coordinate the cluster");
  }
  if (purpose != Purpose::kCall && purpose != Purpose::kExchange) {
    return refuse("a connection for an unknown purpose");
  }
  if (stream != m_.by_grpc()) {
    return refuse(fmt::format("the transports differ: it is '{}' here",
                              m_.options.transport));
  }
  Lock lock(m_.mutex);
  if (hello.generation > m_.generation ||
      (hello.generation == m_.generation && m_.phase == Phase::kForming)) {
    return not_yet();
  }
  if (hello.generation < m_.generation || m_.phase != Phase::kRunning) {
    return Refusal{
        errors::Code::kFailedPrecondition,
        fmt::format("generation {} of the cluster is over", hello.generation)};
  }
  // A lost task returns with its new incarnation.
  if (!m_.table.contains(hello.from)) return not_yet();
  return std::nullopt;
}

void Dialer::on_admitted(Socket socket, const Hello& hello, Route route) {
  if (static_cast<Purpose>(hello.purpose) == Purpose::kProbe) return;
  if (static_cast<Purpose>(hello.purpose) == Purpose::kControl) {
    hub_->add(std::move(socket), hello.from);
    return;
  }
  deliver({std::move(socket), hello.from, hello.channel, route},
          static_cast<Purpose>(hello.purpose), hello.generation);
}

GrpcStream::Events Dialer::on_stream(std::shared_ptr<GrpcStream> stream,
                                     const Hello& hello) {
  if (static_cast<Purpose>(hello.purpose) == Purpose::kControl) {
    return events_.on_control(std::move(stream), hello.from);
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

std::shared_ptr<SocketSet> Dialer::set_of(const TaskId& task) {
  std::shared_ptr<SocketSet>& set = sockets_[task];
  if (!set) set = std::make_shared<SocketSet>();
  return set;
}

void Dialer::deliver(Accepted accepted, Purpose purpose, uint64_t generation) {
  std::function<void(Accepted)> fn;
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(m_.mutex);
    if (m_.phase != Phase::kRunning || generation != m_.generation) return;
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

void Dialer::accept(Purpose purpose, std::function<void(Accepted)> fn) {
  std::vector<Accepted> waiting;
  {
    Lock lock(m_.mutex);
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

Hello Dialer::hello_to(const TaskId& to, Purpose purpose,
                       const std::string& channel) const {
  Hello h;
  h.cluster = m_.cluster_hash;
  h.build = BERTH_BUILD_ID;
  {
    std::lock_guard lock(m_.mutex);
    h.generation = m_.generation;
  }
  h.from = m_.task;
  h.to = to;
  h.purpose = static_cast<uint8_t>(purpose);
  h.channel = channel;
  h.nonce = random_nonce();
  return h;
}

// A connection for gRPC.
Socket Dialer::connect_to(const TaskId& to, const std::string& address,
                          Deadline deadline) {
  m_.check_address(to, address);
  std::string why;
  Socket s = connect_tcp(parse_endpoint(address), deadline, &why);
  if (!s) throw errors::Unavailable(why);
  const auto refusal = introduce(s.fd(), hello_to(to, Purpose::kControl, ""),
                                 m_.options.secret, deadline, &why);
  if (refusal) m_.raise_refusal(to, *refusal);
  if (!why.empty()) throw errors::Unavailable(why);
  return s;
}

std::string Dialer::ask(const TaskId& to, Deadline deadline) {
  std::string address, why;
  {
    Lock lock(m_.mutex);
    address = m_.address_of(to);
  }
  m_.check_address(to, address);
  const Socket s = connect_tcp(parse_endpoint(address), deadline, &why);
  if (!s) return "";
  const auto answer = introduce(s.fd(), hello_to(to, Purpose::kWho, ""),
                                m_.options.secret, deadline, &why);
  return answer ? answer->reason : "";
}

Socket Dialer::dial_grpc() {
  Socket s = connect_to(m_.head(), m_.head_address(), after(5));
  if (m_.own_address.empty()) {
    Lock lock(m_.mutex);
    m_.own_address = fmt::format("{}:{}", own_host(s.fd()), m_.port);
  }
  return s;
}

Socket Dialer::dial(const TaskId& to, Purpose purpose,
                    const std::string& channel, Route route,
                    double timeout_seconds) {
  return dial_any(to, purpose, channel, route, timeout_seconds, true).socket;
}

std::shared_ptr<Connection> Dialer::dial_connection(const TaskId& to,
                                                    Purpose purpose,
                                                    const std::string& channel,
                                                    Route route) {
  Dialled d = dial_any(to, purpose, channel, route, 0, false);
  if (d.connection) return d.connection;
  return connection_of(std::move(d.socket), route, m_.loopback_only());
}

Dialer::Dialled Dialer::dial_any(const TaskId& to, Purpose purpose,
                                 const std::string& channel, Route route,
                                 double timeout_seconds, bool as_socket) {
  if (timeout_seconds <= 0) timeout_seconds = m_.options.call_timeout_seconds;
  const Deadline deadline = after(timeout_seconds);
  for (;;) {
    std::shared_ptr<SocketSet> set;
    {
      Lock lock(m_.mutex);
      m_.check_locked();
      if (const auto gone = m_.gone.find(to); gone != m_.gone.end()) {
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
                      m_.name_of(to), m_.task.str(), timeout_seconds));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Dialer::Dialled Dialer::dial_stream(const TaskId& to,
                                    const std::string& address,
                                    const Hello& hello, Deadline deadline,
                                    std::optional<Refusal>* refusal) {
  Dialled d;
  d.connection = std::make_shared<GrpcConnection>();
  d.connection->attach(hub_->open(
      address, hello, [&] { return connect_to(to, address, deadline); },
      d.connection->events()));
  *refusal = d.connection->wait_open(deadline);
  // A closed connection is not reused.
  if (*refusal && (*refusal)->code == errors::Code::kUnavailable &&
      !(*refusal)->reason.starts_with("not yet")) {
    hub_->forget(to);
    throw errors::Unavailable((*refusal)->reason);
  }
  return d;
}

Dialer::Dialled Dialer::dial_once(const TaskId& to, Purpose purpose,
                                  const std::string& channel, Route route,
                                  Deadline deadline, bool* again) {
  std::string address;
  uint64_t incarnation = 0;
  {
    Lock lock(m_.mutex);
    address = m_.address_of(to);
    if (const auto e = m_.table.find(to); e != m_.table.end()) {
      incarnation = e->second.incarnation;
    }
  }
  const Hello hello = hello_to(to, purpose, channel);
  std::string why;
  std::optional<Refusal> refusal;
  Dialled d;
  if (m_.by_grpc()) {
    d = dial_stream(to, address, hello, deadline, &refusal);
  } else {
    Socket& s = d.socket;
    if (route == Route::kUnix) {
      s = connect_unix(fmt::format("berth-{:x}", incarnation), &why);
    } else {
      m_.check_address(to, address);
      s = connect_tcp(parse_endpoint(address), deadline, &why);
    }
    if (!s) throw errors::Unavailable(why);
    refusal = introduce(s.fd(), hello, m_.options.secret, deadline, &why);
  }
  if (!why.empty()) {
    if (why == "timed out") return {};
    throw errors::Unavailable(why);
  }
  if (!refusal) return d;
  if (refusal->code == errors::Code::kFailedPrecondition) {
    // The generation is over there, and will be here soon.
    m_.wait_for_failure(refusal->reason);
  }
  if (refusal->code != errors::Code::kUnavailable &&
      refusal->code != errors::Code::kDeadlineExceeded) {
    m_.raise_refusal(to, *refusal);
  }
  *again = refusal->code == errors::Code::kUnavailable;
  return {};
}

}  // namespace berth::rpc
