// Where the parts of a split step go: replicas, pieces of sums, memories.
//
// Computed from a SplitPlan and a batch; devices are names, none is touched.

#ifndef BERTH_DISTRIBUTE_SPLIT_PLACES_H_
#define BERTH_DISTRIBUTE_SPLIT_PLACES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distribute/split_batch.h"

namespace berth::distribute {

// Examples [row, row + rows) of the batch.
struct ExampleRange {
  int64_t row = 0, rows = 0;
};

// One partial sum of each op that adds over the batch: what a replica adds up
// by itself. Where bits must not depend on the replicas, a subtree of the tree
// over all slices: slices [first, first + count).
struct SumPiece {
  int replica = 0;
  ExampleRange examples;
  int32_t first = 0, count = 0;
};

// A memory, or a combination of memories, that replicas share: whole values
// are made once in each.
struct SplitMemory {
  int replica = -1;  // the first that has it; -1: the central place
  std::vector<DeviceId> devices;
};

struct SplitPlaces {
  int64_t batch = 0;
  int32_t slices = 0;  // of this batch; 0: bits may depend on the replicas
  std::vector<ExampleRange> examples;  // by replica; rows 0: takes no part
  std::vector<int32_t> first_slice;    // by replica, then `slices`
  std::vector<SumPiece> pieces;
  std::vector<SplitMemory> memories;
  std::vector<int> memory_of;  // by replica; -1: in another task
  int home = 0;                // the memory where effects and results are

  bool central() const { return memories.back().replica < 0; }
};

// The same places as if all replicas had one memory: what is asked of them has
// the same answer in all tasks.
SplitPlaces in_one_memory(const SplitPlaces& places);

// Throws errors::InvalidArgument for shares that do not fit the replicas.
SplitPlaces places_of(const SplitPlan& plan, int64_t batch);

// The device of `devices` that a request means: by number, the first without
// one. A request for a CPU stays as it is where the devices are not CPUs.
// Throws errors::InvalidArgument for a number that is out of range.
DeviceId device_for(DeviceId request, const std::vector<DeviceId>& devices,
                    const Node& node);

// Lets `node`, a copy of `old`, ask for its device among those of a replica,
// or for none where another node decides.
void ask_for(Node& node, const Node& old, const std::vector<DeviceId>& devices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SPLIT_PLACES_H_
