// Shares: divides slices and examples of a batch among replicas. Pure.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_SHARES_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::distribute {

// Returns whole numbers that add up to `total`, as even as possible, larger
// ones last.
std::vector<int64_t> even_parts(int64_t total, size_t parts);

// Returns slices per replica in proportion to `weights` (at least 0, not all
// 0), by largest remainder, earlier replicas first; a replica with a weight
// above 0 gets at least one slice if there are enough.
std::vector<int> slices_by_weight(const std::vector<double>& weights,
                                  int slices);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_SHARES_H_
