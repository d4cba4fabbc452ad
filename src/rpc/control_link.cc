#include "rpc/control_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace berth::rpc {

ControlLink::ControlLink(Membership& membership, Dialer& dialer, Events events)
    : m_(membership), dialer_(dialer), events_(std::move(events)) {
  if (m_.task == m_.head() && !m_.takes_over()) coordinate({});
}

void ControlLink::coordinate(std::vector<TaskId> expected) {
  Coordinator::Options o{.spec = m_.spec,
                         .tasks = m_.tasks,
                         .self = m_.task,
                         .elastic_jobs = m_.options.elastic_jobs,
                         .heartbeat_seconds = m_.heartbeat_seconds,
                         .dead_after_seconds = m_.options.dead_after_seconds,
                         .expected = std::move(expected),
                         .asks_first = m_.takes_over(),
                         .network = m_.network};
  Lock lock(m_.mutex);
  const uint64_t serial = ++serial_;
  stream_.reset();
  coordinator_ = std::make_shared<Coordinator>(
      std::move(o),
      [this, serial](int connection, const Coordinator::FramePtr& f,
                     bool close) { send(serial, connection, f, close); });
  coordinator_->connected(0, m_.task);
  m_.heads = true;
}

void ControlLink::leave_it_to(size_t place) {
  std::map<int, std::shared_ptr<GrpcStream>> streams;
  std::shared_ptr<GrpcStream> stream;
  {
    Lock lock(m_.mutex);
    ++serial_;
    m_.head_at = place;
    m_.heads = false;
    coordinator_.reset();
    stream.swap(stream_);
  }
  {
    std::lock_guard lock(streams_mutex_);
    streams.swap(streams_);
  }
  for (const auto& [id, other] : streams) other->close(true);
  if (stream) stream->close(true);
}

std::shared_ptr<Coordinator> ControlLink::coordinator() const {
  Lock lock(m_.mutex);
  return coordinator_;
}

void ControlLink::open() {
  uint64_t serial;
  {
    Lock lock(m_.mutex);
    serial = ++serial_;
    silent_ = 0;
  }
  GrpcStream::Events events;
  events.on_message = [this, serial](std::string bytes) {
    try {
      events_.on_frame(serial, parse_frame(bytes));
    } catch (const errors::Error& e) {
      std::fprintf(stderr, "berth: %s: from the coordinator: %s\n",
                   m_.task.str().c_str(), e.what());
    }
    return true;
  };
  events.on_closed = [this, serial](const Refusal& why) {
    on_closed(serial, why);
  };
  try {
    auto stream = dialer_.open_control(std::move(events));
    Lock lock(m_.mutex);
    if (closed_serial_ < serial) stream_ = std::move(stream);
  } catch (const errors::Unavailable& e) {
    Lock lock(m_.mutex);
    unreachable_ = e.what();
  }
}

void ControlLink::on_closed(uint64_t serial, const Refusal& why) {
  dialer_.forget(m_.head());
  Lock lock(m_.mutex);
  closed_serial_ = std::max(closed_serial_, serial);
  m_.changed.notify_all();
  if (serial != serial_) return;
  stream_.reset();
  unreachable_ = why.reason;
  const bool refused = why.code == errors::Code::kPermissionDenied ||
                       why.code == errors::Code::kInvalidArgument ||
                       why.code == errors::Code::kAlreadyExists;
  if (m_.phase == Phase::kForming && refused && !refused_) refused_ = why;
  if (m_.phase != Phase::kRunning) return;
  lock.unlock();
  events_.on_lost(cause_closed());
}

void ControlLink::post(Frame frame) {
  std::shared_ptr<GrpcStream> stream;
  std::shared_ptr<Coordinator> here;
  {
    Lock lock(m_.mutex);
    if (frame.type != FrameType::kRegister) frame.generation = m_.generation;
    stream = stream_;
    here = coordinator_;
  }
  if (here) return here->received(0, frame);
  if (stream) stream->send(encode(frame));
}

void ControlLink::send(uint64_t serial, int connection,
                       const Coordinator::FramePtr& frame, bool close) {
  if (connection == 0) {
    events_.on_frame(serial, *frame);
    return;
  }
  std::shared_ptr<GrpcStream> stream;
  std::string bytes;
  {
    std::lock_guard lock(streams_mutex_);
    const auto found = streams_.find(connection);
    if (found == streams_.end()) return;
    stream = found->second;
    if (encoded_of_ != frame) {
      encoded_ = encode(*frame);
      encoded_of_ = frame;
    }
    bytes = encoded_;
  }
  stream->send(std::move(bytes));
  if (close) stream->close();
}

