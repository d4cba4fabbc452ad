// Exchanges over UCX, with each of its transports that this machine has: the
// same bits, the same failures as over sockets, and who is not let in. UCX
// reads its settings once per process, so each test runs in one of its own.

#include <gtest/gtest.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <thread>

#include "base/fresh_process_testing.h"
#include "rpc/exchange/exchange_testing.h"
#include "rpc/message_port.h"

namespace berth::exchange {
namespace {

using cluster::SlicePart;
using fresh_process::check;
using rpc::MessagePort;
using rpc::PortArrival;
using rpc::PortHello;
using rpc::PortOp;

// Why this container does not allow a transport of UCX; "": it does.
std::string forbidden(const std::string& transports) {
  if (transports.find("sysv") != std::string::npos) {
    const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    if (id < 0) return std::string("shmget: ") + std::strerror(errno);
    shmctl(id, IPC_RMID, nullptr);
  }
  if (transports.find("cma") != std::string::npos) {
    int from = 7, to = 0;
    const iovec here{&to, sizeof(to)}, there{&from, sizeof(from)};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) < 0) {
      return std::string("process_vm_readv: ") + std::strerror(errno);
    }
  }
  return "";
}

class UcxExchange : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      rpc::require_ucx();
    } catch (const errors::FailedPrecondition& e) {
      GTEST_SKIP() << e.what();
    }
    const std::string why = forbidden(GetParam());
    if (!why.empty()) GTEST_SKIP() << GetParam() << ": " << why;
  }
};

std::vector<std::optional<Thrown>> run_ucx(
    std::vector<int> hosts, const std::function<void(cluster::Exchange&)>& work,
    ExchangeOptions options = {}) {
  options.ucx = true;
  return run_ranks({.hosts = std::move(hosts), .exchange = options}, work);
}

void check_none(const std::vector<std::optional<Thrown>>& thrown) {
  for (const auto& t : thrown) check(!t, t ? t->text : "");
}

void check_all(const std::vector<std::optional<Thrown>>& thrown,
               errors::Code code, const std::vector<std::string>& parts) {
  for (const auto& t : thrown) {
    check(t.has_value(), "every rank throws");
    check(t->code == code && t->text == thrown[0]->text, t->text);
    for (const std::string& part : parts) {
      check(t->text.find(part) != std::string::npos, part + " in " + t->text);
    }
  }
}

// A value per rank and element, whose sums depend on their order.
float value(int rank, int64_t i) {
  return std::sin(static_cast<float>(i * 4 + rank)) *
         (static_cast<float>(rank) + 1e-3f);
}

void check_adds(cluster::Exchange& x, int64_t count) {
  std::vector<float> v(count);
  for (int64_t i = 0; i < count; ++i) v[i] = value(x.rank(), i);
  x.all_reduce(v.data(), count, DType::kFloat32, Reduction::kSum, {});
  for (int64_t i = 0; i < count; ++i) {
    float sum = value(0, i);
    for (int r = 1; r < x.size(); ++r) sum += value(r, i);
    check(std::memcmp(&v[i], &sum, sizeof(sum)) == 0,
          fmt::format("element {} of {}: {} is {}", i, count, v[i], sum));
  }
}

void check_gathers(cluster::Exchange& x) {
  for (const int64_t each : {1, 300, 200000}) {
    std::vector<int64_t> bytes;
    for (int r = 0; r < x.size(); ++r) bytes.push_back(each + r);
    const std::string mine(each + x.rank(), static_cast<char>('a' + x.rank()));
    std::string all(each * x.size() + x.size() * (x.size() - 1) / 2, '?');
    std::string expected;
    for (int r = 0; r < x.size(); ++r) {
      expected.append(each + r, static_cast<char>('a' + r));
    }
    x.all_gather(mine.data(), bytes, all.data(), {});
    check(all == expected, "gathered");
    std::string text = x.rank() == 1 ? expected : std::string(all.size(), '?');
    x.broadcast(text.data(), static_cast<int64_t>(text.size()), 1, {});
    check(text == expected, "handed round");
  }
}

