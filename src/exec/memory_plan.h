// Memory plan: where in a device's arena each buffer of a plan lives.
//
// Greedy by size: the largest buffer first, each at the lowest offset that is
// free during its whole life (Pisarchyk and Lee, "Efficient memory management
// for deep neural net inference", 2020). Pure functions.

#ifndef BERTH_EXEC_MEMORY_PLAN_H_
#define BERTH_EXEC_MEMORY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "place/schedule.h"

namespace berth {

// A buffer is alive from step `begin` (its writer) until just before step
// `end`. Several streams may write an arena: `stream` writes the buffer, and
// what stream s writes from step ends[s] on may take its place; `end` is the
// first of these.
struct ArenaBuffer {
  size_t bytes = 0;
  int32_t begin = 0;
  int32_t end = 0;
  size_t offset = 0;  // result
  size_t stream = 0;
  std::vector<int32_t> ends = {};
  int32_t end_for(size_t s) const { return ends.empty() ? end : ends[s]; }
};

inline constexpr size_t kArenaAlignment = 64;
inline size_t aligned(size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// Sets the offsets; returns the arena's size in bytes.
size_t plan_arena(std::vector<ArenaBuffer>& buffers);

// Returns the most bytes alive at any step: no plan can use less.
size_t liveness_bound(const std::vector<ArenaBuffer>& buffers);

// What is known to have happened before each step of a schedule.
class HappensBefore {
 public:
  explicit HappensBefore(const Schedule& schedule);

  // True when step `a` has ended before step `b` starts in every execution.
  bool before(int32_t a, int32_t b) const;

  // Returns the first step from which on, for what writes on stream `writer`,
  // step `use` is known to have ended.
  int32_t free_from(int32_t use, int32_t writer) const;

 private:
  const Schedule& schedule_;
  size_t num_streams_;
  std::vector<int32_t> position_;  // of a step in its stream, from 1
  std::vector<int32_t> clock_;     // per step and stream
  std::vector<std::vector<int32_t>> by_stream_;
};

}  // namespace berth

#endif  // BERTH_EXEC_MEMORY_PLAN_H_
