// Patterns: packing by whole sets of units, with the copies between them.
//
// Units get a worth such that no set that fits a device of a kind is worth more
// than that kind's price, while all units together are worth more than all
// devices are priced: then no plan exists (the dual of a linear programme over
// all sets, the "configuration LP"). Worth is improved step by step: a small LP
// over the known sets proposes one, and a search over all sets finds those that
// are then worth too much. Adjacent units change their worth together at first,
// then in ever smaller groups. One thread; deterministic if the budget counts
// moves.

#ifndef BERTH_PLACE_PLANNER_PATTERNS_H_
#define BERTH_PLACE_PLANNER_PATTERNS_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/packing.h"

namespace berth {

struct PatternProof {
  double value = 0;            // a lower bound on plans; 0: none
  std::vector<double> worth;   // per unit
  std::vector<double> prices;  // per kind, of one device
  std::vector<int32_t> order;  // of units, with few nets open at a time
};

struct PatternOptions {
  double lower = 0;  // proved already
  double upper = 0;  // a plan's value; infinite: none known
  double until = 1;  // stops at this share of the budget, or of work
};

// Tries to prove more than `lower`. `worth`: the start, per unit, at any scale.
PatternProof prove_by_patterns(const PackingProblem& problem,
                               std::vector<double> worth, const Budget& budget,
                               const PatternOptions& options);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PATTERNS_H_
