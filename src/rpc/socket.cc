#include "rpc/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "base/live_counts.h"
#include "berth/errors.h"
#include "rpc/socket_set.h"

namespace berth::rpc {

Deadline after(double seconds) {
  if (!(seconds < 3e9)) return Deadline::max();
  return Clock::now() +
         std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6));
}

double seconds_until(Deadline deadline) {
  if (deadline == Deadline::max()) return INFINITY;
  return std::chrono::duration<double>(deadline - Clock::now()).count();
}

void Socket::close() {
  if (fd_ < 0) return;
  const int fd = std::exchange(fd_, -1);
  if (set_) {
    set_->close(fd);
    set_.reset();
  } else {
    ::close(fd);
  }
}

void Socket::shutdown() const {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

void Socket::enter(std::shared_ptr<SocketSet> set) {
  set->add(fd_);
  set_ = std::move(set);
}

namespace {

std::string text_of(int error) {
  if (error == ECONNRESET || error == EPIPE) return "connection reset by peer";
  if (error == ECONNREFUSED) return "connection refused";
  if (error == ETIMEDOUT) return "connection timed out";
  if (error == EHOSTUNREACH || error == ENETUNREACH) return "no route to it";
  char buffer[128];
  return strerror_r(error, buffer, sizeof(buffer));
}

// Waits for `events`; returns false at the deadline.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    int timeout = -1;
    if (deadline != Deadline::max()) {
      const double left = seconds_until(deadline);
      if (left <= 0) return false;
      timeout = static_cast<int>(std::min(left * 1e3 + 1, 1e9));
    }
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, timeout);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the call reports the error
  }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const Endpoint& endpoint, bool passive, std::string* why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  if (passive) hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(endpoint.host.c_str(),
                    std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0 && why) {
    *why = fmt::format("the name {} does not resolve ({})", endpoint.host,
                       ::gai_strerror(error));
  }
  return Addresses(error == 0 ? found : nullptr, &::freeaddrinfo);
}

bool is_loopback_address(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
  }
  if (address->sa_family == AF_INET6) {
    const auto* in = reinterpret_cast<const sockaddr_in6*>(address);
    return IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
  }
  return false;
}

void without_delay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

// Connects a non-blocking socket; returns 0 or the error.
int connect_within(int fd, const sockaddr* address, socklen_t length,
                   Deadline deadline) {
  if (::connect(fd, address, length) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(fd, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

sockaddr_un unix_address(const std::string& name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t n = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), n);
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return address;
}

std::string text_of(const sockaddr_storage& address, socklen_t length,
                    bool with_port) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (address.ss_family == AF_UNIX) return "a Unix socket";
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host,
                    sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  std::string name = host;
  if (name.starts_with("::ffff:")) name = name.substr(7);
  if (name.find(':') != std::string::npos) name = "[" + name + "]";
  return with_port ? name + ":" + port : name;
}

}  // namespace

std::string read_all(int fd, void* data, size_t bytes, Deadline deadline) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    if (deadline != Deadline::max() && !wait_for(fd, POLLIN, deadline)) {
      return "timed out";
    }
    const ssize_t n = ::recv(fd, to, bytes, 0);
    if (n == 0) return "connection closed";
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(fd, POLLIN, deadline)) return "timed out";
      continue;
    }
    if (n < 0) return text_of(errno);
    live_counts::add_received(n);
    to += n;
    bytes -= static_cast<size_t>(n);
  }
  return "";
}

std::string write_all(int fd, std::span<const iovec> parts, Deadline deadline) {
  std::vector<iovec> left(parts.begin(), parts.end());
  size_t at = 0;
  while (at < left.size()) {
    if (left[at].iov_len == 0) {
      ++at;
      continue;
    }
    msghdr message{};
    message.msg_iov = &left[at];
    message.msg_iovlen = std::min<size_t>(left.size() - at, 256);
    const bool wait = deadline == Deadline::max();
    ssize_t n =
        ::sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(fd, POLLOUT, deadline)) return "timed out";
      continue;
    }
    if (n < 0) return text_of(errno);
    live_counts::add_sent(n);
    while (n > 0) {
      const size_t used = std::min(left[at].iov_len, static_cast<size_t>(n));
      left[at].iov_base = static_cast<char*>(left[at].iov_base) + used;
      left[at].iov_len -= used;
      n -= static_cast<ssize_t>(used);
      if (left[at].iov_len == 0) ++at;
    }
  }
  return "";
}

std::string write_all(int fd, const void* data, size_t bytes,
                      Deadline deadline) {
  const iovec part{const_cast<void*>(data), bytes};
  return write_all(fd, std::span(&part, 1), deadline);
}

