#include "device/allocator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/poison.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/idle_memory.h"
#include "device/testing.h"

namespace berth {
namespace {

using test::PlayedStream;
using test::TestDevice;

constexpr size_t kMiB = 1 << 20;

TEST(Allocator, BlocksHoldTheirBytesAndNeverOverlap) {
  TestDevice device;
  Allocator& a = device.allocator();
  std::mt19937 random(3);
  struct Live {
    Block* block;
    size_t bytes;
    uint8_t tag;
  };
  std::vector<Live> live;
  auto check_and_free = [&](size_t i) {
    const Live& l = live[i];
    const auto* p = reinterpret_cast<const uint8_t*>(l.block->data);
    for (size_t k = 0; k < l.bytes; k += 61) ASSERT_EQ(p[k], l.tag);
    ASSERT_EQ(l.bytes == 0 || p[l.bytes - 1] == l.tag, true);
    BlockRef::drop(l.block);
    live[i] = live.back();
    live.pop_back();
  };
  for (int round = 0; round < 3000; ++round) {
    if (live.size() < 60 && random() % 2 == 0) {
      // From nothing to 4 MiB, small ones most often.
      const size_t bytes = random() >> (10 + random() % 22);
      Block* b = a.allocate(bytes);
      const auto tag = static_cast<uint8_t>(round);
      ASSERT_GE(b->bytes, bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(b->data) % Allocator::kAlignment,
                0u);
      std::memset(b->data, tag, bytes);
      live.push_back({b, bytes, tag});
    } else if (!live.empty()) {
      check_and_free(random() % live.size());
    }
  }
  while (!live.empty()) check_and_free(0);
}

TEST(Allocator, AWarmAllocatorAsksTheSourceForNothing) {
  TestDevice device;
  Allocator& a = device.allocator();
  auto work = [&] {
    std::vector<BlockRef> blocks;
    for (size_t bytes : {100, 5000, 70000, 2000000, 9000000}) {
      for (int i = 0; i < 3; ++i) {
        blocks.push_back(BlockRef::adopt(a.allocate(bytes)));
      }
    }
  };
  work();
  const uint64_t calls = a.info().source_calls;
  for (int i = 0; i < 50; ++i) work();
  EXPECT_EQ(a.info().source_calls, calls);
}

TEST(Allocator, CountsLargeBlocksExactly) {
  TestDevice device;
  Allocator& a = device.allocator();
  {
    const BlockRef one = BlockRef::adopt(a.allocate(2 * kMiB));
    const BlockRef two = BlockRef::adopt(a.allocate(3 * kMiB + 1));
    EXPECT_EQ(a.info().current_bytes, 5 * kMiB + 4096);
  }
  EXPECT_EQ(a.info().current_bytes, 0u);
  EXPECT_EQ(a.info().peak_bytes, 5 * kMiB + 4096);
  a.reset_peak();
  EXPECT_EQ(a.info().peak_bytes, 0u);
  EXPECT_EQ(a.info().reserved_bytes, 32 * kMiB);
  a.empty_cache();
  EXPECT_EQ(a.info().reserved_bytes, 0u);
}

std::string out_of_memory(Allocator& a, size_t bytes) {
  try {
    BlockRef::adopt(a.allocate(bytes));
  } catch (const errors::ResourceExhausted& e) {
    return e.what();
  }
  return "";
}

TEST(Allocator, ALimitIsKeptAndTheErrorNamesWhoHasWhat) {
  TestDevice device(8 * kMiB);
  Allocator& a = device.allocator();
  BlockRef held = BlockRef::adopt(a.allocate(5 * kMiB));
  const std::string m = out_of_memory(a, 4 * kMiB);
  for (const char* part : {"CPU:7 is out of memory", "4 MiB asked",
                           "5 MiB in use", "limit 8 MiB", "smaller batch"}) {
    EXPECT_NE(m.find(part), m.npos) << part << " not in: " << m;
  }
  // Small blocks share what is left; then the large one fits again.
  std::vector<BlockRef> small;
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) {
          small.push_back(BlockRef::adopt(a.allocate(kMiB / 2)));
        }
      },
      errors::ResourceExhausted);
  EXPECT_GE(small.size(), 4u);
  EXPECT_LE(a.info().reserved_bytes, 8 * kMiB);
  held = {};
  held = BlockRef::adopt(a.allocate(4 * kMiB));
  a.set_limit_bytes(0);
  BlockRef::adopt(a.allocate(40 * kMiB));
}

