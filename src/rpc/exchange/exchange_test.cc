// Exchanges among threads: bits of sums, gathers, and how they fail.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "berth/half.h"
#include "cluster/testing.h"
#include "rpc/exchange/exchange_testing.h"
#include "rpc/exchange/segment.h"
#include "rpc/exchange/sum.h"

namespace berth::exchange {
namespace {

using cluster::SlicePart;
using cluster::Tag;
using Hosts = std::vector<int>;

void expect_none(const std::vector<std::optional<Thrown>>& thrown) {
  for (const auto& t : thrown) EXPECT_FALSE(t.has_value()) << t->text;
}

// All ranks threw this code and the same text, which contains all of `parts`.
void expect_all(const std::vector<std::optional<Thrown>>& thrown,
                errors::Code code, const std::vector<std::string>& parts) {
  for (const auto& t : thrown) {
    ASSERT_TRUE(t.has_value());
    EXPECT_EQ(t->code, code) << t->text;
    EXPECT_EQ(t->text, thrown[0]->text);
    for (const std::string& part : parts) {
      EXPECT_NE(t->text.find(part), std::string::npos)
          << part << " in: " << t->text;
    }
  }
}

// One host, all hosts, hosts of several adjacent or separate tasks.
const std::vector<Hosts> kLayouts = {
    {0},       {0, 0},          {0, 1},          {0, 0, 0},
    {0, 1, 2}, {0, 0, 1, 1},    {0, 1, 0},       {0, 1, 2, 3, 4, 5, 6, 7},
    {0, 1, 1}, {0, 0, 0, 0, 0}, {0, 1, 0, 1, 1},
};

// Small integers, which every dtype adds exactly.
int value_of(int rank, int64_t i) {
  return static_cast<int>((i * 7 + rank * 3) % 11) - (rank == 0 ? 0 : 3);
}

template <class T>
void check_sum(cluster::Exchange& x, DType dtype, int64_t count,
               size_t shift = 0) {
  const auto make = [](int v) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(v);
    } else {
      return T(static_cast<float>(v));
    }
  };
  std::vector<std::byte> room(count * sizeof(T) + 64);
  T* data = reinterpret_cast<T*>(room.data() + shift * sizeof(T));
  for (int64_t i = 0; i < count; ++i) data[i] = make(value_of(x.rank(), i));
  x.all_reduce(data, count, dtype, Reduction::kSum, {});
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    int sum = 0;
    for (int r = 0; r < x.size(); ++r) sum += value_of(r, i);
    const T expected = make(sum);
    wrong += std::memcmp(&data[i], &expected, sizeof(T)) != 0;
  }
  EXPECT_EQ(wrong, 0) << name_of(dtype) << " " << count;
}

TEST(Exchange, SlowAddsEveryDtypeOfEverySizeInEveryLayout) {
  for (const Hosts& hosts : kLayouts) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(hosts, ",")));
    expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      for (const int64_t count : {0, 1, 1000, 9003}) {
        check_sum<float>(x, DType::kFloat32, count, 1);
        check_sum<float16_t>(x, DType::kFloat16, count, 3);
      }
      check_sum<double>(x, DType::kFloat64, 200007);
      check_sum<int32_t>(x, DType::kInt32, 40001);
      check_sum<int64_t>(x, DType::kInt64, 999);
      check_sum<int8_t>(x, DType::kInt8, 70001);
      check_sum<uint8_t>(x, DType::kUint8, 77);
      check_sum<bfloat16_t>(x, DType::kBFloat16, 40001);
    }));
  }
}

TEST(Exchange, AddsInOrderOfRanksOnEveryTransport) {
  const int64_t count = 90001;
  const auto input = [](int rank, int64_t i) {
    return std::sin(static_cast<float>(i * 4 + rank)) * (rank + 1e-3f);
  };
  for (const Hosts& hosts : {Hosts{0, 0, 0, 0}, Hosts{0, 1, 2, 3}}) {
    expect_none(run_ranks({.hosts = hosts}, [&](cluster::Exchange& x) {
      for (const int64_t n : {int64_t{100}, count}) {
        std::vector<float> data(n);
        for (int64_t i = 0; i < n; ++i) data[i] = input(x.rank(), i);
        x.all_reduce(data.data(), n, DType::kFloat32, Reduction::kSum, {});
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i) {
          const float sum =
              ((input(0, i) + input(1, i)) + input(2, i)) + input(3, i);
          wrong +=
              std::bit_cast<uint32_t>(data[i]) != std::bit_cast<uint32_t>(sum);
        }
        EXPECT_EQ(wrong, 0);
      }
    }));
  }
}

