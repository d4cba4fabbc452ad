// Whether a plan file is true of its problem.
//
// Shares the readers of files with the planner and nothing else: values and
// peaks come from verify_rules.cc, bounds from the check_*.cc of their kinds.
// Pure.

#ifndef BERTH_CLI_VERIFY_H_
#define BERTH_CLI_VERIFY_H_

#include <string>
#include <vector>

#include "place/planner/plan_file.h"

namespace berth::cli {

struct Finding {
  std::string what;   // "value"
  std::string wrong;  // "": nothing
};

// Returns what was looked at, in order. What a file leaves out is not claimed:
// a bound, peaks. What it says must be so, but for a bound, which may be less
// than its witness proves.
std::vector<Finding> verify(const PlanProblem& problem, const PlanFile& file);

}  // namespace berth::cli

#endif  // BERTH_CLI_VERIFY_H_
