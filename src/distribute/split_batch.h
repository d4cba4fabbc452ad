// split_batch: a step on a global batch becomes one part per replica.
//
// A graph rewrite over known shapes that reads the split rules alone. Each
// value is whole, cut along an axis, or a partial sum; ops on cut values are
// made once per replica with examples, on its devices; partial sums that are
// needed whole become _AllReduce; updates of variables happen where these live
// (mirrors: in each memory). So any shares give what one device gives. An op
// without a rule is decomposed, else it runs whole, and SplitReport names it.
// No device is touched. One thread per graph.

#ifndef BERTH_DISTRIBUTE_SPLIT_BATCH_H_
#define BERTH_DISTRIBUTE_SPLIT_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "function/graph_rewrite.h"
#include "graph/graph.h"

namespace berth::distribute {

// Which part of a strategy over several tasks this task is. Replicas count
// over all tasks, in the order of ranks.
struct TaskPart {
  // Of plans that are only looked at: nothing is exchanged.
  static constexpr int64_t kNoLink = -1;
  int64_t link = 0;  // TaskLink::id(); 0: one task has all replicas
  int rank = 0;
  std::vector<int> first;  // replica of each rank; then their number
  // Where what is exchanged lies: a device with host memory.
  DeviceId device;
  // Examples of each rank, where the tasks say it batch by batch; empty: by
  // the shares.
  std::vector<int64_t> rows;
  // Arguments have this task's examples alone, where they are in the batch.
  bool own_rows = false;

  bool several() const { return link != 0; }
  int ranks() const { return static_cast<int>(first.size()) - 1; }
  bool is_here(int replica) const {
    return !several() || (replica >= first[static_cast<size_t>(rank)] &&
                          replica < first[static_cast<size_t>(rank) + 1]);
  }
  int first_here() const {
    return several() ? first[static_cast<size_t>(rank)] : 0;
  }
};

struct SplitPlan {
  // By replica: full names of its devices. Requests of nodes name them by
  // their number within the replica. One replica on "" leaves requests alone.
  std::vector<std::vector<DeviceId>> replicas;
  // Slices of the batch per replica, in proportion; empty: equal shares.
  std::vector<int> shares;
  // Bits must not depend on the replicas: sums are cut into so many parts,
  // added along one tree. 0: they may.
  int slices = 0;
  // Variables live here alone (CentralStorageStrategy); "": with replica 0,
  // and mirrors where memories differ.
  DeviceId central;
  std::string algorithm = "auto";  // of _AllReduce
  int64_t pack_bytes = 0;
  // Only nodes of replicas that are here are made; of others the devices do
  // not matter.
  TaskPart tasks;
};

// What the rewrite did, for plans and reports.
struct SplitReport {
  std::vector<int64_t> examples;   // by replica
  std::vector<std::string> whole;  // ops that run whole though cut values feed
                                   // them: "name (Op)"
  int64_t batch = 0;
};

// Rows of a batch per replica: by slices, else as even as can be, the larger
// parts last. They add up to `batch`.
std::vector<int64_t> examples_of(const SplitPlan& plan, int64_t batch);

// Splits the graph along the first axis of its arguments, which must be equal.
// With one replica and slices > 0 it only says how sums are cut. Throws
// errors::InvalidArgument when arguments have no common first axis, or a node
// asks for a device that a replica has not.
SplitReport split_batch(Graph& graph, const SplitPlan& plan);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SPLIT_BATCH_H_
