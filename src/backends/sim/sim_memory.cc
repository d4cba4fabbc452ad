#include "backends/sim/sim_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/bytes_text.h"
#include "berth/errors.h"

namespace berth::sim {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMostBytes = size_t{1} << 45;
// Address space is free. In a range of twice the memory there is always a hole
// for what the limit admits, unless the pieces are tiny.
constexpr size_t kSpread = 2;

std::byte* map_view(int file, size_t bytes, int protection) {
  void* p =
      mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

std::string size_text(size_t bytes) {
  return bytes_text(static_cast<int64_t>(bytes));
}

class Source final : public MemorySource {
 public:
  Source(std::shared_ptr<SimMemory> memory, int device)
      : memory_(std::move(memory)), device_(device) {}
  std::byte* reserve(size_t bytes) override {
    return memory_->reserve(device_, bytes);
  }
  void release(std::byte* data, size_t bytes) override {
    memory_->release(device_, data, bytes);
  }
  bool host_addressable() const override { return false; }

 private:
  std::shared_ptr<SimMemory> memory_;
  int device_;
};

}  // namespace

SimMemory::SimMemory(int devices, size_t bytes) {
  const size_t n = static_cast<size_t>(devices);
  if (bytes < kPage || bytes > kMostBytes / kSpread / n) {
    throw errors::InvalidArgument(fmt::format(
        "{} simulated devices of {} asked for; expected at least {} and "
        "together at most {}",
        devices, size_text(bytes), size_text(kPage),
        size_text(kMostBytes / kSpread)));
  }
  limit_ = (bytes + kPage - 1) / kPage * kPage;
  total_ = limit_ * kSpread * n;
  std::byte* hidden = nullptr;
  std::byte* open = nullptr;
  file_ = memfd_create("berth-sim", MFD_CLOEXEC);
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(total_)) == 0) {
    hidden = map_view(file_, total_, PROT_NONE);
    open = map_view(file_, total_, PROT_READ | PROT_WRITE);
  }
  if (hidden == nullptr || open == nullptr) {
    const std::string why = std::strerror(errno);
    if (hidden) munmap(hidden, total_);
    if (file_ >= 0) close(file_);
    throw errors::ResourceExhausted(fmt::format(
        "cannot reserve {} of address space for {} simulated devices: "
        "{}; ask for fewer devices or less memory",
        size_text(total_), devices, why));
  }
  map_ = {reinterpret_cast<uintptr_t>(hidden), total_, open - hidden};
  ranges_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    ranges_[i].free[i * limit_ * kSpread] = limit_ * kSpread;
  }
}

SimMemory::~SimMemory() {
  auto* hidden = reinterpret_cast<std::byte*>(map_.begin);
  munmap(hidden, total_);
  munmap(map_.translate(hidden), total_);
  close(file_);
}

std::byte* SimMemory::reserve(int device, size_t bytes) {
  std::lock_guard lock(mutex_);
  Range& range = ranges_[device];
  if (bytes > limit_ || range.reserved > limit_ - bytes) return nullptr;
  for (auto it = range.free.begin(); it != range.free.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < bytes) continue;
    range.free.erase(it);
    if (size > bytes) range.free[offset + bytes] = size - bytes;
    range.reserved += bytes;
    auto* data = reinterpret_cast<std::byte*>(map_.begin + offset);
    if (poison_) std::memset(map_.translate(data), 0xff, bytes);
    return data;
  }
  return nullptr;
}

void SimMemory::release(int device, std::byte* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  size_t offset = reinterpret_cast<uintptr_t>(data) - map_.begin;
  // Returns the pages to the system if possible; otherwise they stay.
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(offset), static_cast<off_t>(bytes));
  Range& range = ranges_[device];
  range.reserved -= bytes;
  auto after = range.free.lower_bound(offset);
  if (after != range.free.end() && after->first == offset + bytes) {
    bytes += after->second;
    after = range.free.erase(after);
  }
  if (after != range.free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  range.free[offset] = bytes;
}

std::unique_ptr<MemorySource> sim_memory_source(
    std::shared_ptr<SimMemory> memory, int device) {
  return std::make_unique<Source>(std::move(memory), device);
}

}  // namespace berth::sim
