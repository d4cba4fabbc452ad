// Start and end of a member, and its requests in between.

#include "rpc/rpc_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/environment.h"
#include "base/where.h"
#include "berth/device/build_id.h"

namespace berth::rpc {

namespace {

std::string this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} on {}", ::getpid(), host);
}

}  // namespace

std::string secret_of(const JoinOptions& options) {
  if (!options.secret.empty()) return options.secret;
  std::string secret = environment("BERTH_CLUSTER_SECRET");
  if (!secret.empty()) return secret;
  const std::string path = environment("BERTH_CLUSTER_SECRET_FILE");
  if (path.empty()) return "";
  std::ifstream file(path);
  std::getline(file, secret);
  while (!secret.empty() && (secret.back() == '\r' || secret.back() == ' ')) {
    secret.pop_back();
  }
  if (secret.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "BERTH_CLUSTER_SECRET_FILE names '{}', which cannot be read or has an "
        "empty first line; expected the secret there",
        path));
  }
  return secret;
}

RpcMember::RpcMember(const ClusterResolver& resolver, JoinOptions options,
                     Site site)
    : spec_(resolver.spec),
      task_(resolver.task),
      rendezvous_(resolver.rendezvous),
      options_(std::move(options)),
      tls_{options_.tls_ca, options_.tls_certificate, options_.tls_key},
      head_(spec_.coordinator()),
      cluster_hash_(spec_.hash()),
      incarnation_(random_number()),
      own_host_id_(host_id()) {
  check_options(site);
  options_.secret = secret_of(options_);
  if (tls_) options_.transport = "grpc";
  heartbeat_seconds_ =
      std::min(options_.heartbeat_seconds, options_.dead_after_seconds / 4);
  tasks_ = options_.tasks;
  if (tasks_.empty()) {
    for (const TaskId& t : spec_.tasks()) {
      if (t.job != "evaluator") tasks_.push_back(t);
    }
  }
  if (std::find(tasks_.begin(), tasks_.end(), task_) == tasks_.end()) {
    throw errors::InvalidArgument(
        fmt::format("{} does not take part in the cluster {}{}", task_.str(),
                    spec_.json(), where_text(nullptr, site)));
  }
  const auto gate = [&](bool stream) {
    return Handshake::Gate{
        options_.secret, cluster_hash_, BERTH_BUILD_ID, task_,
        [this, stream](const Hello& h) { return admit(h, stream); }};
  };
  socket_gate_ = gate(false);
  stream_gate_ = gate(true);
  listen();
}

void RpcMember::check_options(Site site) {
  const auto refuse = [&](const std::string& why) {
    throw errors::InvalidArgument(why + where_text(nullptr, site));
  };
  if (!(options_.heartbeat_seconds > 0) || !(options_.dead_after_seconds > 0) ||
      !(options_.call_timeout_seconds > 0) ||
      !(options_.join_timeout_seconds > 0)) {
    refuse(fmt::format(
        "JoinOptions: join_timeout_seconds {}, heartbeat_seconds {}, "
        "dead_after_seconds {} and call_timeout_seconds {} must be above 0",
        options_.join_timeout_seconds, options_.heartbeat_seconds,
        options_.dead_after_seconds, options_.call_timeout_seconds));
  }
  if (options_.transport != "auto" && options_.transport != "grpc") {
    refuse(
        fmt::format("JoinOptions: transport is '{}'; expected 'auto' or "
                    "'grpc'",
                    options_.transport));
  }
  const int files =
      !tls_.ca.empty() + !tls_.certificate.empty() + !tls_.key.empty();
  if (files != 0 && files != 3) {
    refuse(
        "JoinOptions: tls_ca, tls_certificate and tls_key must be given "
        "together, or none of them");
  }
  spec_.task_address(task_.job, task_.index);  // throws for an unknown task
}

void RpcMember::check_address(const TaskId& to,
                              const std::string& address) const {
  if (!options_.secret.empty() || tls_) return;
  std::string why;
  if (is_loopback(parse_endpoint(address), &why) || !why.empty()) return;
  throw errors::InvalidArgument(fmt::format(
      "{} is not on this machine alone, and the cluster has no secret: set "
      "BERTH_CLUSTER_SECRET to the same text on all tasks (or "
      "BERTH_CLUSTER_SECRET_FILE, or JoinOptions::secret); without one only "
      "loopback addresses are served and dialled",
      named(to, address)));
}

