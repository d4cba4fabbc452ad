// Test data of the CPU backend's tests. Pure functions.

#ifndef BERTH_BACKENDS_CPU_TEST_UTIL_H_
#define BERTH_BACKENDS_CPU_TEST_UTIL_H_

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace berth::cpu {

// Returns n floats in [low, high).
inline std::vector<float> noise(int64_t n, uint32_t seed, float low = -1,
                                float high = 1) {
  const RandomStream stream(seed, 0, 0);
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = low + (high - low) * stream.uniform(i);
  }
  return values;
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_TEST_UTIL_H_
