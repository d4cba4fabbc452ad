#include "backends/sim/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "backends/sim/sim_device.h"
#include "backends/sim/sim_testing.h"

namespace berth::sim {
namespace {

Event launch(Stream& s, std::function<void()> fn, const char* what = "Call") {
  s.launch(call(std::move(fn), what));
  return s.record();
}

// Writes on one stream, reads on another; returns what was read.
int write_then_read(uint64_t seed, bool with_wait) {
  set_seed(gpu(0), seed);
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  int value = 0, seen = -1;
  const Event written = launch(a, [&] { value = 1; });
  if (with_wait) b.wait(written);
  const Event read = launch(b, [&] { seen = value; });
  synchronize(read);
  synchronize(written);
  return seen;
}

TEST(SimScheduler, AMissingWaitIsSeenBySomeSeed) {
  const Clean clean;
  std::set<int> seen;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    seen.insert(write_then_read(seed, false));
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
}

TEST(SimScheduler, AWaitOrdersUnderEverySeed) {
  const Clean clean;
  for (uint64_t seed = 0; seed <= 50; ++seed) {
    EXPECT_EQ(write_then_read(seed, true), 1) << seed;
  }
}

// Returns the order in which 4 streams run 3 works each.
std::string order_under(uint64_t seed) {
  set_seed(gpu(0), seed);
  std::string order;
  Stream* streams[] = {&gpu(0).compute_stream(), &gpu(0).copy_stream(),
                       &gpu(1).compute_stream(), &gpu(1).copy_stream()};
  Event last[4];
  for (int round = 0; round < 3; ++round) {
    for (int s = 0; s < 4; ++s) {
      last[s] = launch(*streams[s], [&order, s, round] {
        order += static_cast<char>('a' + s);
        order += static_cast<char>('0' + round);
      });
    }
  }
  for (const Event& e : last) synchronize(e);
  return order;
}

TEST(SimScheduler, SeedZeroRunsInLaunchOrder) {
  const Clean clean;
  EXPECT_EQ(order_under(0), "a0b0c0d0a1b1c1d1a2b2c2d2");
}

TEST(SimScheduler, ASeedReordersReproduciblyAndKeepsEachStreamInOrder) {
  const Clean clean;
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::string order = order_under(seed);
    EXPECT_EQ(order, order_under(seed)) << seed;
    orders.insert(order);
    for (char s = 'a'; s <= 'd'; ++s) {
      EXPECT_LT(order.find({s, '0'}), order.find({s, '1'}));
      EXPECT_LT(order.find({s, '1'}), order.find({s, '2'}));
    }
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(SimScheduler, LaunchRunsNothingUntilSomebodyWaits) {
  const Clean clean;
  bool ran = false;
  const Event e = launch(gpu(0).compute_stream(), [&] { ran = true; });
  EXPECT_FALSE(ran);
  synchronize(e);
  EXPECT_TRUE(ran);
}

TEST(SimScheduler, PollingDoneGetsThere) {
  const Clean clean;
  Stream& s = gpu(0).compute_stream();
  int ran = 0;
  Event e;
  for (int i = 0; i < 10; ++i) e = launch(s, [&] { ++ran; });
  int polls = 0;
  while (!s.done(e)) ASSERT_LT(++polls, 100);
  EXPECT_EQ(ran, 10);
}

TEST(SimScheduler, AFullQueueRunsWorkInsteadOfGrowing) {
  const Clean clean;
  Stream& s = gpu(0).compute_stream();
  int ran = 0;
  for (int i = 0; i < 10000; ++i) launch(s, [&] { ++ran; });
  EXPECT_GE(ran, 10000 - 4096);
  EXPECT_LT(ran, 10000);
  synchronize(s.record());
  EXPECT_EQ(ran, 10000);
}

TEST(SimScheduler, WorkMayLaunchAndWaitOnItsOwnKind) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  int inner = 0;
  const Event outer = launch(a, [&] {
    synchronize(launch(b, [&] { ++inner; }));
    launch(a, [&] { ++inner; });
  });
  synchronize(outer);
  EXPECT_EQ(inner, 1);
  synchronize(a.record());
  EXPECT_EQ(inner, 2);
}

TEST(SimScheduler, ACycleOfWaitsIsANamedErrorAndDoesNotHang) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  // Each waits for a future point of the other.
  Event of_a = a.record(), of_b = b.record();
  of_a.sequence += 2;
  of_b.sequence += 2;
  a.wait(of_b);
  b.wait(of_a);
  bool ran = false;
  const Event e = launch(a, [&] { ran = true; });
  launch(b, [&] { ran = true; });
  const std::string m = message_of<errors::Internal>([&] { synchronize(e); });
  EXPECT_TRUE(says(m, "GPU:0 compute"));
  EXPECT_TRUE(says(m, "GPU:1 compute"));
  EXPECT_TRUE(says(m, "cycle"));
  EXPECT_FALSE(ran);
}

TEST(SimScheduler, WaitingForWorkThatNobodyLaunchedIsANamedError) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Event never = a.record();
  never.sequence += 5;
  EXPECT_TRUE(says(message_of<errors::Internal>([&] { synchronize(never); }),
                   "nobody launched it"));
  Stream& b = gpu(1).compute_stream();
  b.wait(never);
  EXPECT_TRUE(
      says(message_of<errors::Internal>([&] { synchronize(b.record()); }),
           "got no such work"));
}

