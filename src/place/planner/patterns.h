// Patterns: packing by whole sets of units, with the copies between them.
//
// Units get a worth such that no set that fits a device of a kind is worth more
// than that kind's price, while all units together are worth more than all
// devices are priced: then there is no plan (the dual of a linear programme
// over all sets, the "configuration LP"). Worth is improved step by step: a
// small LP over the sets that are known proposes, a search over all sets finds
// those that are then worth too much. Units next to each other change their
// worth together at first, and in ever smaller groups later. One thread;
// deterministic where the budget counts moves.

#ifndef BERTH_PLACE_PLANNER_PATTERNS_H_
#define BERTH_PLACE_PLANNER_PATTERNS_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/packing.h"

namespace berth {

struct PatternProof {
  double value = 0;            // no plan is below; 0: nothing
  std::vector<double> worth;   // per unit
  std::vector<double> prices;  // per kind, of one device
  std::vector<int32_t> order;  // of units, in which few nets are open
};

struct PatternOptions {
  double lower = 0;  // proved already
  double upper = 0;  // a plan's value; infinite: none known
  double until = 1;  // the share of the budget to stop at; by moves: of work
  int64_t most_states = 400'000;  // per kind
};

// Looks for proofs of more than `lower`. `worth`: what to begin with, per unit,
// of any scale.
PatternProof prove_by_patterns(const PackingProblem& problem,
                               std::vector<double> worth, const Budget& budget,
                               const PatternOptions& options);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PATTERNS_H_
