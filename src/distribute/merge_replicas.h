// merge_replicas: the traces of all replicas of run() become one graph.
//
// Each replica was traced by itself; where it met the others stands a
// _CrossReplica node. Merging walks all traces together, as replicas that wait
// for each other at these nodes and at writes of shared variables would, and
// puts one node, or one function's nodes, in their place. Handles of variables
// become those of the replica's memory (tensor/mirrors.h); a write that all
// replicas make happens once per memory. No device is touched. One thread.

#ifndef BERTH_DISTRIBUTE_MERGE_REPLICAS_H_
#define BERTH_DISTRIBUTE_MERGE_REPLICAS_H_

#include <vector>

#include "distribute/split_batch.h"
#include "graph/graph.h"

namespace berth::distribute {

// Returns the graph whose arguments are those of replica 0, then of replica
// 1, ...; outputs likewise. Throws errors::InvalidArgument, naming both lines,
// when replicas meet in different order or write different variables.
Graph merge_replicas(std::vector<Graph> replicas, const SplitPlan& plan);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MERGE_REPLICAS_H_
