// SimDevice: a simulated accelerator of device type GPU.
//
// Its kernels are the CPU's; memory, streams, clock and faults are simulated.
// Lives as long as the process. Thread-safe.

#ifndef BERTH_BACKENDS_SIM_SIM_DEVICE_H_
#define BERTH_BACKENDS_SIM_SIM_DEVICE_H_

#include <atomic>
#include <memory>
#include <string>

#include "backends/sim/scheduler.h"
#include "backends/sim/sim_memory.h"
#include "device/device.h"

namespace berth::sim {

class SimDevice final : public Device {
 public:
  // Device GPU:`id`, with `memory_bytes` of range `index` of `memory`.
  SimDevice(int index, int id, const KernelTable* kernels,
            std::shared_ptr<SimMemory> memory,
            std::shared_ptr<Scheduler> scheduler, size_t memory_bytes,
            const Speed& speed);

  bool simulated() const override { return true; }
  double clock_us() override;
  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return compute_; }
  Stream& copy_stream() override { return copy_; }
  // With the real clock, copies to the host do not queue behind incoming ones.
  // (The caller of a copy to the host has waited for the bytes.)
  Stream& out_stream() override { return out_ ? *out_ : copy_; }
  void fill_async(Stream& stream, void* target, int value,
                  size_t bytes) override;
  std::unique_ptr<MemorySource> pinned_memory_source() override {
    return sim_pinned_source(memory_->pinned());
  }
  void reset_error() override;

  SimStream& compute() { return compute_; }
  SimStream& copy() { return copy_; }
  SimMemory& memory() { return *memory_; }
  Scheduler& scheduler() { return *scheduler_; }
  size_t memory_bytes() const { return memory_bytes_; }
  uint64_t bytes_from_pinned() const { return bytes_from_pinned_; }

 private:
  void check_pinned(const MemorySpace& space, const void* data, size_t bytes);
  void transfer_async(Stream& stream, const Copy& copy) override;

  const std::shared_ptr<SimMemory> memory_;
  const std::shared_ptr<Scheduler> scheduler_;
  const size_t memory_bytes_;
  const bool real_clock_;
  std::atomic<uint64_t> bytes_from_pinned_{0};
  FaultPlan faults_;  // guarded by the scheduler
  SimStream compute_;
  SimStream copy_;
  std::unique_ptr<SimStream> out_;
  Allocator allocator_;
};

// Returns the simulated device behind `device`. Throws errors::InvalidArgument
// for another kind.
SimDevice& sim_device(Device& device);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SIM_DEVICE_H_