// Only what others can reach: on the own address, if this machine knows it. It
// does not behind NAT, under a service's name, or where its own name is
// 127.0.1.1 to itself; nor do tasks whose address is still to be found.
bool RpcMember::listens_everywhere(const Endpoint& own) const {
  if (options_.secret.empty() && !tls_) return false;  // loopback alone
  if (environment_choice("BERTH_LISTEN", {"address", "all"}) == "all") {
    return true;
  }
  std::vector<std::string> addresses = {rendezvous_};
  for (const TaskId& t : tasks_) {
    addresses.push_back(spec_.task_address(t.job, t.index));
  }
  if (!is_loopback(own)) return !is_here(own);
  return std::any_of(addresses.begin(), addresses.end(), [](const auto& a) {
    return !a.empty() && !is_loopback(parse_endpoint(a));
  });
}

void RpcMember::listen() {
  own_address_ = spec_.task_address(task_.job, task_.index);
  if (is_coordinator() && !rendezvous_.empty()) own_address_ = rendezvous_;
  Endpoint endpoint{"127.0.0.1", 0};
  if (!own_address_.empty()) {
    check_address(task_, own_address_);
    endpoint = parse_endpoint(own_address_);
  }
  if (is_coordinator()) {
    Coordinator::Options o{.spec = spec_,
                           .tasks = tasks_,
                           .self = task_,
                           .elastic_jobs = options_.elastic_jobs,
                           .heartbeat_seconds = heartbeat_seconds_,
                           .dead_after_seconds = options_.dead_after_seconds};
    coordinator_ = std::make_unique<Coordinator>(
        std::move(o),
        [this](int connection, const Coordinator::FramePtr& f, bool close) {
          from_coordinator(connection, f, close);
        });
    coordinator_->connected(0, task_);
  }
  const bool everywhere = listens_everywhere(endpoint);
  std::vector<Socket> tcp;
  Socket local;
  const bool six = endpoint.host.find(':') != std::string::npos;
  const std::string where =
      fmt::format(fmt::runtime(six || everywhere ? "[{}]:{}" : "{}:{}"),
                  everywhere ? "::" : endpoint.host, endpoint.port);
  if (!tls_) {
    tcp = listen_tcp(endpoint, everywhere);
    port_ = port_of(tcp[0].fd());
    if (!by_grpc())
      local = listen_unix(fmt::format("berth-{:x}", incarnation_));
  }
  hub_ = std::make_unique<GrpcHub>(
      stream_gate_, tls_, where,
      [this](std::shared_ptr<GrpcStream> stream, const Hello& hello) {
        return on_stream(std::move(stream), hello);
      });
  if (tls_) port_ = hub_->port();
  Listener::Events events{[this](Socket s, const Hello& h, Route r) {
                            on_admitted(std::move(s), h, r);
                          },
                          [this](const TaskId& from, const std::string& why) {
                            if (coordinator_)
                              coordinator_->turned_away(from, why);
                          },
                          [this](double now) { on_tick(now); }};
  Listener::Limits limits;
  limits.tick_seconds =
      std::clamp(options_.dead_after_seconds / 100, 0.005, 0.02);
  listener_ =
      std::make_unique<Listener>(std::move(tcp), std::move(local), socket_gate_,
                                 limits, std::move(events));
}

RpcMember::~RpcMember() { close_down(); }

void RpcMember::join() { form(options_.join_timeout_seconds, false); }

void RpcMember::enroll(bool shrink) {
  Frame f{.type = FrameType::kRegister, .flag = shrink};
  {
    std::lock_guard lock(mutex_);
    f.generation = generation_;
    f.tasks.push_back(
        {task_, own_address_, own_host_id_, this_process(), incarnation_});
  }
  post(std::move(f));
}

