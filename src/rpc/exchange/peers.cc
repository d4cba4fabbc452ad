#include "rpc/exchange/peers.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/live_counts.h"
#include "berth/errors.h"

namespace berth::exchange {

namespace {

constexpr char kMessages[] = "wire/";
constexpr char kWhere[] = "where/";
constexpr char kMemory[] = "memory";
// The time limit for a rank's report of its position.
constexpr double kAskSeconds = 0.3;
// Extra time for others that have also timed out to report whom they miss.
constexpr double kSettleSeconds = 0.1;

int rank_of(const std::vector<TaskId>& tasks, const TaskId& task) {
  const auto it = std::find(tasks.begin(), tasks.end(), task);
  return it == tasks.end() ? -1 : static_cast<int>(it - tasks.begin());
}

}  // namespace

// State that the link's callback may still touch after the exchange has gone.
struct Peers::Shared {
  std::mutex mutex;
  Peers* self = nullptr;
};

Peers::Peers(Link& link, ExchangeOptions options)
    : link_(link),
      options_(std::move(options)),
      tasks_(link.ranks()),
      end_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      shared_(std::make_shared<Shared>()) {
  rank_ = rank_of(tasks_, link.task());
  if (rank_ < 0) {
    throw errors::FailedPrecondition(fmt::format(
        "{} does not train: only a chief and workers have an exchange",
        link.task().str()));
  }
  for (int r = 0; r < size(); ++r) {
    size_t h = 0;
    const auto together = [&](int leader) {
      return options_.shared_memory &&
             link_.host_of(tasks_[leader]) == link_.host_of(tasks_[r]);
    };
    while (h < hosts_.size() && !together(hosts_[h][0])) ++h;
    if (h == hosts_.size()) hosts_.emplace_back();
    hosts_[h].push_back(r);
    if (r == rank_) host_ = static_cast<int>(h);
  }
  shared_->self = this;
  link_.on_end([shared = shared_](const ClusterFailure*) {
    std::lock_guard lock(shared->mutex);
    if (shared->self == nullptr) return;
    Peers& self = *shared->self;
    self.ended_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    static_cast<void>(write(self.end_fd_.fd(), &one, sizeof(one)) < 0);
    std::vector<std::function<void()>> ends;
    {
      std::lock_guard own(self.mutex_);
      ends.swap(self.ends_);
    }
    for (const auto& fn : ends) fn();
  });
  link_.accept(Purpose::kExchange, [shared = shared_](Accepted a) {
    std::lock_guard lock(shared->mutex);
    if (shared->self != nullptr) shared->self->arrived(std::move(a));
  });
}

Peers::~Peers() { detach(); }

void Peers::detach() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->self = nullptr;
  }
  link_.accept(Purpose::kExchange, {});
}

ChannelState& Peers::channel(const std::string& name) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<ChannelState>& state = channels_[name];
  if (!state) {
    state = std::make_unique<ChannelState>();
    state->name = name;
  }
  return *state;
}

void Peers::arrived(Accepted a) {
  std::unique_lock lock(mutex_);
  if (a.channel.starts_with(kWhere)) {
    Standing s;
    const auto it = channels_.find(a.channel.substr(std::strlen(kWhere)));
    if (it != channels_.end()) {
      s.sequence = it->second->sequence;
      s.waits_for = it->second->waits_for;
      s.inside = it->second->inside;
    }
    lock.unlock();
    static_cast<void>(
        send(a.socket.fd(), &s, sizeof(s), MSG_DONTWAIT | MSG_NOSIGNAL));
  } else if (a.channel == kMemory && a.route == Route::kUnix) {
    const int from = rank_of(tasks_, a.from);
    if (from < 0) return;
    if (!memory_) {
      memory_waiting_.emplace_back(std::move(a.socket), from);
      return;
    }
    const auto fn = memory_;
    lock.unlock();
    fn(std::move(a.socket), from);
  } else if (a.channel.starts_with(kMessages)) {
    const int from = rank_of(tasks_, a.from);
    if (from < 0 || from >= rank_) return;  // closes it
    inbox_[{from, a.channel}] = std::move(a.socket);
  }
}

