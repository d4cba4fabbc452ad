// Arithmetic on numbers of elements, which may be kInfinite or kUnknown.

#ifndef BERTH_DATA_CARDINALITY_H_
#define BERTH_DATA_CARDINALITY_H_

#include <algorithm>
#include <cstdint>

#include "berth/data.h"

namespace berth::data {

// The size of a dataset that ends with the shorter of two.
inline int64_t shorter_of(int64_t a, int64_t b) {
  if (a == kInfinite) return b;
  if (b == kInfinite) return a;
  if (a == kUnknown || b == kUnknown) return a == 0 || b == 0 ? 0 : kUnknown;
  return std::min(a, b);
}

// The size of one dataset after the other.
inline int64_t sum_of(int64_t a, int64_t b) {
  if (a == kInfinite || b == kInfinite) return kInfinite;
  if (a == kUnknown || b == kUnknown) return kUnknown;
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kInfinite : sum;
}

}  // namespace berth::data

#endif  // BERTH_DATA_CARDINALITY_H_
