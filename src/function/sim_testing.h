// Two simulated GPUs for tests of this module. Tests only.

#ifndef BERTH_FUNCTION_SIM_TESTING_H_
#define BERTH_FUNCTION_SIM_TESTING_H_

#include <cstdlib>

#include "berth/berth.h"

namespace berth {

// Before any device exists.
inline const bool kSimulated = setenv("BERTH_SIM", "GPUx2", 1) == 0;

inline Tensor on_device(const char* where, const Shape& shape,
                        float value = 1) {
  const auto on = device(where);
  return fill(shape, value);
}

}  // namespace berth

#endif  // BERTH_FUNCTION_SIM_TESTING_H_
