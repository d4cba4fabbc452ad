// Which GPUs the plug-in finds, and the reason it gives when there are none.

#include <gtest/gtest.h>

#include "backends/cuda/cards.h"
#include "backends/cuda/cuda_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "device/device_manager.h"

namespace berth::cuda {
namespace {

using fresh_process::check;

class FindingDeathTest : public CudaTest {};

// Expects no GPUs, and a reason with this text.
void none(const char* fake, const std::string& text) {
  if (kFake != nullptr) kFake->begin(fake);
  check(cards().empty(), "no cards");
  check(why_none().find(text) != std::string::npos,
        text + ", in: " + why_none());
  // The plug-in itself searches.
  if (kFake != nullptr) kFake->begin(fake);
  check(config::list_physical_devices("GPU").empty(), "no physical devices");
}

TEST_F(FindingDeathTest, NoDriver) {
  setenv("BERTH_NO_FAKE_CUDA", "1", 1);
  IN_A_FRESH_PROCESS(if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr)
                         none("", "no NVIDIA driver here (libcuda.so.1: "));
  unsetenv("BERTH_NO_FAKE_CUDA");
}

TEST_F(FindingDeathTest, AnOldDriver) {
  IN_A_FRESH_PROCESS(none("driver=12020",
                          "the NVIDIA driver is 535 (CUDA 12.2); Berth needs "
                          "580 or newer (CUDA 13)"));
  IN_A_FRESH_PROCESS(none("driver=10020",
                          "the NVIDIA driver is one of CUDA "
                          "10.2; Berth needs 580 or newer"));
}

TEST_F(FindingDeathTest, NoGpu) {
  IN_A_FRESH_PROCESS(none("devices=0", "the NVIDIA driver finds no GPU"));
  IN_A_FRESH_PROCESS(
      none("fail=cuInit@1:100", "the NVIDIA driver finds no GPU"));
}

TEST_F(FindingDeathTest, ADriverThatDoesNotStart) {
  IN_A_FRESH_PROCESS(none("fail=cuInit@1:34", "is the stub"));
  IN_A_FRESH_PROCESS(none("fail=cuInit@1:803", "different versions"));
  IN_A_FRESH_PROCESS(none("fail=cuInit@1:3",
                          "does not start: cuInit: "
                          "CUDA_ERROR_NOT_INITIALIZED (3)"));
  IN_A_FRESH_PROCESS(none("fail=cuDeviceGetCount@1:999",
                          "cuDeviceGetCount: CUDA error (999)"));
  IN_A_FRESH_PROCESS(none("fail=cuDeviceTotalMem@1:1", "cuDeviceTotalMem: "));
}

TEST_F(FindingDeathTest, AGpuThatIsTooOld) {
  IN_A_FRESH_PROCESS(none("capability=70",
                          "Fake GPU 0 is of compute capability 7.0, for which "
                          "NVRTC 13."));
}

TEST_F(FindingDeathTest, SwitchedOff) {
  IN_A_FRESH_PROCESS(setenv("BERTH_CUDA", "off", 1);
                     none("", "BERTH_CUDA=off"));
  IN_A_FRESH_PROCESS(setenv("BERTH_CUDA", "of", 1); none("", "BERTH_CUDA"));
}

TEST_F(FindingDeathTest, OneOfTwoThatWorks) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2,fail=cuDeviceGetName@1:1");
    check(cards().size() == 1, "one card");
    check(why_none().find("cuDeviceGetName") != std::string::npos, "says why");
  });
}

TEST_F(FindingDeathTest, TwoGpusAndWhatTheyAre) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2,memory=64M");
    check(config::list_physical_devices("GPU").size() == 2, "two devices");
    Device* gpu = DeviceManager::get().find(DeviceName::parse("/GPU:1"));
    check(gpu != nullptr, "/GPU:1");
    check(gpu->description() == "Fake GPU 1, CUDA, 60 MiB", gpu->description());
  });
}

}  // namespace
}  // namespace berth::cuda
