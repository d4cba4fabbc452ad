#include "rpc/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace berth::rpc {

namespace {

void watch(int epoll, int fd, const void* tag) {
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.ptr = const_cast<void*>(tag);
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e);
}

bool is_one_of(const std::vector<Socket>& sockets, const void* tag) {
  return std::any_of(sockets.begin(), sockets.end(),
                     [&](const Socket& s) { return &s == tag; });
}

double now_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Listener::Listener(std::vector<Socket> tcp, Socket local,
                   const Handshake::Gate& gate, Limits limits, Events events)
    : tcp_(std::move(tcp)),
      local_(std::move(local)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      gate_(gate),
      limits_(limits),
      events_(std::move(events)) {
  if (!epoll_ || !wake_) {
    throw errors::ResourceExhausted(
        "no file descriptors are left for the cluster; raise ulimit -n");
  }
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < (1u << 20)) {
    limits_.waiting =
        std::clamp(static_cast<int>(files.rlim_cur / 8), 4, limits_.waiting);
  }
  watch(epoll_.fd(), wake_.fd(), &wake_);
  for (const Socket& s : tcp_) watch(epoll_.fd(), s.fd(), &s);
  if (local_) watch(epoll_.fd(), local_.fd(), &local_);
  thread_ = std::thread([this] { run(); });
}

Listener::~Listener() {
  stop_ = true;
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_.fd(), &one, sizeof(one)));
  thread_.join();
}

void Listener::run() {
  std::array<epoll_event, 64> events;
  double next = now_seconds();
  while (!stop_) {
    const double now = now_seconds();
    if (now >= next) {
      next = now + limits_.tick_seconds;
      lines_left_ = std::min(20.0, lines_left_ + 2 * limits_.tick_seconds);
      drop_late();
      events_.on_tick(now);
    }
    const int wait = static_cast<int>((next - now_seconds()) * 1e3) + 1;
    const int n = ::epoll_wait(epoll_.fd(), events.data(), events.size(),
                               std::clamp(wait, 0, 1000));
    const Socket* full[64];
    int count = 0;
    for (int i = 0; i < n; ++i) {
      const void* tag = events[i].data.ptr;
      const auto* socket = static_cast<const Socket*>(tag);
      if (tag == &wake_) continue;
      if (tag == &local_ || is_one_of(tcp_, tag)) {
        full[count++] = socket;
        continue;
      }
      auto* guest = static_cast<Guest*>(events[i].data.ptr);
      if (serve(*guest)) continue;
      guests_.remove_if([&](const Guest& g) { return &g == guest; });
      // Later entries in `events` are others: one event per descriptor.
    }
    // Last: guests go to make room.
    for (int i = 0; i < count; ++i) {
      take(full[i]->fd(), full[i] == &local_ ? Route::kUnix : Route::kTcp);
    }
  }
}

void Listener::take(int listening, Route route) {
  for (int i = 0; i < 256; ++i) {
    Socket s(
        ::accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!s) {
      if (errno == EMFILE || errno == ENFILE) {
        log("no file descriptor is left for a connection; raise ulimit -n");
        ::usleep(1000);  // the socket stays ready: do not spin
      }
      return;
    }
    if (route == Route::kTcp) {
      const int one = 1;
      ::setsockopt(s.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    guests_.push_back({std::move(s), route, Handshake(gate_), "",
                       after(limits_.hello_seconds)});
    watch(epoll_.fd(), guests_.back().socket.fd(), &guests_.back());
    if (!serve(guests_.back())) {  // a member has sent its hello already
      guests_.pop_back();
      continue;
    }
    if (static_cast<int>(guests_.size()) <= limits_.waiting) continue;
    const auto silent =
        std::find_if(guests_.begin(), guests_.end(),
                     [](const Guest& g) { return !g.handshake.introduced(); });
    drop(silent == guests_.end() ? guests_.begin() : silent,
         "too many connections wait to prove themselves");
  }
}

bool Listener::serve(Guest& guest) {
  for (;;) {
    std::array<char, kMostHelloBytes> buffer;
    const size_t wanted = guest.handshake.wanted() - guest.got.size();
    const ssize_t n = ::recv(guest.socket.fd(), buffer.data(), wanted, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
      // A mere port check is not logged.
      if (!guest.got.empty() || guest.handshake.introduced()) {
        turn_away(guest, "it ended before it had proved itself");
      }
      return false;
    }
    guest.got.append(buffer.data(), static_cast<size_t>(n));
    // Four bytes expose a stranger, which might never send more.
    const size_t seen = std::min(guest.got.size(), kMagic.size());
    if (!guest.handshake.introduced() &&
        guest.handshake.wanted() == kMagic.size() + 4 &&
        guest.got.compare(0, seen, kMagic, 0, seen) != 0) {
      turn_away(guest, "its first bytes are not Berth's");
      return false;
    }
    if (guest.got.size() < guest.handshake.wanted()) continue;
    std::string answer;
    const std::string got = std::exchange(guest.got, "");
    const Handshake::State state = guest.handshake.take(got, &answer);
    if (!answer.empty()) {
      // A few bytes always fit into a new socket's buffer.
      ::send(guest.socket.fd(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    if (state == Handshake::State::kReading) continue;
    if (state == Handshake::State::kRefused) {
      turn_away(guest, guest.handshake.reason());
      return false;
    }
    ::epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, guest.socket.fd(), nullptr);
    const int fd = guest.socket.fd();
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    events_.on_admitted(std::move(guest.socket), guest.handshake.hello(),
                        guest.route);
    return false;
  }
}

void Listener::turn_away(Guest& guest, const std::string& reason) {
  if (reason.starts_with("not yet")) return;  // it will retry
  const std::string who = peer_name(guest.socket.fd());
  if (guest.handshake.introduced()) {
    const TaskId& from = guest.handshake.hello().from;
    log(fmt::format("a connection of {} from {} is refused: {}", from.str(),
                    who, reason));
    events_.on_refused(from, reason);
  } else {
    log(fmt::format("a connection from {} is closed: {}", who, reason));
  }
}

void Listener::drop(std::list<Guest>::iterator guest, const char* why) {
  turn_away(*guest, why);
  guests_.erase(guest);
}

void Listener::drop_late() {
  const Deadline now = Clock::now();
  while (!guests_.empty() && guests_.front().deadline < now) {
    drop(guests_.begin(), "it did not prove itself in time");
  }
}

void Listener::log(const std::string& line) {
  if (lines_left_ < 1) {
    ++lines_lost_;
    return;
  }
  --lines_left_;
  const int lost = std::exchange(lines_lost_, 0);
  std::fprintf(
      stderr, "berth: %s: %s%s\n", gate_.self.str().c_str(), line.c_str(),
      lost ? fmt::format(" (and {} more such lines)", lost).c_str() : "");
}

}  // namespace berth::rpc
