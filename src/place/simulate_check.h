// What the simulator refuses: plans that cannot be, and orders that nobody can
// follow. Internal to the room; pure.

#ifndef BERTH_PLACE_SIMULATE_CHECK_H_
#define BERTH_PLACE_SIMULATE_CHECK_H_

#include <vector>

#include "place/simulate.h"

namespace berth {

// Throws errors::InvalidArgument unless the costs fit the graph: lengths, and
// numbers of classes.
void check_costs(const SimulatedGraph& graph, const CostTable& costs);

// Throws errors::InvalidArgument unless every op stands once in the order of
// its device, which has a kernel for it, and the costs fit the graph.
// `in_order` is scratch.
void check_plan(const SimulatedGraph& graph, const CostTable& costs,
                const SimulatedPlan& plan, std::vector<uint8_t>& in_order);

// Throws errors::InvalidArgument that names, per device, the op at which it
// stands, number `position` of its order, and the op that this one needs.
[[noreturn]] void fail_deadlock(const SimulatedGraph& graph,
                                const CostTable& costs,
                                const SimulatedPlan& plan,
                                const std::vector<size_t>& position);

}  // namespace berth

#endif  // BERTH_PLACE_SIMULATE_CHECK_H_