// The tasks it waits for, as far as this task knows.
std::string RpcMember::missing(const std::string& own) const {
  if (coordinator_) {
    return waiting_.empty() ? "for the other tasks" : "for " + waiting_;
  }
  // The coordinator reports them every second; if not, it was stopped.
  constexpr double kSilentSeconds = 2.5;
  if (control_ && !waiting_.empty() && coordinator_silent_ < kSilentSeconds) {
    return "for " + waiting_;
  }
  if (control_) {
    return fmt::format(
        "for {}{}: it took the connection, and has {}",
        waiting_.empty() ? "" : waiting_ + "; ", named(head_, own),
        coordinator_silent_ < kSilentSeconds
            ? "not said yet who is missing"
            : fmt::format("said nothing for {:.0f} s", coordinator_silent_));
  }
  // Its last report may explain why the coordinator has gone.
  return fmt::format("for {}{}: {}", waiting_.empty() ? "" : waiting_ + "; ",
                     named(head_, own), unreachable_);
}

void RpcMember::form(double timeout_seconds, bool shrink) {
  const Deadline deadline = after(timeout_seconds);
  const std::string head_address =
      rendezvous_.empty() ? spec_.task_address(head_.job, head_.index)
                          : rendezvous_;
  check_address(head_, head_address);
  Deadline line = after(10);
  // Tasks that may be lost leave a coordinator that is; who starts it again
  // starts them as well.
  const bool leaves = !options_.elastic_jobs.empty() && generation() > 0;
  Deadline given_up = after(options_.dead_after_seconds);
  double pause = 0.01;
  bool enrolled = false;
  Lock lock(mutex_);
  // It may have formed and failed since; then the next call throws.
  while (phase_ == Phase::kForming) {
    if (refused_) {
      const Refusal why = *std::exchange(refused_, std::nullopt);
      lock.unlock();
      refuse(head_, why);
    }
    const bool connected = coordinator_ || control_;
    if (!connected && std::exchange(enrolled, false)) {
      given_up = after(options_.dead_after_seconds);
    }
    if (leaves && !connected && Clock::now() >= given_up) {
      throw errors::Unavailable(
          fmt::format("{} was lost while the cluster formed anew: {}",
                      named(head_, head_address), unreachable_));
    }
    if (Clock::now() >= deadline) {
      const std::string why = missing(head_address);
      lock.unlock();
      post(Frame{.type = FrameType::kLeft});
      throw errors::DeadlineExceeded(
          fmt::format("{}: the cluster was not complete after {:g} s; it "
                      "waited {}",
                      task_.str(), timeout_seconds, why));
    }
    if (Clock::now() >= line) {
      std::fprintf(stderr, "berth: %s waits %s\n", task_.str().c_str(),
                   missing(head_address).c_str());
      line = after(10);
    }
    if (connected && enrolled) {
      changed_.wait_until(lock, std::min(deadline, line));
    } else if (connected) {
      enrolled = true;
      lock.unlock();
      enroll(shrink);
      lock.lock();
    } else {
      lock.unlock();
      open_control();
      lock.lock();
      if (control_ || refused_) continue;
      changed_.wait_until(lock, std::min(deadline, after(pause)));
      pause = std::min(pause * 2, 0.5);
    }
  }
}

void RpcMember::form_again(double timeout_seconds, bool shrink) {
  {
    Lock lock(mutex_);
    if (phase_ != Phase::kFailed) {
      throw errors::FailedPrecondition(
          task_.str() +
          ": form_again() comes after a failure, and there is none");
    }
  }
  {
    std::lock_guard lock(exchange_mutex_);
    exchange_.reset();
  }
  std::shared_ptr<ServiceCalls> calls;
  std::optional<Failure> before;
  {
    Lock lock(mutex_);
    calls = std::move(calls_);
    before = failure_;
  }
  calls.reset();  // waits for handlers
  {
    Lock lock(mutex_);
    phase_ = Phase::kForming;
    failure_.reset();
    refused_.reset();
    waiting_.clear();
  }
  try {
    form(timeout_seconds, shrink);
  } catch (...) {
    Lock lock(mutex_);
    if (phase_ == Phase::kForming) {
      phase_ = Phase::kFailed;
      failure_ = before;
    }
    throw;
  }
}

