#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"

#if defined(__SANITIZE_ADDRESS__)
// LeakSanitizer stops all threads at the end and sometimes crashes in the
// driver's; other tests look for leaks.
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace berth::opencl {
namespace {

using Devices = OpenClTest;

TEST_F(Devices, AreGpusThatAreNotSimulated) {
  const auto found = config::list_physical_devices("GPU");
  ASSERT_FALSE(found.empty());
  EXPECT_FALSE(found[0].simulated);
  Device* gpu = DeviceManager::get().find(DeviceName::parse("/GPU:0"));
  ASSERT_NE(gpu, nullptr);
  EXPECT_FALSE(gpu->memory().host_addressable);
  EXPECT_EQ(&DeviceManager::get().default_device(), gpu);
}

TEST_F(Devices, BringBytesThereAndBack) {
  const auto on = berth::device("/GPU:0");
  const Tensor there = constant({1.f, 2.f, 3.f});
  EXPECT_NE(there.device().find("GPU:0"), std::string::npos);
  EXPECT_EQ(there.to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace berth::opencl
