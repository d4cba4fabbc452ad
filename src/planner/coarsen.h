// Coarsening: merges units that share costly values.
//
// The multilevel half of a throughput search: it first anneals a smaller
// problem (contract() of loads.h). Pure.

#ifndef BERTH_PLANNER_COARSEN_H_
#define BERTH_PLANNER_COARSEN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "planner/budget.h"
#include "planner/loads.h"

namespace berth {

struct Clusters {
  std::vector<int32_t> of_unit;
  int32_t count = 0;
};

// Merges the units of the costliest nets, in a random order that prefers them,
// as long as no cluster's work exceeds `cap` times one device's share, or its
// bytes what a device holds.
Clusters cluster_units(const LoadProblem& problem, double cap,
                       StreamRandom& random);

// Returns about `count` clusters of a large problem.
Clusters shrink(const LoadProblem& problem, int32_t count,
                StreamRandom& random);

// Returns the plan of a problem from that of its clusters.
std::vector<int32_t> project(const Clusters& clusters,
                             std::span<const int32_t> device);

}  // namespace berth

#endif  // BERTH_PLANNER_COARSEN_H_
