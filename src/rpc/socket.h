// Socket: an owned file descriptor, addresses, and complete reads and writes
// with deadlines. Distinct sockets may be used by distinct threads; one thread
// may read while another writes.

#ifndef BERTH_RPC_SOCKET_H_
#define BERTH_RPC_SOCKET_H_

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace berth::rpc {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// `seconds` from now; never if that is over a century.
Deadline after(double seconds);
double seconds_until(Deadline deadline);

class SocketSet;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& o) noexcept
      : fd_(std::exchange(o.fd_, -1)), set_(std::move(o.set_)) {}
  Socket& operator=(Socket&& o) noexcept {
    std::swap(fd_, o.fd_);
    std::swap(set_, o.set_);
    return *this;
  }
  ~Socket() { close(); }

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Releases ownership; only for a socket that is in no set.
  int release() { return std::exchange(fd_, -1); }
  void close();
  // Both ends stop reading and writing; the descriptor stays open. Any thread.
  void shutdown() const;
  // From now on it is shut down with the other sockets of `set`.
  void enter(std::shared_ptr<SocketSet> set);

 private:
  int fd_ = -1;
  std::shared_ptr<SocketSet> set_;
};

// Reads or writes all bytes; returns "" or what went wrong: "connection
// closed", "connection reset by peer", "timed out". Never raises SIGPIPE.
std::string read_all(int fd, void* data, size_t bytes,
                     Deadline deadline = Deadline::max());
std::string write_all(int fd, std::span<const iovec> parts,
                      Deadline deadline = Deadline::max());
std::string write_all(int fd, const void* data, size_t bytes,
                      Deadline deadline = Deadline::max());

// "host:port", "[ipv6]:port". Throws errors::InvalidArgument.
struct Endpoint {
  std::string host;
  int port = 0;
};
Endpoint parse_endpoint(const std::string& address);

// Returns true if all addresses of the name belong to this machine only
// (127.0.0.0/8, ::1). `why`: set if the name does not resolve.
bool is_loopback(const Endpoint& endpoint, std::string* why = nullptr);

// Connects within the deadline, trying every address of the name; on failure
// returns an empty socket and sets `why`: "name does not resolve (...)",
// "connection refused". Close-on-exec, without Nagle's delay, blocking.
Socket connect_tcp(const Endpoint& endpoint, Deadline deadline,
                   std::string* why);
// An abstract Unix socket of this network namespace.
Socket connect_unix(const std::string& name, std::string* why);

// Returns true if an address of the name belongs to this machine.
bool is_here(const Endpoint& endpoint);

// Listens on the port (0: any free one) of all interfaces, or of those
// addresses of the host that are this machine's: one socket each. Throws
// errors::AlreadyExists if the port is in use, errors::InvalidArgument for a
// host that is not here.
std::vector<Socket> listen_tcp(const Endpoint& endpoint, bool all_interfaces);
Socket listen_unix(const std::string& name);
int port_of(int fd);
// Names the other end: "127.0.0.1:43210", "unix", "?".
std::string peer_name(int fd);
std::string own_name(int fd);
std::string own_host(int fd);  // without the port

// Equal for processes that share memory files and Unix sockets.
std::string host_id();

}  // namespace berth::rpc

#endif  // BERTH_RPC_SOCKET_H_
