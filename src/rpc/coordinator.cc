#include "rpc/coordinator.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::rpc {

namespace {

// Two tasks may report one event differently, and the one that it happened to
// knows best: wait this long for its report.
constexpr double kSuspicionSeconds = 0.02;
constexpr size_t kMostStoreBytes = size_t{1} << 30;
// So long tasks that start together have, to come before the first generation;
// so long later ones wait, to come together.
constexpr double kBeginSeconds = 1, kTogetherSeconds = 0.05;

}  // namespace

std::string named(const TaskId& task, const std::string& address) {
  return address.empty() ? task.str()
                         : fmt::format("{} ({})", task.str(), address);
}

std::string message_of(const ClusterFailure& f, const std::string& address) {
  const char* what = f.code == errors::Code::kAborted ? "changes the cluster"
                     : f.code == errors::Code::kUnavailable      ? "was lost"
                     : f.code == errors::Code::kDeadlineExceeded ? "is late"
                                                                 : "failed";
  return fmt::format("{} {}: {}{}", named(f.task, address), what, f.cause,
                     f.step >= 0 ? fmt::format(", step {}", f.step) : "");
}

std::string cause_closed() {
  return "its connection closed (the process ended, or was cut off)";
}

std::string cause_silent(double seconds) {
  return fmt::format("no heartbeat for {:g} s", seconds);
}

Coordinator::Coordinator(Options options, Send send)
    : options_(std::move(options)), send_(std::move(send)) {
  for (const TaskId& id : options_.tasks) {
    tasks_[id].address = options_.spec.task_address(id.job, id.index);
    tasks_[id].why = "it has not connected";
  }
  for (const TaskId& id : options_.expected) tasks_[id].expected = true;
  may_go_ = !options_.asks_first;
}

double Coordinator::tick_seconds() const {
  return std::clamp(options_.dead_after_seconds / 100, 0.005, 0.05);
}

void Coordinator::post(int connection, Frame frame, bool close) {
  if (connection < 0) return;
  frame.generation = generation_;
  outgoing_.push_back(
      {connection, std::make_shared<Frame>(std::move(frame)), close});
}

void Coordinator::post_inside(Frame frame) {
  frame.generation = generation_;
  const auto one = std::make_shared<Frame>(std::move(frame));
  const auto give = [&](const Task& t) {
    if (t.inside && t.connection >= 0) {
      outgoing_.push_back({t.connection, one, false});
    }
  };
  // This process comes last: it may end as soon as it knows.
  for (const auto& [id, t] : tasks_) {
    if (id != options_.self) give(t);
  }
  const auto self = tasks_.find(options_.self);
  if (self != tasks_.end()) give(self->second);
}

void Coordinator::deliver() {
  std::unique_lock lock(mutex_);
  if (delivering_) return;
  delivering_ = true;
  while (!outgoing_.empty()) {
    const Outgoing out = std::move(outgoing_.front());
    outgoing_.pop_front();
    lock.unlock();
    send_(out.connection, out.frame, out.close);
    lock.lock();
  }
  delivering_ = false;
}

void Coordinator::connected(int connection, const TaskId& task) {
  std::lock_guard lock(mutex_);
  connections_[connection] = task;
}

void Coordinator::received(int connection, const Frame& frame) {
  {
    std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    const TaskId from = found->second;
    if (frame.type == FrameType::kRegister) {
      enroll(connection, from, frame);
    } else if (const auto t = tasks_.find(from);
               t != tasks_.end() && t->second.connection == connection) {
      t->second.silent = 0;
      handle(connection, from, frame);
    }
  }
  deliver();
}

namespace {

const char* network_text(const std::string& network) {
  if (network == "memory,ucx") return "memory and UCX";
  return network.empty() ? "sockets" : network == "ucx" ? "UCX" : "another";
}

}  // namespace

