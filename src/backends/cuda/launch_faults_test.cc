// What a program sees of a launch that fails, and of an illegal access. Runs on
// the fake driver.

#include "backends/cuda/cuda_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth::cuda {
namespace {

using fresh_process::check;

class LaunchFaultsDeathTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (kFake == nullptr)
      GTEST_SKIP() << "only the fake driver fails on demand";
  }
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// The message of what reading the value throws; "" if it does not.
std::string why_unreadable(const Tensor& t) {
  try {
    t.to_vector<float>();
  } catch (const errors::Error& e) {
    return e.what();
  }
  return "";
}

Tensor on_gpu(const Tensor& x) {
  const auto on = device("/GPU:0");
  return math::tanh(x);
}

void fails_with(const char* failure, bool closes) {
  kFake->begin("devices=1");
  const Tensor x = with_device("/GPU:0", [] { return zeros({64}); });
  on_gpu(x).to_vector<float>();  // compiled
  kFake->begin(failure);
  const int line = __LINE__ + 1;
  const Tensor y = with_device("/GPU:0", [&] { return math::tanh(x); });
  const std::string m = why_unreadable(y);
  check(mentions(m, "Tanh"), m);
  check(mentions(m, "GPU:0"), m);
  check(mentions(m, "launch_faults_test.cc:" + std::to_string(line)), m);
  check(mentions(m, "cuLaunchKernel: CUDA_ERROR"), m);
  check(mentions(m, "closed until the process ends") == closes, m);
  if (!closes) {
    config::reset_device_error("GPU:0");
    check(why_unreadable(on_gpu(x)).empty(), "it is usable again");
    return;
  }
  try {
    config::reset_device_error("GPU:0");
  } catch (const errors::Unavailable&) {
  }
  std::string again;
  try {
    again = why_unreadable(on_gpu(x));
  } catch (const errors::Error& e) {
    again = e.what();
  }
  check(mentions(again, "closed until the process ends"), again);
  const Tensor host = with_device("/CPU:0", [] { return ones({2}) + 1.0f; });
  check(host.to_vector<float>() == std::vector<float>{2, 2}, "the CPU goes on");
}

TEST_F(LaunchFaultsDeathTest, NameTheOpAndItsLine) {
  IN_A_FRESH_PROCESS(fails_with("devices=1,fail=cuLaunchKernel@1:1", false));
}

TEST_F(LaunchFaultsDeathTest, AnIllegalAccessClosesTheDeviceAlone) {
  IN_A_FRESH_PROCESS(fails_with("devices=1,fail=cuLaunchKernel@1:700", true));
}

}  // namespace
}  // namespace berth::cuda
