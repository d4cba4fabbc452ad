// For tests that measure: two GPUs, simulated unless the machine's are asked
// for (device/gpu_testing.h), and costs that the machine keeps are neither read
// nor written. Tests only.

#ifndef BERTH_EXEC_MEASURE_TESTING_H_
#define BERTH_EXEC_MEASURE_TESTING_H_

#include <cstdlib>

#include "device/gpu_testing.h"

namespace berth {

// Before any device exists.
inline const bool kMeasuresGpus = [] {
  if (!test::on_gpus_of_machine()) setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_CACHE_DIR", "", 1);
  setenv("XDG_CACHE_HOME", "", 1);
  setenv("HOME", "", 1);
  return true;
}();

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_TESTING_H_
