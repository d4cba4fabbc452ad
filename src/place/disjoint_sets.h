// DisjointSets: a partition of dense numbers that gets coarser (union-find).
//
// A value; one thread, since find() shortens paths.

#ifndef BERTH_PLACE_DISJOINT_SETS_H_
#define BERTH_PLACE_DISJOINT_SETS_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace berth {

class DisjointSets {
 public:
  DisjointSets() = default;
  // Each number is alone at first.
  explicit DisjointSets(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  // Returns the root of the set that has this number.
  int32_t find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  // Joins two sets; the root of `into` is that of both.
  void join(int32_t into, int32_t other) { parent_[find(other)] = find(into); }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace berth

#endif  // BERTH_PLACE_DISJOINT_SETS_H_