void Coordinator::enroll(int connection, const TaskId& id, const Frame& f) {
  const auto refuse = [&](errors::Code code, std::string why) {
    Frame r{.type = FrameType::kRefused, .code = static_cast<int32_t>(code)};
    r.text = std::move(why);
    post(connection, std::move(r), true);
  };
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || f.tasks.size() != 1 || f.tasks[0].task != id) {
    return refuse(
        errors::Code::kInvalidArgument,
        fmt::format("{} does not take part in this cluster", id.str()));
  }
  Task& t = found->second;
  const TaskEntry& entry = f.tasks[0];
  if (f.name != options_.network) {
    t.why = fmt::format(
        "BERTH_TRANSPORT asks for {} on {} and for {} on {}; set it to the "
        "same on all tasks",
        network_text(f.name), id.str(), network_text(options_.network),
        options_.self.str());
    return refuse(errors::Code::kFailedPrecondition, t.why);
  }
  const bool other = t.connection >= 0 && t.connection != connection;
  if (other && t.entry.incarnation != entry.incarnation) {
    if (t.silent > 3 * options_.heartbeat_seconds) {
      held_.emplace_back(connection, f);  // until the old one speaks or is dead
      return;
    }
    return refuse(
        errors::Code::kAlreadyExists,
        fmt::format("{} is there already: {} at {}; this is {} at {}: two "
                    "processes were started with one index, end one of them",
                    id.str(), t.entry.process, t.entry.address, entry.process,
                    entry.address));
  }
  if (other) {  // it dialled again
    connections_.erase(t.connection);
    post(t.connection, Frame{.type = FrameType::kHeartbeat}, true);
  }
  if (t.inside && running_ && !failure_ && !t.done &&
      t.entry.incarnation != entry.incarnation) {
    lost(id, cause_closed());
  }
  t.connection = connection;
  t.entry = entry;
  t.min = static_cast<int>(f.value);
  t.max = f.code;
  quiet_ = 0;
  t.last_generation = f.generation;
  t.shrink = f.flag;
  t.silent = 0;
  t.ready = true;
  t.why.clear();
  if (running_ && !failure_ && !t.inside && elastic(id)) return admit(id);
  if (running_ && !failure_ && !t.inside) {
    Frame w{.type = FrameType::kWaiting};
    w.text = "the cluster runs without this task, until it forms anew";
    post(connection, std::move(w));
  }
  try_go();
}

void Coordinator::handle(int connection, const TaskId& from, const Frame& f) {
  Task& t = tasks_.at(from);
  const bool current = running_ && t.inside && f.generation == generation_;
  switch (f.type) {
    case FrameType::kHeartbeat:
      t.step = f.step;
      t.min = static_cast<int>(f.value);
      t.max = f.code;
      return;
    case FrameType::kLeft:
      // The coordinator gave up: nothing else will tell the others for whom.
      if (from == options_.self && !running_) tell_waiting();
      t.done = t.left = true;
      t.ready = false;
      return check_done();
    default:
      break;
  }
  // Sent before its sender knew of the failure.
  if (!current || failure_) return;
  switch (f.type) {
    case FrameType::kBarrier: {
      barriers_[{f.name, f.id}].arrived.insert(from);
      return meet_barriers();
    }
    case FrameType::kLate:
      return late(f);
    case FrameType::kPut:
      return put(from, f);
    case FrameType::kGet:
      return get(connection, f);
    case FrameType::kFail:
      return failed(from, f);
    case FrameType::kDone:
      t.done = true;
      return check_done();
    default:
      return;
  }
}

void Coordinator::put(const TaskId& from, const Frame& f) {
  const auto held = store_.find(f.name);
  const size_t before =
      held == store_.end() ? 0 : f.name.size() + held->second.size();
  const size_t after = store_bytes_ - before + f.name.size() + f.text.size();
  if (after > kMostStoreBytes) {
    return fail({.code = errors::Code::kResourceExhausted,
                 .task = from,
                 .cause = fmt::format("put('{}') fills the store: at most "
                                      "1 GiB are kept per generation",
                                      f.name)});
  }
  store_bytes_ = after;
  store_[f.name] = f.text;
  for (const auto& [to, id] : getters_[f.name]) {
    Frame v{.type = FrameType::kValue, .id = id};
    v.text = f.text;
    post(to, std::move(v));
  }
  getters_.erase(f.name);
}

