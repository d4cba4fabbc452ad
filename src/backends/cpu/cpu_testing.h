// Test data of the CPU backend's tests. Pure functions.

#ifndef BERTH_BACKENDS_CPU_CPU_TESTING_H_
#define BERTH_BACKENDS_CPU_CPU_TESTING_H_

#include <cstdint>
#include <vector>

#include "backends/cpu/loops.h"
#include "base/rng.h"
#include "berth/config.h"

namespace berth {

inline const config::PhysicalDevice kCpu{"/physical_device:CPU:0", "CPU"};

namespace cpu {

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

// Returns the loops of every instruction set that this processor has.
inline std::vector<const Loops*> all_loops() {
  std::vector<const Loops*> found;
  for (Isa isa : {Isa::kV1, Isa::kV3, Isa::kV4}) {
    if (const Loops* loops = loops_for(isa)) found.push_back(loops);
  }
  return found;
}

}  // namespace cpu
}  // namespace berth

#endif  // BERTH_BACKENDS_CPU_CPU_TESTING_H_