Socket Peers::dial_channel(int rank, Wait& wait) {
  for (;;) {
    wait.check(rank);
    try {
      return link_.dial(tasks_[rank], Purpose::kExchange,
                        kMessages + wait.channel().name, Route::kTcp,
                        std::max(seconds_until(wait.deadline()), 0.001));
    } catch (const errors::DeadlineExceeded&) {
      if (ended()) raise_end();  // otherwise the next check names the late rank
    } catch (const errors::Unavailable& e) {
      lost(rank, e.what(), wait.call());
    }
  }
}

Socket Peers::find_channel(int rank, const std::string& channel) {
  std::lock_guard lock(mutex_);
  const auto it = inbox_.find({rank, kMessages + channel});
  if (it == inbox_.end()) return Socket();
  Socket socket = std::move(it->second);
  inbox_.erase(it);
  return socket;
}

Socket Peers::dial_memory(int rank, Deadline deadline) {
  return link_.dial(tasks_[rank], Purpose::kExchange, kMemory, Route::kUnix,
                    std::max(seconds_until(deadline), 0.001));
}

void Peers::serve_memory(std::function<void(Socket, int)> fn) {
  std::vector<std::pair<Socket, int>> waiting;
  {
    std::lock_guard lock(mutex_);
    memory_ = fn;
    waiting.swap(memory_waiting_);
  }
  for (auto& [socket, rank] : waiting) fn(std::move(socket), rank);
}

void Peers::on_end(std::function<void()> fn) {
  {
    std::lock_guard lock(mutex_);
    if (!ended()) {
      ends_.push_back(std::move(fn));
      return;
    }
  }
  fn();
}

void Peers::wait_for_failure(const std::string& cause) {
  link_.wait_for_failure(cause);
  throw errors::Unavailable(cause);
}

void Peers::raise_end() {
  link_.check();
  wait_for_failure("the generation has ended");
}

void Peers::differ(int a, const ExchangeCall& call_a, int b,
                   const ExchangeCall& call_b, const std::string& channel) {
  if (a > b) differ(b, call_b, a, call_a, channel);
  std::string x = text_of(call_a), y = text_of(call_b);
  if (call_a.sequence != call_b.sequence || x == y) {
    x = fmt::format("{} (call {})", x, call_a.sequence);
    y = fmt::format("{} (call {})", y, call_b.sequence);
  }
  const std::string cause = fmt::format(
      "the tasks call different things on channel '{}': {} (rank {}) calls {}, "
      "{} (rank {}) calls {}; every task must make the same calls in the same "
      "order",
      channel, name(a), a, x, name(b), b, y);
  link_.fail(errors::Code::kInvalidArgument, tasks_[b], cause, call_b.step);
  wait_for_failure(cause);
}

void Peers::invalid(const std::string& cause, const ExchangeCall& call) {
  link_.fail(errors::Code::kInvalidArgument, tasks_[rank_], cause, call.step);
  wait_for_failure(cause);
}

void Peers::lost(int rank, const std::string& cause, const ExchangeCall& call) {
  link_.check();
  link_.lost(tasks_[rank], cause, call.step);
  wait_for_failure(fmt::format("{}: {}", name(rank), cause));
}

std::optional<Standing> Peers::ask(int rank, const std::string& channel) {
  Standing s;
  try {
    const Socket socket =
        link_.dial(tasks_[rank], Purpose::kExchange, kWhere + channel,
                   Route::kTcp, kAskSeconds);
    if (!rpc::read_all(socket.fd(), &s, sizeof(s), after(kAskSeconds))
             .empty()) {
      return std::nullopt;
    }
  } catch (const errors::Error&) {
    link_.check();
    return std::nullopt;
  }
  return s;
}

