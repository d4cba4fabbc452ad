#include "backends/sim/sim_pinned.h"

#include <iterator>
#include <utility>

namespace berth::sim {

namespace {

class PinnedSource final : public MemorySource {
 public:
  explicit PinnedSource(std::shared_ptr<SimPinned> pinned)
      : pinned_(std::move(pinned)) {}
  std::byte* reserve(size_t bytes) override { return pinned_->reserve(bytes); }
  void release(std::byte* data, size_t bytes) override {
    pinned_->release(data, bytes);
  }
  bool host_addressable() const override { return true; }

 private:
  const std::shared_ptr<SimPinned> pinned_;
};

}  // namespace

std::byte* SimPinned::reserve(size_t bytes) {
  std::lock_guard lock(mutex_);
  if (reserved_ > limit_ || bytes > limit_ - reserved_) return nullptr;
  std::byte* data = host_->reserve(bytes);
  if (data == nullptr) return nullptr;
  ranges_[data] = bytes;
  reserved_ += bytes;
  return data;
}

void SimPinned::release(std::byte* data, size_t bytes) {
  std::lock_guard lock(mutex_);
  ranges_.erase(data);
  reserved_ -= bytes;
  host_->release(data, bytes);
}

bool SimPinned::may_be(const void* data, size_t bytes) const {
  std::lock_guard lock(mutex_);
  if (ranges_.empty()) return true;  // it belongs to another kind of device
  const auto* at = static_cast<const std::byte*>(data);
  const auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return at + bytes <= begin + size;
}

void SimPinned::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = bytes;
}

std::unique_ptr<MemorySource> sim_pinned_source(
    std::shared_ptr<SimPinned> pinned) {
  return std::make_unique<PinnedSource>(std::move(pinned));
}

}  // namespace berth::sim
