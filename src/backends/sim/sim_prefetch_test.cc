#include <gtest/gtest.h>

#include "backends/sim/sim_testing.h"
#include "berth/data.h"
#include "berth/ops/math.h"

namespace berth::sim {
namespace {

TEST(SimPrefetch, ElementsAreOnTheDeviceBeforeTheyAreAskedFor) {
  const auto batches =
      data::Dataset::range(64).batch(8).prefetch_to_device("/GPU:1", 2);
  int64_t sum = 0;
  int count = 0;
  for (const Tensors& e : batches) {
    EXPECT_NE(e[0].device().find("GPU:1"), std::string::npos);
    sum += math::reduce_sum(e[0]).item<int64_t>();
    ++count;
  }
  EXPECT_EQ(count, 8);
  EXPECT_EQ(sum, 64 * 63 / 2);
}

}  // namespace
}  // namespace berth::sim
