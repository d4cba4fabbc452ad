#include "base/free_ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "berth/errors.h"

namespace berth {

namespace {

constexpr int kFirst = 10240;
constexpr int kTries = 1000;

// The first port that the kernel gives to outgoing connections.
int first_of_kernel() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first > 0 ? first : 32768;
}

// The sockets that hold the ports until all are chosen.
struct Held {
  std::vector<int> sockets;
  ~Held() {
    for (const int s : sockets) close(s);
  }
  // The port bound, 0: any; -1 and errno if it cannot be.
  int bind_to(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof to;
    auto* address = reinterpret_cast<sockaddr*>(&to);
    if (bind(fd, address, size) != 0 || getsockname(fd, address, &size) != 0) {
      const int error = errno;
      close(fd);
      errno = error;
      return -1;
    }
    sockets.push_back(fd);
    return ntohs(to.sin_port);
  }
};

}  // namespace

std::vector<int> free_ports(int count) {
  const int end = first_of_kernel();
  std::random_device random;
  Held held;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    int port = -1;
    for (int tries = 0; tries < kTries && port < 0 && end > kFirst; ++tries) {
      port = held.bind_to(kFirst + static_cast<int>(random() % (end - kFirst)));
    }
    if (port < 0) port = held.bind_to(0);
    if (port < 0) {
      throw errors::ResourceExhausted(
          fmt::format("no free port of 127.0.0.1 for task {} of {}: {}", i + 1,
                      count, std::strerror(errno)));
    }
    ports.push_back(port);
  }
  return ports;
}

std::vector<std::string> free_addresses(int count) {
  std::vector<std::string> addresses;
  for (const int port : free_ports(count)) {
    addresses.push_back(fmt::format("127.0.0.1:{}", port));
  }
  return addresses;
}

}  // namespace berth