TEST_P(UcxExchange, SlowAddsInOrderOfRanksAndGathers) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    for (const std::vector<int>& hosts :
         {std::vector{0, 1}, std::vector{0, 1, 2}}) {
      check_none(run_ucx(hosts, [](cluster::Exchange& x) {
        for (const int64_t n : {0, 1, 1000, 9001, 400001}) check_adds(x, n);
        x.barrier({});
        check_gathers(x);
      }));
    }
  });
}

TEST_P(UcxExchange, SlowRunsGloosAlgorithmsAndSumsOfHosts) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    const auto add = [](cluster::Exchange& x) {
      for (const int64_t n : {11, 70001, 300001}) {
        std::vector<int32_t> v(n, x.rank() + 1);
        x.all_reduce(v.data(), n, DType::kInt32, Reduction::kSum, {});
        check(v.front() == x.size() * (x.size() + 1) / 2, "the first");
        check(v.back() == v.front(), "the last");
      }
    };
    for (const Algorithm a : {Algorithm::kRing, Algorithm::kBcube}) {
      check_none(run_ucx({0, 1, 2}, add, {.algorithm = a}));
    }
    check_none(run_ucx({0, 0, 1, 2}, add));
    check_none(run_ucx({0, 1, 2, 3, 4, 5, 6, 7, 8}, add));
  });
}

TEST_P(UcxExchange, SlowOrderedSumsHaveTheBitsOfSockets) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    constexpr int64_t kMost = 150001;
    std::vector<float> sums[2];
    for (const bool by_ucx : {false, true}) {
      std::vector<float>& sum = sums[by_ucx];
      check_none(run_ranks(
          {.hosts = {0, 1, 2}, .exchange = {.ucx = by_ucx}},
          [&](cluster::Exchange& x) {
            for (const int64_t n : {int64_t{100}, kMost}) {
              std::vector<float> part(n);
              std::vector<float> out(n);
              for (int64_t i = 0; i < n; ++i) part[i] = value(x.rank(), i);
              const int first[] = {0, 4, 6};
              const SlicePart mine{first[x.rank()], x.rank() == 0 ? 4 : 2,
                                   part.data()};
              x.ordered_sum({&mine, 1}, 8, out.data(), n, DType::kFloat32, {});
              if (x.rank() == 1) sum.insert(sum.end(), out.begin(), out.end());
            }
          }));
    }
    check(sums[0].size() == kMost + 100, "as many elements");
    check(std::memcmp(sums[0].data(), sums[1].data(), sums[0].size() * 4) == 0,
          "the same bits");
  });
}

TEST_P(UcxExchange, SlowRunsChannelsSideBySide) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    check_none(run_ucx({0, 1}, [](cluster::Exchange& x) {
      std::vector<std::thread> threads;
      std::atomic<int> wrong{0};
      for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
          std::vector<float> v(50001);
          for (int call = 0; call < 10; ++call) {
            std::fill(v.begin(), v.end(), static_cast<float>(t + x.rank()));
            x.all_reduce(v.data(), 50001, DType::kFloat32, Reduction::kSum,
                         {.channel = std::to_string(t)});
            wrong += v[call * 5000] != static_cast<float>(2 * t + 1);
          }
        });
      }
      for (std::thread& t : threads) t.join();
      check(wrong == 0, "the sums");
    }));
  });
}

