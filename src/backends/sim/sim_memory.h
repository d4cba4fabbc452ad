// SimMemory: the memory of all simulated devices of the process.
//
// One memfd, mapped twice. The addresses that tensors carry lie in an
// inaccessible view, so that a host access faults as it would on a GPU; kernels
// and copies of these devices use the other view. Each device has its own
// range. Pages are allocated when first written and freed on release.
// Thread-safe.

#ifndef BERTH_BACKENDS_SIM_SIM_MEMORY_H_
#define BERTH_BACKENDS_SIM_SIM_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/sim/sim_pinned.h"
#include "device/allocator.h"

namespace berth::sim {

// Maps addresses that tensors carry to accessible addresses.
struct AddressMap {
  uintptr_t begin = 0;
  uintptr_t size = 0;
  ptrdiff_t delta = 0;

  bool contains(const void* p) const {
    return reinterpret_cast<uintptr_t>(p) - begin < size;
  }
  // Returns `p` itself when it is in no simulated device.
  void* translate(const void* p) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(p);
    return reinterpret_cast<void*>(contains(p) ? a + delta : a);
  }
};

class SimMemory {
 public:
  // Reserves address space for `devices` devices of `bytes` each. Throws
  // errors::InvalidArgument when no machine has that much,
  // errors::ResourceExhausted when the system refuses.
  SimMemory(int devices, size_t bytes);
  ~SimMemory();
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  const AddressMap& map() const { return map_; }

  // Returns a range of `device`, at most the device's bytes in all; null when
  // none is left. `bytes` is a multiple of 4096.
  std::byte* reserve(int device, size_t bytes);
  void release(int device, std::byte* data, size_t bytes);

  // Pinned host memory for all of them.
  const std::shared_ptr<SimPinned>& pinned() const { return pinned_; }

  // Fills fresh memory with NaNs (all bits one) instead of zeros.
  void set_poison(bool on) { poison_ = on; }

 private:
  struct Range {
    size_t reserved = 0;
    std::map<size_t, size_t> free;  // offset in the file -> bytes
  };
  const std::shared_ptr<SimPinned> pinned_ = std::make_shared<SimPinned>();
  int file_ = -1;
  size_t total_ = 0;
  size_t limit_ = 0;
  AddressMap map_;
  std::atomic<bool> poison_{false};
  std::mutex mutex_;  // guards ranges_
  std::vector<Range> ranges_;
};

// The part of one device, for an Allocator.
std::unique_ptr<MemorySource> sim_memory_source(
    std::shared_ptr<SimMemory> memory, int device);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SIM_MEMORY_H_
