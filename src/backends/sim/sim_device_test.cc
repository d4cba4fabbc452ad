#include "backends/sim/sim_device.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <functional>
#include <thread>
#include <vector>

#include "backends/sim/sim_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"

namespace berth::sim {
namespace {

// Set before the program first asks for devices.
const bool kConfigured = [] {
  setenv("BERTH_SIM_MISSING", "Floor", 1);
  config::set_simulated_devices("GPUx2");
  return true;
}();

TEST(SimDevice, StandsInAsGpuAndSaysSo) {
  const auto list = config::list_logical_devices("GPU");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].name, "/job:localhost/replica:0/task:0/device:GPU:1");
  EXPECT_EQ(list[1].description, "simulated, 1 GiB");
  EXPECT_TRUE(list[1].simulated);
  EXPECT_EQ(&DeviceManager::get().default_device(), &gpu(0));
}

const KernelDef* first_kernel(const char* op) {
  const auto all = gpu(0).kernels().candidates(op_named(op));
  return all.empty() ? nullptr : &all.front();
}

TEST(SimDevice, RunsTheKernelsOfTheCpu) {
  EXPECT_NE(first_kernel("MatMul")->label, "reference");
  EXPECT_NE(first_kernel("AddV2")->label, "reference");
  // Like accelerators: one launch for each op, no LAPACK.
  EXPECT_EQ(first_kernel("_Fused"), nullptr);
  EXPECT_EQ(first_kernel("_MultiApply"), nullptr);
  EXPECT_EQ(first_kernel("Cholesky"), nullptr);
}

void reference_alone() {
  setenv("BERTH_SIM_KERNELS", "reference", 1);
  for (const OpDef* op : OpRegistry::get().all()) {
    for (const KernelDef& k : gpu(0).kernels().candidates(*op)) {
      fresh_process::check(k.label == "reference" || k.label == "widened",
                           op->name() + ": " + k.label);
    }
  }
}

TEST(SimDevice, RunsThePlainLoopsWhenTold) {
  IN_A_FRESH_PROCESS(reference_alone());
}

