#include "backends/cuda/cuda_memory.h"

#include <mutex>
#include <unordered_map>

#include "base/environment.h"

namespace berth::cuda {

namespace {

constexpr size_t kPage = 4096;  // the alignment of MemorySource

// The plug-in's own memory, of streams, is smaller than what is split.
constexpr size_t kOwn = size_t{1} << 20;

class DeviceSource final : public MemorySource {
 public:
  explicit DeviceSource(CudaCard& card)
      : card_(card), exact_(environment("BERTH_GPU_ALLOCATOR") == "exact") {}

  std::byte* reserve(size_t bytes) override {
    CUdeviceptr data = allocate(bytes);
    // In exact mode the bytes after an allocation must not be ours.
    if (data % kPage == 0 || exact_) return reinterpret_cast<std::byte*>(data);
    // The driver aligns small allocations to 512 bytes.
    card_.attempt(card_.driver().cuMemFree, data);
    data = allocate(bytes + kPage);
    if (data == 0) return nullptr;
    auto* page =
        reinterpret_cast<std::byte*>((data + kPage - 1) / kPage * kPage);
    std::lock_guard lock(mutex_);
    moved_.emplace(page, data);
    return page;
  }

  void release(std::byte* data, size_t) override {
    auto begin = reinterpret_cast<CUdeviceptr>(data);
    {
      std::lock_guard lock(mutex_);
      const auto it = moved_.find(data);
      if (it != moved_.end()) {
        begin = it->second;
        moved_.erase(it);
      }
    }
    card_.attempt(card_.driver().cuMemFree, begin);
  }

  bool host_addressable() const override { return false; }

 private:
  // Returns 0 when memory is used up, or would leave others too little.
  CUdeviceptr allocate(size_t bytes) {
    if (bytes > kOwn && bytes > card_.free_bytes()) return 0;
    CUdeviceptr data = 0;
    const CUresult error =
        card_.result(card_.driver().cuMemAlloc, &data, bytes);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) return 0;
    card_.check(error, "cuMemAlloc");
    return data;
  }

  CudaCard& card_;
  const bool exact_;  // one allocation per tensor
  std::mutex mutex_;
  std::unordered_map<std::byte*, CUdeviceptr> moved_;  // moved to the next page
};

class PinnedSource final : public MemorySource {
 public:
  explicit PinnedSource(CudaCard& card) : card_(card) {}

  std::byte* reserve(size_t bytes) override {
    void* data = nullptr;
    const CUresult error =
        card_.result(card_.driver().cuMemHostAlloc, &data, bytes,
                     unsigned{CU_MEMHOSTALLOC_PORTABLE});
    if (error == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    card_.check(error, "cuMemHostAlloc");
    return static_cast<std::byte*>(data);
  }

  void release(std::byte* data, size_t) override {
    card_.attempt(card_.driver().cuMemFreeHost, static_cast<void*>(data));
  }

  bool host_addressable() const override { return true; }

 private:
  CudaCard& card_;
};

}  // namespace

std::unique_ptr<MemorySource> device_memory_source(CudaCard& card) {
  return std::make_unique<DeviceSource>(card);
}

std::unique_ptr<MemorySource> pinned_memory_source(CudaCard& card) {
  return std::make_unique<PinnedSource>(card);
}

}  // namespace berth::cuda
