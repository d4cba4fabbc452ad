// replica_part: for functions of replicas that run op by op, each on a thread
// of its own (the Python package does that), not in a trace.

#ifndef BERTH_OPS_REPLICA_PART_H_
#define BERTH_OPS_REPLICA_PART_H_

namespace berth {

// Says which replica the thread runs op by op; -1: none. The thread then reads
// and writes that replica's part of a variable that each changes on its own.
int& replica_op_by_op();

}  // namespace berth

#endif  // BERTH_OPS_REPLICA_PART_H_
