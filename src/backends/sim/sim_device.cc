#include "backends/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes_text.h"
#include "berth/errors.h"

namespace berth::sim {

namespace {

constexpr int kPeers = 1;  // simulated devices copy to each other directly

std::string describe(size_t bytes) {
  return "simulated, " + bytes_text(static_cast<int64_t>(bytes));
}

}  // namespace

SimDevice::SimDevice(int index, int id, const KernelTable* kernels,
                     std::shared_ptr<SimMemory> memory,
                     std::shared_ptr<Scheduler> scheduler, size_t memory_bytes,
                     const Speed& speed)
    : Device(DeviceName{"localhost", 0, 0, "GPU", id}, describe(memory_bytes),
             kernels, {.of_host = false, .peers = kPeers}),
      memory_(std::move(memory)),
      scheduler_(std::move(scheduler)),
      memory_bytes_(memory_bytes),
      real_clock_(speed.real_clock),
      compute_(this, scheduler_, fmt::format("GPU:{} compute", id), speed,
               false, &faults_),
      copy_(this, scheduler_, fmt::format("GPU:{} copy", id), speed, true,
            &faults_),
      allocator_(this, sim_memory_source(memory_, index), memory_bytes) {
  if (!real_clock_) return;
  out_ = std::make_unique<SimStream>(
      this, scheduler_, fmt::format("GPU:{} out", id), speed, true, &faults_);
}

// Hardware would read the memory later, when it may have another owner.
void SimDevice::check_pinned(const MemorySpace& space, const void* data,
                             size_t bytes) {
  if (!space.pinned || memory_->pinned()->may_be(data, bytes)) return;
  throw errors::Internal(fmt::format(
      "a copy of {} bytes for {} says that host memory is pinned which is not; "
      "expected a block of DeviceManager::pinned_pool()",
      bytes, short_name()));
}

void SimDevice::transfer_async(Stream&, const Copy& copy) {
  check_pinned(*copy.from, copy.source, copy.bytes);
  check_pinned(*copy.to, copy.target, copy.bytes);
  if (copy.from->pinned) bytes_from_pinned_ += copy.bytes;
  const AddressMap& map = memory_->map();
  std::memcpy(map.translate(copy.target), map.translate(copy.source),
              copy.bytes);
}

void SimDevice::fill_async(Stream&, void* target, int value, size_t bytes) {
  std::memset(memory_->map().translate(target), value, bytes);
}

double SimDevice::clock_us() {
  if (real_clock_) return -1;
  return std::max(compute_.clock_us(), copy_.clock_us());
}

void SimDevice::reset_error() {
  compute_.reset_error();
  copy_.reset_error();
  if (out_) out_->reset_error();
}

SimDevice& sim_device(Device& device) {
  if (auto* d = dynamic_cast<SimDevice*>(&device)) return *d;
  throw errors::InvalidArgument(
      fmt::format("{} is not a simulated device", device.short_name()));
}

}  // namespace berth::sim
