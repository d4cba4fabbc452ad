// GpuDevice: /GPU:<id>, a card or a part of it, for any driver.
//
// Three queues: compute, copies in, copies out. Thread-safe.

#ifndef BERTH_BACKENDS_GPU_GPU_DEVICE_H_
#define BERTH_BACKENDS_GPU_GPU_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/card.h"
#include "backends/gpu/queue_stream.h"
#include "device/device.h"
#include "device/gpu_layout.h"
#include "op/kernel.h"

namespace berth::gpu {

class GpuDevice final : public Device {
 public:
  // `card` and `kernels` must outlive the process's devices.
  GpuDevice(const GpuPart& part, Card& card, const KernelTable* kernels,
            std::string description);

  Card& card() { return card_; }
  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return compute_; }
  Stream& copy_stream() override { return copy_; }
  Stream& out_stream() override { return out_; }
  void fill_async(Stream& stream, void* target, int value,
                  size_t bytes) override;
  std::unique_ptr<MemorySource> pinned_memory_source() override {
    return card_.pinned_source();
  }
  void reset_error() override;

 protected:
  void transfer_async(Stream& stream, const Copy& copy) override;

 private:
  Card& card_;
  Allocator allocator_;
  QueueStream compute_, copy_, out_;
};

// Adds the user's kernels for GPUs, then the kernels of `card`.
void fill_table(Card& card, const RuntimeConfig& config, KernelTable& table);

// Makes the devices in `parts` of `cards`, reserving all of their memory where
// asked. `tables` are those of the cards. A card that fails is left out, with
// the reason in *left_out. Throws errors::InvalidArgument when the parts of a
// card exceed its memory.
std::vector<std::unique_ptr<Device>> make_devices(
    const std::vector<GpuPart>& parts,
    const std::vector<std::unique_ptr<Card>>& cards,
    const std::vector<KernelTable>& tables, const char* runtime,
    std::vector<std::string>* left_out);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_GPU_DEVICE_H_
