// The output of `berth plan` besides the plan file's document.

#ifndef BERTH_CLI_PLAN_OUTPUT_H_
#define BERTH_CLI_PLAN_OUTPUT_H_

#include <string>

#include "cli/place_output.h"
#include "planner/planner.h"
#include "planner/what_if.h"

namespace berth::cli {

// Returns the certificate, the plan's origin, devices and largest transfers.
std::string plan_summary(const PlanProblem& problem, const PlanAnswer& answer);

// A given plan compared with ours.
struct Compared {
  std::string file;
  Evaluation evaluation;
};

// Prices a plan file or a split. Throws UsageError.
Compared compare(const PlanProblem& problem, const std::string& path);

Json to_json(const Compared& compared, const PlanAnswer& answer);
std::string to_text(const Compared& compared, const PlanProblem& problem,
                    const PlanAnswer& answer);
Json to_json(const WhatIf& what_if);
std::string to_text(const WhatIf& what_if, const PlanProblem& problem);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLAN_OUTPUT_H_
