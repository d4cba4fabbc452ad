// ArenaPool: arenas of one device that all plans share; a run checks one out.
// Thread-safe.

#ifndef BERTH_EXEC_ARENA_POOL_H_
#define BERTH_EXEC_ARENA_POOL_H_

#include <mutex>
#include <vector>

#include "device/block.h"
#include "device/device.h"
#include "program/program.h"

namespace berth {

class ArenaPool {
 public:
  static ArenaPool& get();
  ArenaPool();
  // Returns a block for the arena of a program on one of its devices: the one
  // at `before` if it is idle, for runners that keep addresses. Throws
  // errors::ResourceExhausted, which says what the arena is for.
  BlockRef take(const Program& program, int device, const std::byte* before);
  void give_back(Device& device, BlockRef arena);
  // Returns the idle arenas of a device, which are no longer the pool's: an
  // allocation that finds no room asks for them.
  std::vector<BlockRef> take_idle(Device& device);

 private:
  std::mutex mutex_;
  std::vector<std::vector<BlockRef>> idle_;  // by slot
};

}  // namespace berth

#endif  // BERTH_EXEC_ARENA_POOL_H_
