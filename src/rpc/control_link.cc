// Frames from and to the coordinator, and their effects.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "rpc/rpc_member.h"

namespace berth::rpc {

void RpcMember::open_control() {
  const Hello hello = hello_to(head_, Purpose::kControl, "");
  const std::string address = rendezvous_.empty()
                                  ? spec_.task_address(head_.job, head_.index)
                                  : rendezvous_;
  uint64_t serial;
  {
    Lock lock(mutex_);
    serial = ++control_serial_;
    coordinator_silent_ = 0;
  }
  GrpcStream::Events events;
  events.on_message = [this, serial](std::string bytes) {
    try {
      on_frame(serial, parse_frame(bytes));
    } catch (const errors::Error& e) {
      std::fprintf(stderr, "berth: %s: from the coordinator: %s\n",
                   task_.str().c_str(), e.what());
    }
    return true;
  };
  events.on_closed = [this, serial](const Refusal& why) {
    on_control_closed(serial, why);
  };
  try {
    if (tls_ && own_address_.empty()) {
      std::string why;
      const Socket probe = connect_tcp(parse_endpoint(address), after(5), &why);
      if (!probe) throw errors::Unavailable(why);
      Lock lock(mutex_);
      own_address_ = fmt::format("{}:{}", own_host(probe.fd()), port_);
    }
    auto stream = hub_->open(
        address, hello, [this] { return dial_grpc(); }, std::move(events));
    Lock lock(mutex_);
    if (closed_serial_ < serial) control_ = std::move(stream);
  } catch (const errors::Unavailable& e) {
    Lock lock(mutex_);
    unreachable_ = e.what();
  }
}

void RpcMember::on_control_closed(uint64_t serial, const Refusal& why) {
  hub_->forget(head_);
  Lock lock(mutex_);
  closed_serial_ = std::max(closed_serial_, serial);
  changed_.notify_all();
  if (serial != control_serial_) return;
  control_.reset();
  unreachable_ = why.reason;
  const bool refused = why.code == errors::Code::kPermissionDenied ||
                       why.code == errors::Code::kInvalidArgument ||
                       why.code == errors::Code::kAlreadyExists;
  if (phase_ == Phase::kForming && refused && !refused_) refused_ = why;
  if (phase_ != Phase::kRunning) return;
  lock.unlock();
  lose_coordinator(cause_closed());
}

// Each task detects this on its own, so the text only uses what all know.
void RpcMember::lose_coordinator(const std::string& cause) {
  Failure f{.task = head_, .cause = cause};
  std::string address;
  {
    Lock lock(mutex_);
    address = address_of(head_);
  }
  f.message = message_of(f, address);
  end_generation(&f);
}

void RpcMember::post(Frame frame) {
  if (coordinator_) {
    if (frame.type != FrameType::kRegister) {
      Lock lock(mutex_);
      frame.generation = generation_;
    }
    return coordinator_->received(0, frame);
  }
  std::shared_ptr<GrpcStream> control;
  {
    Lock lock(mutex_);
    if (frame.type != FrameType::kRegister) frame.generation = generation_;
    control = control_;
  }
  if (control) control->send(encode(frame));
}

void RpcMember::from_coordinator(int connection,
                                 const Coordinator::FramePtr& frame,
                                 bool close) {
  if (connection == 0) {
    on_frame(0, *frame);
    return;
  }
  std::shared_ptr<GrpcStream> stream;
  std::string bytes;
  {
    std::lock_guard lock(wires_mutex_);
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

// The coordinator's own process may end as soon as this returns.
void RpcMember::wait_until_sent(Deadline most) {
  for (;;) {
    std::vector<std::shared_ptr<GrpcStream>> streams;
    {
      std::lock_guard lock(wires_mutex_);
      for (const auto& [id, stream] : streams_) streams.push_back(stream);
    }
    const bool sent = std::all_of(streams.begin(), streams.end(),
                                  [](const auto& w) { return w->idle(); });
    if (sent || std::chrono::steady_clock::now() >= most) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

GrpcStream::Events RpcMember::take_control(std::shared_ptr<GrpcStream> stream,
                                           const TaskId& from) {
  int id;
  {
    std::lock_guard lock(wires_mutex_);
    id = next_wire_++;
    streams_[id] = stream;
  }
  coordinator_->connected(id, from);
  GrpcStream::Events events;
  events.on_message = [this, id, weak = std::weak_ptr(stream)](std::string b) {
    try {
      coordinator_->received(id, parse_frame(b));
      return true;
    } catch (const errors::Error& e) {
      std::fprintf(stderr, "berth: %s: a connection is closed: %s\n",
                   task_.str().c_str(), e.what());
      if (const auto w = weak.lock()) w->close(true);
      return true;
    }
  };
  events.on_closed = [this, id](const Refusal&) {
    {
      std::lock_guard lock(wires_mutex_);
      streams_.erase(id);
    }
    coordinator_->closed(id);
  };
  return events;
}

void RpcMember::on_frame(uint64_t serial, const Frame& f) {
  {
    Lock lock(mutex_);
    if (!coordinator_ && serial != control_serial_) return;
    coordinator_silent_ = 0;
    const bool current = f.generation == generation_;
    switch (f.type) {
      case FrameType::kRefused:
        refused_ = Refusal{static_cast<errors::Code>(f.code), f.text};
        break;
      case FrameType::kWaiting:
        waiting_ = f.text;
        return;  // only for messages
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
        if (!current) return;
        break;
      default:
        break;
    }
    changed_.notify_all();
  }
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
      const Failure failure{.code = static_cast<errors::Code>(f.code),
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
  Lock lock(mutex_);
  if (phase_ != Phase::kForming) return;
  generation_ = f.generation;
  table_.clear();
  auto known = spec_.as_dict();
  for (const TaskEntry& e : f.tasks) {
    table_[e.task] = e;
    std::string& address = known[e.task.job][e.task.index];
    if (address.empty()) address = e.address;
  }
  if (!rendezvous_.empty()) {
    std::map<std::string, std::vector<std::string>> jobs;
    for (const auto& [job, tasks] : known) {
      for (const auto& [index, address] : tasks) jobs[job].push_back(address);
    }
    spec_ = ClusterSpec(std::move(jobs));
  }
  gone_.clear();
  rounds_.clear();
  met_.clear();
  sockets_.clear();
  unclaimed_.clear();
  calls_ = std::make_shared<ServiceCalls>(
      *this, services_, !by_grpc(), [this](const TaskId& t) {
        const auto& jobs = options_.elastic_jobs;
        return std::find(jobs.begin(), jobs.end(), t.job) != jobs.end();
      });
  phase_ = Phase::kRunning;
  changed_.notify_all();
}

void RpcMember::on_gone(const Frame& f) {
  std::shared_ptr<SocketSet> set;
  std::shared_ptr<ServiceCalls> calls;
  {
    Lock lock(mutex_);
    if (phase_ != Phase::kRunning || f.generation != generation_) return;
    table_.erase(f.task);
    gone_[f.task] = f.text;
    const auto found = sockets_.find(f.task);
    if (found != sockets_.end()) {
      set = found->second;
      sockets_.erase(found);
    }
    calls = calls_;
  }
  if (set) set->end();
  if (calls) calls->drop(f.task, f.text);
  hub_->forget(f.task);
}

void RpcMember::on_back(const Frame& f) {
  Lock lock(mutex_);
  if (phase_ != Phase::kRunning || f.generation != generation_) return;
  for (const TaskEntry& e : f.tasks) {
    table_[e.task] = e;
    gone_.erase(e.task);
  }
  changed_.notify_all();
}

void RpcMember::end_generation(const Failure* failure) {
  std::map<TaskId, std::shared_ptr<SocketSet>> sockets;
  std::vector<std::function<void(const Failure*)>> listeners;
  std::shared_ptr<ServiceCalls> calls;
  std::vector<std::pair<Purpose, Accepted>> unclaimed;
  {
    Lock lock(mutex_);
    if (phase_ != Phase::kRunning) return;
    phase_ = failure ? Phase::kFailed : Phase::kDone;
    if (failure) failure_ = *failure;
    sockets.swap(sockets_);
    listeners.swap(listeners_);
    unclaimed.swap(unclaimed_);
    calls = calls_;
    changed_.notify_all();
  }
  for (const auto& [task, set] : sockets) set->end();
  if (calls) calls->end(failure);
  for (const auto& fn : listeners) fn(failure);
}

void RpcMember::lost(const TaskId& peer, const std::string& cause,
                     int64_t step) {
  Frame f{.type = FrameType::kFail, .task = peer};
  f.code = static_cast<int32_t>(errors::Code::kUnavailable);
  f.text = cause;
  f.step = step >= 0 ? step : step_.load();
  f.flag = true;
  post(std::move(f));
}

void RpcMember::fail(errors::Code code, const TaskId& task,
                     const std::string& cause, int64_t step) {
  Frame f{.type = FrameType::kFail, .task = task};
  f.code = static_cast<int32_t>(code);
  f.text = cause.substr(0, 32 << 10);
  f.step = step;
  post(std::move(f));
}

void RpcMember::on_tick(double now) {
  std::shared_ptr<ServiceCalls> calls;
  std::shared_ptr<GrpcStream> control;
  bool beat = false, silent = false;
  {
    Lock lock(mutex_);
    const double passed =
        last_tick_ < 0 ? 0 : std::clamp(now - last_tick_, 0.0, 0.25);
    last_tick_ = now;
    calls = calls_;
    since_heartbeat_ += passed;
    beat = since_heartbeat_ >= heartbeat_seconds_;
    if (beat) since_heartbeat_ = 0;
    control = control_;
    if (!coordinator_ && control_) {
      coordinator_silent_ += passed;
      silent = phase_ == Phase::kRunning &&
               coordinator_silent_ > options_.dead_after_seconds;
    }
  }
  if (calls) calls->tick();
  if (coordinator_) coordinator_->tick(now);
  if (beat) post(Frame{.type = FrameType::kHeartbeat, .step = step_.load()});
  if (!silent) return;
  // A coordinator that was only stopped reads later that it was given up.
  const std::string cause = cause_silent(options_.dead_after_seconds);
  fail(errors::Code::kUnavailable, head_, cause, -1);
  lose_coordinator(cause);
  control->close();
}

}  // namespace berth::rpc