Endpoint parse_endpoint(const std::string& address) {
  Endpoint e;
  const size_t colon = address.rfind(':');
  const std::string port =
      colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (digits) {
    e.port = std::stoi(port);
    e.host = address.substr(0, colon);
    if (e.host.starts_with('[') && e.host.ends_with(']')) {
      e.host = e.host.substr(1, e.host.size() - 2);
    }
  }
  if (!digits || e.host.empty() || e.port > 65535) {
    throw errors::InvalidArgument(fmt::format(
        "'{}' is no address of a task; expected host:port or [ipv6]:port",
        address));
  }
  return e;
}

bool is_loopback(const Endpoint& endpoint, std::string* why) {
  const Addresses found = resolve(endpoint, false, why);
  if (!found) return false;
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    if (!is_loopback_address(a->ai_addr)) return false;
  }
  return true;
}

Socket connect_tcp(const Endpoint& endpoint, Deadline deadline,
                   std::string* why) {
  const Addresses found = resolve(endpoint, false, why);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    Socket s(
        ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!s) {
      *why = text_of(errno);
      continue;
    }
    const int error =
        connect_within(s.fd(), a->ai_addr, a->ai_addrlen, deadline);
    if (error != 0) {
      *why = text_of(error);
      continue;
    }
    ::fcntl(s.fd(), F_SETFL, ::fcntl(s.fd(), F_GETFL) & ~O_NONBLOCK);
    without_delay(s.fd());
    // An unused port may connect to itself.
    if (peer_name(s.fd()) != own_name(s.fd())) return s;
    *why = "connection refused";
  }
  return {};
}

Socket connect_unix(const std::string& name, std::string* why) {
  Socket s(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length;
  const sockaddr_un address = unix_address(name, &length);
  if (s && ::connect(s.fd(), reinterpret_cast<const sockaddr*>(&address),
                     length) == 0) {
    return s;
  }
  *why = text_of(errno);
  return {};
}

namespace {

// Listens on one address; on failure, returns an empty socket and sets errno.
Socket listen_on(const sockaddr* address, socklen_t length, bool v4_too) {
  Socket s(::socket(address->sa_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s) return {};
  const int one = 1, zero = 0;
  // Allows ports of closed connections; a second listener is still refused.
  ::setsockopt(s.fd(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (v4_too) {
    ::setsockopt(s.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
  }
  if (::bind(s.fd(), address, length) != 0 || ::listen(s.fd(), 4096) != 0) {
    const int error = errno;
    s.close();
    errno = error;
  }
  return s;
}

}  // namespace

bool is_here(const Endpoint& endpoint) {
  const Addresses found = resolve(endpoint, true, nullptr);
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    sockaddr_storage any_port{};
    std::memcpy(&any_port, a->ai_addr, a->ai_addrlen);
    reinterpret_cast<sockaddr_in*>(&any_port)->sin_port = 0;  // IPv6: as well
    const Socket s(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (s && ::bind(s.fd(), reinterpret_cast<sockaddr*>(&any_port),
                    a->ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

std::vector<Socket> listen_tcp(const Endpoint& endpoint, bool all_interfaces) {
  std::vector<Socket> all;
  errno = EADDRNOTAVAIL;
  const auto listen = [&](const void* address, socklen_t length, bool v4_too) {
    Socket s = listen_on(static_cast<const sockaddr*>(address), length, v4_too);
    if (!s && errno == EADDRINUSE) {
      throw errors::AlreadyExists(fmt::format(
          "the port of {}:{} is in use: another process of this machine "
          "listens there; end it, or give this task another port in TF_CONFIG",
          endpoint.host, endpoint.port));
    }
    if (s) all.push_back(std::move(s));
  };
  if (all_interfaces) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_any;
    six.sin6_port = htons(static_cast<uint16_t>(endpoint.port));
    listen(&six, sizeof(six), true);
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port;
    if (all.empty()) listen(&four, sizeof(four), false);
  } else {
    std::string why;
    const Addresses found = resolve(endpoint, true, &why);
    if (!found) throw errors::InvalidArgument(why);
    for (const addrinfo* a = found.get(); a; a = a->ai_next) {
      listen(a->ai_addr, a->ai_addrlen, false);
    }
  }
  if (!all.empty()) return all;
  throw errors::InvalidArgument(fmt::format("cannot listen on {}:{}: {}",
                                            endpoint.host, endpoint.port,
                                            text_of(errno)));
}

Socket listen_unix(const std::string& name) {
  socklen_t length;
  const sockaddr_un address = unix_address(name, &length);
  return listen_on(reinterpret_cast<const sockaddr*>(&address), length, false);
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  }
  return 0;
}

std::string peer_name(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return "?";
  }
  return text_of(address, length, true);
}

std::string own_name(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return "??";
  }
  return text_of(address, length, true);
}

std::string own_host(int fd) {
  const std::string name = own_name(fd);
  return name.substr(0, name.rfind(':'));
}

std::string host_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  char link[64] = {};
  const ssize_t n = ::readlink("/proc/self/ns/net", link, sizeof(link) - 1);
  id += " " + std::string(link, n > 0 ? static_cast<size_t>(n) : 0);
  uint64_t h = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : id) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", h);
}

}  // namespace berth::rpc
