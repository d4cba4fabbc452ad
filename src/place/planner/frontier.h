// FrontierGraph: all sets of units that fit a device, as paths.
//
// Units are taken one after the other, in or out. A state records which pins
// are in and out among the nets that have begun but not ended; graphs like
// those of models have orders in which few nets are open at a time, so few
// states. A path from the first state to the last is a set; its edges add up to
// its size and payments. A FrontierSearch finds the sets with the greatest
// worth among all that fit: exactly up to rounding, which never understates.
// One thread per search; graphs are only read.

#ifndef BERTH_PLACE_PLANNER_FRONTIER_H_
#define BERTH_PLACE_PLANNER_FRONTIER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "place/planner/packing.h"

namespace berth {

// Returns an order of all units in which few nets are open at a time; tries
// about `tries` starting units.
std::vector<int32_t> frontier_order(const PackingProblem& problem, int tries);

class FrontierGraph {
 public:
  // Leaves out sets with more than `most`, and nets, the cheapest first (which
  // only makes sets cheaper), where more than `width` are open. `size`: per
  // unit; infinite: never in.
  FrontierGraph(const PackingProblem& problem, size_t kind,
                std::span<const int32_t> order, std::span<const double> size,
                double most, int32_t width, int64_t most_states);

  // False: there are more states than allowed.
  bool complete() const { return complete_; }
  // Contains all nets.
  bool whole() const { return whole_; }
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
  bool complete_ = true, whole_ = true;
};

// A step of a staircase: sets of at least this load may be worth this.
struct Worth {
  double load, worth;
};

struct FrontierQuery {
  std::span<const double> worth;  // per unit
  double most = 0;                // load of a set
  int grid = 1000;                // loads within most / grid may be merged
  double least = 0;               // smaller worths are of no interest
  // If true, keeps load and worth of existing sets, but may miss some; if
  // false, misses none, but may underestimate their loads.
  bool real = false;
  int64_t most_labels = 20'000'000;  // memory: 4 bytes each
  // Called between units; true: give up.
  std::function<bool()> stop;
};

struct FoundSet {
  std::vector<int32_t> units;
  double load = 0, worth = 0;
};

class FrontierSearch {
 public:
  explicit FrontierSearch(const FrontierGraph& graph) { reset(graph); }

  // Continues with another graph, in the same memory.
  void reset(const FrontierGraph& graph);

  // Returns a rising staircase that begins at (0, least): a set with a load
  // below the next step's is worth at most this step's value (with `real`:
  // among the sets found). Empty: stopped, or more labels than allowed.
  std::vector<Worth> run(const FrontierQuery& query);

  // The sets that the last run found to be worth more than `least`: the best,
  // and some of the best of those that end earlier in the order.
  std::vector<FoundSet> found() const;

  // The work of all runs, in pieces of about equal size.
  int64_t work() const { return work_; }

 private:
  static constexpr size_t kPrices = 5;
  struct Label {  // a set that ends in a state
    double load, worth;
    uint32_t from;  // index in parents_; top bit: unit is in the set
  };
  struct Ending {  // of a set: in parents_, after a step's unit
    size_t step = 0;
    uint32_t at = 0;
    double load = 0, worth = 0;
  };
  static constexpr size_t kEndings = 12;
  void note_endings(const FrontierQuery& query, size_t number);
  void find_rest(std::span<const double> worth, double price,
                 std::vector<double>& rest) const;
  void choose_prices(const FrontierQuery& query);
  bool step(const FrontierQuery& query, size_t number);
  void gather(const FrontierQuery& query, int32_t state, int32_t first,
              double worth);
  void keep_best(const FrontierQuery& query, int32_t state);

  const FrontierGraph* g_ = nullptr;
  double price_ = 0;  // per load, best in the last run
  double prices_[kPrices] = {};
  std::vector<double> rest_[kPrices];  // per state
  std::vector<Label> before_, now_;    // of all states of a step
  std::vector<int32_t> before_begin_, now_begin_;
  uint32_t before_at_ = 0;           // of the first of before_, in parents_
  std::vector<Label> buckets_;       // by load
  size_t lowest_ = 0, highest_ = 0;  // in use
  std::vector<uint32_t> parents_;    // per label of all steps
  std::vector<double> load_out_;     // per state: if no more units are in
  std::vector<Ending> endings_;      // of parts of the order
  int64_t work_ = 0;
};

// A lower bound on all plans, and the prices that prove it.
struct ProvedWorth {
  double value = 0;
  std::vector<double> prices;
};

// Returns the greatest value below which `worth` exceeds what all devices hold,
// by a staircase per kind; at most `most`.
ProvedWorth proved_by(const std::vector<std::vector<Worth>>& stairs,
                      const std::vector<PackingKind>& kinds, double worth,
                      double most);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_FRONTIER_H_