void RpcMember::leave(double timeout_seconds) {
  const Deadline deadline = after(timeout_seconds);
  std::string late;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kClosed) return;
    lock.unlock();
    post(Frame{.type = FrameType::kDone});
    lock.lock();
    wait(lock, deadline, "leave()", [] { return false; });
    if (phase_ == Phase::kRunning) late = waiting_.empty() ? "?" : waiting_;
  }
  if (!late.empty() || !coordinator_) post(Frame{.type = FrameType::kLeft});
  close_down();
  if (!late.empty()) {
    throw errors::DeadlineExceeded(fmt::format(
        "{}: leave() waited {:g} s {}", task_.str(), timeout_seconds, late));
  }
  Lock lock(mutex_);
  if (failure_) errors::raise(failure_->code, failure_->message);
}

void RpcMember::close_down() {
  std::shared_ptr<GrpcStream> control;
  std::shared_ptr<ServiceCalls> calls;
  std::map<TaskId, std::shared_ptr<SocketSet>> sockets;
  uint64_t serial = 0;
  bool done = false;
  {
    Lock lock(mutex_);
    if (phase_ == Phase::kClosed) return;
    done = phase_ == Phase::kDone;
    phase_ = Phase::kClosed;
    control = control_;
    serial = control_serial_;
    calls = std::move(calls_);
    sockets = sockets_;
    changed_.notify_all();
  }
  for (const auto& [task, set] : sockets) set->end();
  {
    std::lock_guard lock(exchange_mutex_);
    exchange_.reset();
  }
  if (calls) calls->end(failure_ ? &*failure_ : nullptr);
  calls.reset();
  listener_.reset();
  // Pending messages are still sent.
  if (control) {
    control->close();
    Lock lock(mutex_);
    changed_.wait_until(lock, after(1),
                        [&] { return closed_serial_ >= serial; });
  }
  if (coordinator_) {
    std::map<int, std::shared_ptr<GrpcStream>> streams;
    {
      std::lock_guard lock(wires_mutex_);
      streams = streams_;
    }
    const auto wait = [this](double seconds) {
      const Deadline most = after(seconds);
      while (!coordinator_->deserted() && Clock::now() < most) ::usleep(1000);
    };
    // A connection that closes takes along what the other end has not read: one
    // that was stopped meanwhile would not hear that all are done.
    if (done) wait(options_.dead_after_seconds);
    for (const auto& [id, stream] : streams) stream->close();
    wait(1);
  }
  hub_->stop();  // the last callbacks use it
  hub_.reset();
  threads_.wait(10);
  services_.clear();
  Lock lock(mutex_);
  control_.reset();
}

std::vector<TaskId> RpcMember::ranks() const {
  std::lock_guard lock(mutex_);
  std::vector<TaskId> ranks;
  for (const TaskId& t : spec_.ranks()) {
    if (table_.contains(t)) ranks.push_back(t);
  }
  return ranks;
}

