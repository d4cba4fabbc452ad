// SlicingRule: when cutting an op into parts pays.
//
// Measured in work: bytes moved, or half the flops where that is more. Where an
// op is cut decides its bits, so the rule is the same on every machine: no
// measured rate has a part in it. Plain values.

#ifndef BERTH_EXEC_SLICING_RULE_H_
#define BERTH_EXEC_SLICING_RULE_H_

namespace berth {

struct SlicingRule {
  double worth = 80e3;  // regions of less work are left uncut
  double fork = 20e3;   // what a fork costs
  double tiny = 10e3;   // ops below have no place where nothing feeds them
  double slack = 10e3;  // a slice may take so much more than its share
  double sums = 40e3;   // partial sums may cost so much, or a 20th of a share
  // However little time a region takes, several threads run it.
  bool always_forks = false;
};

// Whatever can be split is, however small (tests).
inline constexpr SlicingRule kSliceEverything{0, -1e13, 0, 1e13, 1e13, true};

// What a fork costs, in microseconds, and the least that is worth one.
inline constexpr double kForkUs = 2, kWorthForkUs = 4 * kForkUs;

}  // namespace berth

#endif  // BERTH_EXEC_SLICING_RULE_H_
