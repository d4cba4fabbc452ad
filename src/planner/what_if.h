// What if: how a plan's value changes with one thing changed, and why.
//
// Questions:
//   move OP to DEVICE          an op, and what it must be with; OP/ or OP*:
//                              all ops with this prefix
//   link A-B = 64GB/s [5us]    both directions; A->B: one
//   memory DEVICE = 8GiB
//   device DEVICE 2x faster    or slower: all its ops
//   remove DEVICE
// Pure.

#ifndef BERTH_PLANNER_WHAT_IF_H_
#define BERTH_PLANNER_WHAT_IF_H_

#include <string>
#include <vector>

#include "planner/planner.h"

namespace berth {

// A question applied: the changed problem, and the plan as far as it is kept.
struct Changed {
  PlanProblem problem;
  PlacePlan plan;
  std::vector<int32_t> moved;  // ops
  std::string note;            // "with 3 ops that it must be with"
};

struct WhatIf {
  std::string question;
  double before = 0;
  double after = 0;                     // the kept plan; infinite: impossible
  std::vector<std::string> causes;      // of the difference, the largest first
  std::vector<std::string> violations;  // limits that the kept plan breaks
  PlanAnswer again;                     // planned anew under the change
};

// Throws errors::InvalidArgument for a question other than those above, and for
// ops and devices that do not exist.
Changed change(const PlanProblem& problem, const PlacePlan& plan,
               const std::string& question);

// Answers questions about an answer with a plan. `options`: for planning anew.
WhatIf what_if(const PlanProblem& problem, const PlanAnswer& answer,
               const std::string& question, const PlannerOptions& options);

}  // namespace berth

#endif  // BERTH_PLANNER_WHAT_IF_H_