TEST(Exchange, RoundsSumsOfHalvesOnce) {
  // 2048 + 1 + 1 is 2048 if each sum is rounded to eleven bits.
  for (const Hosts& hosts : {Hosts{0, 0, 0}, Hosts{0, 1, 2}}) {
    for (const int64_t n : {5, 40000}) {
      expect_none(run_ranks({.hosts = hosts}, [n](cluster::Exchange& x) {
        std::vector<float16_t> v(n, float16_t(x.rank() == 0 ? 2048.f : 1.f));
        x.all_reduce(v.data(), n, DType::kFloat16, Reduction::kSum, {});
        EXPECT_EQ(static_cast<float>(v.front()), 2050.f);
        EXPECT_EQ(static_cast<float>(v.back()), 2050.f);
      }));
    }
  }
}

TEST(Exchange, FindsSmallestAndLargestAndNan) {
  for (const Hosts& hosts : {Hosts{0, 0, 0}, Hosts{0, 1, 2}}) {
    expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      const float r = static_cast<float>(x.rank());
      float v[3] = {r, -r, r == 1 ? NAN : r};
      x.all_reduce(v, 3, DType::kFloat32, Reduction::kMin, {});
      EXPECT_EQ(v[0], 0);
      EXPECT_EQ(v[1], -2);
      EXPECT_TRUE(std::isnan(v[2]));
      uint8_t all[2] = {static_cast<uint8_t>(x.rank() != 1), 1};
      uint8_t any[2] = {static_cast<uint8_t>(x.rank() == 2), 0};
      x.all_reduce(all, 2, DType::kBool, Reduction::kMin, {});
      x.all_reduce(any, 2, DType::kBool, Reduction::kMax, {});
      EXPECT_EQ(all[0], 0);
      EXPECT_EQ(all[1], 1);
      EXPECT_EQ(any[0], 1);
      EXPECT_EQ(any[1], 0);
      EXPECT_THROW(x.all_reduce(all, 2, DType::kBool, Reduction::kSum, {}),
                   errors::InvalidArgument);
      EXPECT_THROW(x.all_reduce(all, 2, DType::kString, Reduction::kSum, {}),
                   errors::InvalidArgument);
      x.barrier({});  // the channel is intact
    }));
  }
}

TEST(Exchange, SlowRunsGloosAlgorithmsOverItsOwnSockets) {
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kBcube}) {
    for (const Hosts& hosts :
         {Hosts{0, 1}, Hosts{0, 1, 2}, Hosts{0, 1, 2, 3}, Hosts{0, 0, 1, 2}}) {
      TestOptions options{.hosts = hosts};
      options.exchange.algorithm = algorithm;
      expect_none(run_ranks(options, [](cluster::Exchange& x) {
        check_sum<float>(x, DType::kFloat32, 70001);
        check_sum<double>(x, DType::kFloat64, 300001);
        check_sum<int8_t>(x, DType::kInt8, 70001);
      }));
    }
  }
}

TEST(Exchange, TakesGloosAlgorithmsForManyHosts) {
  const Hosts hosts = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8};
  expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
    check_sum<float>(x, DType::kFloat32, 101);
    check_sum<float>(x, DType::kFloat32, 9001);
    check_sum<double>(x, DType::kFloat64, 150001);
    check_sum<float16_t>(x, DType::kFloat16, 9001);
    // Rounded once: see above.
    std::vector<bfloat16_t> v(20000, bfloat16_t(x.rank() == 0 ? 256.f : .25f));
    x.all_reduce(v.data(), 20000, DType::kBFloat16, Reduction::kSum, {});
    EXPECT_EQ(static_cast<float>(v.back()), 258.f);
  }));
}

