// Memory that is kept: for the next use, and for long.
//
// Thread-safe.

#ifndef BERTH_DEVICE_IDLE_MEMORY_H_
#define BERTH_DEVICE_IDLE_MEMORY_H_

#include <vector>

#include "device/allocator.h"
#include "device/block.h"

namespace berth {

// A block with nothing alive in it does not count as handed out; giving it back
// or using it again ends that first.
void count_idle(Allocator& allocator, const Block& block, bool idle);

// Says who keeps blocks of a device for their next use: `take` hands them over
// when the device's memory is full, and may be called from any thread that
// allocates. One; set before the first block is kept.
void set_idle_blocks(std::vector<BlockRef> (*take)(Device&));

// Returns a block that stays for long, a variable's: a large one is a segment
// by itself, so that what was made beside it leaves no holes around it when it
// goes. Else as Allocator::allocate().
Block* allocate_lasting(Allocator& allocator, size_t bytes);

}  // namespace berth

#endif  // BERTH_DEVICE_IDLE_MEMORY_H_
