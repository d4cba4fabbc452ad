#include "rpc/tunnel.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace berth::rpc {

namespace {

constexpr size_t kMostWaiting = 8 << 20;
constexpr size_t kPiece = 512 << 10;

}  // namespace

std::shared_ptr<Tunnel> Tunnel::make() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw errors::ResourceExhausted(
        "no file descriptors are left for a stream of the cluster; raise "
        "ulimit -n");
  }
  auto tunnel = std::make_shared<Tunnel>();
  tunnel->user_ = Socket(fds[0]);
  tunnel->inner_ = Socket(fds[1]);
  const int size = 1 << 20;
  for (const int fd : fds) {
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }
  return tunnel;
}

Wire::Events Tunnel::events() {
  Wire::Events e;
  auto self = shared_from_this();
  e.on_open = [self] {
    std::lock_guard lock(self->mutex_);
    self->open_ = true;
    self->changed_.notify_all();
  };
  e.on_bytes = [self](WireBytes bytes) {
    std::lock_guard lock(self->mutex_);
    self->incoming_bytes_ += bytes.size;
    self->incoming_.push_back(std::move(bytes));
    self->changed_.notify_all();
    self->paused_ = self->incoming_bytes_ > kMostWaiting;
    return !self->paused_;
  };
  e.on_sent = [self] {
    std::lock_guard lock(self->mutex_);
    self->changed_.notify_all();
  };
  e.on_closed = [self](const Refusal& why) {
    std::lock_guard lock(self->mutex_);
    self->closed_ = true;
    self->why_ = why;
    self->changed_.notify_all();
  };
  return e;
}

Socket Tunnel::start(std::shared_ptr<Wire> wire, Threads& threads) {
  {
    std::lock_guard lock(mutex_);
    wire_ = std::move(wire);
  }
  threads.start([self = shared_from_this()] { self->pump_in(); });
  threads.start([self = shared_from_this()] { self->pump_out(); });
  return std::move(user_);
}

std::optional<Refusal> Tunnel::wait_open(Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return open_ || closed_; };
  if (deadline == Deadline::max()) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_until(lock, deadline, ready)) {
    return Refusal{errors::Code::kDeadlineExceeded, "timed out"};
  }
  if (closed_) return why_;
  return std::nullopt;
}

void Tunnel::pump_in() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !incoming_.empty(); });
    if (incoming_.empty()) break;
    const WireBytes bytes = std::move(incoming_.front());
    incoming_.pop_front();
    incoming_bytes_ -= bytes.size;
    const bool resume = paused_ && incoming_bytes_ < kMostWaiting / 2;
    if (resume) paused_ = false;
    lock.unlock();
    if (resume) wire_->resume();
    const bool gone = !write_all(inner_.fd(), bytes.parts).empty();
    lock.lock();
    if (gone) break;
  }
  lock.unlock();
  inner_.shutdown();
  wire_->close(true);
}

void Tunnel::pump_out() {
  std::shared_ptr<char[]> piece;
  for (;;) {
    // Small data is copied, so that it does not pin a large buffer.
    if (!piece) piece = std::shared_ptr<char[]>(new char[kPiece]);
    const ssize_t n = ::recv(inner_.fd(), piece.get(), kPiece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (n < 4096) {
      wire_->send(std::string(piece.get(), static_cast<size_t>(n)));
    } else {
      wire_->send_bytes(std::exchange(piece, nullptr), static_cast<size_t>(n));
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [this] { return closed_ || wire_->queued() < kMostWaiting; });
    if (closed_) break;
  }
  wire_->close();
}

}  // namespace berth::rpc
