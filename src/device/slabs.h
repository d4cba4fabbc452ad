// Slab, FreeList: small blocks, and those of one size that nobody uses.

#ifndef BERTH_DEVICE_SLABS_H_
#define BERTH_DEVICE_SLABS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/block.h"
#include "device/segments.h"

namespace berth {

struct FreeList {
  Block* head = nullptr;
  int32_t count = 0;

  void push(Block* b) {
    b->next = head;
    head = b;
    ++count;
  }
  Block* pop() {
    Block* b = head;
    if (b) {
      head = b->next;
      --count;
    }
    return b;
  }
};

// A chunk that is cut into small blocks.
struct Slab {
  Segments* from;
  Chunk* chunk;
  std::unique_ptr<HeldBlock[]> blocks;
  size_t count;
};

// Takes out the slabs whose blocks are all in `lists`, and these blocks.
std::vector<Slab> take_free_slabs(std::vector<Slab>& slabs,
                                  std::span<FreeList> lists);

}  // namespace berth

#endif  // BERTH_DEVICE_SLABS_H_
