#include "rpc/grpc_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "berth/errors.h"

namespace berth::rpc {

namespace {

constexpr size_t kTunnelPiece = 512 << 10;

void pump_in(GrpcConnection& connection, const Socket& inner) {
  while (const auto bytes = connection.next()) {
    if (!write_all(inner.fd(), bytes->parts).empty()) break;
  }
  inner.shutdown();
  connection.close(true);
}

void pump_out(GrpcConnection& connection, const Socket& inner) {
  std::shared_ptr<char[]> piece;
  for (;;) {
    if (!piece) piece = std::shared_ptr<char[]>(new char[kTunnelPiece]);
    const ssize_t n = ::recv(inner.fd(), piece.get(), kTunnelPiece, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const auto size = static_cast<size_t>(n);
    iovec part{piece.get(), size};
    std::shared_ptr<const void> owner;
    if (size < 4096) {  // copied, so that it does not pin a large buffer
      const auto copy = std::make_shared<std::string>(piece.get(), size);
      part.iov_base = copy->data();
      owner = copy;
    } else {
      owner = std::exchange(piece, nullptr);
    }
    if (!connection.send(std::move(owner), std::span(&part, 1))) break;
  }
  connection.close(false);
}

}  // namespace

Socket socket_over(std::shared_ptr<GrpcConnection> connection,
                   Threads& threads) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    throw errors::ResourceExhausted(
        "no file descriptors are left for a stream of the cluster; raise "
        "ulimit -n");
  }
  Socket user(fds[0]);
  const auto inner = std::make_shared<Socket>(fds[1]);
  const int size = 1 << 20;
  for (const int fd : fds) {
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
  }
  threads.start([connection, inner] { pump_in(*connection, *inner); });
  threads.start([connection, inner] { pump_out(*connection, *inner); });
  return user;
}

}  // namespace berth::rpc
