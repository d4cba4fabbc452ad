// Programs that end while the device has work that nobody waits for.

#include <cstdlib>

#include "backends/opencl/opencl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"

namespace berth::opencl {
namespace {

// PoCL compiles a kernel when it is launched first; without its cache of
// kernels, that takes longer than an exit does.
[[noreturn]] void leave_at_once() {
  setenv("POCL_KERNEL_CACHE", "0", 1);
  if (config::list_physical_devices("GPU").empty()) std::exit(0);
  const auto on = device("/GPU:0");
  Tensor x = ones({32, 32});
  for (int i = 0; i < 4; ++i) x = math::tanh(linalg::matmul(x, x)) + x;
  std::exit(0);
}

TEST(OpenClExitDeathTest, WaitsForWorkThatNobodyWaitsFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(leave_at_once(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace berth::opencl
