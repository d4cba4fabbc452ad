// Four GPUs for tests of this module (device/gpu_testing.h).

#ifndef BERTH_COLLECTIVE_GPU_TESTING_H_
#define BERTH_COLLECTIVE_GPU_TESTING_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/sim/faults.h"
#include "backends/sim/sim.h"
#include "collective/testing.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"

namespace berth::collective_tests {

inline constexpr int kGpus = 4;
inline constexpr const char* kAlgorithms[] = {"auto", "direct", "ring",
                                              "hierarchical", "one_device"};

inline std::vector<std::string> gpus(int n = kGpus) {
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back(full_name("GPU", i));
  return names;
}

class FourGpus : public testing::Test {
 protected:
  // Tests of other files in the program configure devices of their own.
  static void SetUpTestSuite() {
    static const bool made = [] {
      test::use_gpus(kGpus);
      return true;
    }();
    (void)made;
  }
  void SetUp() override {
    ASSERT_EQ(gpu(0).simulated(), !test::on_gpus_of_machine());
  }
  // Clears all faults and errors.
  void TearDown() override {
    clear_faults();
    set_seed(0);
  }

  static Device& gpu(int i) {
    return DeviceManager::get().lookup(
        DeviceName::parse(fmt::format("/GPU:{}", i)));
  }
  // Orders the work of simulated GPUs.
  static void set_seed(uint64_t seed) {
    if (gpu(0).simulated()) sim::set_seed(gpu(0), seed);
  }
  static void clear_faults() {
    for (int i = 0; i < kGpus; ++i) {
      if (gpu(i).simulated()) sim::clear_faults(gpu(i));
    }
    for (int i = 0; i < kGpus; ++i) gpu(i).reset_error();
  }
};

}  // namespace berth::collective_tests

#endif  // BERTH_COLLECTIVE_GPU_TESTING_H_
