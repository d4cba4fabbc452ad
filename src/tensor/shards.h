// Shards: a variable whose elements are divided over devices.
//
// What the user holds is the handle of the home, a whole variable. Each shard
// has a part of it, a range of its elements in row-major order or a range along
// one of its axes, and is a variable in its own right. Steps of a strategy
// write the shards alone; who reads the home then gets what they have first
// (catch_up()). A write of the home alone (assign, a checkpoint) makes the
// shards stale, and a plan that uses one brings it up to date before it runs,
// as a mirror (mirrors.h). Thread-safe.

#ifndef BERTH_TENSOR_SHARDS_H_
#define BERTH_TENSOR_SHARDS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/variable_state.h"

namespace berth {

// Part k of n things in `parts` parts has [first, second).
inline std::pair<int64_t, int64_t> shard_range(int64_t n, size_t parts,
                                               size_t k) {
  const auto p = static_cast<int64_t>(parts), at = static_cast<int64_t>(k);
  return {n * at / p, n * (at + 1) / p};
}

// Says that the variable will be divided along `axis`, and moves it to the host
// unless somebody holds it. Throws errors::ResourceExhausted.
void set_split_axis(const Tensor& home, int axis, const void* strategy);

// Divides `home`, whose shards are then on these devices, in this order: shard
// k of N has the elements shard_range(all, N, k), as a variable [count]; if the
// home has an axis, shares[k] of each sum(shares) places along it (empty: equal
// shares), as a variable of its rank. Returns the shards; those that it has, if
// the devices are the same. Throws errors::FailedPrecondition for a variable
// that is divided over other devices, errors::ResourceExhausted.
std::vector<Tensor> divide(const Tensor& home,
                           const std::vector<Device*>& devices,
                           const std::vector<int>& shares = {});

// Whether the variable is a shard.
inline bool is_shard(const VariableState& v) { return v.shard_begin >= 0; }

// Copies what the shards have to the home, if they were written since. The
// caller holds no lock of the variables. Throws errors::FailedPrecondition for
// a torn shard.
void catch_up(VariableState& home);

// Copies the part of the home to a shard that is_stale() (mirrors.h). The
// caller holds the lock of both, that of the shard exclusively.
void refresh_shard(VariableState& shard);

// Says that the home's values are all written, or that a shard's were. The
// caller holds the lock of the variable exclusively.
void mark_written(VariableState& v);

}  // namespace berth

#endif  // BERTH_TENSOR_SHARDS_H_
