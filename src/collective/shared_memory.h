// All-reduce among devices of one memory (CPU devices of one process).
//
// Nothing is sent: a device reads the pieces of others in place. Results that
// only update variables are never whole: each device adds its range of the
// elements of all pieces and updates its range of the variables and their
// slots, a reduce-scatter fused with the optimizer. Part of
// lower_collectives().

#ifndef BERTH_COLLECTIVE_SHARED_MEMORY_H_
#define BERTH_COLLECTIVE_SHARED_MEMORY_H_

#include <string>
#include <vector>

#include "collective/emit.h"

namespace berth {

// Smaller variables are never split.
inline constexpr int64_t kSmallestCutBytes = 4096;

// Larger ranges are updated in pieces of this size: sums stay in the cache.
inline constexpr int64_t kCachedSumBytes = 512 << 10;

// Elements [begin, begin + count) of item `item` of a bucket.
struct ItemRange {
  int item = 0;
  int64_t begin = 0;
  int64_t count = 0;
};

// Splits items of these sizes into one list of ranges per device, evenly by
// elements, at multiples of 64 bytes, with small items whole.
std::vector<std::vector<ItemRange>> cut_evenly(
    const std::vector<int64_t>& elements, int64_t bytes_per_element,
    int devices);

// Whether all readers of the results only update variables with them, element
// by element (ResourceApply*, Assign*VariableOp).
bool only_updates(const Graph& graph,
                  const std::vector<std::vector<int32_t>>& users,
                  const AllReduceRequest& reduction);

// Splits the ranges of a device into pieces of that size.
std::vector<ItemRange> cut_for_cache(const std::vector<ItemRange>& ranges,
                                     int64_t bytes_per_element);

// Replaces the reductions, and the updates that read them, by sums and updates
// of ranges. All pieces are in one memory; only_updates() holds for all items.
void lower_updates(Emit& emit, const Bucket& bucket,
                   const std::vector<std::vector<int32_t>>& users);

// Replaces the reductions by sums that each reader reads in place.
void lower_values(Emit& emit, const Bucket& bucket);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_SHARED_MEMORY_H_