TEST_P(UcxExchange, SlowNamesWhoseCallsDifferAndWhoDoesNotCome) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    std::vector<float> v(70000);
    check_all(run_ucx({0, 1, 2},
                      [&](cluster::Exchange& x) {
                        std::vector<float> own(70000);
                        x.barrier({});
                        x.all_reduce(own.data(), 70000 - (x.rank() == 2),
                                     DType::kFloat32, Reduction::kSum,
                                     {.what = "gradients 3 of 7"});
                        for (;;) x.barrier({});
                      }),
              errors::Code::kInvalidArgument,
              {"worker:2", "69999", "70000", "gradients 3 of 7"});
    std::atomic<int> failed{0};
    check_all(
        run_ucx({0, 1, 2},
                [&](cluster::Exchange& x) {
                  std::vector<float> own(70000);
                  x.barrier({});
                  while (x.rank() == 2 && failed < 2) usleep(2000);
                  try {
                    x.all_reduce(
                        own.data(), 70000, DType::kFloat32, Reduction::kSum,
                        {.what = "the gradients", .timeout_seconds = 0.3});
                  } catch (...) {
                    ++failed;
                    throw;
                  }
                }),
        errors::Code::kDeadlineExceeded,
        {"worker:2 (here:2) has not come", "the gradients"});
  });
}

TEST_P(UcxExchange, SlowWakesWhoeverWaitsWhenTheGenerationEnds) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    Board board{};
    TestLink a(board, 0, {0, 1}, 20);
    TestLink b(board, 1, {0, 1}, 20);
    auto x = rpc::make_exchange(a, {.ucx = true});
    auto y = rpc::make_exchange(b, {.ucx = true});
    std::thread other([&] { y->barrier({}); });
    x->barrier({});
    other.join();
    std::thread end([&] {
      usleep(20000);
      b.fail(errors::Code::kAborted, {"worker", 1}, "said stop", 3);
    });
    fresh_process::refuses<errors::Aborted>([&] { x->barrier({}); }, "stop");
    end.join();
    fresh_process::refuses<errors::Aborted>([&] { y->barrier({}); }, "stop");
    fresh_process::refuses<errors::Aborted>([&] { x->barrier({}); }, "stop");
  });
}

// A second rank that a test plays by hand: it has told its address, and has
// got the first message of the rank under test, which a barrier sends.
class Played {
 public:
  explicit Played(TestLink& link) : port_(rpc::open_port(true)) {
    link.accept(Purpose::kExchange, [this](Accepted a) {
      std::lock_guard lock(mutex_);
      if (!socket_) socket_ = std::move(a.socket);
    });
  }
  std::atomic<bool> over{false};  // the rank under test has an answer

  // Returns the message's head, made to look like one of this rank.
  std::string meet() {
    const Deadline deadline = after(60);
    for (bool there = false; !there;) {
      usleep(1000);
      check(seconds_until(deadline) > 0, "it is dialled");
      std::lock_guard lock(mutex_);
      there = static_cast<bool>(socket_);
    }
    const std::string own =
        encode(PortHello{rpc::random_token(), 0, port_->address()});
    rpc::write_all(socket_.fd(), own.data(), own.size(), deadline);
    std::string read;
    while (!parse_port_hello(read, &theirs_)) {
      char byte = 0;
      check(rpc::read_all(socket_.fd(), &byte, 1, deadline).empty(), "hello");
      read += byte;
    }
    connection_ = port_->connect(theirs_.address);
    PortArrival got;
    while (!port_->next(&got)) {
      port_->progress();
      check(seconds_until(deadline) > 0, "a message comes");
    }
    port_->drop(got);
    std::memcpy(got.head.data() + 4, &theirs_.number, 4);
    return got.head;
  }
  rpc::PortToken token() const { return theirs_.token; }

  void send(std::string head, const rpc::PortToken& token, size_t bytes) {
    std::memcpy(head.data() + 8, token.data(), token.size());
    Sent& s = sent_.emplace_back(
        Sent{std::move(head), std::string(bytes, 'x'), {}, {}});
    port_->send(connection_, s.head, s.data.data(), bytes, s.op);
    port_->flush(s.flushed);
    while (!over && !(s.op.done && s.flushed.done)) port_->progress();
  }

 private:
  struct Sent {
    std::string head, data;
    PortOp op, flushed;
  };
  std::deque<Sent> sent_;  // the port points to these
  std::mutex mutex_;
  Socket socket_;
  std::unique_ptr<MessagePort> port_;
  PortHello theirs_;
  int connection_ = -1;
};

