// FrontierGraph: all sets of units that fit a device, as paths.
//
// Units are taken one after the other, in or out. What is in and out among the
// pins of nets that are begun but not ended is a state; graphs like those of
// models have orders in which few nets are open at a time, so few states. A
// path from the first state to the last is a set, what it adds up its size and
// what it pays. best_sets() finds the paths of most worth: the pricing of
// packing by patterns, exact for the graph but for rounding that claims too
// much rather than too little. Without nets it is a knapsack.
// Building is done once per kind; best_sets() may be called by one thread per
// FrontierSearch.

#ifndef BERTH_PLACE_PLANNER_FRONTIER_H_
#define BERTH_PLACE_PLANNER_FRONTIER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "place/planner/packing.h"

namespace berth {

// Returns an order of all units in which few nets are open at a time; tries
// some `tries` beginnings.
std::vector<int32_t> frontier_order(const PackingProblem& problem, int tries);

class FrontierGraph {
 public:
  // Sets with more than `most` are left out. Nets are left out, the cheapest
  // first (which only makes sets cheaper), where more than `width` are open.
  // `size`: per unit, infinite: never in. Without nets: a knapsack.
  FrontierGraph(const PackingProblem& problem, size_t kind,
                std::span<const int32_t> order, std::span<const double> size,
                bool with_nets, double most, int32_t width,
                int64_t most_states);

  // False: there are more states than were allowed.
  bool complete() const { return complete_; }
  int64_t num_states() const { return begin_.back(); }

  struct Edge {
    int32_t from;  // state of the step before
    bool in;
    double load;
  };
  const std::vector<int32_t>& order() const { return order_; }
  // States after `step` units; numbers are dense over all steps.
  int32_t states_begin(size_t step) const { return begin_[step]; }
  int32_t states_end(size_t step) const { return begin_[step + 1]; }
  std::span<const Edge> edges_to(int32_t state) const {
    return {edges_.data() + edges_begin_[state],
            static_cast<size_t>(edges_begin_[state + 1] - edges_begin_[state])};
  }

 private:
  class Builder;
  std::vector<int32_t> order_;
  std::vector<int32_t> begin_;  // per step, the first state
  std::vector<int32_t> edges_begin_;
  std::vector<Edge> edges_;
  bool complete_ = true;
};

// What a set of at most this load is worth at most.
struct Worth {
  double load, worth;
};

class FrontierSearch {
 public:
  explicit FrontierSearch(const FrontierGraph& graph) : g_(graph) {}

  // Looks at sets of load up to `most`; loads within most / `grid` of each
  // other may be taken for one. `worth`: per unit. Worth below `least` may be
  // stated as `least`. Returns a rising staircase: no set with a load below
  // that of the next step is worth more than a step says.
  std::vector<Worth> run(std::span<const double> worth, double most, int grid,
                         double least, bool real = false);

  // The set that the last run found for its last step, or a step before.
  std::vector<int32_t> best_set(size_t step_from_last = 0) const;
  int64_t labels() const { return static_cast<int64_t>(parents_.size()); }

 private:
  void find_rest(std::span<const double> worth, double price,
                 std::vector<double>& rest) const;
  struct Label {
    double load, worth;
    uint32_t from;  // index in parents_ of the label before; top bit: in
  };
  const FrontierGraph& g_;
  std::vector<uint32_t> parents_;  // per label of all steps
  uint32_t last_labels_ = 0;       // of the last step
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_FRONTIER_H_
