// SocketSet: the sockets of one generation, which are shut down together.
// Thread-safe.

#ifndef BERTH_RPC_SOCKET_SET_H_
#define BERTH_RPC_SOCKET_SET_H_

#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <set>

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
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    for (const int fd : fds_) ::shutdown(fd, SHUT_RDWR);
  }

 private:
  std::mutex mutex_;
  std::set<int> fds_;
  bool ended_ = false;
};

}  // namespace berth::rpc

#endif  // BERTH_RPC_SOCKET_SET_H_
