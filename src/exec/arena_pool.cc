#include "exec/arena_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/immortal.h"
#include "berth/errors.h"
#include "device/holders.h"
#include "device/idle_memory.h"
#include "exec/arena_text.h"

namespace berth {

ArenaPool& ArenaPool::get() {
  static auto& pool = immortal<ArenaPool>();
  return pool;
}

ArenaPool::ArenaPool() {
  set_idle_blocks(
      [](Device& device) { return ArenaPool::get().take_idle(device); });
}

BlockRef ArenaPool::take(const Program& program, int index,
                         const std::byte* before) {
  Device& device = *program.devices[index];
  const size_t bytes = program.arena_bytes[index];
  {
    std::lock_guard lock(mutex_);
    idle_.resize(kMaxDevices);
    auto& idle = idle_[static_cast<size_t>(device.slot())];
    if (!idle.empty()) {
      auto at = std::find_if(
          idle.begin(), idle.end(),
          [before](const BlockRef& a) { return a->data == before; });
      if (at == idle.end()) --at;
      BlockRef arena = std::move(*at);
      idle.erase(at);
      count_idle(device.allocator(), *arena.get(), false);
      if (arena->bytes >= bytes) return arena;
      // Too small for this plan: a larger one takes its place.
    }
  }
  try {
    BlockRef arena = BlockRef::adopt(device.allocator().allocate(bytes));
    const char* name =
        lasting_name("the arena of " + arena_text(program, index), "plans");
    set_holder_parts(name, arena_parts(program, index));
    name_holder(arena.get(), name);
    return arena;
  } catch (const errors::ResourceExhausted& e) {
    throw errors::ResourceExhausted(fmt::format("{}\n  asked for {}", e.what(),
                                                arena_text(program, index)));
  }
}

void ArenaPool::give_back(Device& device, BlockRef arena) {
  std::lock_guard lock(mutex_);
  idle_.resize(kMaxDevices);
  auto& idle = idle_[static_cast<size_t>(device.slot())];
  if (idle.capacity() == idle.size()) idle.reserve(idle.size() + 8);
  count_idle(device.allocator(), *arena.get(), true);
  idle.push_back(std::move(arena));
}

std::vector<BlockRef> ArenaPool::take_idle(Device& device) {
  std::vector<BlockRef> taken;
  std::lock_guard lock(mutex_);
  idle_.resize(kMaxDevices);
  taken.swap(idle_[static_cast<size_t>(device.slot())]);
  for (const BlockRef& arena : taken) {
    count_idle(device.allocator(), *arena.get(), false);
  }
  return taken;
}

}  // namespace berth