TEST(SimScheduler, WorkThatWaitsForItselfFails) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Event self = a.record();
  self.sequence += 1;
  EXPECT_TRUE(says(message_of<errors::Internal>([&] {
                     synchronize(launch(a, [&] { synchronize(self); }));
                   }),
                   "waits for itself"));
}

TEST(SimScheduler, AFailurePoisonsWhatComesAfterAndWhoWaitsForIt) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  int before = 0, after = 0, apart = 0;
  const Event first = launch(a, [&] { ++before; });
  const Event bad = launch(
      a, [] { throw errors::InvalidArgument("no such row: 7"); }, "Gather");
  const Event later = launch(a, [&] { ++after; });
  const Event other = launch(b, [&] { ++apart; });
  b.wait(later);
  const Event follower = launch(b, [&] { ++after; });

  const std::string m =
      message_of<errors::InvalidArgument>([&] { synchronize(follower); });
  EXPECT_EQ(
      m,
      "Gather failed on GPU:0 (model.cc:7): no such row: 7; what GPU:0 was "
      "given after that is skipped, until "
      "config::reset_device_error(\"GPU:0\")");
  EXPECT_THROW(synchronize(bad), errors::InvalidArgument);
  EXPECT_THROW(synchronize(later), errors::InvalidArgument);
  EXPECT_NO_THROW(synchronize(first));
  EXPECT_NO_THROW(synchronize(other));
  EXPECT_EQ(before, 1);
  EXPECT_EQ(apart, 1);
  EXPECT_EQ(after, 0);
}

TEST(SimScheduler, AfterAResetNewWorkRunsAndOldFailuresStay) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  const Event bad = launch(a, [] { throw std::runtime_error("broken"); });
  gpu(0).reset_error();
  int ran = 0;
  const Event good = launch(a, [&] { ++ran; });
  EXPECT_NO_THROW(synchronize(good));
  EXPECT_EQ(ran, 1);
  EXPECT_THROW(synchronize(bad), errors::Internal);
  // Later reads of the failed result fail, here and there.
  b.wait(bad);
  EXPECT_THROW(synchronize(launch(b, [&] { ++ran; })), errors::Internal);
  a.wait(bad);
  EXPECT_THROW(synchronize(launch(a, [&] { ++ran; })), errors::Internal);
  EXPECT_EQ(ran, 1);
}

TEST(SimScheduler, WhatIsRecordedAfterAResetIsNotTheOldFailure) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  launch(a, [] { throw std::runtime_error("broken"); });
  gpu(0).reset_error();
  b.wait(a.record());  // nothing was launched since
  EXPECT_NO_THROW(synchronize(a.record()));
  EXPECT_NO_THROW(synchronize(launch(b, [] {})));
}

TEST(SimScheduler, OrderForReuseDoesNotCarryAFailureOver) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  Stream& b = gpu(1).compute_stream();
  b.wait_for_reuse(launch(a, [] { throw std::runtime_error("broken"); }));
  bool ran = false;
  EXPECT_NO_THROW(synchronize(launch(b, [&] { ran = true; })));
  EXPECT_TRUE(ran);
}

TEST(SimScheduler, SkippedWorkIsStillDropped) {
  const Clean clean;
  Stream& a = gpu(0).compute_stream();
  auto held = std::make_shared<int>(0);
  launch(a, [] { throw std::runtime_error("broken"); });
  const Event e = launch(a, [held] { ++*held; });
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_THROW(synchronize(e), errors::Internal);
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 0);
}

TEST(SimScheduler, TheVirtualClockAddsWorkAndCarriesOverWaits) {
  const Clean clean;
  RuntimeConfig config;
  config.simulated_gpus = 2;
  config.sim_flops_per_second = 1e9;
  config.sim_bytes_per_second = 1e9;
  config.sim_link_bytes_per_second = 1e8;
  BackendRegistry registry;
  register_all_backends(registry);
  for (const auto& backend : registry.backends()) {
    if (std::string(backend->name()) != "sim") continue;
    const auto devices = backend->create_devices(
        config, lay_out_gpus(config, config.simulated_gpus));
    Stream& a = devices[0]->compute_stream();
    Stream& b = devices[1]->compute_stream();
    Work work;
    work.flops = 2e6;  // 2 ms
    work.moved_bytes = 1e6;
    a.launch(work);
    b.wait(a.record());
    work.flops = 0;
    work.crosses_link = true;  // 10 ms
    b.launch(work);
    synchronize(b.record());
    EXPECT_NEAR(clock_us(*devices[0]), 2005, 0.01);
    EXPECT_NEAR(clock_us(*devices[1]), 12010, 0.01);
  }
}

TEST(SimScheduler, ThreadsMayLaunchAndWaitAtOnce) {
  const Clean clean;
  std::atomic<int> ran{0};
  int plain[2] = {0, 0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Stream& mine = gpu(t).compute_stream();
      Stream& other = gpu(1 - t).copy_stream();
      for (int i = 0; i < 300; ++i) {
        const Event e = launch(mine, [&, t] {
          ++plain[t];
          ++ran;
        });
        other.wait(e);
        const Event f = launch(other, [&, t] { plain[t] += 0; });
        mine.wait(f);
        if (i % 7 == 0) synchronize(f);
        if (i % 11 == 0) mine.done(e);
      }
      synchronize(mine.record());
      synchronize(other.record());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(ran, 600);
  EXPECT_EQ(plain[0] + plain[1], 600);
}

}  // namespace
}  // namespace berth::sim