// The sum along the binary tree over slices, and which rank holds which part.
float slice_value(int slice, int64_t i) {
  const auto mixed = static_cast<uint32_t>(i * 31 + slice * 17) * 2654435761u;
  return (static_cast<float>(mixed >> 8) - 8e6f) *
         static_cast<float>(1 << ((slice * 5 + i) % 13)) * 1e-6f;
}
float16_t half_slice(int slice, int64_t i) {
  return float16_t(slice_value(slice, i) / 4096);
}

template <class T>
T node(T (*leaf)(int, int64_t), int first, int count, int64_t i) {
  if (count == 1) return leaf(first, i);
  int width = 1;
  while (width * 2 < count) width *= 2;
  const float sum =
      static_cast<float>(node(leaf, first, width, i)) +
      static_cast<float>(node(leaf, first + width, count - width, i));
  return T(sum);
}

struct Held {
  int slices;
  std::vector<std::vector<Slices>> by_rank;
};

template <class T>
void check_ordered(cluster::Exchange& x, T (*leaf)(int, int64_t), DType dtype,
                   const Held& held, int64_t count, bool shared) {
  std::vector<std::shared_ptr<void>> buffers;
  std::vector<SlicePart> parts;
  for (const Slices s : held.by_rank[x.rank()]) {
    std::shared_ptr<void> b(new T[count],
                            [](void* p) { delete[] static_cast<T*>(p); });
    if (shared) b = x.shared_buffer(count * sizeof(T));
    T* to = static_cast<T*>(b.get());
    for (int64_t i = 0; i < count; ++i) to[i] = node(leaf, s.first, s.count, i);
    parts.push_back({s.first, s.count, to});
    buffers.push_back(b);
  }
  std::vector<T> own(count);
  std::shared_ptr<void> out_buffer;
  T* out = own.data();
  if (shared) {
    out_buffer = x.shared_buffer(count * sizeof(T));
    out = static_cast<T*>(out_buffer.get());
  } else if (!parts.empty()) {  // the sum may overwrite a part
    out = static_cast<T*>(buffers[0].get());
  }
  x.ordered_sum(parts, held.slices, out, count, dtype, {});
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T expected = node(leaf, 0, held.slices, i);
    wrong += std::memcmp(&out[i], &expected, sizeof(T)) != 0;
  }
  EXPECT_EQ(wrong, 0) << name_of(dtype) << " " << count;
}

TEST(Exchange, SlowOrderedSumsHaveTheBitsOfTheTreeWhoeverHasTheSlices) {
  const std::vector<Held> ways = {
      {8, {{{0, 4}}, {{4, 4}}, {}}},
      {8, {{{0, 2}, {2, 1}}, {{3, 1}}, {{4, 4}}}},
      {8, {{{6, 2}, {1, 1}}, {{0, 1}, {4, 2}}, {{2, 2}}}},
      {5, {{{4, 1}, {0, 2}}, {{2, 1}}, {{3, 1}}}},
      {6, {{{4, 2}}, {{0, 4}}, {}}},
      {1, {{}, {{0, 1}}, {}}},
  };
  for (const Hosts& hosts :
       {Hosts{0, 0, 0}, Hosts{0, 1, 2}, Hosts{0, 0, 1}, Hosts{0, 1, 0}}) {
    for (const Held& held : ways) {
      SCOPED_TRACE(fmt::format("{} slices, hosts {}", held.slices,
                               fmt::join(hosts, ",")));
      expect_none(run_ranks({.hosts = hosts}, [&](cluster::Exchange& x) {
        for (const int64_t n : {0, 33, 9001}) {
          check_ordered(x, slice_value, DType::kFloat32, held, n, false);
          check_ordered(x, half_slice, DType::kFloat16, held, n, n > 40);
        }
        check_ordered(x, slice_value, DType::kFloat32, held, 70001, true);
        check_ordered(x, slice_value, DType::kFloat32, held, 70001, false);
      }));
    }
  }
}

