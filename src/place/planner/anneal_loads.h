// Annealing of throughput plans (load_state.h).
//
// One stream of a search at a time: it draws from its own random numbers and
// counts its own moves, so that what it finds depends on nothing else. One
// thread per stream.

#ifndef BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_
#define BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/load_state.h"

namespace berth {

// Up to as many units are a small problem: variety finds its best plan, not
// refinement.
inline constexpr int32_t kFewUnits = 24;

// What a stream of a search has, and has done.
class LoadStream {
 public:
  LoadStream(const Budget& budget, uint64_t seed, int number)
      : random(seed, static_cast<uint64_t>(number)),
        budget_(budget),
        limit_(budget.moves_per_stream()) {}

  StreamRandom random;

  int64_t moves() const { return moves_; }
  int64_t moves_left() const { return limit_ - moves_; }
  // 1 or more: stop.
  double spent() const { return budget_.spent(moves_); }
  bool enough(double value) const { return budget_.enough(value); }
  // Takes up to `wanted` moves from the budget, and says how many.
  int64_t take(int64_t wanted) {
    wanted = std::min(wanted, limit_ - moves_);
    moves_ += wanted;
    return wanted;
  }

 private:
  const Budget& budget_;
  int64_t moves_ = 0, limit_;
};

struct LoadPlan {
  std::vector<int32_t> device;  // per unit; empty: none
  double value = std::numeric_limits<double>::infinity();
};

struct Cooling {
  double hot = 0.03;     // temperatures, as shares of the load
  double cold = 0.0005;  // at the end
  double end = 1;        // share of the stream's budget at which it ends
  int64_t moves = std::numeric_limits<int64_t>::max();  // or after as many
};

// Anneals the state, which stays where it ended. `best` becomes the best plan
// met that keeps all limits, when that is better.
void anneal_loads(LoadState& state, const Cooling& cooling, LoadStream& stream,
                  LoadPlan& best);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_
