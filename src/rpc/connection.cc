#include "rpc/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/live_counts.h"
#include "rpc/link.h"
#include "rpc/port_connection.h"

namespace berth::rpc {

namespace {

constexpr size_t kMostWaiting = 8 << 20;
// gRPC hands over whole messages: in pieces, a tensor is copied out of the
// first while the next arrives.
constexpr size_t kPiece = 1 << 20;
// What is smaller is copied: an own message of gRPC costs less than slices.
constexpr size_t kSmall = 4096;
constexpr const char* kClosed = "connection closed";

// Calls `send` with parts of at most kPiece bytes together.
template <class Send>
bool in_pieces(const std::vector<iovec>& parts, Send send) {
  std::vector<iovec> piece;
  size_t room = kPiece;
  for (iovec left : parts) {
    while (left.iov_len > 0) {
      const size_t n = std::min(left.iov_len, room);
      piece.push_back({left.iov_base, n});
      left.iov_base = static_cast<char*>(left.iov_base) + n;
      left.iov_len -= n;
      room -= n;
      if (room > 0) continue;
      if (!send(piece)) return false;
      piece.clear();
      room = kPiece;
    }
  }
  return piece.empty() || send(piece);
}

// All bytes in one string when they are few; else empty.
std::string joined(const std::vector<iovec>& parts) {
  size_t size = 0;
  for (const iovec& p : parts) size += p.iov_len;
  std::string bytes;
  if (size > kSmall) return bytes;
  bytes.reserve(size);
  for (const iovec& p : parts) {
    bytes.append(static_cast<const char*>(p.iov_base), p.iov_len);
  }
  return bytes;
}

}  // namespace

bool SocketConnection::write_now(OutgoingMessage* message) {
  size_t at = 0;
  bool full = false;
  while (at < message->parts.size() && !full) {
    msghdr sent{};
    sent.msg_iov = &message->parts[at];
    sent.msg_iovlen = std::min<size_t>(message->parts.size() - at, 64);
    ssize_t n = ::sendmsg(fd(), &sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    full = n < 0;  // or broken: write() will notice
    if (!full) live_counts::add_sent(n);
    for (; at < message->parts.size() && !full; ++at) {
      iovec& part = message->parts[at];
      const size_t used = std::min(part.iov_len, static_cast<size_t>(n));
      part.iov_base = static_cast<char*>(part.iov_base) + used;
      part.iov_len -= used;
      n -= static_cast<ssize_t>(used);
      if (part.iov_len > 0) break;
    }
  }
  if (full)
    message->parts.erase(message->parts.begin(), message->parts.begin() + at);
  return !full;
}

std::shared_ptr<Connection> connection_of(Socket socket, Route route,
                                          bool loopback) {
  if (route == Route::kTcp && transport_of_environment().ucx) {
    return std::make_shared<PortConnection>(std::move(socket), loopback);
  }
  return std::make_shared<SocketConnection>(std::move(socket));
}

std::shared_ptr<Connection> Link::dial_connection(const TaskId& to,
                                                  Purpose purpose,
                                                  const std::string& channel,
                                                  Route route) {
  return connection_of(dial(to, purpose, channel, route), route,
                       loopback_only());
}

// The stream's callbacks hold it too.
struct GrpcConnection::State {
  std::shared_ptr<GrpcStream> stream;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<StreamBytes> incoming;
  size_t incoming_bytes = 0;
  bool paused = false, open = false;
  bool closed = false;  // by the other end, or broken
  bool down = false;    // by this one
  Refusal why;
};

GrpcConnection::GrpcConnection() : state_(std::make_shared<State>()) {}

GrpcConnection::~GrpcConnection() { close(false); }

GrpcStream::Events GrpcConnection::events() {
  GrpcStream::Events e;
  e.on_open = [s = state_] {
    std::lock_guard lock(s->mutex);
    s->open = true;
    s->changed.notify_all();
  };
  e.on_bytes = [s = state_](StreamBytes bytes) {
    std::lock_guard lock(s->mutex);
    if (s->down) return true;
    s->incoming_bytes += bytes.size;
    s->incoming.push_back(std::move(bytes));
    s->changed.notify_all();
    s->paused = s->incoming_bytes > kMostWaiting;
    return !s->paused;
  };
  e.on_sent = [s = state_] {
    std::lock_guard lock(s->mutex);
    s->changed.notify_all();
  };
  e.on_closed = [s = state_](const Refusal& why) {
    std::lock_guard lock(s->mutex);
    s->closed = true;
    s->why = why;
    s->changed.notify_all();
  };
  return e;
}

void GrpcConnection::attach(std::shared_ptr<GrpcStream> stream) {
  std::lock_guard lock(state_->mutex);
  state_->stream = std::move(stream);
}

std::optional<Refusal> GrpcConnection::wait_open(Deadline deadline) {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  const auto ready = [&s] { return s.open || s.closed; };
  if (deadline == Deadline::max()) {
    s.changed.wait(lock, ready);
  } else if (!s.changed.wait_until(lock, deadline, ready)) {
    return Refusal{errors::Code::kDeadlineExceeded, "timed out"};
  }
  if (s.closed) return s.why;
  return std::nullopt;
}

std::optional<StreamBytes> GrpcConnection::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock,
                 [&s] { return s.closed || s.down || !s.incoming.empty(); });
  if (s.down || s.incoming.empty()) return std::nullopt;
  StreamBytes bytes = std::move(s.incoming.front());
  s.incoming.pop_front();
  s.incoming_bytes -= bytes.size;
  const bool resume = s.paused && s.incoming_bytes < kMostWaiting / 2;
  if (resume) s.paused = false;
  lock.unlock();
  if (resume) s.stream->resume();
  return bytes;
}