void Coordinator::get(int connection, const Frame& f) {
  const auto found = store_.find(f.name);
  if (found == store_.end()) {
    getters_[f.name].emplace_back(connection, f.id);
    return;
  }
  Frame v{.type = FrameType::kValue, .id = f.id};
  v.text = found->second;
  post(connection, std::move(v));
}

void Coordinator::failed(const TaskId& from, const Frame& f) {
  if (!tasks_.contains(f.task)) return;
  if (f.flag && f.task != from) {
    suspicions_.push_back({f.task, f.text, f.step, 0});
    return;
  }
  auto code = errors::Code::kUnknown;
  if (f.code >= 1 && f.code <= 15) code = static_cast<errors::Code>(f.code);
  fail({.code = code, .task = f.task, .cause = f.text, .step = f.step});
}

void Coordinator::late(const Frame& f) {
  const auto found = barriers_.find({f.name, f.id});
  if (found == barriers_.end()) return;  // met meanwhile
  const std::vector<std::string> missing = not_at(found->second);
  TaskId first;
  for (const auto& [id, t] : tasks_) {
    if (t.inside && !found->second.arrived.contains(id)) {
      first = id;
      break;
    }
  }
  fail({.code = errors::Code::kDeadlineExceeded,
        .task = first,
        .cause = fmt::format("the barrier '{}' waited {:g} s for {}", f.name,
                             f.value, list(missing))});
}

void Coordinator::closed(int connection) {
  {
    std::lock_guard lock(mutex_);
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    const TaskId id = found->second;
    connections_.erase(found);
    std::erase_if(held_, [&](const auto& h) { return h.first == connection; });
    const auto t = tasks_.find(id);
    if (t != tasks_.end() && t->second.connection == connection) {
      lost(id, cause_closed());
      try_go();
    }
  }
  deliver();
}

// The connection of a task has closed or was silent for too long.
void Coordinator::lost(const TaskId& id, const std::string& cause) {
  Task& t = tasks_.at(id);
  if (running_ && !failure_ && t.inside && !t.done) {
    if (elastic(id)) {
      drop(id, cause);
    } else {  // it gets the failure as well: a stopped process reads it later
      fail({.task = id, .cause = cause});
    }
  }
  t.connection = -1;
  t.ready = t.expected = false;
  t.why = cause;
  check_done();
}

bool Coordinator::elastic(const TaskId& id) const {
  return std::find(options_.elastic_jobs.begin(), options_.elastic_jobs.end(),
                   id.job) != options_.elastic_jobs.end();
}

void Coordinator::drop(const TaskId& id, const std::string& cause) {
  Task& t = tasks_.at(id);
  ClusterFailure f{.task = id, .cause = cause, .step = t.step};
  f.message = message_of(f, t.entry.address);
  Frame abort{.type = FrameType::kAbort, .task = id, .step = f.step};
  abort.code = static_cast<int32_t>(f.code);
  abort.name = cause;
  abort.text = f.message;
  post(t.connection, std::move(abort));
  t.inside = false;
  for (auto& [key, barrier] : barriers_) barrier.arrived.erase(id);
  Frame gone{.type = FrameType::kGone, .task = id};
  gone.text = f.message;
  post_inside(gone);
  meet_barriers();
}

void Coordinator::admit(const TaskId& id) {
  Task& t = tasks_.at(id);
  Frame back{.type = FrameType::kBack};
  back.tasks.push_back(t.entry);
  post_inside(back);
  t.inside = true;
  t.ready = t.done = t.left = false;
  t.step = -1;
  post(t.connection, go_frame());
}

