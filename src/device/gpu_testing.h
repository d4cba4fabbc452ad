// GPUs for tests: simulated ones or, with BERTH_TEST_GPUS=machine, those of the
// machine, parts of the first if they are too few, so that a suite runs on a
// real asynchronous device as well. Called once per process, before devices
// exist. Tests only.

#ifndef BERTH_DEVICE_GPU_TESTING_H_
#define BERTH_DEVICE_GPU_TESTING_H_

#include <fmt/format.h>

#include <vector>

#include "base/environment.h"
#include "berth/config.h"

namespace berth::test {

inline bool on_gpus_of_machine() {
  return environment("BERTH_TEST_GPUS") == "machine";
}

// Makes /GPU:0 to /GPU:n-1; fails without a GPU where those of the machine are
// asked for.
inline void use_gpus(int n) {
  if (!on_gpus_of_machine()) {
    return config::set_simulated_devices(fmt::format("GPUx{}", n));
  }
  auto gpus = config::list_physical_devices("GPU");
  const auto wanted = static_cast<size_t>(n);
  if (gpus.size() >= wanted) {
    gpus.resize(wanted);
    return config::set_visible_devices(gpus, "GPU");
  }
  config::set_visible_devices({gpus.at(0)}, "GPU");
  config::set_logical_device_configuration(
      gpus[0], std::vector<config::LogicalDeviceConfiguration>(
                   wanted, {.memory_limit_mb = 128}));
}

// Leaves the CPU alone.
inline void use_no_gpus() {
  config::set_simulated_devices("");
  if (on_gpus_of_machine()) config::set_visible_devices({}, "GPU");
}

}  // namespace berth::test

// Skips a test of what only simulated GPUs have.
#define SKIP_ON_GPUS_OF_MACHINE(why)                     \
  if (berth::test::on_gpus_of_machine()) {               \
    GTEST_SKIP() << "on simulated GPUs only: " << (why); \
  }

#endif  // BERTH_DEVICE_GPU_TESTING_H_
