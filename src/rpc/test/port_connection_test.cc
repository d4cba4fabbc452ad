// Calls whose tensors UCX moves: the same bytes as over sockets, the end of the
// other process, and who is not let in. UCX reads its settings once per
// process, so each test runs in one of its own.

#include "rpc/port_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "rpc/service_server.h"
#include "tensor/tensor_impl.h"

namespace berth::rpc {
namespace {

using fresh_process::check;

class PortConnections : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      require_ucx();
    } catch (const errors::FailedPrecondition& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

struct Ends {
  std::shared_ptr<PortConnection> a, b;
};

Ends ends_over(const char* transport) {
  setenv("UCX_TLS", transport, 1);
  int fds[2];
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "a pair of sockets");
  auto made = std::async(std::launch::async, [fd = fds[1]] {
    return std::make_shared<PortConnection>(Socket(fd), true);
  });
  Ends e;
  e.a = std::make_shared<PortConnection>(Socket(fds[0]), true);
  e.b = made.get();
  return e;
}

Message message_of(int k) {
  Message m;
  m.text = std::string(k % 3 == 0 ? 200'000 : 7, static_cast<char>('a' + k));
  // Below, at and above what goes by the port; and text that is as large.
  for (const int64_t n : {0, 3, 16'383, 16'384, 300'001}) {
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i * 7 + k);
    m.tensors.push_back(constant(values));
  }
  m.tensors.push_back(constant(std::string(100'000, 'x')));
  m.tensors.push_back(constant({1, 2, k}));
  return m;
}

void check_equal(const Message& got, const Message& want) {
  check(got.text == want.text, "the text");
  check(got.tensors.size() == want.tensors.size(), "the number of tensors");
  for (size_t i = 0; i < want.tensors.size(); ++i) {
    const Tensor &g = got.tensors[i], &w = want.tensors[i];
    check(g.dtype() == w.dtype() && g.shape() == w.shape(), "what tensors are");
    if (g.dtype() == string_) {
      check(g.item<std::string>() == w.item<std::string>(), "text");
    } else {
      check(std::memcmp(g.impl()->data(), w.impl()->data(),
                        static_cast<size_t>(w.num_elements()) *
                            size_of(w.dtype())) == 0,
            "bits");
    }
  }
}

void send_all(Connection& c, int first, int count) {
  for (int k = first; k < first + count; ++k) {
    OutgoingMessage m = pack(MessageKind::kRequest, k, 0, message_of(k));
    if (c.write_now(&m)) continue;
    const std::string why = c.write(std::move(m));
    check(why.empty(), why);
  }
}

void receive_all(Connection& c, int first, int count) {
  for (int k = first; k < first + count; ++k) {
    MessageHead head;
    Message got;
    const std::string why = read_message(c, &head, &got);
    check(why.empty(), why);
    check(head.id == static_cast<uint64_t>(k), "the order");
    check_equal(got, message_of(k));
  }
}

TEST_P(PortConnections, MoveMessagesBothWays) {
  IN_A_FRESH_PROCESS({
    const Ends e = ends_over(GetParam());
    constexpr int kCount = 6;
    auto to_b =
        std::async(std::launch::async, [&] { send_all(*e.a, 0, kCount); });
    auto to_a =
        std::async(std::launch::async, [&] { send_all(*e.b, 50, kCount); });
    auto at_a =
        std::async(std::launch::async, [&] { receive_all(*e.a, 50, kCount); });
    receive_all(*e.b, 0, kCount);
    to_b.get();
    to_a.get();
    at_a.get();
  });
}

TEST_P(PortConnections, EndWithTheOtherEnd) {
  IN_A_FRESH_PROCESS({
    Ends e = ends_over(GetParam());
    auto sent = std::async(std::launch::async, [&] { send_all(*e.a, 0, 1); });
    receive_all(*e.b, 0, 1);
    sent.get();
    // One waits for a tensor that never comes, one sends where nobody reads.
    std::vector<float> room(100'000);
    auto waits = std::async(std::launch::async, [&] {
      return e.a->read_tensor(room.data(), room.size() * sizeof(float));
    });
    auto sends = std::async(std::launch::async, [&] {
      Message m;
      m.tensors.push_back(zeros({4'000'000}));
      std::string why;
      for (int k = 0; k < 4 && why.empty(); ++k) {
        why = e.a->write(pack(MessageKind::kRequest, k, 0, m));
      }
      return why;
    });
    e.b->shutdown();
    e.b.reset();
    check(!waits.get().empty(), "the end is seen where it reads");
    check(!sends.get().empty(), "the end is seen where it writes");
    check(!e.a->write(pack(MessageKind::kRequest, 9, 0, message_of(1))).empty(),
          "and stays");
  });
}

TEST_P(PortConnections, RefuseATensorOfAnotherSize) {
  IN_A_FRESH_PROCESS({
    const Ends e = ends_over(GetParam());
    auto sent = std::async(std::launch::async, [&] {
      Message m;
      m.tensors.push_back(zeros({50'000}));
      return e.a->write(pack(MessageKind::kRequest, 1, 0, std::move(m)));
    });
    std::vector<float> room(40'000);
    const std::string why =
        e.b->read_tensor(room.data(), room.size() * sizeof(float));
    check(why == "sent what nobody asked for", why);
    e.b->shutdown();
    sent.wait();
  });
}

TEST(PortConnection, RefusesAPeerWithoutUcx) {
  try {
    require_ucx();
  } catch (const errors::FailedPrecondition& e) {
    GTEST_SKIP() << e.what();
  }
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const Socket other(fds[1]);
  ASSERT_EQ(write_all(other.fd(), "BtxMessage", 10), "");
  try {
    PortConnection c(Socket(fds[0]), true);
    FAIL();
  } catch (const errors::Unavailable& e) {
    EXPECT_NE(std::string(e.what()).find("BERTH_TRANSPORT"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, PortConnections,
                         testing::Values("tcp", "posix"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace berth::rpc