void Coordinator::meet_barriers() {
  const auto inside =
      std::count_if(tasks_.begin(), tasks_.end(),
                    [](const auto& e) { return e.second.inside; });
  for (auto b = barriers_.begin(); b != barriers_.end();) {
    if (static_cast<int64_t>(b->second.arrived.size()) < inside) {
      ++b;
      continue;
    }
    Frame met{.type = FrameType::kBarrierMet, .id = b->first.second};
    met.name = b->first.first;
    post_inside(met);
    b = barriers_.erase(b);
  }
}

int64_t Coordinator::step_of(const TaskId& id) const {
  const int64_t own = tasks_.at(id).step;
  const auto self = tasks_.find(options_.self);
  return own < 0 && self != tasks_.end() ? self->second.step : own;
}

void Coordinator::fail(ClusterFailure f) {
  if (!running_ || failure_) return;
  if (f.step < 0) f.step = step_of(f.task);
  Task& t = tasks_.at(f.task);
  const std::string& address =
      t.entry.address.empty() ? t.address : t.entry.address;
  f.message = message_of(f, address);
  failure_ = f;
  Frame abort{.type = FrameType::kAbort,
              .task = f.task,
              .code = static_cast<int32_t>(f.code),
              .step = f.step};
  abort.name = f.cause.substr(0, 32 << 10);
  abort.text = f.message;
  post_inside(abort);
  barriers_.clear();
  getters_.clear();
  suspicions_.clear();
}

void Coordinator::check_done() {
  if (!running_ || failure_) return;
  for (const auto& [id, t] : tasks_) {
    if (t.inside && !t.done) return;
  }
  const bool elastic = may_change(true);
  post_inside(Frame{.type = FrameType::kAllDone});
  running_ = false;
  for (auto& [id, t] : tasks_) {
    if (!elastic || t.inside || !t.ready) continue;
    Frame late{.type = FrameType::kRefused};
    late.code = static_cast<int32_t>(errors::Code::kCancelled);
    late.text = "all tasks are done; this one came too late to take part";
    t.ready = false;
    post(t.connection, std::move(late), true);
  }
}

bool Coordinator::may_change(bool inside) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& e) {
    return (inside ? e.second.inside : e.second.ready) && e.second.min > 0;
  });
}

// Whether tasks that come and go are enough, and no other is about to come.
bool Coordinator::changed_may_go() const {
  int ready = 0, least = 1;
  bool all = true, begun = generation_ > 0, expected = false;
  for (const auto& [id, t] : tasks_) {
    all = all && t.ready;
    if (!t.ready) {
      expected = expected || t.expected;
      continue;
    }
    ++ready;
    least = std::max(least, t.min);
    begun = begun || t.last_generation > 0;
  }
  if (!may_go_ || ready < least) return false;
  if (all) return true;
  if (!begun) return quiet_ > kBeginSeconds;
  if (expected) return quiet_ > options_.dead_after_seconds;
  return generation_ > 0 || !options_.expected.empty() ||
         quiet_ > kTogetherSeconds;
}

// Which of those that are ready: not the last ones, where there may be fewer.
bool Coordinator::takes_part(const TaskId& id) const {
  const Task& t = tasks_.at(id);
  if (t.connection < 0) return false;
  if (!t.ready) return !may_change(false);
  if (t.max <= 0) return true;
  int before = 0;
  for (const auto& [other, o] : tasks_) {
    const bool had = o.last_generation > 0, has = t.last_generation > 0;
    if (o.ready && (had != has ? had : other < id)) ++before;
  }
  return before < t.max;
}

// Ends the generation for tasks that wait to join it.
void Coordinator::let_join() {
  if (!running_ || failure_ || quiet_ < kTogetherSeconds || !may_change(true)) {
    return;
  }
  int inside = 0, most = 0;
  bool done = false;
  for (const auto& [id, t] : tasks_) {
    if (!t.inside) continue;
    ++inside;
    most = std::max(most, t.max);
    done = done || t.done;
  }
  if (done || (most > 0 && inside >= most)) return;
  for (const auto& [id, t] : tasks_) {
    if (t.inside || !t.ready) continue;
    return fail(
        {.code = errors::Code::kAborted, .task = id, .cause = "it joins"});
  }
}

