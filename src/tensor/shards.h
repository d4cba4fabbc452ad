// Shards: a variable whose elements are divided over devices.
//
// What the user holds is the handle of the home, a whole variable. Each shard
// has a range of its elements, in row-major order, and is a variable [count] in
// its own right. Steps of a strategy write the shards alone; who reads the home
// then gets what they have first (catch_up()). A write of the home alone
// (assign, a checkpoint) makes the shards stale, and a plan that uses one
// brings it up to date before it runs, as a mirror (mirrors.h). Thread-safe.

#ifndef BERTH_TENSOR_SHARDS_H_
#define BERTH_TENSOR_SHARDS_H_

#include <cstdint>
#include <vector>

#include "tensor/variable_state.h"

namespace berth {

// Divides `home`, whose shards are then on these devices, in this order: shard
// k of n elements in all and N devices has elements [n k / N, n (k + 1) / N).
// Returns the shards; those that it has, if the devices are the same. Throws
// errors::FailedPrecondition for a variable that is divided over other devices,
// errors::ResourceExhausted.
std::vector<Tensor> divide(const Tensor& home,
                           const std::vector<Device*>& devices);

// Whether the variable is a shard.
inline bool is_shard(const VariableState& v) { return v.shard_begin >= 0; }

// Copies what the shards have to the home, if they were written since. The
// caller holds no lock of the variables. Throws errors::FailedPrecondition for
// a torn shard.
void catch_up(VariableState& home);

// Copies the range of the home to a shard that is_stale() (mirrors.h). The
// caller holds the lock of both, that of the shard exclusively.
void refresh_shard(VariableState& shard);

// Says that the home's values are all written, or that a shard's were. The
// caller holds the lock of the variable exclusively.
void mark_written(VariableState& v);

}  // namespace berth

#endif  // BERTH_TENSOR_SHARDS_H_