int RpcMember::rank() const {
  const std::vector<TaskId> all = ranks();
  const auto found = std::find(all.begin(), all.end(), task_);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

int RpcMember::num_ranks() const { return static_cast<int>(ranks().size()); }

uint64_t RpcMember::generation() const {
  std::lock_guard lock(mutex_);
  return generation_;
}

std::string RpcMember::host_of(const TaskId& task) const {
  // With gRPC transport, no memory is shared.
  if (by_grpc()) return task.str();
  std::lock_guard lock(mutex_);
  const auto found = table_.find(task);
  return found == table_.end() ? "" : found->second.host;
}

bool RpcMember::same_host(const TaskId& task) const {
  return task == task_ || host_of(task) == own_host_id_;
}

void RpcMember::check_locked() const {
  if (failure_) errors::raise(failure_->code, failure_->message);
  if (phase_ == Phase::kDone || phase_ == Phase::kClosed) {
    throw errors::FailedPrecondition(
        task_.str() + ": the cluster has ended, since all tasks are done");
  }
}

void RpcMember::check() const {
  std::lock_guard lock(mutex_);
  if (failure_) errors::raise(failure_->code, failure_->message);
}

std::optional<Failure> RpcMember::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

void RpcMember::barrier(const std::string& name, double timeout_seconds) {
  if (timeout_seconds <= 0) timeout_seconds = options_.call_timeout_seconds;
  Frame f{.type = FrameType::kBarrier};
  f.name = name;
  Lock lock(mutex_);
  check_locked();
  f.id = rounds_[name]++;
  const std::pair<std::string, uint64_t> key{name, f.id};
  lock.unlock();
  post(f);
  lock.lock();
  const bool met = wait(lock, after(timeout_seconds), "barrier()",
                        [&] { return met_.contains(key); });
  if (met_.erase(key) > 0) return;
  check_locked();
  lock.unlock();
  if (!met) {
    f.type = FrameType::kLate;
    f.value = timeout_seconds;
    post(f);
  }
  wait_for_failure(fmt::format("the barrier '{}' was not met in {:g} s", name,
                               timeout_seconds));
}

void RpcMember::put(const std::string& key, const std::string& value) {
  if (key.size() > (64 << 10) || value.size() > kMostFrameBytes) {
    throw errors::InvalidArgument(fmt::format(
        "put: a key of {} and a value of {} bytes; at most 64 KiB and 64 MiB "
        "are kept: send larger things with call()",
        key.size(), value.size()));
  }
  {
    Lock lock(mutex_);
    check_locked();
  }
  Frame f{.type = FrameType::kPut};
  f.name = key;
  f.text = value;
  post(std::move(f));
}

std::string RpcMember::get(const std::string& key, double timeout_seconds) {
  if (timeout_seconds <= 0) timeout_seconds = options_.call_timeout_seconds;
  Frame f{.type = FrameType::kGet};
  f.name = key;
  Lock lock(mutex_);
  check_locked();
  const uint64_t id = f.id = ++next_get_;
  values_[id];
  lock.unlock();
  post(std::move(f));
  lock.lock();
  wait(lock, after(timeout_seconds), "get()", [&] {
    const auto found = values_.find(id);
    return found == values_.end() || found->second.has_value();
  });
  const auto node = values_.extract(id);
  if (node && node.mapped()) return *node.mapped();
  check_locked();
  throw errors::DeadlineExceeded(
      fmt::format("{}: get('{}') waited {:g} s: no task has put it",
                  task_.str(), key, timeout_seconds));
}

void RpcMember::abort(errors::Code code, const std::string& cause,
                      int64_t step) {
  fail(code, task_, cause, step >= 0 ? step : step_.load());
  {
    Lock lock(mutex_);  // wait until all know, since the process may end now
    changed_.wait_until(lock, after(2),
                        [&] { return phase_ != Phase::kRunning; });
  }
  wait_until_sent(after(1));
}

void RpcMember::on_failure(std::function<void(const Failure&)> fn) {
  on_end([fn = std::move(fn)](const Failure* failure) {
    if (failure) fn(*failure);
  });
}

void RpcMember::on_end(std::function<void(const Failure*)> fn) {
  Lock lock(mutex_);
  if (phase_ == Phase::kRunning || phase_ == Phase::kForming) {
    listeners_.push_back(std::move(fn));
    return;
  }
  const std::optional<Failure> f = failure_;
  lock.unlock();
  fn(f ? &*f : nullptr);
}

void RpcMember::wait_for_failure(const std::string& cause) {
  Lock lock(mutex_);
  changed_.wait_until(lock, after(options_.dead_after_seconds + 1),
                      [&] { return phase_ != Phase::kRunning; });
  check_locked();
  throw errors::Unavailable(fmt::format("{}: {}", task_.str(), cause));
}

void RpcMember::serve(const std::string& service, Handler handler) {
  services_.serve(service, std::move(handler));
}

std::future<Message> RpcMember::call(const TaskId& to,
                                     const std::string& service,
                                     Message request, double timeout_seconds) {
  spec_.task_address(to.job, to.index);  // throws for an unknown task
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(mutex_);
    check_locked();
    calls = calls_;
  }
  if (!calls) {
    throw errors::FailedPrecondition(task_.str() +
                                     ": call() while the cluster forms anew");
  }
  return calls->call(to, service, std::move(request), timeout_seconds);
}

cluster::Exchange& RpcMember::exchange() {
  std::lock_guard lock(exchange_mutex_);
  check();
  if (rank() < 0) {
    throw errors::FailedPrecondition(
        task_.str() + " does not train: only chief and workers exchange");
  }
#ifdef BERTH_RPC_EXCHANGE
  if (!exchange_) exchange_ = make_exchange(*this);
  return *exchange_;
#else
  throw errors::Unimplemented("this libberth_rpc.so was built without Gloo");
#endif
}

}  // namespace berth::rpc
