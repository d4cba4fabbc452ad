// Segments: large blocks of one device, split and coalesced.
//
// Best fit over free chunks; neighbours of one segment merge when freed. Not
// thread-safe: the allocator holds its lock.

#ifndef BERTH_DEVICE_SEGMENTS_H_
#define BERTH_DEVICE_SEGMENTS_H_

#include <list>
#include <memory>
#include <set>
#include <vector>

#include "device/allocator.h"
#include "device/holders.h"

namespace berth {

// A piece of a segment. `block` describes it while it is handed out, and comes
// first: a large Block* is its Chunk*.
struct Chunk : HeldBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;
  bool free = true;
  Chunk* before = nullptr;  // neighbours by address, same segment
  Chunk* after = nullptr;
};

class Segments {
 public:
  static constexpr size_t kGranularity = 4096;
  static constexpr size_t kSegmentBytes = 32ull << 20;

  explicit Segments(MemorySource* source) : source_(source) {}
  ~Segments();

  // Cuts `bytes` out of a free chunk, from its end if it is to stay there for
  // long; null when none is large enough.
  Chunk* take(size_t bytes, bool from_end = false);
  // Adds a segment of exactly `bytes` (a multiple of kGranularity) as one free
  // chunk; false when the source refuses.
  bool grow(size_t bytes);
  // A whole free segment of exactly `bytes`; null when there is none.
  Chunk* take_whole(size_t bytes);
  void give_back(Chunk* chunk);
  // A piece of `bytes` that the source gave by itself; null when it refuses.
  // Returned by give_back_alone().
  Chunk* take_alone(size_t bytes);
  void give_back_alone(Chunk* chunk);
  // Returns whole free segments to the source, of those that were freed up to
  // an event of the compute stream; the bytes returned.
  size_t release_free(uint64_t freed_until = UINT64_MAX);
  size_t free_bytes() const;
  size_t largest_free_bytes() const;
  // What is handed out, in no order.
  std::vector<Holder> held() const;
  // The first chunks of all segments, by address.
  std::vector<const Chunk*> firsts() const;

 private:
  struct BySize {
    bool operator()(const Chunk* a, const Chunk* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
    }
  };
  Chunk* new_chunk();
  void recycle(Chunk* chunk);
  void insert_free(Chunk* chunk);

  MemorySource* source_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Chunk*> unused_;  // descriptors
  std::set<Chunk*, BySize> free_;
  std::vector<std::set<Chunk*, BySize>::node_type> spare_nodes_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_SEGMENTS_H_
