// Cards, queues and memory on the fake driver.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/cuda_queue.h"
#include "backends/cuda/scenario_testing.h"
#include "base/clock.h"
#include "berth/errors.h"

namespace berth::cuda {
namespace {

class Cards : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    kFake->begin("devices=2");
  }
};

TEST_F(Cards, SayWhatTheyAre) {
  CardPair pair;
  const gpu::Features& f = pair.card(1).features();
  EXPECT_EQ(f.name, "Fake GPU 1");
  EXPECT_EQ(f.memory_bytes, size_t{1} << 30);
  EXPECT_EQ(f.local_bytes, 49152u);
  EXPECT_TRUE(f.has_f64);
  EXPECT_EQ(pair.card(1).architecture(), 90);
  EXPECT_TRUE(pair.card(0).reaches(pair.card(1)));
}

TEST_F(Cards, WhatWasAppendedIsCounted) {
  CardPair pair;
  const auto queue = pair.card(0).make_queue();
  const auto memory = pair.card(0).memory_source();
  std::byte* data = memory->reserve(4096);
  EXPECT_EQ(queue->appended(), 0u);
  queue->fill(data, 1, 0);
  EXPECT_EQ(queue->appended(), 0u);
  queue->fill(data, 1, 4096);
  const gpu::Mark mark = queue->mark();
  ASSERT_NE(mark, nullptr);
  EXPECT_EQ(queue->appended(), 1u);
  queue->await(mark);
  EXPECT_TRUE(queue->passed(mark));
  queue->release(mark);
  memory->release(data, 4096);
}

TEST_F(Cards, MemoryThatIsNotPinnedIsReadBeforeACopyReturns) {
  CardPair pair;
  CudaCard& card = pair.card(0);
  Device& d = pair.device(0);
  const auto queue = card.make_queue();
  const BlockRef block = BlockRef::adopt(d.allocator().allocate(64));
  char bytes[64] = {};
  for (const MemorySpace* host : {&d.host_memory(), &pinned_memory()}) {
    const long before = kFake->calls("cuStreamSynchronize");
    queue->copy({block->data, &d.memory(), bytes, host, 64});
    queue->copy({bytes, host, block->data, &d.memory(), 64});
    EXPECT_EQ(kFake->calls("cuStreamSynchronize") - before,
              host->pinned ? 0 : 2);
  }
}

TEST_F(Cards, AMarkPassesLater) {
  kFake->begin("devices=2,later=2");
  CardPair pair;
  const auto queue = pair.card(0).make_queue();
  const auto other = pair.card(1).make_queue();
  const auto memory = pair.card(0).memory_source();
  std::byte* data = memory->reserve(4096);
  queue->fill(data, 1, 4096);
  const gpu::Mark mark = queue->mark();
  EXPECT_FALSE(queue->passed(mark));
  other->follow(mark);
  EXPECT_EQ(other->appended(), 1u);
  const gpu::Mark behind = other->mark();
  EXPECT_FALSE(queue->passed(mark));
  EXPECT_TRUE(queue->passed(mark));
  queue->release(mark);
  other->release(behind);
  memory->release(data, 4096);
}

TEST_F(Cards, EventsAreUsedAgain) {
  CardPair pair;
  const auto queue = pair.card(0).make_queue();
  const auto memory = pair.card(0).memory_source();
  std::byte* data = memory->reserve(4096);
  const long before = kFake->objects();
  for (int i = 0; i < 100; ++i) {
    queue->fill(data, 1, 16);
    const gpu::Mark mark = queue->mark();
    queue->await(mark);
    queue->release(mark);
  }
  EXPECT_LE(kFake->objects(), before + 1);
  memory->release(data, 4096);
}

TEST_F(Cards, TimesGoOnWhenTheClockMovesFar) {
  CardPair pair;
  const auto queue = pair.card(0).make_queue();
  const auto memory = pair.card(0).memory_source();
  std::byte* data = memory->reserve(4096);
  double last = 0;
  // Half a millisecond each by the fake's clock: three seconds, more than has
  // passed by the host's.
  for (int i = 0; i < 6000; ++i) {
    queue->fill(data, 1, 16);
    const gpu::Mark mark = queue->mark();
    const double us = queue->passed_us(mark);
    EXPECT_GE(us, last);
    EXPECT_LE(us, host_clock_us());
    last = us;
    queue->release(mark);
  }
  memory->release(data, 4096);
}

TEST_F(Cards, ReservationsBeginAtPages) {
  CardPair pair;
  const size_t before = kFake->bytes_used();
  for (const bool pinned : {false, true}) {
    const auto memory =
        pinned ? pair.card(0).pinned_source() : pair.card(0).memory_source();
    EXPECT_EQ(memory->host_addressable(), pinned);
    for (const size_t bytes : {size_t{4096}, size_t{3} << 20}) {
      std::byte* data = memory->reserve(bytes);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
      if (pinned) data[bytes - 1] = std::byte{1};
      memory->release(data, bytes);
    }
  }
  EXPECT_EQ(kFake->bytes_used(), before);
}

TEST_F(Cards, MemoryIsNullWhenItIsUsedUp) {
  CardPair pair;
  const auto memory = pair.card(0).memory_source();
  EXPECT_EQ(memory->reserve(size_t{2} << 30), nullptr);
  kFake->begin("devices=2,fail=cuMemHostAlloc@1:2");
  EXPECT_EQ(pair.card(0).pinned_source()->reserve(4096), nullptr);
}