void Coordinator::asked(bool another, const std::vector<TaskId>& absent) {
  {
    std::lock_guard lock(mutex_);
    may_go_ = !another;
    for (const TaskId& id : absent) tasks_[id].expected = false;
    try_go();
  }
  deliver();
}

void Coordinator::try_go() {
  if (running_ && !failure_) return;
  if (!held_.empty()) return;  // which of the two is alive is known soon
  if (may_change(false)) {
    const auto self = tasks_.find(options_.self);
    for (const auto& [id, t] : tasks_) {
      if (t.inside && t.connection >= 0 && !t.ready) return;  // alive
    }
    if (self->second.ready && changed_may_go()) go();
    return;
  }
  bool all = true, shrink = true, any = false, worked = true;
  for (const auto& [id, t] : tasks_) {
    if (elastic(id)) worked = false;
  }
  for (const auto& [id, t] : tasks_) {
    if (t.connection < 0) {
      all = all && elastic(id) && alone_ > options_.dead_after_seconds;
    } else if (!t.ready) {
      return;  // alive, but not ready
    } else {
      any = true;
      worked = worked || elastic(id);
      shrink = shrink && (t.shrink || !t.last_generation);
    }
  }
  // With `shrink` the generation continues with the tasks that it had.
  const auto self = tasks_.find(options_.self);
  const bool may_shrink = any && shrink && generation_ > 0 &&
                          self != tasks_.end() && self->second.shrink;
  if ((all && worked) || may_shrink) go();
}

// Whether those that may be lost are all that is missing.
bool Coordinator::only_elastic_miss() const {
  return (!running_ || failure_) &&
         std::all_of(tasks_.begin(), tasks_.end(), [&](const auto& e) {
           return e.second.ready || elastic(e.first);
         });
}

void Coordinator::go() {
  for (const auto& [id, t] : tasks_) {
    if (t.connection >= 0) {
      generation_ = std::max(generation_, t.last_generation);
    }
  }
  ++generation_;
  running_ = true;
  failure_.reset();
  barriers_.clear();
  store_.clear();
  store_bytes_ = 0;
  getters_.clear();
  suspicions_.clear();
  std::vector<TaskId> in;
  for (auto& [id, t] : tasks_) {
    if (takes_part(id)) in.push_back(id);
    t.inside = t.expected = false;
  }
  for (const TaskId& id : in) {
    Task& t = tasks_.at(id);
    t.inside = true;
    t.ready = t.done = t.left = t.shrink = false;
    t.step = -1;
  }
  may_go_ = !options_.asks_first;
  post_inside(go_frame());
}

Frame Coordinator::go_frame() const {
  Frame go{.type = FrameType::kGo};
  for (const auto& [id, t] : tasks_) {
    if (!t.inside) continue;
    go.tasks.push_back(t.entry);
    go.tasks.back().process.clear();  // only used in local messages
  }
  return go;
}

std::string Coordinator::list(const std::vector<std::string>& names) const {
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) {
    text += (i ? ", " : "") + names[i];
  }
  if (names.size() > kMost) {
    text += fmt::format(" and {} more", names.size() - kMost);
  }
  return text;
}

std::vector<std::string> Coordinator::not_done() const {
  std::vector<std::string> names;
  for (const auto& [id, t] : tasks_) {
    if (t.inside && !t.done) names.push_back(named(id, t.entry.address));
  }
  return names;
}

std::vector<std::string> Coordinator::not_at(const Barrier& barrier) const {
  std::vector<std::string> names;
  for (const auto& [id, t] : tasks_) {
    if (t.inside && !barrier.arrived.contains(id)) {
      names.push_back(named(id, t.entry.address));
    }
  }
  return names;
}

