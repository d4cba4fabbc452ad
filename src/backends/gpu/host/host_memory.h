// HostMemory: the memory of a HostCard, which only launches and copies open,
// and only as much of it as they say: under AddressSanitizer a kernel that
// leaves the arrays that it was given is reported, to the byte at their ends.
//
// Thread-safe, but for open() and close(), between which one thread may be.

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

  // True for an address of it.
  bool contains(const void* p) const;
  // Lets `bytes` from p on be touched; 0: to the end of the reservation.
  // Throws errors::Internal when they are not all of one. Returns how many.
  size_t open(const void* p, size_t bytes);
  // Closes all that is open.
  void close() noexcept;

 private:
  struct Piece {
    const std::byte* begin;
    size_t bytes;
  };
  // The reservation that p lies in; bytes 0: none.
  Piece around(const void* p) const;

  mutable std::mutex mutex_;
  std::map<std::byte*, size_t> reserved_;
  std::vector<Piece> open_;
};

// For an Allocator; `memory` outlives it.
std::unique_ptr<MemorySource> host_memory_source_of(HostMemory& memory);

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_MEMORY_H_
