#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "berth/errors.h"

namespace berth {
namespace {

ThreadPoolOptions shared(int size) {
  return {.cores = CoreSet::allowed(), .size = size, .shared = true};
}

// Runs many jobs with plain (not atomic) counters: a chunk executed twice, or
// one that belongs to another run, changes a sum; a missing happens-before
// edge is a race that the thread sanitizer reports.
void stress(ThreadPool& pool, int rounds) {
  int counts[ThreadPool::kMaxChunks] = {};
  long expected = 0;
  for (int round = 0; round < rounds; ++round) {
    const int chunks = 1 + round * 7 % ThreadPool::kMaxChunks;
    pool.parallel_for(chunks, [&](int i) { counts[i] += round + 1; });
    expected += static_cast<long>(chunks) * (round + 1);
  }
  long sum = 0;
  for (int i = 0; i < ThreadPool::kMaxChunks; ++i) sum += counts[i];
  EXPECT_EQ(sum, expected);
  EXPECT_EQ(counts[0], rounds * (rounds + 1) / 2);
}

TEST(ThreadPool, RunsEveryChunkExactlyOnceUnderStress) {
  for (int size : {1, 2, 3, 4}) {
    ThreadPool pool(shared(size));
    stress(pool, 20000);
  }
}

TEST(ThreadPool, RunsEveryChunkExactlyOnceWhileSpinning) {
  ThreadPool pool({.cores = CoreSet::allowed()});
  EXPECT_EQ(pool.size(), CoreSet::allowed().size());
  stress(pool, 5000);
}

TEST(ThreadPool, RunsChunksOnSeveralThreadsAtOnce) {
  ThreadPool pool(shared(3));
  std::atomic<int> inside{0};
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(60);
  pool.parallel_for(3, [&](int) {
    ++inside;
    while (inside < 3 && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now(), limit);
}

TEST(ThreadPool, SurvivesMoreWorkersThanCores) {
  ThreadPool pool(shared(16));
  EXPECT_EQ(pool.size(), 16);
  stress(pool, 3000);
  ThreadPool crowded({.cores = CoreSet::allowed(), .size = 16});
  stress(crowded, 3000);
}

TEST(ThreadPool, SurvivesMoreWorkersThanChunks) {
  ThreadPool pool(shared(40));
  stress(pool, 500);
}

TEST(ThreadPool, WakesWorkersThatHaveGoneToSleep) {
  ThreadPool pool({.cores = CoreSet::allowed(), .spin_us = 20});
  for (int round = 0; round < 50; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    stress(pool, 3);
  }
}

TEST(ThreadPool, LeavesSleepersAsleepForShortRuns) {
  ThreadPool pool(shared(4));
  int counts[8] = {};
  for (int round = 0; round < 1000; ++round) {
    pool.parallel_for(
        8, [&](int i) { ++counts[i]; }, /*estimate_us=*/1);
  }
  for (int count : counts) EXPECT_EQ(count, 1000);
}

TEST(ThreadPool, RunsNestedCallsInline) {
  ThreadPool pool(shared(4));
  ThreadPool other(shared(2));
  int inner[8][8] = {};
  EXPECT_FALSE(ThreadPool::in_chunk());
  pool.parallel_for(8, [&](int i) {
    EXPECT_TRUE(ThreadPool::in_chunk());
    const auto self = std::this_thread::get_id();
    ThreadPool& target = i % 2 == 0 ? pool : other;
    target.parallel_for(8, [&, i](int j) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      ++inner[i][j];
    });
  });
  EXPECT_FALSE(ThreadPool::in_chunk());
  for (auto& row : inner) {
    for (int count : row) EXPECT_EQ(count, 1);
  }
}

TEST(ThreadPool, RethrowsTheExceptionOfTheLowestChunkAfterAllAreDone) {
  for (int size : {1, 4}) {
    ThreadPool pool(shared(size));
    for (int round = 0; round < 200; ++round) {
      int done[16] = {};
      try {
        pool.parallel_for(16, [&](int i) {
          ++done[i];
          if (i % 5 == 3) throw std::runtime_error(std::to_string(i));
        });
        FAIL() << "nothing thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "3");
      }
      for (int count : done) EXPECT_EQ(count, 1);
    }
    stress(pool, 100);  // still usable
  }
}

TEST(ThreadPool, ServesConcurrentCallers) {
  ThreadPool pool(shared(3));
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] { stress(pool, 2000); });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, CanBeDestroyedWhileIdleSpinningOrUnused) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool unused(shared(3));
    ThreadPool spinning({.cores = CoreSet::allowed()});
    spinning.parallel_for(4, [](int) {});
  }
}

TEST(ThreadPool, CallsTheStartHookOnEveryWorker) {
  std::atomic<int> mask{0};
  {
    ThreadPoolOptions options = shared(4);
    options.on_start = [&](int worker) { mask |= 1 << worker; };
    ThreadPool pool(options);
    stress(pool, 10);
  }
  EXPECT_EQ(mask.load(), 0xe);
}

TEST(ThreadPool, RefusesImpossibleRequestsWithANamedError) {
  EXPECT_THROW(ThreadPool({.size = -1}), errors::InvalidArgument);
  EXPECT_THROW(ThreadPool({.size = 1000}), errors::InvalidArgument);
  ThreadPool pool(shared(2));
  EXPECT_THROW(pool.parallel_for(33, [](int) {}), errors::InvalidArgument);
  EXPECT_THROW(pool.parallel_for(-1, [](int) {}), errors::InvalidArgument);
  pool.parallel_for(0, [](int) { FAIL(); });
}

}  // namespace
}  // namespace berth
