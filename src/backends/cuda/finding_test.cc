// Which GPUs the plug-in finds, and the reason it gives when there are none.

#include <gtest/gtest.h>
#include <unistd.h>

#include "backends/cuda/cards.h"
#include "backends/cuda/cuda_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"
#include "device/plugin.h"

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

// It lies beside the plug-ins, has their kind of name, and is none.
TEST_F(FindingDeathTest, WhatAPlugInOpensIsNoBrokenPlugIn) {
  const std::string file = fake_file(BERTH_FAKE_CUDNN_FILE);
  setenv("BERTH_PLUGINS", file.c_str(), 1);
  IN_A_FRESH_PROCESS({
    size_t others = 0;
    for (const PluginReport& p : DeviceManager::get().backends().plugins()) {
      check(p.path != file, p.path + ": " + p.why);
      ++others;
    }
    check(others > 0, "plug-ins");
  });
  unsetenv("BERTH_PLUGINS");
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

TEST_F(FindingDeathTest, AGpuThatLetsNobodyIn) {
  IN_A_FRESH_PROCESS(none("mode=2", "in a compute mode that lets nobody in"));
}

TEST_F(FindingDeathTest, AGpuThatAnotherProcessHasForItself) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2,mode=3,fail=cuDevicePrimaryCtxRetain@1:46");
    check(cards().size() == 1, "one card");
    check(why_none().find("CUDA_ERROR_DEVICE_UNAVAILABLE") != std::string::npos,
          why_none());
  });
}

// Returns the text of the error of an op on a device; "" without one.
std::string error_on(const char* name) {
  try {
    const auto on = device(name);
    zeros({4}).to_vector<float>();
    return "";
  } catch (const errors::Error& e) {
    return e.what();
  }
}

TEST_F(FindingDeathTest, ContextsAreMadeAtADevicesFirstUse) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2");
    check(config::list_physical_devices("GPU").size() == 2, "two devices");
    check(error_on("/CPU:0").empty(), error_on("/CPU:0"));
    check(kFake->calls("cuDevicePrimaryCtxRetain") == 0, "no context");
    check(kFake->calls("cuStreamCreate") == 0, "no stream");
    check(error_on("/GPU:1").empty(), error_on("/GPU:1"));
    check(kFake->calls("cuDevicePrimaryCtxRetain") == 1, "one context");
  });
}

TEST_F(FindingDeathTest, ABadGpuAndTheOthersThatWork) {
  for (const char* fake :
       {"devices=2,fail=cuDevicePrimaryCtxRetain@1:46",   // busy
        "devices=2,fail=cuDevicePrimaryCtxRetain@1:2",    // full
        "devices=2,fail=cuDevicePrimaryCtxRetain@1:214",  // lost
        "devices=2,fail=cuStreamCreate@1:2"}) {
    IN_A_FRESH_PROCESS({
      kFake->begin(fake);
      const std::string error = error_on("/GPU:0");
      const bool at_context =
          std::string(fake).find("Ctx") != std::string::npos;
      for (const char* part : {"Fake GPU 0: cuDevicePrimaryCtxRetain: ",
                               "nvidia-smi", "CUDA_VISIBLE_DEVICES"}) {
        check(!at_context || error.find(part) != std::string::npos, error);
      }
      check(!error.empty(), "GPU:0 fails");
      check(error_on("/GPU:1").empty(), error_on("/GPU:1"));
      check(error_on("/CPU:0").empty(), error_on("/CPU:0"));
    });
  }
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2,fail=cuDevicePrimaryCtxRetain@1:46");
    check(why_none().find("Fake GPU 0 cannot be used: Fake GPU 0: "
                          "cuDevicePrimaryCtxRetain: "
                          "CUDA_ERROR_DEVICE_UNAVAILABLE (46)") !=
              std::string::npos,
          why_none());
  });
}

// Known without a context, where the driver has NVML.
TEST_F(FindingDeathTest, AFullGpuIsLeftOut) {
  IN_A_FRESH_PROCESS({
    check(dlopen(fake_file(BERTH_FAKE_NVML_FILE).c_str(), RTLD_NOW) != nullptr,
          "a fake NVML");
    setenv("BERTH_FAKE_NVML", "30,512,31", 1);
    kFake->begin("devices=3,memory=512M");  // a sixteenth is left to others
    check(cards().size() == 1, "one card");
    check(cards().at(0)->features().name == "Fake GPU 1", "the second");
    check(
        why_none().find("Fake GPU 0 is full: other processes leave 30 MiB "
                        "(nvidia-smi shows which); more than 32 are needed") !=
            std::string::npos,
        why_none());
    check(error_on("/GPU:0").empty(), error_on("/GPU:0"));
  });
}

TEST_F(FindingDeathTest, OneThatHasNotTheMemoryAskedFor) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=2,fail=cuMemAlloc@1:700");
    for (const auto& gpu : config::list_physical_devices("GPU")) {
      config::set_memory_growth(gpu, false);
    }
    check(config::list_logical_devices("GPU").size() == 1, "one device");
    check(DeviceManager::get().find(DeviceName::parse("/GPU:1")) != nullptr,
          "it is the second");
  });
}

TEST_F(FindingDeathTest, AllMemoryIsWhatOthersLeave) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=1,memory=64M,others=32M");
    config::set_memory_growth(config::list_physical_devices("GPU").at(0),
                              false);
    Device* gpu = DeviceManager::get().find(DeviceName::parse("/GPU:0"));
    check(gpu != nullptr, "/GPU:0");
    const size_t bytes = gpu->allocator().info().reserved_bytes;
    check(bytes == size_t{28} << 20, std::to_string(bytes));
    check(error_on("/GPU:0").empty(), error_on("/GPU:0"));
  });
}

TEST_F(FindingDeathTest, AGpuThatSharesTheHostsMemoryHasHalfOfIt) {
  IN_A_FRESH_PROCESS({
    kFake->begin("devices=1,memory=100000G,integrated=1");
    const size_t bytes = cards().at(0)->features().memory_bytes;
    const auto pages = static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
    check(bytes > 0 && bytes <= pages * 4096 / 2, std::to_string(bytes));
  });
}

}  // namespace
}  // namespace berth::cuda
