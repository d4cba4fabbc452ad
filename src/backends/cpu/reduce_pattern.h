// Pattern: how kept and reduced axes lie in the input of a reduction.

#ifndef BERTH_BACKENDS_CPU_REDUCE_PATTERN_H_
#define BERTH_BACKENDS_CPU_REDUCE_PATTERN_H_

#include <array>

#include "op/kernel.h"

namespace berth::cpu {

// How kept and reduced axes lie in the input. Kept axes count even with one
// element, so that a part of the input, split along a kept axis, is summed in
// the order of the whole.
struct Pattern {
  enum class Kind {
    kNone,   // nothing is reduced
    kAll,    // [cols] -> []
    kInner,  // [rows, cols] -> [rows]
    kOuter,  // [rows, cols] -> [cols]
    kMiddle  // [outer, rows, cols] -> [outer, cols]
  };
  Kind kind = Kind::kNone;
  int64_t outer = 1, rows = 1, cols = 1;
  int64_t size() const { return outer * rows * cols; }
};
// Returns false when the axes alternate more often.
inline bool find_pattern(const Shape& full,
                         const std::array<bool, kMaxRank>& reduced,
                         Pattern* p) {
  // Runs of axes: kept, reduced, kept.
  int64_t runs[3] = {1, 1, 1};
  bool any[3] = {};
  int run = 0;
  for (int i = 0; i < full.rank(); ++i) {
    if (reduced[i] && full[i] == 1) continue;
    if (reduced[i] == (run % 2 == 0) && ++run == 3) return false;
    runs[run] *= full[i];
    any[run] = true;
  }
  if (run == 0) {
    *p = {Pattern::Kind::kNone, 1, 1, runs[0]};
  } else if (run == 1) {
    *p = {any[0] ? Pattern::Kind::kInner : Pattern::Kind::kAll, 1, runs[0],
          runs[1]};
  } else {
    *p = {any[0] ? Pattern::Kind::kMiddle : Pattern::Kind::kOuter, runs[0],
          runs[1], runs[2]};
  }
  return true;
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_REDUCE_PATTERN_H_
