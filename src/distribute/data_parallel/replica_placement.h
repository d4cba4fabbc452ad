// Where the parts of a split step go: replicas, pieces of sums, memories.
//
// Computed from a SplitPlan and a batch; devices are names only.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_REPLICA_PLACEMENT_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_REPLICA_PLACEMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "distribute/data_parallel/split_batch.h"

namespace berth::distribute {

// Examples [row, row + rows) of the batch.
struct ExampleRange {
  int64_t row = 0, rows = 0;
};

// One partial sum of each op that adds over the batch: the sum of a replica. If
// bits must not depend on the replicas, it is a subtree of the tree over all
// slices: slices [first, first + count).
struct SumPiece {
  int replica = 0;
  ExampleRange examples;
  int32_t first = 0, count = 0;
};

// A memory, or combination of memories, that replicas share: whole values are
// made once in each.
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
  int home = 0;                // the memory of effects and results

  bool central() const { return memories.back().replica < 0; }
};

// Returns the places as if all replicas had one memory: queries then have equal
// answers in all tasks.
SplitPlaces in_one_memory(const SplitPlaces& places);

// Throws errors::InvalidArgument for shares that do not fit the replicas.
SplitPlaces places_of(const SplitPlan& plan, int64_t batch);

// The device in `devices` that a request means: by number; without a number,
// the first. A request for a CPU is kept if the devices are not CPUs. Throws
// errors::InvalidArgument for a number that is out of range.
DeviceId device_for(DeviceId request, const std::vector<DeviceId>& devices,
                    const Node& node);

// Makes `node`, a copy of `old`, request its device among those of a replica,
// or none if another node decides.
void ask_for(Node& node, const Node& old, const std::vector<DeviceId>& devices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_REPLICA_PLACEMENT_H_
