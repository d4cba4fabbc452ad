// The rules of the three models again, written as plainly as possible; `berth
// verify-plan` compares plan files with them. Shares only its problem with the
// planner. Pure.

#ifndef BERTH_CLI_VERIFY_RULES_H_
#define BERTH_CLI_VERIFY_RULES_H_

#include <vector>

#include "planner/check.h"

namespace berth::cli {

struct Recomputed {
  double value = 0;           // infinite: it cannot be followed
  std::vector<double> bytes;  // per device, at the peak
};

// For a plan whose sequence has every op that takes time, in a valid order.
Recomputed recompute(const PlanProblem& problem, const PlacePlan& plan);

// For model kPipeline (verify_pipeline.cc).
Recomputed recompute_pipeline(const PlanProblem& problem,
                              const PlacePlan& plan);

// Returns the problem whose throughput bounds a pipeline: a step's ops, and
// values that micro-batches read, as often as there are micro-batches.
PlanProblem loads_again(const PlanProblem& problem);

// Follows aliases to the value that they rename.
int32_t renamed(const SimulatedGraph& graph, int32_t value);

}  // namespace berth::cli

#endif  // BERTH_CLI_VERIFY_RULES_H_
