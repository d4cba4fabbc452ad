#include <gtest/gtest.h>

#include <cstdlib>

#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth {
namespace {

// Before the first device query of the program.
const bool kAsked = setenv("BERTH_SKELETON", "1", 1) == 0;

TEST(Skeleton, ComputesItsOneOp) {
  const auto on = device("/device:SKELETON:0");
  const Tensor y = math::negative(constant(2.0f));
  EXPECT_NE(y.device().find("SKELETON:0"), std::string::npos);
  EXPECT_EQ(y.item<float>(), -2);
}

TEST(Skeleton, RefusesTheOthersAndSaysWhoCan) {
  const config::SoftPlacement before = config::soft_device_placement();
  config::set_soft_device_placement(config::SoftPlacement::kError);
  const auto on = device("/device:SKELETON:0");
  const Tensor x = constant(2.0f);
  try {
    math::exp(x);
    FAIL();
  } catch (const errors::Unimplemented& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("SKELETON:0"), std::string::npos) << m;
    EXPECT_NE(m.find("CPU:0"), std::string::npos) << m;
  }
  config::set_soft_device_placement(before);
}

TEST(Skeleton, IsNotWhereOpsGoByThemselves) {
  EXPECT_EQ(config::list_logical_devices("SKELETON").size(), 1u);
  EXPECT_NE(constant(1.0f).device().find("CPU:0"), std::string::npos);
}

}  // namespace
}  // namespace berth
