// Tests of the OpenCL plug-in run on PoCL, and are skipped without an OpenCL
// device.

#ifndef BERTH_BACKENDS_OPENCL_OPENCL_TESTING_H_
#define BERTH_BACKENDS_OPENCL_OPENCL_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>

#include "berth/config.h"

namespace berth::opencl {

// Set before the program first asks for devices.
inline const bool kAsked = setenv("BERTH_OPENCL", "all", 1) == 0;

class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    if (config::list_physical_devices("GPU").empty()) {
      GTEST_SKIP() << "no OpenCL device here (pocl-opencl-icd provides one)";
    }
  }
};

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_OPENCL_TESTING_H_
