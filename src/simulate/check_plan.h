// The checks that reject infeasible plans. Internal to the module; pure.

#ifndef BERTH_SIMULATE_CHECK_PLAN_H_
#define BERTH_SIMULATE_CHECK_PLAN_H_

#include <span>
#include <string>

#include "simulate/simulate.h"

namespace berth {

// Throws errors::InvalidArgument unless the costs fit the graph in lengths and
// in numbers of classes.
void check_costs(const SimulatedGraph& graph, const CostTable& costs);

// Throws errors::InvalidArgument unless the plan has a device for every node.
// Messages name ops by `names`, or if these are empty by the graph's.
void check_devices(const SimulatedGraph& graph, size_t num_devices,
                   const PlacePlan& plan, std::span<const std::string> names);

// As above, and unless every op that takes time is once in the plan's sequence,
// after what it waits for. `order`: topological.
void check_sequence(const SimulatedGraph& graph, size_t num_devices,
                    const PlacePlan& plan, std::span<const int32_t> order,
                    std::span<const std::string> names = {});

// Throws errors::InvalidArgument unless every op's device has a kernel for it.
void check_kernels(const SimulatedGraph& graph, const CostTable& costs,
                   const PlacePlan& plan);

}  // namespace berth

#endif  // BERTH_SIMULATE_CHECK_PLAN_H_
