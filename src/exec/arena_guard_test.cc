// What arenas keep from kernels that read where they may not.

#include "exec/arena_guard.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/poison.h"
#include "berth/berth.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/infer.h"
#include "op/kernel.h"
#include "ops/op_call.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

const float* g_remembered = nullptr;
bool g_throw = false;

// Copies its input and remembers where that was.
void remember(const KernelCall& c) {
  g_remembered = c.in[0].as<float>();
  std::copy_n(g_remembered, c.in[0].size(), c.out[0].as<float>());
}

// One number: element 7 and what now stands where remember() saw element 99.
void peek(const KernelCall& c) {
  *c.out[0].as<float>() = c.in[0].as<float>()[7] + g_remembered[99];
}

void infer_scalar(InferContext& c) { c.set_output(0, c.dtype(0), Shape{}); }

// Writes one element more than it has.
void overrun(const KernelCall& c) {
  for (int64_t i = 0; i <= c.in[0].size(); ++i) {
    c.out[0].as<float>()[i] = 1;
  }
}

void may_throw(const KernelCall& c) {
  if (g_throw) throw errors::Internal("as asked");
  std::copy_n(c.in[0].as<float>(), c.in[0].size(), c.out[0].as<float>());
}

const bool kReady = [] {
  setenv("BERTH_SIM", "GPUx1", 1);
  const std::pair<const char*, DirectKernel> kOps[] = {
      {"TestRemember", &remember},
      {"TestPeek", &peek},
      {"TestOverrun", &overrun},
      {"TestMayThrow", &may_throw}};
  for (const auto& [name, kernel] : kOps) {
    OpRegistry::get()
        .op(name)
        .input("x")
        .output("y")
        .infer(kernel == &peek ? &infer_scalar : &infer_same_as_0)
        .not_differentiable();
    register_kernels("CPU", [name = name, kernel = kernel](KernelTable& t) {
      t.direct(name, dtype_bit(float32), kernel, "user");
    });
  }
  return true;
}();

Tensor call(const char* name, const Tensor& x) {
  return call1(op_named(name), x);
}

Tensor ramp() {
  Floats v(100);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  return constant(v, {100});
}

class ArenaGuardTest : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (!kPoisons) GTEST_SKIP() << "not an ASan build";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
  DeviceGuard on_host_ = device("/CPU:0");
};

TEST_F(ArenaGuardTest, AReadOfADeadRangeIsReported) {
  auto f = function([](const Tensor& x) {
    const Tensor kept = call("TestRemember", x * 2.0);  // x * 2 ends here
    return call("TestPeek", kept) + 1.0;
  });
  EXPECT_DEATH(f(ramp()), "use-after-poison");
}

TEST_F(ArenaGuardTest, AReadOfALiveRangeIsNot) {
  auto f = function([](const Tensor& x) {
    const Tensor twice = x * 2.0;
    const Tensor kept = call("TestRemember", twice);
    return call("TestPeek", kept) + twice;  // x * 2 is needed once more
  });
  for (int run = 0; run < 3; ++run) {
    const Floats y = f(ramp()).to_vector<float>();
    EXPECT_EQ(y[7], 14 + 198 + 14);
  }
}

TEST_F(ArenaGuardTest, AnAsynchronousReaderMayRunLater) {
  const DeviceGuard gpu = device("/GPU:0");
  const Variable v(ones({6}));
  auto f = function([&](const Tensor& x) {
    const Tensor mean =
        with_device("/CPU:0", [&] { return math::reduce_mean(x); });
    v.assign_sub(math::tanh(broadcast_to(mean, {6})) * 0.0);
    return x;
  });
  for (int run = 0; run < 3; ++run) f(ones({3, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), Floats(6, 1));
}

TEST_F(ArenaGuardTest, AWriteBehindABufferIsReported) {
  // A hundred floats end inside an aligned place of the arena.
  auto f = function(
      [](const Tensor& x) { return call("TestOverrun", x * 2.0) + 1.0; });
  EXPECT_DEATH(f(ramp()), "use-after-poison");
}

TEST_F(ArenaGuardTest, AnIdleArenaIsPoisoned) {
  auto f = function(
      [](const Tensor& x) { return call("TestRemember", x * 2.0) + 1.0; });
  const Tensor y = f(ramp());
  EXPECT_TRUE(is_poisoned(g_remembered));
  EXPECT_TRUE(is_poisoned(g_remembered + 99));
  EXPECT_EQ(y.to_vector<float>()[50], 101);
}

TEST_F(ArenaGuardTest, AfterAFailedRunTheArenaIsPoisonedAndWorksAgain) {
  auto f = function([](const Tensor& x) {
    const Tensor a = call("TestRemember", x * 2.0);
    return call("TestMayThrow", a) + 1.0;
  });
  EXPECT_EQ(f(ramp()).to_vector<float>()[3], 7);
  g_throw = true;
  EXPECT_THROW(f(ramp()), errors::Internal);
  g_throw = false;
  EXPECT_TRUE(is_poisoned(g_remembered));
  EXPECT_EQ(f(ramp()).to_vector<float>()[3], 7);
}

// A transfer may still wait to read the arena of a run that failed here.
TEST(ArenaAfterAFailure, WaitsForTransfersThatReadIt) {
  const auto on_host = device("/CPU:0");
  const Tensor x = ramp();
  auto g = function([](const Tensor& t) {
    const Tensor a = t * 3.0;
    Tensor far;
    {
      const auto on_gpu = device("/GPU:0");
      far = math::square(a);
    }
    return std::make_pair(far, call("TestMayThrow", a + 1.0));
  });
  EXPECT_EQ(g(x).first.to_vector<float>()[2], 36);
  g_throw = true;
  EXPECT_THROW(g(x), errors::Internal);
  g_throw = false;
  // Whatever the failed run left on its way reads nothing that is dead.
  synchronize(DeviceManager::get().default_device().copy_stream().record());
  EXPECT_EQ(g(x).first.to_vector<float>()[2], 36);
}

}  // namespace
}  // namespace berth
