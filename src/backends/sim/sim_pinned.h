// SimPinned: pinned host memory as the simulated devices of the process see it.
//
// Ordinary pages of the host. It records which they are, to find copies that
// call other memory pinned, and limits their number. Thread-safe.

#ifndef BERTH_BACKENDS_SIM_SIM_PINNED_H_
#define BERTH_BACKENDS_SIM_SIM_PINNED_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "device/allocator.h"

namespace berth::sim {

class SimPinned {
 public:
  // Returns null when the limit would be exceeded.
  std::byte* reserve(size_t bytes);
  void release(std::byte* data, size_t bytes);

  // True when none is reserved, or `bytes` from `data` on are all pinned.
  bool may_be(const void* data, size_t bytes) const;

  void set_limit(size_t bytes);

 private:
  const std::unique_ptr<MemorySource> host_ = host_memory_source();
  mutable std::mutex mutex_;  // guards all below
  std::map<const std::byte*, size_t> ranges_;
  size_t reserved_ = 0;
  size_t limit_ = SIZE_MAX;
};

// Returns a source of this memory for an Allocator.
std::unique_ptr<MemorySource> sim_pinned_source(
    std::shared_ptr<SimPinned> pinned);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SIM_PINNED_H_
