#include "exec/arena_pool.h"

#include "base/immortal.h"

namespace berth {

ArenaPool& ArenaPool::get() {
  static auto& pool = immortal<ArenaPool>();
  return pool;
}

BlockRef ArenaPool::take(Device& device, size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    idle_.resize(kMaxDevices);
    auto& idle = idle_[static_cast<size_t>(device.slot())];
    if (!idle.empty()) {
      BlockRef arena = std::move(idle.back());
      idle.pop_back();
      if (arena->bytes >= bytes) return arena;
      // Too small for this plan: a larger one takes its place.
    }
  }
  return BlockRef::adopt(device.allocator().allocate(bytes));
}

void ArenaPool::give_back(Device& device, BlockRef arena) {
  std::lock_guard lock(mutex_);
  idle_.resize(kMaxDevices);
  auto& idle = idle_[static_cast<size_t>(device.slot())];
  if (idle.capacity() == idle.size()) idle.reserve(idle.size() + 8);
  idle.push_back(std::move(arena));
}

void ArenaPool::clear(Device& device) {
  std::vector<BlockRef> dropped;
  std::lock_guard lock(mutex_);
  idle_.resize(kMaxDevices);
  dropped.swap(idle_[static_cast<size_t>(device.slot())]);
}

}  // namespace berth