std::string Coordinator::missing_for_go() const {
  std::vector<std::string> names;
  for (const auto& [id, t] : tasks_) {
    if (t.ready) continue;
    names.push_back(fmt::format(
        "{}: {}", named(id, t.address),
        t.connection >= 0 ? "it has not asked to form the cluster anew"
                          : t.why));
  }
  return list(names);
}

// Tells waiting tasks whom they wait for.
void Coordinator::tell_waiting() {
  Frame w{.type = FrameType::kWaiting};
  if (!running_ || failure_) {
    w.text = missing_for_go();
    for (const auto& [id, t] : tasks_) {
      if (t.ready) post(t.connection, w);
    }
    return;
  }
  for (const auto& [key, barrier] : barriers_) {
    w.text = fmt::format("at the barrier '{}': {}", key.first,
                         list(not_at(barrier)));
    for (const TaskId& id : barrier.arrived) post(tasks_.at(id).connection, w);
  }
  w.text = "to be done: " + list(not_done());
  for (const auto& [id, t] : tasks_) {
    if (t.inside && t.done) post(t.connection, w);
  }
}

void Coordinator::turned_away(const TaskId& task, const std::string& reason) {
  std::lock_guard lock(mutex_);
  const auto found = tasks_.find(task);
  if (found != tasks_.end() && found->second.connection < 0) {
    found->second.why = "it was turned away: " + reason;
  }
}

bool Coordinator::deserted() const {
  std::lock_guard lock(mutex_);
  return std::none_of(tasks_.begin(), tasks_.end(), [&](const auto& e) {
    const Task& t = e.second;
    return e.first != options_.self && t.connection >= 0 && !t.left;
  });
}

void Coordinator::tick(double now) {
  {
    std::lock_guard lock(mutex_);
    const double passed =
        last_tick_ < 0 ? 0 : std::clamp(now - last_tick_, 0.0, 0.25);
    last_tick_ = now;
    std::vector<TaskId> dead;
    for (auto& [id, t] : tasks_) {
      if (t.connection < 0 || id == options_.self) continue;
      t.silent += passed;
      if (t.silent > options_.dead_after_seconds) dead.push_back(id);
    }
    for (const TaskId& id : dead) {
      // It still gets the abort: a stopped process reads it when it continues.
      const int connection = tasks_.at(id).connection;
      lost(id, cause_silent(options_.dead_after_seconds));
      post(connection, Frame{.type = FrameType::kHeartbeat}, true);
      connections_.erase(connection);
    }
    auto suspicions = std::move(suspicions_);
    suspicions_.clear();
    for (Suspicion& s : suspicions) {
      s.age += passed;
      const Task& t = tasks_.at(s.task);
      if (!t.inside || t.done || elastic(s.task)) continue;
      if (s.age < kSuspicionSeconds) {
        suspicions_.push_back(s);
      } else {
        fail({.task = s.task, .cause = s.cause, .step = s.step});
      }
    }
    for (auto& [connection, f] : std::exchange(held_, {})) {
      const auto found = connections_.find(connection);
      if (found == connections_.end()) continue;
      enroll(connection, TaskId(found->second), f);
    }
    alone_ = only_elastic_miss() ? alone_ + passed : 0;
    quiet_ += passed;
    if (!dead.empty() || alone_ > 0 || may_change(false)) try_go();
    let_join();
    since_heartbeat_ += passed;
    if (since_heartbeat_ >= options_.heartbeat_seconds) {
      since_heartbeat_ = 0;
      for (const auto& [id, t] : tasks_) {
        post(t.connection, Frame{.type = FrameType::kHeartbeat});
      }
    }
    since_told_ += passed;
    if (since_told_ >= std::min(1.0, options_.line_seconds / 2)) {
      since_told_ = 0;
      tell_waiting();
    }
  }
  deliver();
}

}  // namespace berth::rpc
