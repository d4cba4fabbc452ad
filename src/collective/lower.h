// Lowering of collectives: _AllReduce nodes become additions and copies.
//
// A graph rewrite that runs when a function is compiled, after the device-free
// passes, before placement. It adds ordinary nodes that request devices:
// transfers come from the partitioner, order and waits from the schedule, so
// that reports, costs and simulation see each byte. No device is touched. One
// thread per graph.

#ifndef BERTH_COLLECTIVE_LOWER_H_
#define BERTH_COLLECTIVE_LOWER_H_

#include "graph/graph.h"

namespace berth {

// Replaces every _AllReduce of the graph.
//
// A piece is on the device that its producer requests, a result on the one that
// its readers request (full names). Devices of one memory (CPU devices of one
// process) share buffers: there a result exists once. If all its readers update
// variables of that memory (ResourceApply*), each device adds and updates its
// own range of the elements (_Rows, _VariableRange). Between memories: the
// algorithm that the node names (device_allreduce.h). Results of one reduction
// and one set of devices are packed in buckets of `pack_bytes`, in the order in
// which their pieces appear. `timeout_seconds`: the limit of a step, for
// libraries; 0: no limit. Throws errors::InvalidArgument for an algorithm that
// does not exist.
void lower_collectives(Graph& graph, double timeout_seconds = 0);

// Replaces those _AllReduce whose pieces are made on one device by additions
// there: each piece is added when it is made. With starts they follow the tree
// over slices.
void accumulate(Graph& graph);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_LOWER_H_
