#include "backends/sim/sim_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "berth/errors.h"

namespace berth::sim {

namespace {

std::string describe(size_t bytes) {
  constexpr double kMiB = 1 << 20;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib >= 1024 ? fmt::format("simulated, {:g} GiB", mib / 1024)
                     : fmt::format("simulated, {:g} MiB", mib);
}

}  // namespace

SimDevice::SimDevice(int index, const KernelTable* kernels,
                     std::shared_ptr<SimMemory> memory,
                     std::shared_ptr<Scheduler> scheduler, size_t memory_bytes,
                     const Speed& speed)
    : Device(DeviceName{"localhost", 0, 0, "GPU", index},
             describe(memory_bytes), kernels),
      memory_(std::move(memory)),
      scheduler_(std::move(scheduler)),
      memory_bytes_(memory_bytes),
      real_clock_(speed.real_clock),
      compute_(this, scheduler_, fmt::format("GPU:{} compute", index), speed,
               false, &faults_),
      copy_(this, scheduler_, fmt::format("GPU:{} copy", index), speed, true,
            &faults_),
      allocator_(this, sim_memory_source(memory_, index), memory_bytes) {
  if (!real_clock_) return;
  out_ = std::make_unique<SimStream>(this, scheduler_,
                                     fmt::format("GPU:{} out", index), speed,
                                     true, &faults_);
}

void SimDevice::copy_now(SimStream& stream, void* target, const void* source,
                         size_t bytes, const char* what) {
  struct Copy {
    void* target;
    const void* source;
    size_t bytes;
  } copy{target, source, bytes};
  Work work;
  work.what = what;
  work.moved_bytes = static_cast<double>(bytes);
  work.context = &copy;
  work.run = [](void* c, const AddressMap& map) {
    const auto& [to, from, n] = *static_cast<Copy*>(c);
    std::memcpy(map.translate(to), map.translate(from), n);
  };
  stream.launch(work);
  stream.synchronize(stream.record());
}

void SimDevice::copy_to_host(void* target, const void* source, size_t bytes) {
  copy_now(out_ ? *out_ : copy_, target, source, bytes, "CopyToHost");
}

void SimDevice::copy_from_host(void* target, const void* source, size_t bytes) {
  // The memory may have had another owner, whose work is still queued.
  copy_.wait_for_reuse(compute_.record());
  copy_now(copy_, target, source, bytes, "CopyFromHost");
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
