// Checks whether the claims of a plan file are true for its problem.
//
// Shares only the readers of files with the planner: values and peaks come from
// verify_rules.cc, bounds from the check_*.cc of their kinds. Pure.

#ifndef BERTH_CLI_VERIFY_H_
#define BERTH_CLI_VERIFY_H_

#include <string>
#include <vector>

#include "planner/plan_file.h"

namespace berth::cli {

struct Finding {
  std::string what;   // "value"
  std::string wrong;  // "": correct
};

// Returns the checks made, in order. A bound or peaks that a file leaves out
// are not claimed. Its claims must be true, except that a bound may be less
// than its witness proves.
std::vector<Finding> verify(const PlanProblem& problem, const PlanFile& file);

}  // namespace berth::cli

#endif  // BERTH_CLI_VERIFY_H_
