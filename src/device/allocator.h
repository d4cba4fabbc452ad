// Allocator: the one caching allocator of a device.
//
// Blocks up to 1 MiB come from size classes (four per doubling) with a cache
// per thread; larger ones are taken from segments, split and coalesced under a
// mutex. Freed memory is kept. Limits and statistics count reserved bytes.
// Thread-safe. Under AddressSanitizer cached host blocks are poisoned.

#ifndef BERTH_DEVICE_ALLOCATOR_H_
#define BERTH_DEVICE_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/block.h"
#include "device/memory_space.h"

namespace berth {

// Where an allocator gets memory from: mmap, a simulated device, a driver.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // Returns at least `bytes` (a multiple of 4096), aligned to 4096, or null.
  virtual std::byte* reserve(size_t bytes) = 0;
  virtual void release(std::byte* data, size_t bytes) = 0;
  // True when the host may touch the memory (bookkeeping may poison it).
  virtual bool host_addressable() const = 0;
};

// Memory of the host, from mmap with transparent huge pages.
std::unique_ptr<MemorySource> host_memory_source();

struct MemoryInfo {
  size_t current_bytes = 0;   // handed out now
  size_t peak_bytes = 0;      // the most ever handed out
  size_t reserved_bytes = 0;  // taken from the source
  size_t limit_bytes = 0;     // 0: none
  uint64_t source_calls = 0;  // calls of reserve so far
};

class Allocator {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kSmallLimit = 1 << 20;

  // `device` must outlive the allocator and every block of it. `space` says
  // where the source's memory is; null: in the device's.
  Allocator(Device* device, std::unique_ptr<MemorySource> source,
            size_t limit_bytes, const MemorySpace* space = nullptr);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Returns a block of at least `bytes` with one reference, aligned to
  // kAlignment, contents undefined. Throws errors::ResourceExhausted naming
  // the device, what was asked, what is held, the limit and a remedy.
  Block* allocate(size_t bytes);

  // Allocates whole pages, for blocks that go from thread to thread; null,
  // without waiting for anything, when the memory is full.
  Block* try_allocate(size_t bytes);

  // Takes back a block whose last reference has ended.
  void deallocate(Block* block) noexcept;

  // Gives unused segments back to the source.
  void empty_cache();

  // Resets peak_bytes to current_bytes.
  void reset_peak();
  MemoryInfo info() const;
  // Where its blocks are.
  const MemorySpace& space() const;
  void set_limit_bytes(size_t bytes);

 private:
  friend struct ThreadCaches;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_ALLOCATOR_H_