// A step of each length leaves blocks of its sizes; the next needs others.
TEST(Allocator, SizesThatAreNoLongerUsedGiveWay) {
  TestDevice device(16 * kMiB);
  Allocator& a = device.allocator();
  const BlockRef stays = BlockRef::adopt(a.allocate(1000));
  std::memset(stays.get()->data, 7, 1000);
  for (int round = 0; round < 3; ++round) {
    for (size_t kib = 1; kib <= 1024; kib += kib / 4 + 1) {
      std::vector<BlockRef> step;
      for (size_t held = 0; held < 6 * kMiB; held += kib << 10) {
        step.push_back(BlockRef::adopt(a.allocate(kib << 10)));
        std::memset(step.back().get()->data, 1, kib << 10);
      }
    }
    BlockRef::adopt(a.allocate(12 * kMiB));
  }
  EXPECT_LE(a.info().reserved_bytes, 16 * kMiB);
  EXPECT_EQ(
      std::count(stays.get()->data, stays.get()->data + 1000, std::byte{7}),
      1000);
}

// Blocks of 1 to 6 MiB, each made beside another one that goes.
TEST(Allocator, WhatStaysLeavesNoHolesWhereSomethingWent) {
  for (const size_t limit : {40, 60}) {
    TestDevice device(limit * kMiB);
    Allocator& a = device.allocator();
    std::vector<BlockRef> stay;
    size_t kept = 0;
    for (size_t i = 0; i < 6; ++i) {
      const size_t bytes = (i * 5 % 6 + 1) * kMiB + 4096;
      const BlockRef goes = BlockRef::adopt(a.allocate(bytes));
      const BlockRef small = BlockRef::adopt(a.allocate(1000 * (i + 1)));
      stay.push_back(BlockRef::adopt(allocate_lasting(a, bytes)));
      kept += bytes;
    }
    // But for slabs all that is left is in one piece.
    BlockRef::adopt(a.allocate(limit * kMiB - kept - 3 * kMiB));
  }
}

TEST(Allocator, SizesNearTheEndOfTheNumbersAreErrorsToo) {
  TestDevice device;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 4000, SIZE_MAX / 2 + 1}) {
    EXPECT_NE(out_of_memory(device.allocator(), bytes), "") << bytes;
  }
}

TEST(Allocator, ABlockIsNotReusedBeforeForeignUsesEnd) {
  for (size_t bytes : {size_t{3000}, 2 * kMiB}) {
    TestDevice device, other;
    PlayedStream stream(&other);
    Allocator& a = device.allocator();
    Block* block = a.allocate(bytes);
    add_use(block, {&stream, 3});
    add_use(block, {&stream, 5});  // the later one counts
    add_use(block, {&stream, 4});
    BlockRef::drop(block);
    {
      const BlockRef next = BlockRef::adopt(a.allocate(bytes));
      EXPECT_NE(next.get(), block);
      stream.reached = 4;
      const BlockRef third = BlockRef::adopt(a.allocate(bytes));
      EXPECT_NE(third.get(), block);
      stream.reached = 5;
      const BlockRef fourth = BlockRef::adopt(a.allocate(bytes));
      EXPECT_EQ(fourth.get(), block);
    }
    EXPECT_EQ(stream.waited_for, 0);
  }
}

TEST(Allocator, WhenMemoryIsFullItWaitsForForeignUses) {
  TestDevice device(4 * kMiB), other;
  PlayedStream stream(&other);
  Allocator& a = device.allocator();
  Block* block = a.allocate(3 * kMiB);
  add_use(block, {&stream, 1});
  BlockRef::drop(block);
  BlockRef::adopt(a.allocate(3 * kMiB));
  EXPECT_EQ(stream.reached, 1u);
}

