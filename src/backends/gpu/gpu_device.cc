#include "backends/gpu/gpu_device.h"

#include <fmt/format.h>

#include <map>

#include "backends/gpu/kernels.h"
#include "base/bytes_text.h"
#include "berth/errors.h"
#include "device/runtime_config.h"

namespace berth::gpu {

namespace {

// The driver itself needs some of a card's memory.
size_t usable_bytes(const Card& card) {
  return card.features().memory_bytes / 16 * 15;
}

size_t limit_of(const GpuPart& part, const Card& card) {
  return part.memory_limit_bytes > 0 ? part.memory_limit_bytes
                                     : usable_bytes(card);
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
  static_cast<QueueStream&>(stream).queue().copy(copy);
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

std::vector<std::unique_ptr<Device>> make_devices(
    const std::vector<GpuPart>& parts,
    const std::vector<std::unique_ptr<Card>>& cards,
    const std::vector<KernelTable>& tables, const char* runtime) {
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
    std::string what =
        fmt::format("{}, {}, {}", card.features().name, runtime,
                    bytes_text(static_cast<int64_t>(limit_of(p, card))));
    devices.push_back(
        std::make_unique<GpuDevice>(p, card, &tables[i], std::move(what)));
    if (!p.takes_all_memory) continue;
    Device& d = *devices.back();
    BlockRef::adopt(  // kept when freed
        d.allocator().allocate(limit_of(p, card) / 4096 * 4096));
  }
  return devices;
}

}  // namespace berth::gpu
