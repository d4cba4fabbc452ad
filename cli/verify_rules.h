// The rules of the three models once more, as plainly as they can be written:
// what `berth verify-plan` compares a plan file with. Shares nothing with the
// planner but its problem. Pure.

#ifndef BERTH_CLI_VERIFY_RULES_H_
#define BERTH_CLI_VERIFY_RULES_H_

#include <vector>

#include "place/planner/problem.h"

namespace berth::cli {

struct Recomputed {
  double value = 0;           // infinite: it cannot be followed
  std::vector<double> bytes;  // per device, at the peak
};

// Of a plan whose sequence has every op that takes time, in an order.
Recomputed recompute(const PlanProblem& problem, const PlacePlan& plan);

// Nodes, none before what it waits for; by number where there is a choice.
std::vector<int32_t> in_order(const SimulatedGraph& graph);

}  // namespace berth::cli

#endif  // BERTH_CLI_VERIFY_RULES_H_