TEST(Exchange, OrderedSumsAreThoseOfAClusterOfThreads) {
  const Held held{8, {{{6, 2}, {1, 1}}, {{0, 1}, {4, 2}}, {{2, 2}}}};
  cluster::FakeCluster fake({.workers = 3});
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      check_ordered(fake.member({"worker", r})->exchange(), slice_value,
                    DType::kFloat32, held, 33, false);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(Exchange, RefusesSlicesThatAreNoTreeOnAllRanks) {
  for (const Hosts& hosts : {Hosts{0, 0}, Hosts{0, 1}, Hosts{0, 0, 1}}) {
    const auto thrown = run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      std::vector<float> v(40000);
      const SlicePart part{x.rank() == 0 ? 0 : 1, 1, v.data()};
      x.ordered_sum({&part, x.rank() < 2 ? 1u : 0u}, 4, v.data(), 40000,
                    DType::kFloat32, {});
    });
    expect_all(thrown, errors::Code::kInvalidArgument,
               {"ordered_sum", "slice 2", "nobody's"});
  }
}

TEST(Exchange, GathersAndHandsRound) {
  for (const Hosts& hosts : kLayouts) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(hosts, ",")));
    expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      for (const int64_t unit : {0, 1000, 200007}) {
        std::vector<int64_t> bytes;
        std::vector<uint8_t> expected;
        for (int r = 0; r < x.size(); ++r) {
          bytes.push_back(unit * ((r + 1) % 3));
          expected.insert(expected.end(), bytes.back(),
                          static_cast<uint8_t>(r + 1));
        }
        const std::vector<uint8_t> own(bytes[x.rank()] + 1,
                                       static_cast<uint8_t>(x.rank() + 1));
        std::vector<uint8_t> out(expected.size() + 1, 99);
        x.all_gather(own.data(), bytes, out.data(), {});
        expected.push_back(99);
        EXPECT_EQ(out, expected);
      }
      for (int root = 0; root < x.size(); ++root) {
        for (const int64_t n : {5, root == 0 ? 1100000 : 3000}) {
          std::vector<uint8_t> v(n, static_cast<uint8_t>(x.rank()));
          x.broadcast(v.data(), n, root, {});
          EXPECT_EQ(std::count(v.begin(), v.end(), root), n);
        }
        x.barrier({});
      }
    }));
  }
}

TEST(Exchange, BarriersWaitForAll) {
  for (const Hosts& hosts : {Hosts{0, 0, 0}, Hosts{0, 1, 2}, Hosts{0, 0, 1}}) {
    std::atomic<int> came{0};
    expect_none(run_ranks({.hosts = hosts}, [&](cluster::Exchange& x) {
      for (int round = 1; round <= 20; ++round) {
        ++came;
        x.barrier({});
        EXPECT_GE(came.load(), 3 * round);
      }
    }));
  }
}

TEST(Exchange, TellsTheLinkItsStepForFailures) {
  Board board{};
  expect_none(
      run_ranks({.hosts = {0, 1}, .board = &board}, [](cluster::Exchange& x) {
        x.barrier({.step = 7});
        x.barrier({});  // belongs to no step
      }));
  for (const int rank : {0, 1}) EXPECT_EQ(board.steps[rank], 7);
}

TEST(Exchange, AddsWhereSharedBuffersLie) {
  for (const Hosts& hosts : {Hosts{0, 0, 0}, Hosts{0, 1}, Hosts{0, 0, 1}}) {
    expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      const int64_t n = 200003;
      for (int round = 0; round < 3; ++round) {
        const std::shared_ptr<void> b = x.shared_buffer(n * sizeof(float));
        auto* v = static_cast<float*>(b.get());
        EXPECT_EQ(std::count(v, v + n, 0.f), n);  // even if used before
        // One rank's data is outside the segment in round 1.
        std::vector<float> elsewhere(n);
        if (round == 1 && x.rank() == 0) v = elsewhere.data();
        for (int64_t i = 0; i < n; ++i) {
          v[i] = static_cast<float>(value_of(x.rank(), i));
        }
        x.all_reduce(v, n, DType::kFloat32, Reduction::kSum, {});
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; ++i) {
          int sum = 0;
          for (int r = 0; r < x.size(); ++r) sum += value_of(r, i);
          wrong += v[i] != static_cast<float>(sum);
        }
        EXPECT_EQ(wrong, 0);
      }
    }));
  }
}

