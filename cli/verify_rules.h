// The rules of the three models again, written as plainly as possible; `berth
// verify-plan` compares plan files with them. Shares only its problem with the
// planner. Pure.

#ifndef BERTH_CLI_VERIFY_RULES_H_
#define BERTH_CLI_VERIFY_RULES_H_

#include <vector>

#include "place/planner/problem.h"

namespace berth::cli {

struct Recomputed {
  double value = 0;           // infinite: it cannot be followed
  std::vector<double> bytes;  // per device, at the peak
};

// For a plan whose sequence has every op that takes time, in a valid order.
Recomputed recompute(const PlanProblem& problem, const PlacePlan& plan);

// Returns nodes so that none precedes what it waits for; ties by number.
std::vector<int32_t> in_order(const SimulatedGraph& graph);

}  // namespace berth::cli

#endif  // BERTH_CLI_VERIFY_RULES_H_
