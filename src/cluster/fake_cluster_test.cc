#include <gtest/gtest.h>

#include "cluster/testing.h"

namespace berth::cluster {
namespace {

// Runs fn on every rank, each on its own thread.
void on_ranks(FakeCluster& cluster, const std::function<void(Member&)>& fn) {
  std::vector<std::thread> threads;
  for (const TaskId& t : cluster.spec().ranks()) {
    threads.emplace_back([&, t] { fn(*cluster.member(t)); });
  }
  for (std::thread& t : threads) t.join();
}

TEST(FakeCluster, AddsOverRanks) {
  FakeCluster cluster({.workers = 3});
  on_ranks(cluster, [](Member& m) {
    float x[2] = {static_cast<float>(m.rank()), 1};
    m.exchange().all_reduce(x, 2, float32, Reduction::kSum, {.what = "x"});
    EXPECT_EQ(x[0], 3);
    EXPECT_EQ(x[1], 3);
    m.barrier("end");
  });
}

TEST(FakeCluster, AddsSlicesAlongTheTree) {
  FakeCluster cluster({.workers = 2});
  on_ranks(cluster, [](Member& m) {
    const float big = 1e8f, small = -1e8f, one = 1;
    const SlicePart parts[2][2] = {{{0, 1, &big}, {1, 1, &small}},
                                   {{2, 1, &one}, {3, 1, &one}}};
    float sum = 0;
    m.exchange().ordered_sum(parts[m.rank()], 4, &sum, 1, float32, {});
    EXPECT_EQ(sum, 2);
  });
}

TEST(FakeCluster, DifferentCallsFail) {
  FakeCluster cluster({.workers = 2});
  on_ranks(cluster, [](Member& m) {
    const uint64_t hash = static_cast<uint64_t>(m.rank());
    EXPECT_THROW(m.exchange().barrier({.hash = hash}), errors::InvalidArgument);
  });
}

TEST(FakeCluster, CallsRunInOrderAndThrowWhatHandlersThrow) {
  FakeCluster cluster({.workers = 1, .ps = 1});
  std::string seen;
  cluster.member({"ps", 0})->serve("add", [&](const TaskId&, Message m) {
    if (m.text == "x") throw errors::NotFound("x");
    seen += m.text;
    return Message{seen, {}};
  });
  Member& worker = *cluster.member({"worker", 0});
  auto a = worker.call({"ps", 0}, "add", {"a", {}});
  auto b = worker.call({"ps", 0}, "add", {"b", {}});
  auto x = worker.call({"ps", 0}, "add", {"x", {}});
  EXPECT_EQ(a.get().text, "a");
  EXPECT_EQ(b.get().text, "ab");
  EXPECT_THROW(x.get(), errors::NotFound);
}

TEST(FakeCluster, LossEndsEveryWait) {
  FakeCluster cluster({.workers = 2});
  std::thread waits([&] {
    EXPECT_THROW(cluster.member({"worker", 0})->barrier("b"),
                 errors::Unavailable);
  });
  cluster.lose({"worker", 1});
  waits.join();
  EXPECT_THROW(cluster.member({"worker", 0})->check(), errors::Unavailable);
}

}  // namespace
}  // namespace berth::cluster
