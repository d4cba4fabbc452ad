#include <gtest/gtest.h>

#include <cstdlib>

#include "berth/config.h"
#include "berth/device.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "tensor/tensor_impl.h"

namespace berth {
namespace {

// Set before the program first asks for devices.
const bool kAsked = setenv("BERTH_PLUGINS", BERTH_SKELETON_FILE, 1) == 0 &&
                    setenv("BERTH_SKELETON", "1", 1) == 0 &&
                    setenv("BERTH_SIM", "GPUx1", 1) == 0;

TEST(Skeleton, ComputesItsOneOp) {
  const auto on = device("/device:SKELETON:0");
  const Tensor y = math::negative(constant(2.0f));
  EXPECT_NE(y.device().find("SKELETON:0"), std::string::npos);
  EXPECT_EQ(y.item<float>(), -2);
}

TEST(SkeletonDeathTest, TheHostCannotTouchItsMemory) {
  const auto on = device("/device:SKELETON:0");
  const Tensor y = math::negative(constant(2.0f));
  const volatile std::byte* first = y.impl()->data();
  EXPECT_DEATH((void)*first, "");
}

TEST(Skeleton, ValuesGoToSimulatedGpusAndBackByTheHost) {
  Tensor x;
  {
    const auto on = device("/device:SKELETON:0");
    x = math::negative(constant({1.f, 2.f, 3.f}));
  }
  const auto on = device("/GPU:0");
  const Tensor y = math::add(x, x);
  EXPECT_NE(y.device().find("GPU:0"), std::string::npos);
  const auto back = device("/device:SKELETON:0");
  EXPECT_EQ(math::negative(y).to_vector<float>(),
            (std::vector<float>{2, 4, 6}));
}

TEST(Skeleton, IsFoundAsAPhysicalDevice) {
  const auto found = config::list_physical_devices("SKELETON");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "/physical_device:SKELETON:0");
}

TEST(Skeleton, IsNotWhereOpsGoByThemselves) {
  EXPECT_EQ(config::list_logical_devices("SKELETON").size(), 1u);
  EXPECT_EQ(constant(1.0f).device().find("SKELETON"), std::string::npos);
}

}  // namespace
}  // namespace berth
