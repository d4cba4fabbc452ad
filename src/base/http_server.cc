#include "base/http_server.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <list>
#include <string_view>
#include <thread>
#include <vector>

#include "berth/errors.h"

namespace berth {

namespace {

using Clock = std::chrono::steady_clock;

// What a request's bytes say so far.
struct HttpRequest {
  int status = 0;  // 0: more bytes are needed; 200: well-formed; else an error
  bool head = false;
  std::string path = {};  // without "?..."
};

HttpRequest parse_http(std::string_view bytes, size_t most) {
  const size_t line_end = bytes.find("\r\n");
  // A method is decided early: a stranger might never send more.
  const std::string_view seen = bytes.substr(0, std::min<size_t>(16, line_end));
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (!std::all_of(seen.begin(), std::find(seen.begin(), seen.end(), ' '),
                   is_capital)) {
    return {.status = 400};
  }
  if (bytes.find("\r\n\r\n") == std::string_view::npos) {
    return {.status = bytes.size() > most ? 431 : 0};
  }
  const std::string_view line = bytes.substr(0, line_end);
  const size_t a = line.find(' '), b = line.rfind(' ');
  if (a == std::string_view::npos || a == b || a == 0) return {.status = 400};
  const std::string_view method = line.substr(0, a);
  const std::string_view target = line.substr(a + 1, b - a - 1);
  const std::string_view version = line.substr(b + 1);
  const bool plain = std::all_of(target.begin(), target.end(),
                                 [](char c) { return c > ' ' && c < 127; });
  if (!target.starts_with('/') || !plain ||
      (version != "HTTP/1.1" && version != "HTTP/1.0")) {
    return {.status = 400};
  }
  if (method != "GET" && method != "HEAD") return {.status = 405};
  return {.status = 200,
          .head = method == "HEAD",
          .path = std::string(target.substr(0, target.find('?')))};
}

std::string answer_to(const HttpRequest& request, const HttpHandler& handler) {
  HttpAnswer a{request.status, "expected GET or HEAD of a path, HTTP/1.1\n"};
  if (request.status == 200) {
    try {
      a = handler(request.path);
    } catch (...) {
      a = {500, "no answer can be made now\n"};
    }
  }
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Allow: GET, HEAD\r\nCache-Control: no-store\r\nConnection: close\r\n"
      "\r\n{}",
      a.status, a.status == 200 ? "OK" : "Not OK", a.type, a.body.size(),
      request.head ? "" : a.body);
}

class Connections {
 public:
  Connections(int listening, HttpHandler handler, HttpLimits limits)
      : listening_(listening), handler_(std::move(handler)), limits_(limits) {}

  [[noreturn]] void run() {
    std::vector<pollfd> polled;
    for (;;) {
      polled.assign(1, {listening_, POLLIN, 0});
      for (const Guest& g : guests_) {
        const short wanted = g.sent < g.answer.size() ? POLLOUT : POLLIN;
        polled.push_back({g.fd, wanted, 0});
      }
      // With guests it looks at deadlines now and then.
      poll(polled.data(), polled.size(), guests_.empty() ? -1 : 100);
      size_t i = 1;
      guests_.remove_if([&, now = Clock::now()](Guest& g) {
        const bool moves = polled[i++].revents != 0;
        const bool stays = g.deadline > now && (!moves || serve(g));
        if (!stays) close(g.fd);
        return !stays;
      });
      if (polled[0].revents != 0) take();
    }
  }

 private:
  struct Guest {
    int fd = -1;
    Clock::time_point deadline;
    std::string got = {}, answer = {};
    size_t sent = 0, ignored = 0;
  };

  void take() {
    const int fd =
        accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    const bool no_files = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd < 0 && !no_files) return;
    if (!guests_.empty() &&
        (no_files || guests_.size() >= limits_.connections)) {
      close(guests_.front().fd);
      guests_.pop_front();
    } else if (no_files) {
      usleep(10000);  // the socket stays ready: do not spin
    }
    const std::chrono::duration<double> limit(limits_.seconds);
    if (fd < 0) return;
    guests_.push_back(
        {fd,
         Clock::now() + std::chrono::duration_cast<Clock::duration>(limit)});
  }

  // Returns false when the guest is to go.
  bool serve(Guest& g) {
    char piece[4096];
    while (g.sent == g.answer.size()) {
      const ssize_t n = recv(g.fd, piece, sizeof piece, 0);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n == 0) return false;
      if (g.sent > 0) {
        // Closing now would take the answer back: what still comes is ignored.
        g.ignored += static_cast<size_t>(n);
        if (g.ignored > (size_t{1} << 20)) return false;
        continue;
      }
      g.got.append(piece, static_cast<size_t>(n));
      const HttpRequest request = parse_http(g.got, limits_.request_bytes);
      if (request.status != 0) g.answer = answer_to(request, handler_);
    }
    while (g.sent < g.answer.size()) {
      const ssize_t n = send(g.fd, g.answer.data() + g.sent,
                             g.answer.size() - g.sent, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      g.sent += static_cast<size_t>(n);
    }
    shutdown(g.fd, SHUT_WR);
    return true;
  }

  const int listening_;
  const HttpHandler handler_;
  const HttpLimits limits_;
  std::list<Guest> guests_;  // oldest first
};

}  // namespace

int listen_http(const std::string& what, const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool everywhere = colon == std::string::npos;
  std::string host = everywhere ? "::" : address.substr(0, colon);
  const std::string digits = everywhere ? address : address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  int port = -1;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  for (;;) {
    if (read.ec != std::errc() || read.ptr != end || port < 0 || port > 65535 ||
        getaddrinfo(host.c_str(), digits.c_str(), &hints, &found) != 0) {
      throw errors::InvalidArgument(fmt::format(
          "{} is \"{:.100}\"; expected a port such as 8080, or a numeric "
          "address of this machine and a port such as 127.0.0.1:8080",
          what, address));
    }
    const int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, everywhere ? &off : &on,
               sizeof on);
    const bool listens = fd >= 0 &&
                         bind(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                         listen(fd, 128) == 0;
    const int code = errno;
    freeaddrinfo(found);
    if (listens) return fd;
    if (fd >= 0) close(fd);
    if (host != "::" || !everywhere || code == EADDRINUSE) {
      throw errors::Unavailable(
          fmt::format("{} is \"{}\": {}", what, address, std::strerror(code)));
    }
    host = "0.0.0.0";  // a machine without IPv6
  }
}

void serve_http(int listening, HttpHandler handler, HttpLimits limits) {
  // Signals go to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([=] { Connections(listening, handler, limits).run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace berth