TEST(SimDevice, TheHostCannotReadOrWriteItsMemory) {
  const BlockRef b = BlockRef::adopt(gpu(0).allocator().allocate(64));
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  errno = 0;
  EXPECT_EQ(syscall(SYS_write, pipe_ends[1], b->data, 16), -1);
  EXPECT_EQ(errno, EFAULT);
  char byte = 1;
  ASSERT_EQ(write(pipe_ends[1], &byte, 1), 1);
  errno = 0;
  EXPECT_EQ(syscall(SYS_read, pipe_ends[0], b->data, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(SimDeviceDeath, AHostAccessFaults) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const BlockRef b = BlockRef::adopt(gpu(0).allocator().allocate(64));
  EXPECT_DEATH(*reinterpret_cast<volatile char*>(b->data) = 1, "");
}

// More threads wait for space in the full queue than it has.
TEST(SimDevice, ThreadsThatFillTheQueueLoseNoWork) {
  const Clean clean;
  constexpr int kThreads = 4, kEach = 20000;
  std::vector<std::atomic<int>> runs(kThreads * kEach);
  Stream& stream = gpu(0).compute_stream();
  const auto launch_all = [&](int first) {
    for (int i = first; i < first + kEach; ++i) {
      Work work;
      work.what = "Count";
      work.context = &runs[static_cast<size_t>(i)];
      work.run = [](void* c, Stream&) { ++*static_cast<std::atomic<int>*>(c); };
      stream.launch(work);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back(launch_all, t * kEach);
  }
  for (std::thread& t : threads) t.join();
  synchronize(stream.record());
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), kThreads * kEach);
}

TEST(SimDevice, BytesCopiedInComeOutAgain) {
  const Clean clean;
  const BlockRef b = BlockRef::adopt(gpu(1).allocator().allocate(4096));
  std::vector<int> in(1024), out(1024, -1);
  for (int i = 0; i < 1024; ++i) in[i] = i * i;
  gpu(1).copy_from_host(b->data, in.data(), 4096);
  gpu(1).copy_to_host(out.data(), b->data, 4096);
  EXPECT_EQ(in, out);
}

TEST(SimDevice, DevicesHaveMemoryOfTheirOwn) {
  const BlockRef a = BlockRef::adopt(gpu(0).allocator().allocate(4096));
  const BlockRef b = BlockRef::adopt(gpu(1).allocator().allocate(4096));
  const int one = 1, two = 2;
  int out = 0;
  gpu(0).copy_from_host(a->data, &one, 4);
  gpu(1).copy_from_host(b->data, &two, 4);
  gpu(0).copy_to_host(&out, a->data, 4);
  EXPECT_EQ(out, 1);
}

TEST(SimMemory, IsGivenBackMergedAndUsedAgain) {
  constexpr size_t kMiB = 1 << 20;
  SimMemory memory(2, 8 * kMiB);
  std::byte* a = memory.reserve(1, 4 * kMiB);
  std::byte* b = memory.reserve(1, 4 * kMiB);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(memory.reserve(1, 4096), nullptr);
  EXPECT_NE(memory.reserve(0, 4096), nullptr);
  *static_cast<char*>(memory.map().translate(a)) = 7;
  memory.release(1, a, 4 * kMiB);
  memory.release(1, b, 4 * kMiB);
  std::byte* c = memory.reserve(1, 8 * kMiB);
  EXPECT_EQ(c, a);
  EXPECT_EQ(*static_cast<char*>(memory.map().translate(c)), 0);
}

TEST(SimMemory, PoisonFillsFreshMemoryWithNans) {
  SimMemory memory(1, 1 << 20);
  memory.set_poison(true);
  const void* p = memory.map().translate(memory.reserve(0, 4096));
  EXPECT_TRUE(std::isnan(static_cast<const float*>(p)[5]));
}

TEST(SimDevice, ItsAllocatorHonoursTheMemoryLimit) {
  const std::string m = message_of<errors::ResourceExhausted>(
      [] { BlockRef::adopt(gpu(0).allocator().allocate(size_t{2} << 30)); });
  EXPECT_TRUE(says(m, "GPU:0 is out of memory"));
  EXPECT_TRUE(says(m, "limit 1 GiB"));
}

TEST(SimDevice, ABlockWithPendingUsesIsNotHandedOutAgain) {
  const Clean clean;
  Allocator& allocator = gpu(0).allocator();
  constexpr size_t kBytes = 3 << 20;
  Block* block = allocator.allocate(kBytes);
  std::byte* const data = block->data;
  Stream& foreign = gpu(1).compute_stream();
  // Polling runs one work at a time, so the use ends after the third poll.
  bool used = false;
  foreign.launch(call([] {}));
  foreign.launch(call([] {}));
  foreign.launch(call([&] { used = true; }));
  add_use(block, foreign.record());
  BlockRef::drop(block);
  const BlockRef second = BlockRef::adopt(allocator.allocate(kBytes));
  EXPECT_FALSE(used);
  EXPECT_NE(second->data, data);
  synchronize(foreign.record());
  const BlockRef third = BlockRef::adopt(allocator.allocate(kBytes));
  EXPECT_EQ(third->data, data);
}

TEST(SimDevice, MemoryHeldByQueuedWorkIsWaitedForBeforeGivingUp) {
  const Clean clean;
  constexpr size_t kBytes = 64 << 20;
  out_of_memory_at(gpu(0), 2 * kBytes);
  Allocator& allocator = gpu(0).allocator();
  // Each work holds its block until it has run.
  for (int i = 0; i < 10; ++i) {
    const BlockRef b = BlockRef::adopt(allocator.allocate(kBytes));
    gpu(0).compute_stream().launch(call([b] {}));
  }
  synchronize(gpu(0).compute_stream().record());
}

TEST(SimDevice, SoIsMemoryThatOtherDevicesWillRead) {
  const Clean clean;
  constexpr size_t kBytes = 64 << 20;
  out_of_memory_at(gpu(0), 2 * kBytes);
  for (int i = 0; i < 10; ++i) {
    const BlockRef b = BlockRef::adopt(gpu(0).allocator().allocate(kBytes));
    gpu(1).compute_stream().launch(call([b] {}));
    add_use(b.get(), gpu(1).compute_stream().record());
  }
  synchronize(gpu(1).compute_stream().record());
}

TEST(SimFaults, OutOfMemoryAtNBytes) {
  const Clean clean;
  out_of_memory_at(gpu(1), 1 << 20);
  EXPECT_THROW(BlockRef::adopt(gpu(1).allocator().allocate(64 << 20)),
               errors::ResourceExhausted);
  clear_faults(gpu(1));
  EXPECT_NO_THROW(BlockRef::adopt(gpu(1).allocator().allocate(64 << 20)));
}

TEST(SimFaults, TheNthLaunchFails) {
  const Clean clean;
  fail_launch(gpu(1), 2);
  Stream& s = gpu(1).compute_stream();
  int ran = 0;
  s.launch(call([&] { ++ran; }));
  const Event first = s.record();
  s.launch(call([&] { ++ran; }, "Relu"));
  s.launch(call([&] { ++ran; }));
  EXPECT_EQ(
      message_of<errors::Internal>([&] { synchronize(s.record()); }),
      "Relu failed on GPU:1 (model.cc:7): the launch failed (simulated fault); "
      "what GPU:1 was given after that is skipped, until "
      "config::reset_device_error(\"GPU:1\")");
  EXPECT_NO_THROW(synchronize(first));
  EXPECT_EQ(ran, 1);
  gpu(1).reset_error();
  s.launch(call([&] { ++ran; }));
  EXPECT_NO_THROW(synchronize(s.record()));
  EXPECT_EQ(ran, 2);
}

TEST(SimFaults, FaultsClearedBeforeTheWorkBeginsDoNotHappen) {
  const Clean clean;
  Stream& s = gpu(1).compute_stream();
  int ran = 0;
  for (const auto& fault : {&fail_launch, &lose_device, &hang_device}) {
    fault(gpu(1), 1);
    s.launch(call([&] { ++ran; }));
    clear_faults(gpu(1));
    EXPECT_NO_THROW(synchronize(s.record()));
  }
  EXPECT_EQ(ran, 3);
}

TEST(SimFaults, WhatHangsIsNeverDoneForWhoPolls) {
  const Clean clean;
  hang_device(gpu(1), 2);
  Stream& s = gpu(1).compute_stream();
  Stream& other = gpu(0).compute_stream();
  int ran = 0;
  s.launch(call([&] { ++ran; }));
  s.launch(call([&] { ++ran; }));
  const Event end = s.record();
  other.wait(end);
  other.launch(call([&] { ++ran; }));
  const Event after = other.record();
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(s.done(end));
    EXPECT_FALSE(other.done(after));
  }
  EXPECT_EQ(ran, 1);
  // Waiting ends with an error, also through another device.
  const auto m = message_of<errors::Unavailable>([&] { synchronize(after); });
  EXPECT_TRUE(says(m, "GPU:1"));
  EXPECT_TRUE(says(m, "hangs"));
  EXPECT_THROW(synchronize(end), errors::Unavailable);
  EXPECT_EQ(ran, 1);
}

