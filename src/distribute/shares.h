// Shares: how the slices of a batch, and its examples, fall to replicas. Pure.

#ifndef BERTH_DISTRIBUTE_SHARES_H_
#define BERTH_DISTRIBUTE_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::distribute {

// Returns whole numbers that add up to `total`, as even as can be, the larger
// ones last.
std::vector<int64_t> even_parts(int64_t total, size_t parts);

// Returns slices per replica in the proportion of `weights` (at least 0, not
// all 0), by largest remainder, earlier replicas first; a replica of a weight
// above 0 has at least one slice when there are enough.
std::vector<int> slices_by_weight(const std::vector<double>& weights,
                                  int slices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_SHARES_H_
