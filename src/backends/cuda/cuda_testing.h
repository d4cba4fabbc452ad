// Shared by the tests of the CUDA plug-in: a fake driver, opened before the
// plug-in looks for a real one.

#ifndef BERTH_BACKENDS_CUDA_CUDA_TESTING_H_
#define BERTH_BACKENDS_CUDA_CUDA_TESTING_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backends/cuda/nvrtc.h"
#include "base/environment.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_driver.h"
#include "conformance/gpu_stand_ins/fake_cuda/fake_file.h"

namespace berth::cuda {

// The fake libcuda.so.1, which later opens of that name return. Null when
// BERTH_NO_FAKE_CUDA says so.
inline const FakeDriver* load_fake() {
  if (!environment("BERTH_NO_FAKE_CUDA").empty()) return nullptr;
  void* library =
      dlopen(fake_file(BERTH_FAKE_CUDA_FILE).c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr
                            : static_cast<const FakeDriver*>(
                                  dlsym(library, "berth_fake_driver"));
}
inline const FakeDriver* const kFake = load_fake();
// Leaves only the GPUs of the fake driver.
inline const bool kNoOpenCl = setenv("BERTH_OPENCL", "off", 1) == 0;

// Skipped without NVRTC: the plug-in has no devices then.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (Nvrtc::find(&why) == nullptr) GTEST_SKIP() << why;
    if (!environment("BERTH_NO_FAKE_CUDA").empty()) return;
    ASSERT_NE(kFake, nullptr) << fake_file(BERTH_FAKE_CUDA_FILE);
    kFake->begin("");
  }
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDA_TESTING_H_
