// Block: a reference-counted piece of one device's memory.
//
// Blocks come from an Allocator and go back to it when the last reference
// ends; the descriptor lives outside the memory it describes, so device memory
// is never touched by bookkeeping. Counting is thread-safe; the other fields
// belong to the owner of the only reference, or are guarded as noted.

#ifndef BERTH_DEVICE_BLOCK_H_
#define BERTH_DEVICE_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "device/stream.h"

namespace berth {

class Allocator;
struct MemorySpace;

struct Block {
  std::atomic<int32_t> references{0};
  int32_t size_class = 0;          // Allocator's
  std::byte* data = nullptr;       // may be moved by a Variable's writer
  size_t bytes = 0;                // usable size
  Allocator* allocator = nullptr;  // null: memory of somebody else
  Device* device = nullptr;        // whose it is
  Block* next = nullptr;           // Allocator's free list
  Event ready = {};                // last write; null on inline devices
  // Reads and writes by streams other than the device's compute stream. The
  // block is reused only after them.
  static constexpr int kMaxUses = 4;
  Event uses[kMaxUses] = {};
  int num_uses = 0;
  // For device memory: the point of its compute stream at which the bytes were
  // last given back. Another stream that gets them next waits for it.
  Event freed = {};
  // For memory of somebody else: called with `owner` at the end.
  void (*deleter)(Block* block) = nullptr;
  void* owner = nullptr;
  // A variable's snapshot that still shares the variable's storage: a reader of
  // `data` holds the variable's lock and looks again.
  std::atomic<bool> borrowed{false};
};

// Gives `block` back to its provider. The last reference has ended.
void release_block(Block* block) noexcept;

// Where the bytes of `block` are: in its device's memory, or pinned.
const MemorySpace& space_of(const Block& block);

// Notes that work up to `event`, on a stream other than the compute stream of
// the block's device, touches the block.
void add_use(Block* block, const Event& event);

// Owning reference.
class BlockRef {
 public:
  BlockRef() = default;
  // Adopts a reference that the caller owns.
  static BlockRef adopt(Block* block) {
    BlockRef r;
    r.block_ = block;
    return r;
  }
  static BlockRef share(Block* block) {
    if (block) block->references.fetch_add(1, std::memory_order_relaxed);
    return adopt(block);
  }
  BlockRef(const BlockRef& o) : block_(o.block_) {
    if (block_) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BlockRef(BlockRef&& o) noexcept : block_(std::exchange(o.block_, nullptr)) {}
  BlockRef& operator=(BlockRef o) noexcept {
    std::swap(block_, o.block_);
    return *this;
  }
  ~BlockRef() { drop(block_); }

  Block* get() const { return block_; }
  Block* operator->() const { return block_; }
  explicit operator bool() const { return block_ != nullptr; }
  Block* detach() { return std::exchange(block_, nullptr); }

  static void drop(Block* block) noexcept {
    if (block == nullptr) return;
    // A sole owner needs no locked decrement.
    if (block->references.load(std::memory_order_acquire) == 1 ||
        block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      release_block(block);
    }
  }

 private:
  Block* block_ = nullptr;
};

}  // namespace berth

#endif  // BERTH_DEVICE_BLOCK_H_
