// LoopbackServer: a small HTTP server on 127.0.0.1 that misbehaves on demand.
//
// For tests. One thread accepts and answers one connection after another, so
// behaviours may keep state without locks; stop() (and the destructor) ends
// whatever an answer waits for.

#ifndef BERTH_IO_LOOPBACK_SERVER_TESTING_H_
#define BERTH_IO_LOOPBACK_SERVER_TESTING_H_

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace berth::io::testing {

struct HttpRequest {
  std::string path;
  int64_t range_start = -1;  // -1: no Range header
};

class LoopbackServer;

// One accepted connection; an answer writes to it and returns.
class ServedClient {
 public:
  ServedClient(int fd, const std::atomic<bool>& stopping)
      : fd_(fd), stopping_(stopping) {}

  // Returns false when the client has hung up.
  bool send_text(const std::string& text) {
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t count =
          send(fd_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return false;
      done += static_cast<size_t>(count);
    }
    return true;
  }

  // Sends a status line, Content-Length `length` (none if negative) and
  // `body`, which may be shorter.
  void answer(const std::string& status, const std::string& body,
              int64_t length, const std::string& more_headers = "") {
    std::string head = "HTTP/1.1 " + status + "\r\nConnection: close\r\n";
    if (length >= 0) {
      head += "Content-Length: " + std::to_string(length) + "\r\n";
    }
    send_text(head + more_headers + "\r\n" + body);
  }

  // Serves `file` as a good server does, Range included.
  void serve(const HttpRequest& request, const std::string& file) {
    const int64_t size = static_cast<int64_t>(file.size());
    const int64_t start = request.range_start;
    if (start < 0) return answer("200 OK", file, size);
    if (start >= size) return answer("416 Range Not Satisfiable", "", 0);
    answer("206 Partial Content", file.substr(static_cast<size_t>(start)),
           size - start, content_range(start, size));
  }

  static std::string content_range(int64_t start, int64_t size) {
    return "Content-Range: bytes " + std::to_string(start) + "-" +
           std::to_string(size - 1) + "/" + std::to_string(size) + "\r\n";
  }

  // Waits until the client hangs up or the server stops.
  void stall() {
    while (!stopping_) {
      pollfd waiting{fd_, POLLIN | POLLRDHUP, 0};
      if (poll(&waiting, 1, 10) > 0) return;
    }
  }

  // Makes close() send a reset instead of an orderly end.
  void reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }

 private:
  int fd_;
  const std::atomic<bool>& stopping_;
};

class LoopbackServer {
 public:
  using Answer = std::function<void(ServedClient&, const HttpRequest&)>;

  explicit LoopbackServer(Answer answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, raw, size) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, raw, &size) != 0) {
      throw std::runtime_error("no loopback socket");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { loop(); });
  }
  ~LoopbackServer() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) close(listener_);
    listener_ = -1;
  }

  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  int requests() const { return requests_; }

 private:
  void loop() {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (poll(&waiting, 1, 10) <= 0) continue;
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      HttpRequest request;
      if (read_request(fd, &request)) {
        ++requests_;
        ServedClient connection(fd, stopping_);
        answer_(connection, request);
      }
      close(fd);
    }
  }

  bool read_request(int fd, HttpRequest* request) {
    std::string text;
    char buffer[4096];
    while (text.find("\r\n\r\n") == std::string::npos) {
      pollfd waiting{fd, POLLIN, 0};
      if (stopping_) return false;
      if (poll(&waiting, 1, 10) <= 0) continue;
      const ssize_t count = recv(fd, buffer, sizeof(buffer), 0);
      if (count <= 0) return false;
      text.append(buffer, static_cast<size_t>(count));
    }
    const size_t from = text.find(' ') + 1;
    request->path = text.substr(from, text.find(' ', from) - from);
    const size_t range = text.find("\r\nRange: bytes=");
    if (range != std::string::npos) {
      request->range_start = std::stoll(text.substr(range + 15));
    }
    return true;
  }

  Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

}  // namespace berth::io::testing

#endif  // BERTH_IO_LOOPBACK_SERVER_TESTING_H_