std::string GrpcConnection::read(void* data, size_t bytes) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    if (part_ == reading_.parts.size()) {
      reading_ = {};  // let go before the wait
      part_ = offset_ = 0;
      std::optional<StreamBytes> got = next();
      if (!got) return kClosed;
      reading_ = std::move(*got);
      continue;
    }
    const iovec& from = reading_.parts[part_];
    const size_t n = std::min(bytes, from.iov_len - offset_);
    std::memcpy(to, static_cast<const char*>(from.iov_base) + offset_, n);
    to += n;
    bytes -= n;
    offset_ += n;
    if (offset_ < from.iov_len) continue;
    ++part_;
    offset_ = 0;
  }
  return "";
}

bool GrpcConnection::send(std::shared_ptr<const void> owner,
                          std::span<const iovec> parts) {
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&s] {
      return s.closed || s.down || s.stream->queued() < kMostWaiting;
    });
    if (s.closed || s.down) return false;
  }
  s.stream->send_parts(std::move(owner), parts);
  return true;
}

std::string GrpcConnection::write(OutgoingMessage message) {
  const auto owner = std::make_shared<OutgoingMessage>(std::move(message));
  if (std::string few = joined(owner->parts); !few.empty()) {
    const auto copy = std::make_shared<std::string>(std::move(few));
    const iovec part{copy->data(), copy->size()};
    return send(copy, std::span(&part, 1)) ? "" : kClosed;
  }
  const bool sent = in_pieces(
      owner->parts,
      [&](const std::vector<iovec>& piece) { return send(owner, piece); });
  return sent ? "" : kClosed;
}

bool GrpcConnection::write_now(OutgoingMessage* message) {
  State& s = *state_;
  if (s.stream->queued() >= kMostWaiting) return false;
  if (std::string few = joined(message->parts); !few.empty()) {
    s.stream->send(std::move(few));
    return true;
  }
  const auto owner = std::make_shared<OutgoingMessage>(std::move(*message));
  in_pieces(owner->parts, [&](const std::vector<iovec>& piece) {
    s.stream->send_parts(owner, piece);
    return true;
  });
  return true;
}

void GrpcConnection::close(bool now) {
  State& s = *state_;
  std::deque<StreamBytes> dropped;
  std::shared_ptr<GrpcStream> stream;
  bool resume = false;
  {
    std::lock_guard lock(s.mutex);
    s.down = true;
    dropped.swap(s.incoming);
    s.incoming_bytes = 0;
    resume = std::exchange(s.paused, false);
    stream = s.stream;
    s.changed.notify_all();
  }
  if (!stream) return;
  if (resume) stream->resume();  // the end of the stream is read, too
  stream->close(now);
}

}  // namespace berth::rpc