// What the rank under test says of messages that `play` sends; "": the barrier
// was met.
std::string answer_to(const std::function<void(Played&, std::string)>& play) {
  Board board{};
  TestLink a(board, 0, {0, 1}, 60);
  TestLink b(board, 1, {0, 1}, 60);
  Played other(b);
  std::thread played([&] { play(other, other.meet()); });
  std::string text;
  const auto x = rpc::make_exchange(a, {.ucx = true});
  try {
    x->barrier({});
  } catch (const errors::Error& e) {
    text = e.what();
  }
  other.over = true;
  played.join();
  return text;
}

// A head whose call differs: who takes it for a message ends the barrier.
std::string of_another_call(std::string head) {
  head[48] ^= 1;  // in the hash
  return head;
}

TEST_P(UcxExchange, SlowDropsMessagesWithoutTheTokenOfATask) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    const auto known = answer_to([](Played& other, std::string head) {
      other.send(of_another_call(head), other.token(), 0);
    });
    check(known.find("call different things") != std::string::npos, known);
    const auto strange = answer_to([](Played& other, std::string head) {
      rpc::PortToken almost = other.token();
      almost[15] ^= 1;
      other.send(of_another_call(head), almost, 0);
      other.send(of_another_call(head), rpc::random_token(), 300000);
      other.send(std::string(head.size() - 1, 'B'), other.token(), 0);
      other.send(std::string(250, '\xff'), other.token(), 100);
      other.send(head, other.token(), 0);
    });
    check(strange.empty(), "strangers do not disturb: " + strange);
  });
}

TEST_P(UcxExchange, SlowRefusesMessagesThatNobodyAskedFor) {
  IN_A_FRESH_PROCESS({
    setenv("UCX_TLS", GetParam(), 1);
    for (const size_t bytes : {8, 300000}) {
      const auto more = answer_to([&](Played& other, std::string head) {
        other.send(head, other.token(), bytes);
      });
      check(more.find("worker:1: sent more than was asked for") !=
                std::string::npos,
            more);
    }
  });
}

TEST(UcxPort, RefusesBytesThatAreNoHello) {
  const PortHello hello{rpc::random_token(), 3, "an address"};
  const std::string bytes = encode(hello);
  PortHello read;
  EXPECT_TRUE(parse_port_hello(bytes, &read));
  EXPECT_TRUE(rpc::equal(read.token, hello.token));
  EXPECT_EQ(read.number, 3u);
  EXPECT_EQ(read.address, "an address");
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(parse_port_hello(bytes.substr(0, n), &read)) << n;
  }
  EXPECT_THROW(parse_port_hello("BtxM", &read), errors::DataLoss);
  std::string long_one = bytes;
  long_one[7] = '\x7f';  // of the length of the address
  EXPECT_THROW(parse_port_hello(long_one, &read), errors::DataLoss);
}

TEST(UcxPort, EndsWithAPeerThatSendsBySockets) {
  try {
    rpc::require_ucx();
  } catch (const errors::FailedPrecondition& e) {
    EXPECT_NE(std::string(e.what()).find("libucx-dev"), std::string::npos);
    GTEST_SKIP() << e.what();
  }
  Board board{};
  TestLink a(board, 0, {0, 1}, 20), b(board, 1, {0, 1}, 20);
  const auto x = rpc::make_exchange(a, {.ucx = true});
  const auto y = rpc::make_exchange(b, {});
  std::thread other([&] {
    try {
      y->barrier({});
    } catch (const errors::Error&) {
    }
  });
  try {
    x->barrier({});
    ADD_FAILURE();
  } catch (const errors::Error& e) {
    // Whichever of the two reads first: before that the coordinator refuses.
    const std::string text = e.what();
    EXPECT_TRUE(text.find("BERTH_TRANSPORT") != std::string::npos ||
                text.find("no message of an exchange") != std::string::npos)
        << text;
  }
  other.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, UcxExchange,
                         testing::Values("tcp", "posix,cma", "sysv,cma",
                                         "posix"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ',', '_');
                           return name;
                         });

}  // namespace
}  // namespace berth::exchange
