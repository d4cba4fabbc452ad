// PatternPricer: the sets with the greatest worth, per kind of device.
//
// Holds the graphs of sets for a target; finds sets by a rough search and
// proves by a fine one. One thread.

#ifndef BERTH_PLACE_PLANNER_PATTERN_PRICER_H_
#define BERTH_PLACE_PLANNER_PATTERN_PRICER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "place/planner/frontier.h"
#include "place/planner/packing.h"

namespace berth {

// The result of a worth: prices per kind, and the worth of all units over the
// price of all devices; a ratio over 1 says that units do not fit.
struct PricedWorth {
  double ratio = 0;
  std::vector<double> prices;
};

// A lower bound on all plans, and the prices that prove it.
struct ProvedWorth {
  double value = 0;
  std::vector<double> prices;
};

class PatternPricer {
 public:
  // `stop` is called now and then; once it returns true, nothing more is found.
  PatternPricer(const PackingProblem& problem, std::function<bool()> stop);

  const std::vector<int32_t>& order() const { return order_; }

  // Builds the graphs of all sets that load a device by `target` at most.
  // Returns false when these are too large.
  bool aim_at(double target, int64_t most_states);
  double target() const { return target_; }

  // Finds the sets that are worth most, and more than `least` (per kind), and
  // adds them to the patterns. May find too little; if stopped: a ratio of 0.
  PricedWorth find(std::span<const double> worth,
                   std::span<const double> least);
  const std::vector<std::vector<FoundSet>>& patterns() const { return found_; }

  // Returns the greatest value up to the target that the worth proves; 0: none.
  // `rough`: the result of find() for it.
  ProvedWorth prove(std::span<const double> worth, const PricedWorth& rough);

  // The work done, in pieces of about equal size.
  int64_t work() const;

 private:
  bool find_on(size_t kind, std::span<const double> worth, double least,
               double* price);
  bool prove_on(int grid, std::span<const double> worth,
                const PricedWorth& rough, ProvedWorth& proved);

  void keep(size_t kind);

  const PackingProblem& p_;
  const std::function<bool()> stop_;
  std::vector<int32_t> order_;
  double target_ = 0;
  int rough_grid_;
  std::vector<std::unique_ptr<FrontierGraph>> graphs_;  // per kind
  std::vector<std::unique_ptr<FrontierSearch>> searches_;
  std::vector<std::vector<FoundSet>> found_;  // per kind
  int64_t work_ = 0;                          // in addition to that of searches
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PATTERN_PRICER_H_
