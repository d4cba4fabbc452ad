#include "backends/opencl/cl_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "berth/errors.h"

namespace berth::opencl {

namespace {
// Freed ranges vary in size. With more addresses than memory, a buffer finds a
// range as long as the card has memory for it.
constexpr size_t kAddressesPerByte = 8;
}  // namespace

ClMemory::ClMemory(cl_context context, size_t bytes, size_t most_of_one)
    : context_(context), most_of_one_(most_of_one) {
  const size_t granules = bytes / kGranule * kAddressesPerByte + 64;
  void* p = mmap(nullptr, granules * kGranule, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    throw errors::ResourceExhausted(
        fmt::format("no room for {} bytes of addresses of a GPU; expected a "
                    "limit of address space (ulimit -v) above that",
                    granules * kGranule));
  }
  begin_ = reinterpret_cast<uintptr_t>(p);
  size_ = granules * kGranule;
  granules_ = std::make_unique<Granule[]>(granules);
  free_.emplace(0, granules);
}

ClMemory::~ClMemory() { munmap(reinterpret_cast<void*>(begin_), size_); }

std::byte* ClMemory::reserve(size_t bytes) {
  if (bytes > most_of_one_) return nullptr;
  cl_int error = CL_SUCCESS;
  const cl_mem buffer =
      clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;
  const size_t count = (bytes + kGranule - 1) / kGranule;
  std::lock_guard lock(mutex_);
  auto it = free_.begin();
  while (it != free_.end() && it->second < count) ++it;
  if (it == free_.end()) {
    clReleaseMemObject(buffer);
    return nullptr;
  }
  const auto [first, left] = *it;
  free_.erase(it);
  if (left > count) free_.emplace(first + count, left - count);
  for (size_t i = first; i < first + count; ++i) {
    granules_[i].first.store(static_cast<uint32_t>(first),
                             std::memory_order_relaxed);
    granules_[i].buffer.store(buffer, std::memory_order_release);
  }
  version_.fetch_add(1, std::memory_order_acq_rel);
  return reinterpret_cast<std::byte*>(begin_ + first * kGranule);
}

void ClMemory::release(std::byte* data) {
  const Place place = place_of(data);
  std::lock_guard lock(mutex_);
  size_t first = (reinterpret_cast<uintptr_t>(data) - begin_) / kGranule;
  size_t count = 0;
  for (; (first + count) * kGranule < size_ &&
         granules_[first + count].buffer.load() == place.buffer;
       ++count) {
    granules_[first + count].buffer.store(nullptr, std::memory_order_relaxed);
  }
  clReleaseMemObject(place.buffer);  // freed after its last command
  auto next = free_.lower_bound(first);
  if (next != free_.end() && first + count == next->first) {
    count += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  free_.emplace(first, count);
}

namespace {

class Source final : public MemorySource {
 public:
  explicit Source(ClMemory& memory) : memory_(memory) {}
  std::byte* reserve(size_t bytes) override { return memory_.reserve(bytes); }
  void release(std::byte* data, size_t) override { memory_.release(data); }
  bool host_addressable() const override { return false; }

 private:
  ClMemory& memory_;
};

}  // namespace

std::unique_ptr<MemorySource> cl_memory_source(ClMemory& memory) {
  return std::make_unique<Source>(memory);
}

}  // namespace berth::opencl
