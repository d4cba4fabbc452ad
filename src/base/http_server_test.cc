// HttpServer against clients that behave and clients that do not.

#include "base/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "berth/errors.h"

namespace berth {
namespace {

class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False once the other end has closed.
  bool send_text(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  void end_sending() const { shutdown(fd_, SHUT_WR); }
  // All until the other end closes.
  std::string read_all() const {
    std::string text;
    char piece[4096];
    for (;;) {
      const ssize_t n = recv(fd_, piece, sizeof piece, 0);
      if (n <= 0) return text;
      text.append(piece, static_cast<size_t>(n));
    }
  }

 private:
  const int fd_;
};

constexpr size_t kBig = size_t{64} << 20;  // no socket's buffers hold it

HttpAnswer echo(const std::string& path) {
  if (path == "/throw") throw 1;
  if (path == "/big") return {.body = std::string(kBig, 'x')};
  return {.status = path == "/none" ? 404 : 200, .body = "path " + path};
}

HttpLimits quick(double seconds, size_t connections = 64) {
  return {.seconds = seconds, .connections = connections};
}

int any_port() { return listen_http("TEST", "127.0.0.1:0"); }

class HttpServer {
 public:
  HttpServer(int listening, HttpHandler handler, HttpLimits limits = {})
      : listening_(listening) {
    serve_http(listening, std::move(handler), limits);
  }
  int port() const {
    sockaddr_in6 own{};
    socklen_t size = sizeof own;
    getsockname(listening_, reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin6_port);  // where sin_port is
  }

 private:
  const int listening_;
};

std::string answer(const HttpServer& server, const std::string& request) {
  const Client client(server.port());
  EXPECT_TRUE(client.send_text(request));
  return client.read_all();
}

std::string get(const HttpServer& server, const std::string& path) {
  return answer(server, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(HttpServer, AnswersGetAndHead) {
  const HttpServer server(any_port(), echo);
  const std::string text = get(server, "/a?b=c");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
  EXPECT_TRUE(text.ends_with("\r\n\r\npath /a")) << text;
  EXPECT_NE(text.find("\r\nContent-Length: 7\r\n"), std::string::npos);
  EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos);
  const std::string head = answer(server, "HEAD /a HTTP/1.0\r\n\r\n");
  EXPECT_NE(head.find("\r\nContent-Length: 7\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  EXPECT_TRUE(get(server, "/none").starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(get(server, "/throw").starts_with("HTTP/1.1 500 "));
  EXPECT_GT(get(server, "/big").size(), kBig);
}

TEST(HttpServer, RefusesAllElse) {
  const HttpServer server(any_port(), echo);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"},
      {"DELETE / HTTP/1.1\r\n\r\n", "405"},
      {"GET / HTTP/2.0\r\n\r\n", "400"},
      {"GET /\r\n\r\n", "400"},
      {"GET  HTTP/1.1\r\n\r\n", "400"},
      {"GET http://x/ HTTP/1.1\r\n\r\n", "400"},
      {"GET /a b HTTP/1.1\r\n\r\n", "400"},
      {"GET /\x01 HTTP/1.1\r\n\r\n", "400"},
      {"get / HTTP/1.1\r\n\r\n", "400"},
      {"\r\n\r\n", "400"},
      {"\x16\x03\x01\x02", "400"},  // TLS
      {"BERTHLNK\x01", "400"},
      {"GET / HTTP/1.1\r\nX: " + std::string(9000, 'x'), "431"}};
  for (const auto& [request, status] : cases) {
    const std::string text = answer(server, request);
    EXPECT_TRUE(text.starts_with("HTTP/1.1 " + status + " "))
        << request.substr(0, 40) << " -> " << text;
  }
}

TEST(HttpServer, AGiantRequestIsCutOff) {
  const HttpServer server(any_port(), echo, quick(600));
  const Client client(server.port());
  const std::string piece(1 << 20, 'X');
  int sent = 0;
  while (sent < 64 && client.send_text(piece)) ++sent;
  EXPECT_LT(sent, 64);
  EXPECT_TRUE(get(server, "/a").ends_with("path /a"));
}

TEST(HttpServer, ASlowOneIsClosedAtItsDeadline) {
  const HttpServer server(any_port(), echo, quick(0.2));
  const Client silent(server.port()), half(server.port()), slow(server.port());
  ASSERT_TRUE(half.send_text("GET /a HT"));
  while (slow.send_text("A")) usleep(5000);  // a byte now and then
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_EQ(half.read_all(), "");
  EXPECT_TRUE(get(server, "/a").ends_with("path /a"));
}

TEST(HttpServer, OneThatDoesNotReadIsClosedAtItsDeadline) {
  const HttpServer server(any_port(), echo, quick(0.2));
  const Client client(server.port());
  ASSERT_TRUE(client.send_text("GET /big HTTP/1.1\r\n\r\n"));
  // The deadline of one that comes later is later.
  EXPECT_EQ(Client(server.port()).read_all(), "");
  EXPECT_LT(client.read_all().size(), kBig);
}

TEST(HttpServer, AHalfOpenOneIsAnswered) {
  const HttpServer server(any_port(), echo);
  const Client asked(server.port()), silent(server.port());
  ASSERT_TRUE(asked.send_text("GET /a HTTP/1.1\r\n\r\n"));
  asked.end_sending();
  silent.end_sending();
  EXPECT_TRUE(asked.read_all().ends_with("path /a"));
  EXPECT_EQ(silent.read_all(), "");
}

TEST(HttpServer, TwoHundredSilentOnesDoNotKeepAProbeOut) {
  const HttpServer server(any_port(), echo, quick(600, 16));
  std::vector<std::unique_ptr<Client>> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(std::make_unique<Client>(server.port()));
    strangers.back()->send_text("GET /");
  }
  EXPECT_TRUE(get(server, "/a").ends_with("path /a"));
  // The oldest went first.
  EXPECT_EQ(strangers[0]->read_all(), "");
  EXPECT_TRUE(strangers[199]->send_text("b HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(strangers[199]->read_all().ends_with("path /b"));
}

TEST(HttpServer, AddressesAreChecked) {
  for (const char* address : {"", "x", "-1", "65536", "80x", ":80", "a:80",
                              "1.2.3:x", "[::1]", "localhost:80", "8080 "}) {
    try {
      close(listen_http("BERTH_HTTP_PORT", address));
      ADD_FAILURE() << address;
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find("BERTH_HTTP_PORT is \""),
                std::string::npos)
          << e.what();
    }
  }
  const HttpServer server(listen_http("TEST", "0"), echo);
  EXPECT_TRUE(get(server, "/a").ends_with("path /a"));
  EXPECT_THROW(
      listen_http("TEST", "127.0.0.1:" + std::to_string(server.port())),
      errors::Unavailable);
}

}  // namespace
}  // namespace berth
