// SocketSet: the sockets and connections of one generation, which are shut down
// together.
// Thread-safe.

#ifndef BERTH_RPC_SOCKET_SET_H_
#define BERTH_RPC_SOCKET_SET_H_

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "rpc/connection.h"

namespace berth::rpc {

class SocketSet {
 public:
  // Shuts it down at once if the generation is over.
  void add(int fd) {
    std::lock_guard lock(mutex_);
    fds_.insert(fd);
    if (ended_) ::shutdown(fd, SHUT_RDWR);
  }
  void close(int fd) {
    std::lock_guard lock(mutex_);
    fds_.erase(fd);
    ::close(fd);
  }
  void add(const std::shared_ptr<Connection>& connection) {
    std::lock_guard lock(mutex_);
    std::erase_if(connections_, [](const auto& p) { return p.expired(); });
    connections_.push_back(connection);
    if (ended_) connection->shutdown();
  }
  void end() {
    std::vector<std::weak_ptr<Connection>> connections;
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      for (const int fd : fds_) ::shutdown(fd, SHUT_RDWR);
      connections.swap(connections_);
    }
    for (const auto& weak : connections) {
      if (const auto connection = weak.lock()) connection->shutdown();
    }
  }

 private:
  std::mutex mutex_;
  std::set<int> fds_;
  std::vector<std::weak_ptr<Connection>> connections_;
  bool ended_ = false;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_SOCKET_SET_H_
