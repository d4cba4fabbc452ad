// Memory: who reaches it, copies, fills, blocks.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/device_run.h"
#include "device/device_manager.h"

namespace berth::conformance {
namespace {

constexpr size_t kSizes[] = {1, 7, 4096, (1 << 20) + 3};

std::vector<uint8_t> pattern(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + 7);
  return bytes;
}

BlockRef block_on(Device& device, size_t bytes) {
  return BlockRef::adopt(device.allocator().allocate(bytes));
}

std::vector<uint8_t> read(const BlockRef& block, size_t n) {
  std::vector<uint8_t> bytes(n);
  block->device->copy_to_host(bytes.data(), block->data, n);
  return bytes;
}

// Runs `fn(stream)` as work of the copy stream of `device` and waits.
template <class Fn>
void as_work(Device& device, Fn&& fn) {
  Work work;
  work.what = "Test";
  work.context = &fn;
  work.run = [](void* c, Stream& stream) {
    (*static_cast<std::remove_reference_t<Fn>*>(c))(stream);
  };
  Stream& stream = device.copy_stream();
  stream.wait_for_reuse(device.compute_stream().record());
  stream.launch(work);
  stream.synchronize(stream.record());
}

TEST(Memory, HasASpaceThatKnowsTheTask) {
  Device& d = device_under_test();
  const MemorySpace& space = d.memory();
  EXPECT_EQ(space.task.job, d.name().job);
  EXPECT_EQ(space.task.task, d.name().task);
  EXPECT_EQ(space.name, memory_of(d.str()));
  EXPECT_TRUE(space.reaches(d.host_memory()));
  EXPECT_EQ(same_memory(d, DeviceManager::get().host()),
            space.host_addressable);
  EXPECT_EQ(space.device == nullptr, space.host_addressable);
}

TEST(Memory, HostBytesComeBackAsTheyWere) {
  Device& d = device_under_test();
  for (const size_t n : kSizes) {
    const auto bytes = pattern(n);
    const BlockRef block = block_on(d, n);
    d.copy_from_host(block->data, bytes.data(), n);
    EXPECT_EQ(read(block, n), bytes) << n;
  }
}

TEST(Memory, CopiesAsWorkOfAStreamReachEveryOtherDevice) {
  Device& d = device_under_test();
  for (Device* other : DeviceManager::get().devices()) {
    for (const size_t n : kSizes) {
      const auto bytes = pattern(n);
      const BlockRef there = block_on(*other, n), here = block_on(d, n),
                     back = block_on(*other, n);
      other->copy_from_host(there->data, bytes.data(), n);
      // What an earlier copy left there would pass for this one's.
      const std::vector<uint8_t> nothing(n);
      d.copy_from_host(here->data, nothing.data(), n);
      other->copy_from_host(back->data, nothing.data(), n);
      as_work(d, [&](Stream& stream) {
        d.copy_async(stream, {here->data, &d.memory(), there->data,
                              &other->memory(), n});
        d.copy_async(
            stream, {back->data, &other->memory(), here->data, &d.memory(), n});
      });
      EXPECT_EQ(read(here, n), bytes) << other->str() << " " << n;
      EXPECT_EQ(read(back, n), bytes) << other->str() << " " << n;
    }
  }
}

TEST(Memory, ACopyOfNothingMayLieNowhere) {
  Device& d = device_under_test();
  as_work(d, [&](Stream& stream) {
    d.copy_async(stream, {nullptr, &d.memory(), nullptr, &d.host_memory(), 0});
  });
}

TEST(Memory, FillsBytesAndNoOthers) {
  Device& d = device_under_test();
  const BlockRef block = block_on(d, 300);
  const auto bytes = pattern(300);
  d.copy_from_host(block->data, bytes.data(), 300);
  as_work(d, [&](Stream& stream) {
    d.fill_async(stream, block->data + 100, 0xa5, 77);
  });
  auto expected = bytes;
  std::fill_n(expected.begin() + 100, 77, uint8_t{0xa5});
  EXPECT_EQ(read(block, 300), expected);
}

TEST(Memory, PinnedHostMemoryIsTheHosts) {
  const auto source = device_under_test().pinned_memory_source();
  if (!source) return;  // any memory of the host will do
  EXPECT_TRUE(source->host_addressable());
  std::byte* data = source->reserve(4096);
  ASSERT_NE(data, nullptr);
  data[0] = std::byte{1};
  source->release(data, 4096);
}

TEST(Memory, BlocksAreAlignedApartAndUsedAgain) {
  Device& d = device_under_test();
  const BlockRef a = block_on(d, 100), b = block_on(d, 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a->data) % Allocator::kAlignment, 0u);
  EXPECT_GE(std::max(a->data, b->data) - std::min(a->data, b->data), 100);
  { const BlockRef warm = block_on(d, 3 << 20); }
  const uint64_t calls = d.allocator().info().source_calls;
  for (int i = 0; i < 20; ++i) block_on(d, 3 << 20);
  EXPECT_EQ(d.allocator().info().source_calls, calls);
}

TEST(MemoryDeathTest, TheHostTouchesOnlyWhatItMayTouch) {
  Device& d = device_under_test();
  const BlockRef block = block_on(d, 64);
  volatile std::byte* first = block->data;
  if (d.memory().host_addressable) {
    *first = std::byte{1};
    return;
  }
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(*first = std::byte{1}, "");
}

}  // namespace
}  // namespace berth::conformance