TEST(Allocator, TryingWaitsForNothing) {
  TestDevice device(4 * kMiB), other;
  PlayedStream stream(&other);
  Allocator& a = device.allocator();
  Block* block = a.try_allocate(3 * kMiB);
  ASSERT_NE(block, nullptr);
  add_use(block, {&stream, 1});
  BlockRef::drop(block);
  EXPECT_EQ(a.try_allocate(3 * kMiB), nullptr);
  EXPECT_EQ(a.try_allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(stream.waited_for, 0);
  stream.reached = 1;
  const BlockRef again = BlockRef::adopt(a.try_allocate(3 * kMiB));
  EXPECT_EQ(again.get(), block);
}

TEST(Allocator, TryingGivesWholePagesThatAreNotShared) {
  TestDevice device;
  Allocator& a = device.allocator();
  for (size_t bytes : {0, 1, 4096, 5000}) {
    const BlockRef one = BlockRef::adopt(a.try_allocate(bytes));
    const BlockRef two = BlockRef::adopt(a.try_allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one->data) % 4096, 0u);
    EXPECT_GE(one->bytes, std::max<size_t>(bytes, 4096));
    EXPECT_GE(std::abs(one->data - two->data), 4096);
  }
  EXPECT_EQ(a.info().current_bytes, 0u);
}

TEST(Allocator, ItsBlocksKnowWhereTheyAre) {
  TestDevice device;
  Allocator pinned(&device, host_memory_source(), 0, &pinned_memory());
  const BlockRef a = BlockRef::adopt(device.allocator().allocate(100));
  const BlockRef b = BlockRef::adopt(pinned.try_allocate(100));
  Block wrapped;  // memory of somebody else
  wrapped.device = &device;
  EXPECT_EQ(&space_of(*a.get()), &device.memory());
  EXPECT_EQ(&space_of(*b.get()), &pinned_memory());
  EXPECT_EQ(&space_of(wrapped), &device.memory());
  EXPECT_EQ(b->device, &device);
}

TEST(Allocator, MoreStreamsThanABlockCanNoteOnlyCostAWait) {
  TestDevice device, other;
  std::deque<PlayedStream> streams;
  Block* block = device.allocator().allocate(2 * kMiB);
  for (int i = 0; i < Block::kMaxUses + 2; ++i) {
    streams.emplace_back(&other);
    add_use(block, {&streams.back(), 1});
  }
  EXPECT_EQ(block->num_uses, Block::kMaxUses);
  // A stream that is not noted any more was waited for.
  for (const PlayedStream& s : streams) {
    bool noted = false;
    for (int i = 0; i < block->num_uses; ++i) {
      noted |= block->uses[i].stream == &s;
    }
    EXPECT_EQ(s.waited_for, noted ? 0 : 1);
  }
  for (PlayedStream& s : streams) s.reached = 1;
  BlockRef::drop(block);
}

// The allocator of /CPU:0 has caches per thread.
Allocator& host() { return DeviceManager::get().host().allocator(); }

// This thread has yet to tell of the block when the other one frees it.
TEST(AllocatorThreads, AForeignFreeDoesNotCountBelowZero) {
  TestDevice device;
  Allocator& a = device.allocator();
  BlockRef block = BlockRef::adopt(a.allocate(1024));
  std::thread([block = std::move(block)]() mutable { block = {}; }).join();
  EXPECT_EQ(a.info().current_bytes, 0u);
  EXPECT_LE(a.info().peak_bytes, 1024u);
}

TEST(AllocatorThreads, AProducerAndAConsumerDoNotMakeMemoryGrow) {
  constexpr int kBlocks = 30000;  // 120 MB
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<BlockRef> queue;
  const size_t before = host().info().reserved_bytes;
  std::thread consumer([&] {
    for (int i = 0; i < kBlocks; ++i) {
      BlockRef b;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        b = std::move(queue.front());
        queue.pop_front();
      }
      changed.notify_all();
      EXPECT_EQ(*reinterpret_cast<int*>(b->data), i);
    }
  });
  for (int i = 0; i < kBlocks; ++i) {
    BlockRef b = BlockRef::adopt(host().allocate(4096));
    *reinterpret_cast<int*>(b->data) = i;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return queue.size() < 32; });
    queue.push_back(std::move(b));
    changed.notify_all();
  }
  consumer.join();
  EXPECT_LT(host().info().reserved_bytes, before + 64 * kMiB);
}

