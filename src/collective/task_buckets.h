// Meetings of tasks: _TaskReduce and _TaskGather become exchanges.
//
// Part of lower_collectives(). Each task first adds its own values; independent
// sums are sent in buckets of `pack_bytes`, in the order in which the backward
// pass makes them. Each bucket is a _TaskStart, which hands its values over,
// and a _TaskEnd, placed where they are first needed.
//
// All tasks make the same buckets in the same order, whatever devices they
// have: the decisions depend on numbers of the traced step only. The Starts of
// a task run in that order, so no task waits at an End for a Start that another
// End blocks. One thread.

#ifndef BERTH_COLLECTIVE_TASK_BUCKETS_H_
#define BERTH_COLLECTIVE_TASK_BUCKETS_H_

#include "graph/graph.h"

namespace berth {

// `timeout_seconds`: the limit of an exchange; 0: the cluster's default.
void lower_task_reductions(Graph& graph, double timeout_seconds = 0);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_TASK_BUCKETS_H_
