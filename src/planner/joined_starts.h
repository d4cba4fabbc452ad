// Joined starts: when ops can start, by chains and by what shares their device.
//
// A value that changed devices on the way to an op may come too late for it:
// then its producer is on the op's device, and so may be what that waits for.
// Ops on one device run one after the other, which takes longer than the chains
// that they form. Considers the nearest ops only, so its time is linear in the
// size of the graph. A pure function.

#ifndef BERTH_PLANNER_JOINED_STARTS_H_
#define BERTH_PLANNER_JOINED_STARTS_H_

#include <vector>

#include "planner/step_graph.h"

namespace berth {

// Returns, per op and kind [op * kinds + kind], a time before which it cannot
// start there (`back`: the least time from its end to the step's); infinite:
// not allowed. At least StepGraph::by_path().
std::vector<double> joined_starts(const StepGraph& graph, bool back);

}  // namespace berth

#endif  // BERTH_PLANNER_JOINED_STARTS_H_
