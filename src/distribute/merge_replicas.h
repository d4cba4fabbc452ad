// merge_replicas: the traces of all replicas of run() become one.
//
// Each replica was traced by itself; where it met the others stands a
// _CrossReplica node. All traces are replayed together into the trace that is
// open, as replicas that wait for each other at these nodes and at writes of
// shared variables would go; in the place of such nodes comes what happens
// there: _AllReduce, one function's nodes, one write per memory. So a replica
// sees what another wrote only behind its own write. Handles of variables
// become those of the replica's memory (tensor/mirrors.h). One thread.

#ifndef BERTH_DISTRIBUTE_MERGE_REPLICAS_H_
#define BERTH_DISTRIBUTE_MERGE_REPLICAS_H_

#include <vector>

#include "distribute/strategy_core.h"
#include "graph/graph.h"

namespace berth::distribute {

struct ReplicaTrace {
  Graph graph;
  Tensors args;  // of the graph
  // Takes part with weight 0: adds nothing to sums and means over replicas,
  // changes no variable of its own, and what it computes by itself comes back
  // as zeros.
  bool empty = false;
};

// Returns the results by replica. Throws errors::InvalidArgument, naming both
// lines, when replicas meet in different order or write different variables,
// errors::Unimplemented for a write of a shared variable in cond() or
// while_loop().
// `replicas` are those of this task; where replicas of others take part come
// _TaskReduce and _TaskGather, numbered alike in all tasks. `examples`: of the
// replicas of all tasks, empty when nobody says.
std::vector<Tensors> merge_replicas(std::vector<ReplicaTrace> replicas,
                                    StrategyCore& core,
                                    const std::vector<int64_t>& examples);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_MERGE_REPLICAS_H_