TEST(SimFaults, ALostDeviceStaysLostAndIsNamed) {
  const Clean clean;
  lose_device(gpu(1), 2);
  Stream& s = gpu(1).compute_stream();
  int ran = 0;
  for (int i = 0; i < 3; ++i) s.launch(call([&] { ++ran; }));
  EXPECT_TRUE(
      says(message_of<errors::Unavailable>([&] { synchronize(s.record()); }),
           "GPU:1"));
  EXPECT_EQ(ran, 1);
  gpu(1).reset_error();
  s.launch(call([&] { ++ran; }));
  EXPECT_THROW(synchronize(s.record()), errors::Unavailable);
  int host = 0;
  const BlockRef b = BlockRef::adopt(gpu(1).allocator().allocate(64));
  EXPECT_THROW(gpu(1).copy_to_host(&host, b->data, 4), errors::Unavailable);
  EXPECT_EQ(ran, 1);
  // The other device is not affected.
  Stream& other = gpu(0).compute_stream();
  other.launch(call([&] { ++ran; }));
  EXPECT_NO_THROW(synchronize(other.record()));
  EXPECT_EQ(ran, 2);
}

// Copies to GPU:0 by work of the copy stream; returns the error from waiting.
std::string copy_in(const void* from, const MemorySpace& space) {
  const BlockRef to = BlockRef::adopt(gpu(0).allocator().allocate(64));
  Stream& s = gpu(0).copy_stream();
  s.launch(call([&] {
    gpu(0).copy_async(s, {to->data, &gpu(0).memory(), from, &space, 64});
  }));
  const Event end = s.record();
  return message_of<errors::Internal>([&] { synchronize(end); });
}

TEST(SimDevice, KnowsWhichMemoryIsPinned) {
  const Clean clean;
  const uint64_t before = bytes_from_pinned(gpu(0));
  const BlockRef pinned =
      BlockRef::adopt(DeviceManager::get().pinned_pool()->try_allocate(64));
  const BlockRef plain =
      BlockRef::adopt(DeviceManager::get().host().allocator().allocate(64));
  EXPECT_EQ(copy_in(pinned->data, pinned_memory()), "");
  EXPECT_EQ(bytes_from_pinned(gpu(0)), before + 64);
  EXPECT_EQ(copy_in(plain->data, gpu(0).host_memory()), "");
  EXPECT_EQ(bytes_from_pinned(gpu(0)), before + 64);
  EXPECT_TRUE(says(copy_in(plain->data, pinned_memory()), "which is not"));
}

TEST(SimFaults, EndPinnedMemoryWithoutAnError) {
  const Clean clean;
  Allocator& pool = *DeviceManager::get().pinned_pool();
  const size_t more = pool.info().reserved_bytes + (64 << 20);
  limit_pinned(gpu(0), 4096);
  EXPECT_EQ(pool.try_allocate(more), nullptr);
  clear_faults(gpu(0));
  EXPECT_TRUE(BlockRef::adopt(pool.try_allocate(more)));
  pool.empty_cache();
}

