// Two GPUs for tests of this module: simulated, or those of the machine
// (device/gpu_testing.h). Tests only.

#ifndef BERTH_FUNCTION_SIM_TESTING_H_
#define BERTH_FUNCTION_SIM_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/sim/sim.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"

namespace berth {

// Before any device exists.
inline const bool kSimulated =
    !test::on_gpus_of_machine() && setenv("BERTH_SIM", "GPUx2", 1) == 0;

// Orders the work of simulated GPUs; others have an order of their own.
inline void seed_gpus(uint64_t seed) {
  for (Device* d : DeviceManager::get().devices()) {
    if (d->simulated()) sim::set_seed(*d, seed);
  }
}

inline Tensor on_device(const char* where, const Shape& shape,
                        float value = 1) {
  const auto on = device(where);
  Tensor t = fill(shape, value);
  const Device& d = DeviceManager::get().lookup(DeviceName::parse(t.device()));
  EXPECT_TRUE(d.type() != "GPU" || d.simulated() != test::on_gpus_of_machine());
  return t;
}

}  // namespace berth

#endif  // BERTH_FUNCTION_SIM_TESTING_H_
