// What `berth plan` prints for people.

#ifndef BERTH_CLI_PLAN_OUTPUT_H_
#define BERTH_CLI_PLAN_OUTPUT_H_

#include <string>

#include "place/planner/planner.h"

namespace berth::cli {

// The certificate, where the plan comes from, devices, largest transfers.
std::string plan_summary(const PlanProblem& problem, const PlanAnswer& answer);

}  // namespace berth::cli

#endif  // BERTH_CLI_PLAN_OUTPUT_H_