TEST(Exchange, RunsChannelsSideBySide) {
  for (const Hosts& hosts : {Hosts{0, 0}, Hosts{0, 1}, Hosts{0, 0, 1}}) {
    expect_none(run_ranks({.hosts = hosts}, [](cluster::Exchange& x) {
      std::vector<std::thread> threads;
      for (int c = 0; c < 3; ++c) {
        threads.emplace_back([&, c] {
          std::vector<float> v(9001 * (c + 1));
          const Tag tag{.channel = fmt::format("c{}", c)};
          for (int round = 0; round < 20; ++round) {
            std::fill(v.begin(), v.end(), static_cast<float>(c + round));
            x.all_reduce(v.data(), v.size(), DType::kFloat32, Reduction::kSum,
                         tag);
            const float sum = static_cast<float>((c + round) * x.size());
            EXPECT_EQ(std::count(v.begin(), v.end(), sum),
                      static_cast<int64_t>(v.size()));
          }
        });
      }
      for (std::thread& t : threads) t.join();
    }));
  }
}

TEST(Exchange, NamesBothRanksWhoseCallsDiffer) {
  for (const Hosts& hosts : {Hosts{0, 0, 0}, Hosts{0, 1, 2}, Hosts{0, 0, 1}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(hosts, ",")));
    const auto other = [&](const std::function<void(cluster::Exchange&)>& odd) {
      return run_ranks({.hosts = hosts}, [&](cluster::Exchange& x) {
        std::vector<float> v(70000);
        x.barrier({});
        if (x.rank() == 2) {
          odd(x);
        } else {
          x.all_reduce(v.data(), 70000, DType::kFloat32, Reduction::kSum,
                       {.what = "gradients 3 of 7", .hash = 1, .step = 12});
        }
        for (;;) x.barrier({});
      });
    };
    std::vector<float> v(70000);
    expect_all(
        other([&](cluster::Exchange& x) {
          x.all_reduce(v.data(), 69999, DType::kFloat32, Reduction::kSum,
                       {.what = "gradients 2 of 7", .hash = 1, .step = 12});
        }),
        errors::Code::kInvalidArgument,
        {"worker:2", "69999", "70000", "gradients 3 of 7", "gradients 2 of 7"});
    expect_all(other([](cluster::Exchange& x) { x.barrier({}); }),
               errors::Code::kInvalidArgument,
               {"worker:2", "barrier", "all_reduce of 70000 float32"});
    expect_all(other([&](cluster::Exchange& x) {
                 x.all_reduce(v.data(), 70000, DType::kFloat32, Reduction::kSum,
                              {.hash = 2});
               }),
               errors::Code::kInvalidArgument,
               {"worker:2", "0000000000000002"});
    expect_all(other([&](cluster::Exchange& x) {
                 x.broadcast(v.data(), 8, 2, {.hash = 2});
               }),
               errors::Code::kInvalidArgument, {"worker:2", "broadcast"});
  }
}

