// Coarsening: units that costly values hold together become one.
//
// The multilevel half of a throughput search: what is annealed is a smaller
// problem first (contract() of loads.h). Pure.

#ifndef BERTH_PLACE_PLANNER_COARSEN_H_
#define BERTH_PLACE_PLANNER_COARSEN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/loads.h"

namespace berth {

struct Clusters {
  std::vector<int32_t> of_unit;
  int32_t count = 0;
};

// Merges the units of the costliest nets, in a random order that prefers them,
// as long as no cluster's work is above `cap` of one device's share, or its
// bytes above what a device holds. Units on different devices of `apart` stay
// apart; empty: none do.
Clusters cluster_units(const LoadProblem& problem, double cap,
                       std::span<const int32_t> apart, StreamRandom& random);

// Returns clusters of a large problem, about `count` of them.
Clusters shrink(const LoadProblem& problem, int32_t count,
                StreamRandom& random);

// Returns the plan of a problem from that of its clusters.
std::vector<int32_t> project(const Clusters& clusters,
                             std::span<const int32_t> device);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_COARSEN_H_
