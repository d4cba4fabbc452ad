// ClMemory: the memory of a card, as addresses.
//
// OpenCL has buffers and offsets, but tensors carry addresses. The addresses
// are in an inaccessible range, in which each buffer begins at a multiple of 2
// MiB; a table finds the buffer of an address in one step. Thread-safe.

#ifndef BERTH_BACKENDS_OPENCL_CL_MEMORY_H_
#define BERTH_BACKENDS_OPENCL_CL_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/opencl/cl_error.h"
#include "device/allocator.h"

namespace berth::opencl {

// The bytes of a buffer from `offset` on.
struct Place {
  cl_mem buffer = nullptr;
  size_t offset = 0;
};

class ClMemory {
 public:
  // Memory in `context`, at most `bytes` in all and `most_of_one` per buffer.
  // Throws errors::ResourceExhausted when no addresses are left.
  ClMemory(cl_context context, size_t bytes, size_t most_of_one);
  ~ClMemory();
  ClMemory(const ClMemory&) = delete;
  ClMemory& operator=(const ClMemory&) = delete;

  std::byte* reserve(size_t bytes);
  void release(std::byte* data);

  bool contains(const void* p) const {
    return reinterpret_cast<uintptr_t>(p) - begin_ < size_;
  }
  // Changes when an address may refer to another buffer.
  static uint64_t version() { return version_.load(std::memory_order_acquire); }
  // Returns the place of an address, which must be in a range of reserve().
  Place place_of(const void* p) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(p) - begin_;
    const Granule& g = granules_[at / kGranule];
    return {g.buffer.load(std::memory_order_acquire),
            at - size_t{g.first.load(std::memory_order_relaxed)} * kGranule};
  }

 private:
  static constexpr size_t kGranule = size_t{2} << 20;
  struct Granule {
    std::atomic<cl_mem> buffer{nullptr};
    std::atomic<uint32_t> first{0};
  };

  static inline std::atomic<uint64_t> version_{1};
  const cl_context context_;
  const size_t most_of_one_;
  size_t size_ = 0;
  uintptr_t begin_ = 0;
  std::unique_ptr<Granule[]> granules_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  // granules: first -> count
};

// Returns a source of this memory for an Allocator.
std::unique_ptr<MemorySource> cl_memory_source(ClMemory& memory);

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_MEMORY_H_
