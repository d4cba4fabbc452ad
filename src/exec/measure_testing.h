// For tests that measure: two simulated GPUs, and costs that the machine keeps
// are neither read nor written. Tests only.

#ifndef BERTH_EXEC_MEASURE_TESTING_H_
#define BERTH_EXEC_MEASURE_TESTING_H_

#include <cstdlib>

namespace berth {

// Before any device exists.
inline const bool kMeasuresGpus = [] {
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_CACHE_DIR", "", 1);
  setenv("XDG_CACHE_HOME", "", 1);
  setenv("HOME", "", 1);
  return true;
}();

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_TESTING_H_
