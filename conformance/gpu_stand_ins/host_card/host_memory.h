// HostMemory: the memory of a HostCard. Only launches and copies open it, and
// only as much as they state: under AddressSanitizer a kernel that leaves its
// arrays is reported, exact to the byte at their ends.
//
// Thread-safe, but only one thread may be between open() and close().

#ifndef BERTH_BACKENDS_GPU_HOST_HOST_MEMORY_H_
#define BERTH_BACKENDS_GPU_HOST_HOST_MEMORY_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/allocator.h"

namespace berth::gpu {

class HostMemory {
 public:
  std::byte* reserve(size_t bytes);
  void release(std::byte* data);

  // True for an address in it.
  bool contains(const void* p) const;
  // Opens `bytes` from p on; 0: to the end of the reservation. Throws
  // errors::Internal when they are not all in one. Returns how many.
  size_t open(const void* p, size_t bytes);
  // Closes everything that is open.
  void close() noexcept;

 private:
  struct Piece {
    const std::byte* begin;
    size_t bytes;
  };
  // Returns the reservation around p; bytes 0: none.
  Piece around(const void* p) const;

  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> reserved_;
  std::vector<Piece> open_;
};

// For an Allocator; `memory` must outlive it.
std::unique_ptr<MemorySource> host_memory_source_of(HostMemory& memory);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_MEMORY_H_