TEST(Exchange, NamesWhoDoesNotComeAndWarnsBefore) {
  for (const Hosts& hosts :
       {Hosts{0, 0, 0, 0}, Hosts{0, 1, 2, 3}, Hosts{0, 0, 1, 1}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(hosts, ",")));
    std::mutex mutex;
    std::vector<std::string> lines;
    TestOptions options{.hosts = hosts};
    options.exchange.warn_after_seconds = 0.05;
    options.exchange.warn = [&](const std::string& line) {
      std::lock_guard lock(mutex);
      lines.push_back(line);
    };
    std::atomic<int> failed{0};
    const auto thrown = run_ranks(options, [&](cluster::Exchange& x) {
      std::vector<float> v(70000);
      x.barrier({});
      if (x.rank() == 2) {
        while (failed < 3)
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      try {
        x.all_reduce(v.data(), 70000, DType::kFloat32, Reduction::kSum,
                     {.what = "the gradients", .timeout_seconds = 0.2});
      } catch (...) {
        ++failed;
        throw;
      }
    });
    expect_all(
        thrown, errors::Code::kDeadlineExceeded,
        {"worker:2 (here:2) has not come", "1 of 2 calls", "the gradients"});
    ASSERT_FALSE(lines.empty());
    EXPECT_NE(lines[0].find("waits"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("the gradients"), std::string::npos) << lines[0];
  }
}

TEST(Exchange, WakesWhoeverWaitsWhenTheGenerationEnds) {
  for (const Hosts& hosts : {Hosts{0, 0}, Hosts{0, 1}}) {
    Board board{};
    TestLink a(board, 0, hosts, 20), b(board, 1, hosts, 20);
    auto x = rpc::make_exchange(a, {});
    auto y = rpc::make_exchange(b, {});
    std::thread other([&] { y->barrier({}); });
    x->barrier({});
    other.join();
    std::thread end([&] {
      usleep(20000);
      b.fail(errors::Code::kAborted, {"worker", 1}, "said stop", 3);
    });
    EXPECT_THROW(x->barrier({}), errors::Aborted);
    end.join();
    EXPECT_THROW(y->barrier({}), errors::Aborted);  // without waiting
  }
}

TEST(Exchange, RefusesBytesThatAreNoMessage) {
  const Hosts hosts = {0, 1};
  for (const char first : {'B', '?'}) {  // the magic starts with a B
    Board board{};
    TestLink a(board, 0, hosts, 20), b(board, 1, hosts, 20);
    std::vector<Socket> kept;
    b.accept(Purpose::kExchange, [&](Accepted accepted) {
      std::string bytes(70000, '\xff');
      bytes.replace(0, 4, first == 'B' ? "BtxM" : "?txM");
      rpc::write_all(accepted.socket.fd(), bytes.data(), bytes.size(),
                     after(5));
      kept.push_back(std::move(accepted.socket));
    });
    const auto x = rpc::make_exchange(a, {});
    try {
      x->barrier({});
      ADD_FAILURE();
    } catch (const errors::Unavailable& e) {
      EXPECT_NE(std::string(e.what()).find("worker:1: sent what is no message"),
                std::string::npos)
          << e.what();
    }
    b.accept(Purpose::kExchange, {});
  }
}

TEST(Segment, RefusesFilesThatAreNoSegment) {
  const auto attach = [](int fd, int members, uint64_t generation) {
    return Segment::attach(Socket(dup(fd)), 1, members, generation);
  };
  const auto good = Segment::create(2, 7, int64_t{64} << 20);
  EXPECT_NO_THROW(attach(good->fd(), 2, 7));
  EXPECT_THROW(attach(good->fd(), 3, 7), errors::Unavailable);
  EXPECT_THROW(attach(good->fd(), 2, 8), errors::Unavailable);
  const Socket empty(memfd_create("empty", MFD_ALLOW_SEALING));
  EXPECT_THROW(attach(empty.fd(), 2, 7), errors::Unavailable);
  EXPECT_THROW(attach(STDIN_FILENO, 2, 7), errors::Unavailable);
  EXPECT_EQ(good->at(1, (int64_t{64} << 20) - 7, 8), nullptr);
  EXPECT_EQ(good->at(0, -1, 8), nullptr);
  EXPECT_EQ(good->at(0, INT64_MAX, 8), nullptr);
}

TEST(Segment, AllocatesPagesAndTakesThemBack) {
  const auto s = Segment::create(2, 1, int64_t{64} << 20);
  const int64_t a = s->allocate(5000), b = s->allocate(1);
  EXPECT_EQ(b - a, 8192);
  EXPECT_EQ(s->allocate(int64_t{64} << 20), -1);
  std::memset(s->at(0, a, 5000), 1, 5000);
  s->free(a);
  s->free(b);
  const int64_t all = s->allocate(int64_t{64} << 20);
  EXPECT_EQ(all, 0);
  EXPECT_EQ(*s->at(0, 0, 1), std::byte{0});
  for (int i = 0; i < Segment::kChannels; ++i) {
    EXPECT_EQ(s->channel(fmt::format("{}", i)),
              s->channel(fmt::format("{}", i)));
  }
  EXPECT_THROW(s->channel("one more"), errors::ResourceExhausted);
}

}  // namespace
}  // namespace berth::exchange
