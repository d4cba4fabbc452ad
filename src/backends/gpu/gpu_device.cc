#include "backends/gpu/gpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "backends/gpu/kernels.h"
#include "base/bytes_text.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/runtime_config.h"

namespace berth::gpu {

namespace {

// Larger copies from the host wait for the card: they take long anyway.
constexpr size_t kMostStaged = size_t{64} << 20;
// Smaller ones are values inside commands.
constexpr size_t kLeastStaged = 64;

size_t limit_of(const GpuPart& part, const Card& card) {
  return part.memory_limit_bytes > 0 ? part.memory_limit_bytes
                                     : card.usable_bytes();
}

// Returns pinned memory with the bytes of a copy; null when there is none now.
BlockRef staged(const Copy& copy) {
  const bool pays = copy.bytes >= kLeastStaged && copy.bytes <= kMostStaged &&
                    copy.from->host_addressable && !copy.from->pinned &&
                    !copy.to->host_addressable && DeviceManager::initialised();
  Allocator* pool = pays ? DeviceManager::get().pinned_pool() : nullptr;
  Block* block = pool ? pool->try_allocate(copy.bytes) : nullptr;
  if (block == nullptr) return {};
  std::memcpy(block->data, copy.source, copy.bytes);
  return BlockRef::adopt(block);
}

}  // namespace

GpuDevice::GpuDevice(const GpuPart& part, Card& card,
                     const KernelTable* kernels, std::string description)
    : Device(DeviceName{"localhost", 0, 0, "GPU", part.id},
             std::move(description), kernels,
             {.of_host = false, .peers = card.features().peers}),
      card_(card),
      allocator_(this, card.memory_source(), limit_of(part, card)),
      compute_(this, card),
      copy_(this, card),
      out_(this, card) {}

void GpuDevice::transfer_async(Stream& stream, const Copy& copy) {
  Queue& queue = static_cast<QueueStream&>(stream).queue();
  const BlockRef block = staged(copy);
  if (!block) return queue.copy(copy);
  Copy pinned = copy;
  pinned.source = block->data;
  pinned.from = &space_of(*block.get());
  queue.copy(pinned);
  add_use(block.get(), stream.record());
}

void GpuDevice::fill_async(Stream& stream, void* target, int value,
                           size_t bytes) {
  if (bytes == 0) return;
  static_cast<QueueStream&>(stream).queue().fill(target, value, bytes);
}

void GpuDevice::reset_error() {
  compute_.reset_error();
  copy_.reset_error();
  out_.reset_error();
}

void fill_table(Card& card, const RuntimeConfig& config, KernelTable& table) {
  config.add_user_kernels("GPU", table);
  card.add_kernels(table);
  Kernels kernels(card, table);
  add_all(kernels);
}

namespace {

std::unique_ptr<Device> make_device(const GpuPart& p, Card& card,
                                    const KernelTable& table,
                                    const char* runtime) {
  std::string what =
      fmt::format("{}, {}, {}", card.features().name, runtime,
                  bytes_text(static_cast<int64_t>(limit_of(p, card))));
  auto device = std::make_unique<GpuDevice>(p, card, &table, std::move(what));
  if (p.takes_all_memory) {
    const size_t bytes =
        p.memory_limit_bytes > 0 ? p.memory_limit_bytes : card.free_bytes();
    BlockRef::adopt(  // kept when freed
        device->allocator().allocate(bytes / 4096 * 4096));
  }
  return device;
}

}  // namespace

std::vector<std::unique_ptr<Device>> make_devices(
    const std::vector<GpuPart>& parts,
    const std::vector<std::unique_ptr<Card>>& cards,
    const std::vector<KernelTable>& tables, const char* runtime,
    std::vector<std::string>* left_out) {
  WorkTrace::asked();  // an invalid name is an error of the program
  std::map<int, size_t> wanted;
  for (const GpuPart& p : parts) wanted[p.physical] += p.memory_limit_bytes;
  std::vector<std::unique_ptr<Device>> devices;
  for (const GpuPart& p : parts) {
    const auto i = static_cast<size_t>(p.physical);
    Card& card = *cards.at(i);
    if (wanted[p.physical] > card.features().memory_bytes) {
      throw errors::InvalidArgument(fmt::format(
          "the logical devices of GPU {} want {} together; it has {}: "
          "lower their memory limits",
          p.physical, bytes_text(static_cast<int64_t>(wanted[p.physical])),
          bytes_text(static_cast<int64_t>(card.features().memory_bytes))));
    }
    try {
      devices.push_back(make_device(p, card, tables[i], runtime));
    } catch (const errors::Error& e) {
      left_out->push_back(e.what());
    }
  }
  return devices;
}

}  // namespace berth::gpu
