// PackingProblem: throughput as sets of units that must fit devices.
//
// What a lower bound needs of a LoadProblem: kinds of equal devices, and for
// each kind the least load that a set of units puts on one of them. A set S
// fits a device of kind k within a value T only if
//
//   size_k(S) + paid_k(S) <= T
//
// where size_k adds over units and paid_k over nets: `in` for a net with its
// head outside and another pin in S, `out` for one with its head in S and
// another pin outside. (By the touch rule both are the same, and any pin may be
// the head.) Pure; read-only while in use, by any number of threads.

#ifndef BERTH_PLANNER_PACKING_H_
#define BERTH_PLANNER_PACKING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "planner/loads.h"

namespace berth {

// The times of a link.
struct FastLink {
  double latency_us, us_per_byte;
};
// Adds a link unless another of them is as fast for any size; takes away those
// that it beats.
void add_unless_beaten(std::vector<FastLink>& best, const FastLink& link);

struct PackingProblem {
  explicit PackingProblem(const LoadProblem& problem);

  int32_t num_units() const { return nets.size(); }
  size_t num_kinds() const { return kinds.size(); }
  double size_on(int32_t unit, size_t kind) const {
    return size[static_cast<size_t>(unit) * kinds.size() + kind];
  }
  double in_of(int32_t net, size_t kind) const {
    return in[static_cast<size_t>(net) * kinds.size() + kind];
  }
  double out_of(int32_t net, size_t kind) const {
    return out[static_cast<size_t>(net) * kinds.size() + kind];
  }

  std::vector<DeviceSet> kinds;  // equal devices
  std::vector<double> size;      // [unit * kinds + kind]; infinite: never there
  Rows<int32_t> pins;            // per net: its units, the head first
  Rows<int32_t> nets;            // per unit
  std::vector<double> in, out;   // [net * kinds + kind]
};

// All units together exceed what all devices hold. Kinds of devices get a price
// per share of a device; a unit is worth its price on the kind that is cheapest
// for it. If all units are worth more than all devices are priced, no plan
// exists.
struct SumProof {
  // Worth of all units for prices that add up to 1 over all devices: more than
  // 1 is a proof. Infinite: a unit fits nowhere.
  double worth = 0;
  std::vector<double> prices;  // per kind, of one device
};

// `share`: [unit * kinds.size() + kind], the share of a device of that kind
// that a unit takes; infinite: does not fit. Finds the best prices.
SumProof prove_by_sum(std::span<const double> share,
                      std::span<const DeviceSet> kinds);

// Returns what a unit is worth at these prices.
double worth_of(std::span<const double> share_of_unit,
                std::span<const double> prices);

}  // namespace berth

#endif  // BERTH_PLANNER_PACKING_H_