void ControlLink::wait_until_sent(Deadline most) const {
  for (;;) {
    std::vector<std::shared_ptr<GrpcStream>> streams;
    {
      std::lock_guard lock(streams_mutex_);
      for (const auto& [id, stream] : streams_) streams.push_back(stream);
    }
    const bool sent = std::all_of(streams.begin(), streams.end(),
                                  [](const auto& w) { return w->idle(); });
    if (sent || std::chrono::steady_clock::now() >= most) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

GrpcStream::Events ControlLink::take(std::shared_ptr<GrpcStream> stream,
                                     const TaskId& from) {
  const std::shared_ptr<Coordinator> here = coordinator();
  if (!here) {  // it has left that to another one
    stream->close(true);
    return {};
  }
  int id;
  {
    std::lock_guard lock(streams_mutex_);
    id = next_stream_++;
    streams_[id] = stream;
  }
  here->connected(id, from);
  GrpcStream::Events events;
  events.on_message = [this, here, id,
                       weak = std::weak_ptr(stream)](std::string b) {
    try {
      here->received(id, parse_frame(b));
      return true;
    } catch (const errors::Error& e) {
      std::fprintf(stderr, "berth: %s: a connection is closed: %s\n",
                   m_.task.str().c_str(), e.what());
      if (const auto w = weak.lock()) w->close(true);
      return true;
    }
  };
  events.on_closed = [this, here, id](const Refusal&) {
    {
      std::lock_guard lock(streams_mutex_);
      streams_.erase(id);
    }
    here->closed(id);
  };
  return events;
}

void ControlLink::turned_away(const TaskId& from, const std::string& why) {
  if (const auto here = coordinator()) here->turned_away(from, why);
}

bool ControlLink::heard(uint64_t serial) {
  if (serial != serial_) return false;
  silent_ = 0;
  return true;
}

std::shared_ptr<GrpcStream> ControlLink::tick(double now, int64_t step) {
  bool beat = false, too_long = false;
  std::shared_ptr<GrpcStream> stream;
  std::shared_ptr<Coordinator> here;
  {
    Lock lock(m_.mutex);
    const double passed =
        last_tick_ < 0 ? 0 : std::clamp(now - last_tick_, 0.0, 0.25);
    last_tick_ = now;
    since_heartbeat_ += passed;
    beat = since_heartbeat_ >= m_.heartbeat_seconds;
    if (beat) since_heartbeat_ = 0;
    stream = stream_;
    here = coordinator_;
    if (!coordinator_ && stream_) {
      silent_ += passed;
      too_long = (m_.phase == Phase::kRunning || m_.takes_over()) &&
                 silent_ > m_.options.dead_after_seconds;
    }
  }
  if (here) here->tick(now);
  if (beat) heartbeat(step);
  return too_long ? stream : nullptr;
}

void ControlLink::heartbeat(int64_t step) {
  Frame f{.type = FrameType::kHeartbeat};
  f.step = step;
  f.value = m_.elastic_min;
  f.code = m_.elastic_max;
  post(std::move(f));
}

std::string ControlLink::missing() const {
  const std::string& waiting = m_.waiting;
  if (coordinator_) {
    return waiting.empty() ? "for the other tasks" : "for " + waiting;
  }
  // The coordinator reports them every second; if not, it was stopped.
  constexpr double kSilentSeconds = 2.5;
  if (stream_ && !waiting.empty() && silent_ < kSilentSeconds) {
    return "for " + waiting;
  }
  const std::string tasks = waiting.empty() ? "" : waiting + "; ";
  const std::string head = named(m_.head(), m_.head_address());
  if (stream_) {
    return fmt::format("for {}{}: it took the connection, and has {}", tasks,
                       head,
                       silent_ < kSilentSeconds
                           ? "not reported yet which tasks are missing"
                           : fmt::format("said nothing for {:.0f} s", silent_));
  }
  // Its last report may explain why the coordinator has gone.
  return fmt::format("for {}{}: {}", tasks, head, unreachable_);
}

void ControlLink::close(bool done) {
  std::shared_ptr<GrpcStream> stream;
  uint64_t serial = 0;
  {
    Lock lock(m_.mutex);
    stream = stream_;
    serial = serial_;
  }
  // Pending messages are still sent.
  if (stream) {
    stream->close();
    Lock lock(m_.mutex);
    m_.changed.wait_until(lock, after(1),
                          [&] { return closed_serial_ >= serial; });
  }
  const std::shared_ptr<Coordinator> here = coordinator();
  if (!here) return;
  std::map<int, std::shared_ptr<GrpcStream>> streams;
  {
    std::lock_guard lock(streams_mutex_);
    streams = streams_;
  }
  const auto wait = [&](double seconds) {
    const Deadline most = after(seconds);
    while (!here->deserted() && Clock::now() < most) ::usleep(1000);
  };
  // A connection that closes takes along what the other end has not read: one
  // that was stopped meanwhile would not hear that all are done.
  if (done) wait(m_.options.dead_after_seconds);
  for (const auto& [id, other] : streams) other->close();
  wait(1);
}

void ControlLink::release() {
  Lock lock(m_.mutex);
  stream_.reset();
}

}  // namespace berth::rpc
