// split_batch: turns a step on a global batch into one part per replica.
//
// A graph rewrite over known shapes that uses the split rules only. Each value
// is whole, split along an axis, or a partial sum. Ops on split values are made
// once per replica that has examples, on its devices; partial sums that are
// needed whole become _AllReduce; updates of variables run where these live
// (mirrors: in each memory). So any shares give the results of one device. An
// op without a rule is decomposed; otherwise it runs whole and SplitReport
// names it. No device is touched. One thread per graph.
//
// With SplitPlan::layers it is not the batch that is split but the variables
// that are divided along an axis (tensor/shards.h), and with them the ops that
// use them: tensor parallelism (Shoeybi et al. 2019) by the same rules.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_BATCH_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "function/graph_rewrite.h"
#include "graph/graph.h"

namespace berth::distribute {

// The part of a strategy over several tasks that this task has. Replicas are
// counted over all tasks, in the order of ranks.
struct TaskPart {
  // For plans that are only inspected: nothing is exchanged.
  static constexpr int64_t kNoLink = -1;
  int64_t link = 0;  // CollectiveExecutor::id(); 0: one task has all replicas
  int rank = 0;
  std::vector<int> first;  // replica of each rank, then their total number
  // Where exchanged values are: a device with host memory.
  DeviceId device;
  // Examples of each rank, if tasks announce them per batch; empty: by shares.
  std::vector<int64_t> rows;
  // Arguments hold this task's examples only, where they are in the batch.
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
  // By replica: full names of its devices. Nodes request them by their number
  // within the replica. One replica on "" leaves requests unchanged.
  std::vector<std::vector<DeviceId>> replicas;
  // Slices of the batch per replica, in proportion; empty: equal shares.
  std::vector<int> shares;
  // If bits must not depend on the replicas: sums are split into this many
  // parts, which are added along one tree. 0: they may depend.
  int slices = 0;
  // Variables live only here (CentralStorageStrategy); "": with replica 0, and
  // mirrors where memories differ.
  DeviceId central;
  std::string algorithm = "auto";  // of _AllReduce
  int64_t pack_bytes = 0;
  // Only nodes of local replicas are made; other devices do not matter.
  TaskPart tasks;
  // Splits layers: replica k has shard k of variables with an axis. Needs these
  // divided, by `shares`; no slices, no tasks.
  bool layers = false;
  // Sums of parts are additions on each device that needs them, in place of
  // _AllReduce: the result is split again, by batch.
  bool adds = false;
  // The graph is such a result: its nodes request devices of replica 0.
  bool of_layers = false;
};

// What the rewrite did, for plans and reports.
struct SplitReport {
  std::vector<int64_t> examples;   // by replica
  std::vector<std::string> whole;  // run whole on split values: "name (Op)"
  int64_t batch = 0;
};

// Rows of a batch per replica: by slices, or as even as possible, the larger
// parts last. They add up to `batch`.
std::vector<int64_t> examples_of(const SplitPlan& plan, int64_t batch);

// The examples of a step: the first axis of its arguments; -1: none has one.
// Throws errors::InvalidArgument if they differ.
int64_t batch_of(const Graph& graph);

// Splits the graph along the first axis of its arguments, whose lengths must be
// equal, or by its variables (SplitPlan::layers). With one replica and slices >
// 0 it only fixes how sums are split. Throws errors::InvalidArgument if the
// arguments have no common first axis, or a node requests a device that a
// replica does not have, errors::Unimplemented for an update of a divided
// variable that cannot be divided.
SplitReport split_batch(Graph& graph, const SplitPlan& plan);

// Takes apart what has no rule, as split_batch() with SplitPlan::layers does
// before it splits: with equal shares.
void settle_layers(Graph& graph, int parts);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_SPLIT_BATCH_H_