TEST_F(Cards, OutOfMemorySaysWhatItIsOf) {
  CardPair pair(size_t{4} << 20);
  try {
    pair.device(0).allocator().allocate(size_t{8} << 20);
    FAIL();
  } catch (const errors::ResourceExhausted& e) {
    EXPECT_NE(std::string(e.what()).find("GPU:40 is out of memory: 8 MiB "
                                         "asked"),
              std::string::npos)
        << e.what();
  }
}

TEST_F(Cards, ManyThreadsCall) {
  CardPair pair;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pair, t] {
      Device& d = pair.device(t % 2);
      const BlockRef b = BlockRef::adopt(d.allocator().allocate(4096));
      std::vector<int> in(1024, t), out(1024, -1);
      for (int i = 0; i < 200; ++i) {
        d.copy_from_host(b->data, in.data(), 4096);
        d.copy_to_host(out.data(), b->data, 4096);
        EXPECT_EQ(in, out);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(Cards, AKernelThatIsNotThere) {
  CardPair pair;
  const auto module = pair.card(0).module(small_source());
  EXPECT_NE(module->kernel("scale"), nullptr);
  try {
    module->kernel("scal");
    FAIL();
  } catch (const errors::Internal& e) {
    EXPECT_STREQ(e.what(), "GPU kernel scal: CUDA_ERROR_NOT_FOUND (500)");
  }
}

TEST_F(Cards, TooManyGroupsAcross) {
  CardPair pair;
  const auto kernel = pair.card(0).module(small_source())->kernel("scale");
  const auto queue = pair.card(0).make_queue();
  EXPECT_THROW(kernel->launch(*queue, {{1, 65536, 1}, 256}, nullptr, 0),
               errors::Internal);
}

TEST_F(Cards, ATextThatIsNoProgram) {
  CardPair pair;
  gpu::KernelSource source;
  source.generated = "KERNEL(FLAT_SIZE, broken)(BUF(f32, x)) { y = 1; }\n";
  try {
    pair.card(0).module(source);
    FAIL();
  } catch (const errors::Internal& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("does not compile kernels"), std::string::npos) << what;
    EXPECT_NE(what.find("identifier \"y\" is undefined"), std::string::npos)
        << what;
  }
}

TEST_F(Cards, LeaveTheContextOfOtherLibrariesCurrent) {
  std::string why;
  const Driver& d = *driver(&why);
  const auto work = [](CardPair& pair) {
    std::vector<char> bytes(4096);
    Device& device = pair.device(0);
    const BlockRef block =
        BlockRef::adopt(device.allocator().allocate(bytes.size()));
    device.copy_from_host(block->data, bytes.data(), bytes.size());
    device.fill_async(device.compute_stream(), block->data, 1, bytes.size());
    device.copy_to_host(bytes.data(), block->data, bytes.size());
  };
  for (const bool any : {false, true}) {
    std::optional<CardPair> pair(std::in_place);
    call(d, d.cuCtxSetCurrent, any ? pair->card(1).context() : nullptr);
    work(*pair);
    EXPECT_EQ(kFake->current(), any ? 1 : -1);
    pair.reset();
    EXPECT_EQ(kFake->current(), any ? 1 : -1);
  }
  call(d, d.cuCtxSetCurrent, static_cast<CUcontext>(nullptr));
}

TEST_F(Cards, MemoryGoesBackWhenNoWorkUsesItAnyMore) {
  CardPair pair;
  Device& d = pair.device(0);
  auto& stream = static_cast<gpu::QueueStream&>(d.compute_stream());
  BlockRef block = BlockRef::adopt(d.allocator().allocate(size_t{40} << 20));
  CUstream held = static_cast<CudaQueue&>(stream.queue()).appending();
  kFake->hold(held, true);
  launch_on(stream, [&](Stream& s) { d.fill_async(s, block->data, 1, 4096); });
  block = {};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kFake->hold(held, false);
  });
  // Both together are more than the limit.
  block = BlockRef::adopt(d.allocator().allocate(size_t{48} << 20));
  later.join();
  EXPECT_EQ(kFake->freed_early(), 0);
}

TEST_F(Cards, MemoryIsLeftToOtherProcesses) {
  // Far more than what devices of other tests keep.
  kFake->begin("devices=2,memory=1G,others=512M");
  CardPair pair;
  const auto memory = pair.card(0).memory_source();
  EXPECT_EQ(memory->reserve(size_t{480} << 20), nullptr);
  std::byte* data = memory->reserve(size_t{256} << 20);
  ASSERT_NE(data, nullptr);
  memory->release(data, size_t{256} << 20);
}

TEST_F(Cards, AreLostByErrorsThatLast) {
  for (const int error : {700, 719, 721, 806, 911, 999}) {
    EXPECT_TRUE(is_lasting(static_cast<CUresult>(error))) << error;
  }
  for (const int error : {1, 2, 400, 600, 720, 901, 908}) {
    EXPECT_FALSE(is_lasting(static_cast<CUresult>(error))) << error;
  }
}

// Its memory is used again once it counts as passed.
TEST_F(Cards, AMarkThatFailsIsWaitedFor) {
  CardPair pair;
  const auto queue = pair.card(0).make_queue();
  const gpu::Mark mark = queue->mark();
  kFake->begin("devices=2,fail=cuEventQuery@1:1");
  EXPECT_THROW(queue->passed(mark), errors::Internal);
  EXPECT_EQ(kFake->calls("cuStreamSynchronize"), 1);
  queue->release(mark);
}

}  // namespace
}  // namespace berth::cuda
