// SumProof: all units together exceed what all devices hold.
//
// Kinds of devices get a price per share of a device; a unit is worth its price
// on the kind that is cheapest for it. If all units are worth more than all
// devices are priced, no plan exists. Pure.

#ifndef BERTH_PLACE_PLANNER_SUM_PROOF_H_
#define BERTH_PLACE_PLANNER_SUM_PROOF_H_

#include <span>
#include <vector>

namespace berth {

struct SumProof {
  // Worth of all units for prices that add up to 1 over all devices: more than
  // 1 is a proof. Infinite: a unit fits nowhere.
  double worth = 0;
  std::vector<double> prices;  // per kind, of one device
};

// `share`: [unit * counts.size() + kind], the share of a device of that kind
// that a unit takes; infinite: does not fit. Finds the best prices.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const double> counts);

// Returns what a unit is worth at these prices.
double worth_of(std::span<const double> share_of_unit,
                std::span<const double> prices);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_SUM_PROOF_H_
