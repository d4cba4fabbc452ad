#include "rpc/rpc_member.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/interrupt.h"
#include "base/live_counts.h"
#include "rpc/call_log.h"
#include "rpc/succession.h"

namespace berth::rpc {

namespace {

std::string this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return fmt::format("process {} on {}", ::getpid(), host);
}

}  // namespace

RpcMember::RpcMember(const ClusterResolver& resolver, JoinOptions options,
                     Site site)
    : m_(resolver, std::move(options), site),
      dialer_(m_, *this),
      control_(
          m_, dialer_,
          {[this](uint64_t serial, const Frame& f) { on_frame(serial, f); },
           [this](const std::string& why) { lose_coordinator(why); }}) {
  dialer_.listen({[this](std::shared_ptr<GrpcStream> s, const TaskId& from) {
                    return control_.take(std::move(s), from);
                  },
                  [this](const TaskId& from, const std::string& why) {
                    control_.turned_away(from, why);
                  },
                  [this](double now) { on_tick(now); }});
}

RpcMember::~RpcMember() { close_down(); }

void RpcMember::join() { form(m_.options.join_timeout_seconds, false); }

void RpcMember::tell_phase() const {
  using live_counts::ClusterState;
  ClusterState state{.task = m_.task.str()};
  Lock lock(m_.mutex);
  state.generation = m_.generation;
  state.phase = m_.failure                    ? ClusterState::kFailed
                : m_.phase == Phase::kForming ? ClusterState::kForming
                : m_.phase == Phase::kRunning ? ClusterState::kRunning
                                              : ClusterState::kEnded;
  live_counts::set_cluster(std::move(state));
}

void RpcMember::enroll(bool shrink) {
  Frame f{.type = FrameType::kRegister, .flag = shrink};
  f.value = m_.elastic_min;
  f.code = m_.elastic_max;
  f.name = m_.network;
  {
    std::lock_guard lock(m_.mutex);
    f.generation = m_.generation;
    f.tasks.push_back({m_.task, m_.own_address, m_.own_host_id, this_process(),
                       m_.incarnation});
  }
  control_.post(std::move(f));
}

