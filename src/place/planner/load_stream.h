// LoadStream: one stream of a throughput search.
//
// Streams draw their own random numbers and count their own moves, so the
// result of one depends on nothing else. One thread per stream.

#ifndef BERTH_PLACE_PLANNER_LOAD_STREAM_H_
#define BERTH_PLACE_PLANNER_LOAD_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/infinity.h"
#include "place/planner/budget.h"

namespace berth {

// The state of one stream of a search, and its spent moves.
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
  // Takes up to `wanted` moves from the budget; returns how many.
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
  double value = kInfinity;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_LOAD_STREAM_H_
