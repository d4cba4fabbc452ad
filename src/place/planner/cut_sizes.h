// CutSizes: unit sizes inflated by the copies that they cannot avoid.
//
// Let F_u(q) be the least paid(S) + q size(S) of all sets S that hold unit u:
// one minimum cut, for any q from 0 to 1. A set with size(S) + paid(S) <= T
// then has size(S) <= (T - F_u(q)) / (1 - q); so with
//
//   inflated_u = size_u (1 - q) / (1 - F_u(q) / T)
//
// every set that fits has inflated(S) <= T: plain packing that includes copies.
// If F_u(q) >= T for any q, u fits no device of the kind at all. A flow within
// a part of the graph is a flow, so F may be computed near u alone. Not
// thread-safe; refine() uses the threads of its budget.

#ifndef BERTH_PLACE_PLANNER_CUT_SIZES_H_
#define BERTH_PLACE_PLANNER_CUT_SIZES_H_

#include <cstdint>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/packing.h"

namespace berth {

class CutSizes {
 public:
  // Explores up to `ball` units around each. The problem must outlive it;
  // `scale`: the approximate value of T.
  CutSizes(const PackingProblem& problem, double scale, int32_t ball);

  // Finds the best q at T = `target` for all units and kinds, large units
  // first. Ends early once the share `until` of the budget is spent; when
  // counting moves it explores a number of units that takes about as much.
  // Returns the number of flows.
  int64_t refine(double target, const Budget& budget, double until);

  // Returns the inflated size at T = `target`; infinite: it does not fit. If q
  // is not null, *q proves it; -1: no proof is needed.
  double size(int32_t unit, size_t kind, double target,
              double* q = nullptr) const;

 private:
  struct Line {  // F(q) >= least
    double q, least;
  };
  struct Set {  // contains the unit
    double paid, size;
  };
  struct Known {  // for a unit and kind
    std::vector<Line> lines;
    std::vector<Set> sets;
  };
  class Worker;

  const PackingProblem& p_;
  double scale_;
  int32_t ball_;
  std::vector<int32_t> by_size_;  // unit * kinds + kind, largest first
  std::vector<Known> known_;      // [unit * kinds + kind]
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_CUT_SIZES_H_
