// The memory of the host as a source for an Allocator.

#include <sys/mman.h>

#include "device/allocator.h"

namespace berth {

namespace {

class HostMemorySource : public MemorySource {
 public:
  std::byte* reserve(size_t bytes) override {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    madvise(p, bytes, MADV_HUGEPAGE);  // a hint: refusal costs nothing
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* data, size_t bytes) override { munmap(data, bytes); }
  bool host_addressable() const override { return true; }
};

}  // namespace

std::unique_ptr<MemorySource> host_memory_source() {
  return std::make_unique<HostMemorySource>();
}

}  // namespace berth
