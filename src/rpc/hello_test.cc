// The handshake: hello, challenge, answer, and what it refuses.

#include "rpc/hello.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "rpc/socket.h"

namespace berth::rpc {
namespace {

Handshake::Gate gate_of(std::string secret) {
  return {std::move(secret), 7, "build", {"worker", 0}, [](const Hello&) {
            return std::nullopt;
          }};
}

Hello hello_of_worker_1() {
  Hello h;
  h.cluster = 7;
  h.build = "build";
  h.generation = 3;
  h.from = {"worker", 1};
  h.to = {"worker", 0};
  h.purpose = 3;
  h.channel = "ring";
  h.nonce = random_nonce();
  return h;
}

struct Outcome {
  std::optional<Refusal> refusal;
  std::string broken;
  Handshake::State state;
  std::string reason;
};

// Runs both sides over a pair of sockets.
Outcome meet(const Hello& hello, const std::string& secret,
             const Handshake::Gate& gate) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Socket a(fds[0]), b(fds[1]);
  Outcome o;
  std::thread dialler([&] {
    o.refusal = introduce(a.fd(), hello, secret, after(10), &o.broken);
    a.close();
  });
  Handshake handshake(gate);
  o.state = Handshake::State::kReading;
  while (o.state == Handshake::State::kReading) {
    std::string bytes(handshake.wanted(), '\0'), answer;
    if (!read_all(b.fd(), bytes.data(), bytes.size(), after(10)).empty()) break;
    o.state = handshake.take(bytes, &answer);
    write_all(b.fd(), answer.data(), answer.size());
  }
  o.reason = handshake.reason();
  dialler.join();
  return o;
}

TEST(Hello, IsReadAsItWasWritten) {
  const Hello h = hello_of_worker_1();
  const Hello back = parse_hello(encode(h));
  EXPECT_EQ(back.generation, 3u);
  EXPECT_EQ(back.from, (TaskId{"worker", 1}));
  EXPECT_EQ(back.channel, "ring");
  EXPECT_EQ(back.nonce, h.nonce);
  const std::string bytes = encode(h);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THROW(parse_hello(bytes.substr(0, n)), errors::DataLoss) << n;
  }
  EXPECT_THROW(parse_hello(bytes + "x"), errors::DataLoss);
}

TEST(Hello, AdmitsWhoHasTheSecret) {
  const auto gate = gate_of("s");
  const Outcome o = meet(hello_of_worker_1(), "s", gate);
  EXPECT_EQ(o.state, Handshake::State::kAdmitted);
  EXPECT_FALSE(o.refusal);
  EXPECT_EQ(o.broken, "");
}

TEST(Hello, SaysWhyItRefuses) {
  const auto gate = gate_of("s");
  const auto reason = [&](const Hello& h, const std::string& secret) {
    const Outcome o = meet(h, secret, gate);
    EXPECT_EQ(o.state, Handshake::State::kRefused);
    EXPECT_TRUE(o.refusal && o.refusal->reason == o.reason) << o.broken;
    return o.reason;
  };
  EXPECT_NE(reason(hello_of_worker_1(), "t").find("the secrets differ"),
            std::string::npos);
  Hello h = hello_of_worker_1();
  h.cluster = 8;
  EXPECT_NE(reason(h, "s").find("hash 0000000000000008, here 00000000000000"),
            std::string::npos);
  h = hello_of_worker_1();
  h.build = "other";
  EXPECT_NE(reason(h, "s").find("(other, here build)"), std::string::npos);
  h = hello_of_worker_1();
  h.to.index = 2;
  EXPECT_NE(reason(h, "s").find("this is worker:0, not worker:2"),
            std::string::npos);
}

TEST(Hello, IsNotFooledByAListenerWithoutTheSecret) {
  // It accepts any proof and cannot make its own.
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Socket a(fds[0]), b(fds[1]);
  std::thread impostor([&] {
    Handshake::Gate gate = gate_of("guess");
    Handshake handshake(gate);
    std::string answer;
    for (int i = 0; i < 2; ++i) {
      std::string bytes(handshake.wanted(), '\0');
      read_all(b.fd(), bytes.data(), bytes.size());
      handshake.take(bytes, &answer);
    }
    const std::string proof = encode_answer(Proof{});
    const auto size = static_cast<uint32_t>(proof.size());
    answer.append(reinterpret_cast<const char*>(&size), sizeof(size));
    answer += proof;
    write_all(b.fd(), answer.data(), answer.size());
  });
  std::string broken;
  const auto refusal =
      introduce(a.fd(), hello_of_worker_1(), "s", after(10), &broken);
  impostor.join();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, errors::Code::kPermissionDenied);
}

TEST(Hello, ProofsHoldForOneNonceRoleAndHelloAlone) {
  const Nonce n = random_nonce(), m = random_nonce();
  const Proof p = prove("s", "dialler", "hello", n);
  EXPECT_TRUE(equal(p, prove("s", "dialler", "hello", n)));
  EXPECT_FALSE(equal(p, prove("s", "listener", "hello", n)));
  EXPECT_FALSE(equal(p, prove("s", "dialler", "hallo", n)));
  EXPECT_FALSE(equal(p, prove("s", "dialler", "hello", m)));
  EXPECT_FALSE(equal(p, prove("t", "dialler", "hello", n)));
}

TEST(Hello, TicketsAreRefusedLikeConnections) {
  const auto gate = gate_of("s");
  std::optional<Refusal> refusal;
  parse_ticket(encode_ticket(hello_of_worker_1(), "s"), gate, &refusal);
  EXPECT_FALSE(refusal);
  parse_ticket(encode_ticket(hello_of_worker_1(), "t"), gate, &refusal);
  EXPECT_TRUE(refusal);
  EXPECT_THROW(parse_ticket("short", gate, &refusal), errors::DataLoss);
}

TEST(Hello, ClosesOnGarbageAndHugeLengths) {
  const auto gate = gate_of("s");
  for (const std::string& first : {std::string("GET / HTTP/1"),
                                   std::string("BERTHLNK\xff\xff\xff\xff", 12),
                                   std::string("BERTHLNK\0\0\0\0", 12)}) {
    Handshake h(gate);
    std::string answer;
    EXPECT_EQ(h.take(first, &answer), Handshake::State::kRefused);
    EXPECT_EQ(answer, "");
  }
}

}  // namespace
}  // namespace berth::rpc