void RpcMember::form(double timeout_seconds, bool shrink) {
  tell_phase();
  const Deadline deadline = after(timeout_seconds);
  m_.check_address(m_.head(), m_.head_address());
  Deadline line = after(10);
  // Tasks that may be lost leave when the coordinator is lost: whatever starts
  // it again starts them as well.
  const bool leaves = !m_.options.elastic_jobs.empty() && generation() > 0;
  Deadline given_up = after(m_.options.dead_after_seconds);
  double pause = 0.01;
  bool enrolled = false;
  // Who takes over, this task or another one, does not know of it yet.
  const auto note_lost = [&] {
    if (!control_.connected() && std::exchange(enrolled, false)) {
      given_up = after(m_.options.dead_after_seconds);
    }
  };
  Lock lock(m_.mutex);
  // It may have formed and failed since; then the next call throws.
  while (m_.phase == Phase::kForming) {
    bool found = true;
    if (m_.takes_over() && (m_.coordinates() || !control_.connected())) {
      note_lost();
      lock.unlock();
      found = find_coordinator();
      lock.lock();
      if (m_.phase != Phase::kForming) break;
    }
    if (const auto why = control_.take_refusal()) {
      lock.unlock();
      m_.raise_refusal(m_.head(), *why);
    }
    note_lost();
    const bool connected = control_.connected();
    if (leaves && !connected && Clock::now() >= given_up) {
      throw errors::Unavailable(fmt::format(
          "{} was lost while the cluster formed anew: {}",
          named(m_.head(), m_.head_address()), control_.unreachable()));
    }
    if (Clock::now() >= deadline) {
      const std::string why = control_.missing();
      lock.unlock();
      control_.post(Frame{.type = FrameType::kLeft});
      throw errors::DeadlineExceeded(
          fmt::format("{}: the cluster was not complete after {:g} s; it "
                      "waited {}",
                      m_.task.str(), timeout_seconds, why));
    }
    if (Clock::now() >= line) {
      std::fprintf(stderr, "berth: %s waits %s\n", m_.task.str().c_str(),
                   control_.missing().c_str());
      line = after(10);
    }
    if (!found) {
      m_.changed.wait_until(lock, std::min(deadline, after(0.02)));
    } else if (connected && enrolled) {
      const double ask_seconds = m_.coordinates() ? 0.02 : 0.1;
      m_.changed.wait_until(lock,
                            std::min({deadline, line, after(ask_seconds)}));
    } else if (connected) {
      enrolled = true;
      lock.unlock();
      enroll(shrink);
      lock.lock();
    } else {
      lock.unlock();
      control_.open();
      lock.lock();
      if (control_.connected() || control_.is_refused()) continue;
      m_.changed.wait_until(lock, std::min(deadline, after(pause)));
      pause = std::min(pause * 2, 0.5);
    }
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
}

// Follows the task that coordinates, or does so itself. False: not known yet.
bool RpcMember::find_coordinator() {
  const auto own = static_cast<size_t>(
      std::find(m_.places.begin(), m_.places.end(), m_.task) -
      m_.places.begin());
  if (own == m_.places.size()) return true;
  const bool began = m_.coordinates();
  const std::vector<WhoAnswer> answers = ask_all(m_, dialer_);
  const std::optional<size_t> head = choose_head(answers, own, began);
  if (!head) return false;
  if (*head != own) {
    control_.leave_it_to(*head);
    return true;
  }
  bool another = false;
  std::vector<TaskId> there, absent;
  for (size_t p = 0; p < answers.size(); ++p) {
    another = another || answers[p].coordinates;
    if (p != own) (answers[p].there ? there : absent).push_back(m_.places[p]);
  }
  if (began) {
    if (const auto here = control_.coordinator()) here->asked(another, absent);
    return true;
  }
  std::vector<TaskId> expected;
  {
    Lock lock(m_.mutex);
    for (const TaskId& t : there) {
      if (m_.table.contains(t)) expected.push_back(t);
    }
    m_.head_at = own;
  }
  control_.coordinate(std::move(expected));
  return true;  // asks again, when the others can find it
}

void RpcMember::set_elastic(int min, int max) {
  m_.elastic_min = min;
  m_.elastic_max = max;
  control_.heartbeat(step_);
}

void RpcMember::announce_end() {
  fail(errors::Code::kAborted, m_.task, "it was told to end, and hands over",
       step_);
}

void RpcMember::form_again(double timeout_seconds, bool shrink) {
  {
    Lock lock(m_.mutex);
    if (m_.phase != Phase::kFailed) {
      throw errors::FailedPrecondition(
          m_.task.str() +
          ": form_again() comes after a failure, and there is none");
    }
  }
  drop_exchange();
  const std::optional<ClusterFailure> before = m_.failed();
  dialer_.drop_calls();
  {
    Lock lock(m_.mutex);
    m_.phase = Phase::kForming;
    m_.failure.reset();
    control_.take_refusal();
    m_.waiting.clear();
  }
  try {
    form(timeout_seconds, shrink);
  } catch (...) {
    Lock lock(m_.mutex);
    if (m_.phase == Phase::kForming) {
      m_.phase = Phase::kFailed;
      m_.failure = before;
    }
    lock.unlock();
    tell_phase();
    throw;
  }
}

void RpcMember::leave(double timeout_seconds) {
  const Deadline deadline = after(timeout_seconds);
  std::string late;
  {
    Lock lock(m_.mutex);
    if (m_.phase == Phase::kClosed) return;
    lock.unlock();
    control_.post(Frame{.type = FrameType::kDone});
    lock.lock();
    m_.wait(lock, deadline, "leave()", [] { return false; });
    if (m_.phase == Phase::kRunning)
      late = m_.waiting.empty() ? "?" : m_.waiting;
  }
  if (!late.empty() || !m_.coordinates())
    control_.post(Frame{.type = FrameType::kLeft});
  close_down();
  if (!late.empty()) {
    throw errors::DeadlineExceeded(fmt::format(
        "{}: leave() waited {:g} s {}", m_.task.str(), timeout_seconds, late));
  }
  Lock lock(m_.mutex);
  if (m_.failure) errors::raise(m_.failure->code, m_.failure->message);
}

void RpcMember::drop_exchange() {
  std::lock_guard lock(exchange_mutex_);
  exchange_.reset();
}

void RpcMember::close_down() {
  Dialer::Generation over;
  bool done = false;
  {
    Lock lock(m_.mutex);
    if (m_.phase == Phase::kClosed) return;
    done = m_.phase == Phase::kDone;
    m_.phase = Phase::kClosed;
    over = dialer_.end_generation();
    m_.changed.notify_all();
  }
  tell_phase();
  over.shut_down();
  drop_exchange();
  if (over.calls) over.calls->end(m_.failure ? &*m_.failure : nullptr);
  over.calls.reset();
  dialer_.drop_calls();
  dialer_.stop_listening();
  control_.close(done);
  dialer_.stop_streams();
  control_.release();
}

int RpcMember::rank() const {
  const std::vector<TaskId> all = m_.ranks();
  const auto found = std::find(all.begin(), all.end(), m_.task);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

int RpcMember::num_ranks() const { return static_cast<int>(ranks().size()); }

bool RpcMember::same_host(const TaskId& task) const {
  return task == m_.task || m_.host_of(task) == m_.own_host_id;
}

void RpcMember::check() const {
  std::lock_guard lock(m_.mutex);
  if (m_.failure) errors::raise(m_.failure->code, m_.failure->message);
}

// Each task detects this on its own, so the text only uses what all know.
void RpcMember::lose_coordinator(const std::string& cause) {
  ClusterFailure f{.task = m_.head(), .cause = cause};
  std::string address;
  {
    Lock lock(m_.mutex);
    address = m_.address_of(m_.head());
  }
  f.message = message_of(f, address);
  end_generation(&f);
}

// Notes what a frame says; returns whether it has further effects.
bool RpcMember::note(uint64_t serial, const Frame& f) {
  Lock lock(m_.mutex);
  if (!control_.heard(serial)) return false;
  const bool current = f.generation == m_.generation;
  switch (f.type) {
    case FrameType::kRefused:
      control_.refuse({static_cast<errors::Code>(f.code), f.text});
      break;
    case FrameType::kWaiting:
      m_.waiting = f.text;
      return false;  // only for messages
    case FrameType::kBarrierMet:
      if (current) met_.insert({f.name, f.id});
      break;
    case FrameType::kValue:
      if (const auto v = values_.find(f.id); current && v != values_.end()) {
        v->second = f.text;
      }
      break;
    case FrameType::kAbort:
    case FrameType::kAllDone:
      if (!current) return false;
      break;
    default:
      break;
  }
  m_.changed.notify_all();
  return true;
}

void RpcMember::on_frame(uint64_t serial, const Frame& f) {
  if (!note(serial, f)) return;
  switch (f.type) {
    case FrameType::kGo:
      return on_go(f);
    case FrameType::kGone:
      return on_gone(f);
    case FrameType::kBack:
      return on_back(f);
    case FrameType::kAllDone:
      return end_generation(nullptr);
    case FrameType::kAbort: {
      const ClusterFailure failure{.code = static_cast<errors::Code>(f.code),
                                   .task = f.task,
                                   .cause = f.name,
                                   .step = f.step,
                                   .message = f.text};
      return end_generation(&failure);
    }
    default:
      return;
  }
}

void RpcMember::on_go(const Frame& f) {
  Lock lock(m_.mutex);
  if (m_.phase != Phase::kForming) return;
  m_.generation = f.generation;
  m_.table.clear();
  auto known = m_.spec.as_dict();
  for (const TaskEntry& e : f.tasks) {
    m_.table[e.task] = e;
    std::string& address = known[e.task.job][e.task.index];
    if (address.empty()) address = e.address;
  }
  if (!m_.rendezvous.empty()) {
    std::map<std::string, std::vector<std::string>> jobs;
    for (const auto& [job, tasks] : known) {
      for (const auto& [index, address] : tasks) jobs[job].push_back(address);
    }
    m_.spec = ClusterSpec(std::move(jobs));
  }
  m_.gone.clear();
  rounds_.clear();
  met_.clear();
  dialer_.begin_generation();
  m_.phase = Phase::kRunning;
  m_.changed.notify_all();
  lock.unlock();
  tell_phase();
}

void RpcMember::on_gone(const Frame& f) {
  {
    Lock lock(m_.mutex);
    if (m_.phase != Phase::kRunning || f.generation != m_.generation) return;
    m_.table.erase(f.task);
    m_.gone[f.task] = f.text;
  }
  dialer_.drop(f.task, f.text);
}

void RpcMember::on_back(const Frame& f) {
  Lock lock(m_.mutex);
  if (m_.phase != Phase::kRunning || f.generation != m_.generation) return;
  for (const TaskEntry& e : f.tasks) {
    m_.table[e.task] = e;
    m_.gone.erase(e.task);
  }
  m_.changed.notify_all();
}

void RpcMember::end_generation(const ClusterFailure* failure) {
  Dialer::Generation over;
  ClusterFailure told;  // with the file of the calls
  std::vector<std::function<void(const ClusterFailure*)>> listeners;
  {
    Lock lock(m_.mutex);
    if (m_.phase != Phase::kRunning) return;
    m_.phase = failure ? Phase::kFailed : Phase::kDone;
    if (failure) {
      told = *failure;
      told.message += CallLog::get().write(m_.task.str(), told.message);
      m_.failure = told;
      failure = &told;
    }
    over = dialer_.end_generation();
    listeners.swap(listeners_);
    m_.changed.notify_all();
  }
  tell_phase();
  over.shut_down();
  if (over.calls) over.calls->end(failure);
  for (const auto& fn : listeners) fn(failure);
}

void RpcMember::lost(const TaskId& peer, const std::string& cause,
                     int64_t step) {
  Frame f{.type = FrameType::kFail, .task = peer};
  f.code = static_cast<int32_t>(errors::Code::kUnavailable);
  f.text = cause;
  f.step = step >= 0 ? step : step_.load();
  f.flag = true;
  control_.post(std::move(f));
}

void RpcMember::fail(errors::Code code, const TaskId& task,
                     const std::string& cause, int64_t step) {
  Frame f{.type = FrameType::kFail, .task = task};
  f.code = static_cast<int32_t>(code);
  f.text = cause.substr(0, 32 << 10);
  f.step = step;
  control_.post(std::move(f));
}

void RpcMember::on_tick(double now) {
  dialer_.tick();
  const std::shared_ptr<GrpcStream> silent = control_.tick(now, step_.load());
  if (!silent) return;
  // A coordinator that was only stopped reads later that it was given up.
  const std::string cause = cause_silent(m_.options.dead_after_seconds);
  fail(errors::Code::kUnavailable, m_.head(), cause, -1);
  lose_coordinator(cause);
  if (m_.takes_over()) return control_.leave_it_to(m_.head_at);
  silent->close();
}

void RpcMember::barrier(const std::string& name, double timeout_seconds) {
  if (timeout_seconds <= 0) timeout_seconds = m_.options.call_timeout_seconds;
  Frame f{.type = FrameType::kBarrier};
  f.name = name;
  Lock lock(m_.mutex);
  m_.check_locked();
  f.id = rounds_[name]++;
  const std::pair<std::string, uint64_t> key{name, f.id};
  lock.unlock();
  control_.post(f);
  lock.lock();
  const bool met = m_.wait(lock, after(timeout_seconds), "barrier()",
                           [&] { return met_.contains(key); });
  if (met_.erase(key) > 0) return;
  m_.check_locked();
  lock.unlock();
  if (!met) {
    f.type = FrameType::kLate;
    f.value = timeout_seconds;
    control_.post(f);
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
    Lock lock(m_.mutex);
    m_.check_locked();
  }
  Frame f{.type = FrameType::kPut};
  f.name = key;
  f.text = value;
  control_.post(std::move(f));
}

std::string RpcMember::get(const std::string& key, double timeout_seconds) {
  if (timeout_seconds <= 0) timeout_seconds = m_.options.call_timeout_seconds;
  Frame f{.type = FrameType::kGet};
  f.name = key;
  Lock lock(m_.mutex);
  m_.check_locked();
  const uint64_t id = f.id = ++next_get_;
  values_[id];
  lock.unlock();
  control_.post(std::move(f));
  lock.lock();
  m_.wait(lock, after(timeout_seconds), "get()", [&] {
    const auto found = values_.find(id);
    return found == values_.end() || found->second.has_value();
  });
  const auto node = values_.extract(id);
  if (node && node.mapped()) return *node.mapped();
  m_.check_locked();
  throw errors::DeadlineExceeded(
      fmt::format("{}: get('{}') waited {:g} s: no task has put it",
                  m_.task.str(), key, timeout_seconds));
}

void RpcMember::abort(errors::Code code, const std::string& cause,
                      int64_t step) {
  fail(code, m_.task, cause, step >= 0 ? step : step_.load());
  {
    Lock lock(m_.mutex);  // wait until all know, since the process may end now
    m_.changed.wait_until(lock, after(2),
                          [&] { return m_.phase != Phase::kRunning; });
  }
  control_.wait_until_sent(after(1));
}

void RpcMember::on_failure(std::function<void(const ClusterFailure&)> fn) {
  on_end([fn = std::move(fn)](const ClusterFailure* failure) {
    if (failure) fn(*failure);
  });
}

void RpcMember::on_end(std::function<void(const ClusterFailure*)> fn) {
  Lock lock(m_.mutex);
  if (m_.phase == Phase::kRunning || m_.phase == Phase::kForming) {
    listeners_.push_back(std::move(fn));
    return;
  }
  const std::optional<ClusterFailure> f = m_.failure;
  lock.unlock();
  fn(f ? &*f : nullptr);
}

void RpcMember::wait_for_failure(const std::string& cause) {
  m_.wait_for_failure(cause);
}

void RpcMember::serve(const std::string& service, Handler handler) {
  dialer_.serve(service, std::move(handler));
}

std::future<Message> RpcMember::call(const TaskId& to,
                                     const std::string& service,
                                     Message request, double timeout_seconds) {
  return dialer_.call(to, service, std::move(request), timeout_seconds);
}

Socket RpcMember::dial(const TaskId& to, Purpose purpose,
                       const std::string& channel, Route route,
                       double timeout_seconds) {
  return dialer_.dial(to, purpose, channel, route, timeout_seconds);
}

std::shared_ptr<Connection> RpcMember::dial_connection(
    const TaskId& to, Purpose purpose, const std::string& channel,
    Route route) {
  return dialer_.dial_connection(to, purpose, channel, route);
}

void RpcMember::accept(Purpose purpose, std::function<void(Accepted)> fn) {
  dialer_.accept(purpose, std::move(fn));
}

cluster::Exchange& RpcMember::exchange() {
  std::lock_guard lock(exchange_mutex_);
  check();
  if (rank() < 0) {
    throw errors::FailedPrecondition(
        m_.task.str() + " does not train: only chief and workers exchange");
  }
#ifdef BERTH_RPC_EXCHANGE
  if (!exchange_) exchange_ = make_exchange(*this);
  return *exchange_;
#else
  throw errors::Unimplemented("this libberth_rpc.so was built without Gloo");
#endif
}

}  // namespace berth::rpc