TEST(SimFaults, AreReadFromText) {
  const auto list = parse_faults(
      "launch=GPU:0@17,oom=GPU:1@1000000,lost=GPU:1@20,"
      "pin=GPU:0@4096");
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[1].kind, FaultRequest::Kind::kOutOfMemory);
  EXPECT_EQ(list[2].device, 1);
  EXPECT_EQ(list[2].at, 20u);
  EXPECT_EQ(list[3].kind, FaultRequest::Kind::kPinned);
  for (const char* bad : {"launch", "launch=17", "boom=GPU:0@1", "lost=CPU:0@1",
                          "lost=GPU:@1", "lost=GPU:0@", "lost=GPU:0@0",
                          "lost=GPU:-1@2", "@=", "launch=GPU:0@1,,", "@GPU:0=1",
                          "oom=GPU:0@99999999999999999999999"}) {
    EXPECT_TRUE(
        says(message_of<errors::InvalidArgument>([&] { parse_faults(bad); }),
             "expected"))
        << bad;
  }
}

// Makes devices of a separate backend, beside those of the process.
std::vector<std::unique_ptr<Device>> create(const RuntimeConfig& config) {
  BackendRegistry registry;
  register_all_backends(registry);
  for (const auto& backend : registry.backends()) {
    if (std::string(backend->name()) == "sim") {
      return backend->create_devices(
          config, lay_out_gpus(config, config.simulated_gpus));
    }
  }
  return {};
}

TEST(SimBackend, RefusesWhatItCannotGive) {
  RuntimeConfig config;
  config.simulated_gpus = 1;
  config.sim_missing_kernels = {"NoSuchOp"};
  const std::string m = message_of<errors::Error>([&] { create(config); });
  EXPECT_TRUE(says(m, "NoSuchOp"));
  EXPECT_TRUE(says(m, "BERTH_SIM_MISSING"));
  config.sim_missing_kernels = {};
  config.sim_memory_bytes = ~size_t{0};
  EXPECT_THROW(create(config), errors::InvalidArgument);
  config.sim_memory_bytes = 1 << 20;
  config.sim_flops_per_second = 0;
  EXPECT_THROW(create(config), errors::InvalidArgument);
  config.sim_flops_per_second = 1e12;
  config.sim_faults = "lost=GPU:4@1";
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>([&] { create(config); }),
                   "GPU:4"));
}

// 10 MB over a link of 10 GB/s and 1 GFLOP at 1 TFLOP/s: a millisecond each.
TEST(SimDevice, BringsInTheNextBatchWhileItComputes) {
  const Clean clean;
  Device& d = gpu(0);
  const Tensor batch =
      make_tensor(DeviceManager::get().host(), float32, Shape({2'500'000}));
  // The second copy goes to memory that was used before.
  for (int i = 0; i < 2; ++i) {
    const double before = clock_us(d);
    Work step = call([] {});
    step.flops = 1e9;
    d.compute_stream().launch(step);
    const Tensor there = copy_to_device(batch, d);
    synchronize(d.compute_stream().record());
    synchronize(there.impl()->block->ready);
    EXPECT_GT(clock_us(d) - before, 1000);
    EXPECT_LT(clock_us(d) - before, 1500) << "time " << i + 1;
  }
}

// Freed memory must not be written before its readers are done, in any order of
// work without ordering events.
void waits_for_earlier_owners(
    const std::function<const std::byte*(Device&)>& write_again) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Clean clean;
    Device& d = gpu(0);
    set_seed(d, seed);
    const std::byte* data = nullptr;
    bool read = false;
    {
      const Tensor old = make_tensor(d, float32, Shape({1'000'000}));
      data = old.impl()->data();
      d.compute_stream().launch(call([&] { read = true; }));
    }
    ASSERT_EQ(write_again(d), data) << "the memory is not used again";
    EXPECT_TRUE(read) << "seed " << seed;
    synchronize(d.compute_stream().record());
  }
}

TEST(SimDevice, BringsInNothingBeforeItsMemoryIsFree) {
  const Tensor batch =
      make_tensor(DeviceManager::get().host(), float32, Shape({1'000'000}));
  waits_for_earlier_owners([&](Device& d) {
    const Tensor there = copy_to_device(batch, d);
    synchronize(there.impl()->block->ready);
    return there.impl()->data();
  });
}

TEST(SimDevice, CopiesFromTheHostIntoNothingThatIsStillRead) {
  const std::vector<float> values(1'000'000);
  waits_for_earlier_owners([&](Device& d) {
    const Tensor there = make_tensor(d, float32, Shape({1'000'000}));
    d.copy_from_host(there.impl()->data(), values.data(), 4'000'000);
    return there.impl()->data();
  });
}

}  // namespace
}  // namespace berth::sim