// Small and large blocks count from the moment they are handed out to the
// moment they are let go, whichever thread does that.
TEST(Allocator, CountsWhatIsAliveAndItsPeak) {
  Allocator& a = host();
  const size_t before = a.info().current_bytes;
  a.reset_peak();
  {
    std::vector<BlockRef> blocks;
    for (int i = 0; i < 100; ++i) {
      blocks.push_back(BlockRef::adopt(a.allocate(1024)));
      EXPECT_EQ(a.info().current_bytes, before + (i + 1) * 1024);
    }
    blocks.push_back(BlockRef::adopt(a.allocate(4 * kMiB)));
    EXPECT_EQ(a.info().current_bytes, before + 100 * 1024 + 4 * kMiB);
    std::thread([&] {
      blocks.erase(blocks.begin(), blocks.begin() + 60);
    }).join();
    EXPECT_EQ(a.info().current_bytes, before + 40 * 1024 + 4 * kMiB);
  }
  EXPECT_EQ(a.info().current_bytes, before);
  // 64 KiB of each thread may be told too late.
  EXPECT_GE(a.info().peak_bytes + (64 << 10), before + 100 * 1024 + 4 * kMiB);
  a.reset_peak();
  EXPECT_EQ(a.info().peak_bytes, before);
}

TEST(AllocatorThreads, AThreadThatEndsReturnsItsCache) {
  auto one_thread = [] {
    std::thread([] {
      std::vector<BlockRef> blocks;
      for (int i = 0; i < 200; ++i) {
        blocks.push_back(BlockRef::adopt(host().allocate(2048)));
      }
    }).join();
  };
  one_thread();
  const MemoryInfo before = host().info();
  for (int i = 0; i < 200; ++i) one_thread();  // 80 MB
  EXPECT_EQ(host().info().current_bytes, before.current_bytes);
  EXPECT_LT(host().info().reserved_bytes, before.reserved_bytes + 40 * kMiB);
}

TEST(AllocatorThreads, ManyThreadsHandBlocksAround) {
  constexpr int kSlots = 64;
  std::mutex mutexes[kSlots];
  BlockRef slots[kSlots];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 3000; ++i) {
        const size_t bytes = random() >> (12 + random() % 16);
        BlockRef mine = BlockRef::adopt(host().allocate(bytes));
        std::memset(mine->data, t, std::min<size_t>(bytes, 4096));
        const size_t slot = random() % kSlots;
        std::lock_guard lock(mutexes[slot]);
        std::swap(mine, slots[slot]);
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(Allocator, CachedBlocksArePoisonedUnderAddressSanitizer) {
  if constexpr (!kPoisons) GTEST_SKIP() << "not an ASan build";
  TestDevice device;
  Allocator& a = device.allocator();
  for (size_t bytes : {size_t{1000}, 2 * kMiB}) {
    BlockRef b = BlockRef::adopt(a.allocate(bytes));
    std::byte* data = b->data;
    EXPECT_FALSE(is_poisoned(data));
    EXPECT_FALSE(is_poisoned(data + bytes - 1));
    EXPECT_TRUE(is_poisoned(data + bytes)) << "behind the bytes asked for";
    b = {};
    EXPECT_TRUE(is_poisoned(data));
    EXPECT_TRUE(is_poisoned(data + bytes - 1));
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_DEATH(*reinterpret_cast<volatile char*>(data) = 1,
                 "use-after-poison");
  }
}

TEST(Allocator, MemoryGivenBackToTheSystemIsNotPoisoned) {
  if constexpr (!kPoisons) GTEST_SKIP() << "not an ASan build";
  TestDevice device;
  Allocator& a = device.allocator();
  BlockRef b = BlockRef::adopt(a.allocate(2 * kMiB));
  std::byte* data = b->data;
  b = {};
  a.empty_cache();
  ASSERT_EQ(a.info().reserved_bytes, 0u);
  void* again = mmap(data, 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(again, MAP_FAILED);
  if (again == data) {
    EXPECT_FALSE(is_poisoned(data));
  }
  munmap(again, 4096);
}

}  // namespace
}  // namespace berth
