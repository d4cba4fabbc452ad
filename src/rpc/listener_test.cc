// The listener admits authenticated connections and turns others away.

#include "rpc/listener.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <mutex>

namespace berth::rpc {
namespace {

// A listener on a free port that records the tasks it admitted.
class Door {
 public:
  explicit Door(Listener::Limits limits)
      : gate_{"s", 7, "build", {"worker", 0}, [](const Hello&) {
                return std::nullopt;
              }} {
    std::vector<Socket> tcp = listen_tcp({"127.0.0.1", 0}, false);
    port_ = port_of(tcp[0].fd());
    listener_ = std::make_unique<Listener>(
        std::move(tcp), Socket(), gate_, limits,
        Listener::Events{[this](Socket s, const Hello&, Route) {
                           std::lock_guard lock(mutex_);
                           admitted_.push_back(std::move(s));
                           changed_.notify_all();
                         },
                         [](const TaskId&, const std::string&) {},
                         [](double) {}});
  }
  Socket connect() const {
    std::string why;
    return connect_tcp({"127.0.0.1", port_}, after(10), &why);
  }
  // A member connects; returns "" or what went wrong.
  std::string enter(Socket& s, const std::string& secret) const {
    Hello h;
    h.cluster = 7;
    h.build = "build";
    h.from = {"worker", 1};
    h.to = {"worker", 0};
    h.nonce = random_nonce();
    std::string broken;
    const auto refusal = introduce(s.fd(), h, secret, after(10), &broken);
    return refusal ? refusal->reason : broken;
  }
  Socket admitted() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !admitted_.empty(); });
    Socket s = std::move(admitted_.front());
    admitted_.pop_front();
    return s;
  }

 private:
  Handshake::Gate gate_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Socket> admitted_;
  std::unique_ptr<Listener> listener_;
};

bool is_closed(const Socket& s) {
  char c;
  return read_all(s.fd(), &c, 1, after(10)) != "timed out";
}

TEST(Listener, ReadsNothingBehindTheProof) {
  Door door({});
  Socket s = door.connect();
  ASSERT_EQ(door.enter(s, "s"), "");
  write_all(s.fd(), "for gRPC", 8);
  const Socket other = door.admitted();
  char bytes[8];
  ASSERT_EQ(read_all(other.fd(), bytes, 8, after(10)), "");
  EXPECT_EQ(std::string(bytes, 8), "for gRPC");
}

TEST(Listener, TakesMembersWhileStrangersFloodIt) {
  Door door({.hello_seconds = 60, .waiting = 8});
  std::deque<Socket> strangers;
  for (int i = 0; i < 30; ++i) strangers.push_back(door.connect());
  Socket s = door.connect();
  EXPECT_EQ(door.enter(s, "s"), "");
  // All but the last are closed.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_closed(strangers[i])) << i;
  Socket wrong = door.connect();
  EXPECT_NE(door.enter(wrong, "t").find("the secrets differ"),
            std::string::npos);
}

TEST(Listener, KeepsWhoSaidHelloWhenItMakesRoom) {
  Door door({.hello_seconds = 60, .waiting = 8});
  const Socket member = door.connect();
  Hello h;
  h.cluster = 7;
  h.build = "build";
  h.from = {"worker", 1};
  h.to = {"worker", 0};
  const std::string bytes = encode(h);
  std::string hello(kMagic);
  hello += {static_cast<char>(bytes.size()), 0, 0, 0};
  hello += bytes;
  write_all(member.fd(), hello.data(), hello.size());
  std::deque<Socket> strangers;
  for (int i = 0; i < 30; ++i) strangers.push_back(door.connect());
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(is_closed(strangers[i])) << i;
  char challenge;
  EXPECT_EQ(read_all(member.fd(), &challenge, 1, after(10)), "");
  pollfd p{member.fd(), POLLRDHUP, 0};
  EXPECT_EQ(poll(&p, 1, 0), 0);
}

TEST(Listener, ClosesWhoDoesNotProveItselfInTime) {
  Door door({.hello_seconds = 0.05});
  const Socket silent = door.connect();
  const Socket half = door.connect();
  write_all(half.fd(), "BERTH", 5);
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(half));
}

TEST(Sockets, AddressesAreReadAndJudged) {
  EXPECT_EQ(parse_endpoint("[::1]:80").host, "::1");
  EXPECT_EQ(parse_endpoint("a.b:65535").port, 65535);
  for (const char* wrong : {"a", "a:", ":1", "a:65536", "a:b", "a:-1", ""}) {
    EXPECT_THROW(parse_endpoint(wrong), errors::InvalidArgument) << wrong;
  }
  EXPECT_TRUE(is_loopback({"127.0.0.1", 1}));
  EXPECT_TRUE(is_loopback({"::1", 1}));
  EXPECT_FALSE(is_loopback({"192.0.2.1", 1}));
  std::string why;
  EXPECT_FALSE(is_loopback({"no.such.name.invalid", 1}, &why));
  EXPECT_NE(why, "");
}

TEST(Sockets, APortIsNotServedTwice) {
  for (const bool all : {false, true}) {
    const auto first = listen_tcp({"127.0.0.1", 0}, all);
    const int port = port_of(first[0].fd());
    EXPECT_THROW(listen_tcp({"127.0.0.1", port}, all), errors::AlreadyExists);
    EXPECT_THROW(listen_tcp({"127.0.0.1", port}, !all), errors::AlreadyExists);
  }
  EXPECT_THROW(listen_tcp({"192.0.2.1", 0}, false), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::rpc