// Follows the chain of waiting ranks to one that does not wait.
void Peers::late(int rank, const ExchangeCall& call,
                 const ChannelState& channel, double waited) {
  std::string why = "does not answer";
  for (int i = 0; i < size(); ++i) {
    const std::optional<Standing> s = ask(rank, channel.name);
    if (!s) break;
    if (s->inside && s->waits_for >= 0 && s->waits_for != rank_ &&
        s->waits_for < size() && s->waits_for != rank) {
      rank = s->waits_for;
      continue;
    }
    const char* of = s->inside ? "is slow (it is in call {} of {})"
                               : "has not come (it made {} of {} calls)";
    why = fmt::format(fmt::runtime(of), s->sequence, call.sequence);
    break;
  }
  // A rank that waits for this one may know more.
  const Deadline settled = after(kSettleSeconds);
  while (!ended() && seconds_until(settled) > 0) usleep(1000);
  if (ended()) raise_end();
  const std::string cause =
      fmt::format("{} {}: waited {:.1f} s for it in {} on channel '{}'",
                  name(rank), why, waited, text_of(call), channel.name);
  link_.fail(errors::Code::kDeadlineExceeded, tasks_[rank], cause, call.step);
  wait_for_failure(cause);
}

namespace {

uint64_t logged(const ExchangeCall& call) {
  constexpr const char* kNames[] = {"",           "all_reduce", "ordered_sum",
                                    "all_gather", "broadcast",  "barrier"};
  const auto width = static_cast<int64_t>(size_of(call.dtype));
  return rpc::CallLog::get().begin(
      kNames[static_cast<int>(call.kind)],
      {call.what, strnlen(call.what, sizeof call.what)}, "", call.sequence,
      call.count * std::max<int64_t>(width, 1));
}

}  // namespace

Wait::Wait(Peers& peers, ChannelState& channel, const ExchangeCall& call,
           double seconds)
    : peers_(peers),
      channel_(channel),
      call_(call),
      logged_(logged(call)),
      begin_(Clock::now()),
      deadline_(after(seconds)),
      warn_at_(after(peers.options().warn_after_seconds)) {
  channel.sequence.store(call.sequence, std::memory_order_relaxed);
  channel.inside.store(true, std::memory_order_relaxed);
}

void Wait::check(int rank) {
  if (peers_.ended()) peers_.raise_end();
  channel_.waits_for.store(rank, std::memory_order_relaxed);
  const Deadline now = Clock::now();
  const double waited = std::chrono::duration<double>(now - begin_).count();
  if (rank != waits_for_) {
    count_wait(now);
    since_ = now;
    waits_for_ = rank;
  }
  if (now >= deadline_) peers_.late(rank, call_, channel_, waited);
  if (now < warn_at_) return;
  warn_at_ = after(peers_.options().warn_after_seconds);
  const std::string line =
      fmt::format("{} waits {:.0f} s for {} in {} on channel '{}'{}",
                  peers_.name(peers_.rank()), waited, peers_.name(rank),
                  text_of(call_), channel_.name,
                  call_.step < 0 ? "" : fmt::format(", step {}", call_.step));
  if (peers_.options().warn) return peers_.options().warn(line);
  std::fprintf(stderr, "berth: %s\n", line.c_str());
}

void Wait::count_wait(Deadline now) {
  const int rank = std::exchange(waits_for_, -1);
  if (rank < 0) return;
  const std::chrono::duration<double, std::micro> waited = now - since_;
  live_counts::add_peer_wait(peers_.task(rank).str(), waited.count());
}

int Wait::slice_ms() const {
  const double seconds =
      std::min(seconds_until(deadline_), seconds_until(warn_at_));
  return std::clamp(static_cast<int>(std::ceil(seconds * 1000)), 1, 20);
}

}  // namespace berth::exchange
