// merge_replicas: merges the traces of all replicas of run() into one.
//
// Each replica was traced by itself, with a _CrossReplica node where it meets
// the others. All traces are replayed together into the open trace, in the
// order in which replicas would run if they waited for each other at these
// nodes and at writes of shared variables. Such a node is replaced by the
// operation itself: _AllReduce, the nodes of one function, one write per
// memory. So a replica sees another's write only after its own. Handles of
// variables become those of the replica's memory (tensor/mirrors.h). One
// thread.

#ifndef BERTH_DISTRIBUTE_RUN_MERGE_REPLICAS_H_
#define BERTH_DISTRIBUTE_RUN_MERGE_REPLICAS_H_

#include <vector>

#include "distribute/strategy/strategy_core.h"
#include "graph/graph.h"

namespace berth::distribute {

struct ReplicaTrace {
  Graph graph;
  Tensors args;  // arguments of the graph
  // Takes part with weight 0: adds nothing to sums and means over replicas,
  // changes no variable of its own, and its own results come back as zeros.
  bool empty = false;
};

// Returns the results by replica. Throws errors::InvalidArgument, naming both
// lines, if replicas meet in different order or write different variables, and
// errors::Unimplemented for writes of variables of different kinds in one
// while_loop().
//
// `replicas` are those of this task; where replicas of other tasks take part,
// it adds _TaskReduce and _TaskGather, numbered alike in all tasks. `examples`:
// per replica, over all tasks; empty if not known.
std::vector<Tensors> merge_replicas(std::vector<ReplicaTrace> replicas,
                                    StrategyCore& core,
                                    const std::vector<int64_t>& examples);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_RUN_MERGE_REPLICAS_H_
