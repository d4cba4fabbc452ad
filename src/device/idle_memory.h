// count_idle: memory that is kept for the next who needs it.
//
// Thread-safe.

#ifndef BERTH_DEVICE_IDLE_MEMORY_H_
#define BERTH_DEVICE_IDLE_MEMORY_H_

#include "device/allocator.h"
#include "device/block.h"

namespace berth {

// A block with nothing alive in it does not count as handed out; whoever gives
// it back or uses it again takes that back first.
void count_idle(Allocator& allocator, const Block& block, bool idle);

}  // namespace berth

#endif  // BERTH_DEVICE_IDLE_MEMORY_H_
