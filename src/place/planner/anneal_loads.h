// Annealing of throughput plans (load_state.h).
//
// One stream of a search: it draws its own random numbers and counts its own
// moves, so its result depends on nothing else. One thread per stream.

#ifndef BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_
#define BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_

#include <cstdint>
#include <limits>

#include "place/planner/load_state.h"
#include "place/planner/load_stream.h"

namespace berth {

// With up to this many units a problem is small: variety finds its best plan,
// not refinement.
inline constexpr int32_t kFewUnits = 24;

struct Cooling {
  double hot = 0.03;     // temperatures, as shares of the load
  double cold = 0.0005;  // at the end
  double end = 1;        // ends at this share of the stream's budget
  int64_t moves = std::numeric_limits<int64_t>::max();  // or after this many
};

// Anneals the state, which stays where it ended. `best` becomes the best plan
// visited that keeps all limits, if that is better.
void anneal_loads(LoadState& state, const Cooling& cooling, LoadStream& stream,
                  LoadPlan& best);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_ANNEAL_LOADS_H_
