// Batches that a device will read are in pinned memory. Each test runs in a
// process of its own, since devices are configured once.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backends/sim/sim.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/function.h"
#include "berth/ops/math.h"
#include "data/testing.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth::data {
namespace {

using fresh_process::check;

constexpr int64_t kRows = 64, kWidth = 100, kBatch = 8;

const MemorySpace& space_of_tensor(const Tensor& t) {
  return space_of(*t.impl()->block);
}

// Two components: rows of int64 numbers, and the number of the row.
Dataset numbered() {
  return Dataset::from_tensor_slices({iota({kRows, kWidth}), iota({kRows})});
}

// Every way to make a batch: of rows here and there, of rows in order, of
// numbers, of elements.
std::vector<Dataset> all_kinds() {
  return {numbered().shuffle(kRows, {.seed = 3}).batch(kBatch),
          numbered().batch(kBatch), Dataset::range(kRows).batch(kBatch),
          unindexed(numbered()).batch(kBatch).prefetch(2)};
}

// The number of a row says what is in it.
void check_bytes(const Tensors& batch) {
  if (batch.size() < 2) return;
  const Numbers rows = batch[1].to_vector<int64_t>();
  const Numbers all = batch[0].to_vector<int64_t>();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto row = i / kWidth, column = i % kWidth;
    check(all[i] == rows[row] * kWidth + static_cast<int64_t>(column),
          "a row of the dataset");
  }
}

void batches_are_pinned() {
  config::set_simulated_devices("GPUx1");
  int batches = 0;
  for (const Dataset& d : all_kinds()) {
    for (const Tensors& batch : d) {
      ++batches;
      check_bytes(batch);
      for (const Tensor& t : batch) {
        check(&space_of_tensor(t) == &pinned_memory(), "the memory is pinned");
        check(t.device() == DeviceManager::get().host().str(),
              "it is a tensor of the host");
      }
    }
  }
  check(batches == 4 * kRows / kBatch, "all batches");
}
TEST(PinnedBatch, IsWhatADeviceGetsThatWantsIt) {
  IN_A_FRESH_PROCESS(batches_are_pinned());
}

void batches_are_ordinary() {
  config::set_visible_devices({}, "GPU");
  for (const Dataset& d : all_kinds()) {
    for (const Tensors& batch : d) {
      check_bytes(batch);
      for (const Tensor& t : batch) {
        check(&space_of_tensor(t) == &DeviceManager::get().host().memory(),
              "the memory is the host's");
      }
    }
  }
  check(DeviceManager::get().pinned_pool() == nullptr, "nobody wants any");
}
TEST(PinnedBatch, IsNoneWithoutSuchADevice) {
  IN_A_FRESH_PROCESS(batches_are_ordinary());
}

void copies_have_the_bytes() {
  config::set_simulated_devices("GPUx1");
  Device& gpu = DeviceManager::get().lookup(DeviceName::parse("/GPU:0"));
  uint64_t bytes = 0;
  for (const Tensors& batch : all_kinds()[0].prefetch(2)) {
    Tensors there;
    for (const Tensor& t : batch) {
      there.push_back(copy_to_device(t, gpu));
      bytes += t.impl()->size_bytes();
    }
    check_bytes(there);
  }
  check(bytes == kRows * (kWidth + 1) * 8, "all bytes");
  check(sim::bytes_from_pinned(gpu) == bytes, "read from pinned memory");
}
TEST(PinnedBatch, ReachesTheDeviceAsItWas) {
  IN_A_FRESH_PROCESS(copies_have_the_bytes());
}

// The batch stays on the host, where it is read too, and the step copies it.
// The other argument, and what the host computes, are in ordinary memory.
void steps_read_it() {
  config::set_simulated_devices("GPUx1");
  Device& gpu = DeviceManager::get().lookup(DeviceName::parse("/GPU:0"));
  const Tensor bias = iota({kWidth});
  const auto step = function([](const Tensor& x, const Tensor& b) {
    Tensor twice;
    {
      const auto on = device("/CPU:0");
      twice = math::add(x, x);
    }
    const auto on = device("/GPU:0");
    return math::add(math::add(x, b), twice);
  });
  uint64_t bytes = 0;
  const Dataset shuffled = all_kinds()[0];
  for (const Tensors& batch : shuffled) {
    const Numbers sums = step(batch[0], bias).to_vector<int64_t>();
    const Numbers rows = batch[1].to_vector<int64_t>();
    for (size_t i = 0; i < sums.size(); ++i) {
      const size_t row = i / kWidth;
      const auto column = static_cast<int64_t>(i % kWidth);
      check(sums[i] == 3 * rows[row] * kWidth + 4 * column, "a sum");
    }
    bytes += batch[0].impl()->size_bytes();
  }
  check(sim::bytes_from_pinned(gpu) == bytes, "read from pinned memory");
}
TEST(PinnedBatch, IsReadByACompiledStepAsWhatItIs) {
  IN_A_FRESH_PROCESS(steps_read_it());
}

// The next batch is made while copies of the last are on their way.
void pool_does_not_grow() {
  config::set_simulated_devices("GPUx1");
  Device& gpu = DeviceManager::get().lookup(DeviceName::parse("/GPU:0"));
  const Allocator& pool = *DeviceManager::get().pinned_pool();
  auto it = all_kinds()[0].repeat().prefetch(2).make_iterator();
  size_t most = 0;
  Tensors batch, there;
  for (int i = 0; i < 110; ++i) {
    check(it.next(batch), "a batch");
    there = {copy_to_device(batch[0], gpu), copy_to_device(batch[1], gpu)};
    if (i % 7 == 0) check_bytes(there);
    if (i == 10) most = pool.info().reserved_bytes;
  }
  check(most > 0 && pool.info().reserved_bytes == most, "no growth");
  check(pool.info().source_calls == 1, "the source was asked once");
  // A batch, what prefetch has ahead and makes, and what is on its way.
  check(pool.info().peak_bytes < 16 * (8192 + 4096), "blocks are used again");
}
TEST(PinnedBatch, UsesItsMemoryAgain) {
  IN_A_FRESH_PROCESS(pool_does_not_grow());
}

// 1 MiB is all that can be pinned, 512 KiB are asked for each time.
void falls_back() {
  setenv("BERTH_SIM_FAULTS", "pin=GPU:0@1048576", 1);
  config::set_simulated_devices("GPUx1");
  const auto d =
      Dataset::from_tensor_slices({iota({4, 64 << 10})}).batch(1, {});
  std::vector<Tensors> all;
  for (const Tensors& batch : d) all.push_back(batch);
  int pinned = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor& t = all[static_cast<size_t>(i)][0];
    pinned += space_of_tensor(t).pinned;
    check(t.to_vector<int64_t>() == counting(64 << 10, i * (64 << 10)),
          "a row of the dataset");
  }
  check(pinned == 2, "two of four are pinned");
  all.clear();
  for (const Tensors& batch : d) {
    check(space_of_tensor(batch[0]).pinned, "pinned again when there is room");
  }
}
TEST(PinnedBatch, IsOrdinaryMemoryWhenNoneIsLeft) {
  IN_A_FRESH_PROCESS(falls_back());
}

}  // namespace
}  // namespace berth::data
