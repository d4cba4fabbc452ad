// Meetings of tasks: _TaskReduce and _TaskGather become exchanges.
//
// Part of lower_collectives(). What a task has is added up in the task first;
// sums that do not wait for each other travel in buckets of `pack_bytes`, in
// the order in which the backward pass makes them. Each bucket is a _TaskStart,
// which hands its values over, and a _TaskEnd, which stands where they are
// first needed.
//
// All tasks make the same buckets in the same order, whatever devices they
// have: what decides it are numbers of the step as it was traced. The Starts of
// a task run in that order, so that no task waits at an End for a Start that
// stands behind another End. One thread.

#ifndef BERTH_COLLECTIVE_BETWEEN_TASKS_H_
#define BERTH_COLLECTIVE_BETWEEN_TASKS_H_

#include "graph/graph.h"

namespace berth {

// `timeout_seconds`: what an exchange may take; 0: the cluster's default.
void lower_between_tasks(Graph& graph, double timeout_seconds = 0);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_BETWEEN_TASKS_H_
