#include "rpc/exchange/host.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "berth/errors.h"

namespace berth::exchange {

namespace {

// Sends one byte with a descriptor.
bool send_descriptor(int socket, int fd) {
  char byte = 'm';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof(control);
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
  return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Socket receive_descriptor(int socket, Deadline deadline) {
  pollfd p{socket, POLLIN, 0};
  const double left = std::max(seconds_until(deadline), 0.0);
  if (poll(&p, 1, static_cast<int>(std::min(left * 1000, 1e9))) <= 0) {
    return Socket();
  }
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
  m.msg_iov = &part;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof(control);
  if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) {
    return Socket();
  }
  const cmsghdr* c = CMSG_FIRSTHDR(&m);
  if (c == nullptr || c->cmsg_level != SOL_SOCKET ||
      c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int))) {
    return Socket();
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(c), sizeof(fd));
  return Socket(fd);
}

}  // namespace

Host::Host(Peers& peers) : peers_(peers), ranks_(peers.hosts()[peers.host()]) {
  member_ = static_cast<int>(
      std::find(ranks_.begin(), ranks_.end(), peers.rank()) - ranks_.begin());
  if (size() == 1 || member_ != 0) return;
  segment_ = Segment::create(size(), peers.link().generation(),
                             peers.options().shared_bytes);
  peers.serve_memory(
      [this](Socket socket, int rank) { send_file(std::move(socket), rank); });
  peers.on_end([segment = segment_] { segment->end(); });
}

void Host::send_file(Socket socket, int rank) {
  if (std::find(ranks_.begin(), ranks_.end(), rank) == ranks_.end()) return;
  if (!send_descriptor(socket.fd(), segment_->fd())) return;
  std::lock_guard lock(mutex_);
  sockets_.emplace_back(std::move(socket), rank);
}

std::shared_ptr<Segment> Host::segment(double seconds) {
  if (size() == 1) return nullptr;
  std::lock_guard lock(mutex_);
  if (!segment_) attach(seconds);
  return segment_;
}

std::shared_ptr<Segment> Host::segment(Wait& wait) {
  for (;;) {
    try {
      return segment(seconds_until(wait.deadline()));
    } catch (const errors::DeadlineExceeded&) {
      wait.check(ranks_[0]);  // throws the common failure
    }
  }
}

void Host::attach(double seconds) {
  const Deadline deadline = after(seconds);
  Socket socket = peers_.dial_memory(ranks_[0], deadline);
  Socket file;
  while (!file && seconds_until(deadline) > 0) {
    peers_.link().check();
    file = receive_descriptor(socket.fd(), std::min(deadline, after(0.1)));
    pollfd p{socket.fd(), POLLRDHUP, 0};
    if (!file && poll(&p, 1, 0) > 0) break;
  }
  if (!file) {
    peers_.link().check();
    if (seconds_until(deadline) <= 0) {
      throw errors::DeadlineExceeded(peers_.name(ranks_[0]) +
                                     " does not make its exchange");
    }
    throw errors::Unavailable(
        peers_.name(ranks_[0]) +
        " did not send the memory that tasks of one host share; "
        "BERTH_TRANSPORT=sockets does without");
  }
  segment_ = Segment::attach(std::move(file), member_, size(),
                             peers_.link().generation());
  peers_.on_end([segment = segment_] { segment->end(); });
  sockets_.emplace_back(std::move(socket), ranks_[0]);
}

bool Host::gone(int rank) {
  std::lock_guard lock(mutex_);
  for (const auto& [socket, whose] : sockets_) {
    pollfd p{socket.fd(), POLLRDHUP, 0};
    if (whose == rank && poll(&p, 1, 0) > 0) return true;
  }
  return false;
}

}  // namespace berth::exchange
