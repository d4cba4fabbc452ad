#include "device/gpu_layout.h"

#include <gtest/gtest.h>

#include "berth/errors.h"

namespace berth {
namespace {

std::vector<int> ids_of(const std::vector<GpuPart>& parts) {
  std::vector<int> ids;
  for (const GpuPart& p : parts) ids.push_back(p.id);
  return ids;
}

TEST(GpuLayout, EachVisibleGpuIsOneDevice) {
  const auto parts = lay_out_gpus({}, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].id, 2);
  EXPECT_EQ(parts[2].physical, 2);
  EXPECT_EQ(parts[2].memory_limit_bytes, 0u);
  EXPECT_FALSE(parts[2].takes_all_memory);
}

TEST(GpuLayout, BackendsGetThePartsOfTheirOwnInTheNumbersOfAll) {
  RuntimeConfig config;
  config.visible_gpus = {{2, 0}};  // of a backend with one, and one with two
  config.gpu_parts[2] = {{.memory_limit_bytes = 10},
                         {.memory_limit_bytes = 20}};
  const auto all = lay_out_gpus(config, 3);
  const auto first = gpu_parts_of(all, 0, 1), second = gpu_parts_of(all, 1, 2);
  EXPECT_EQ(ids_of(first), (std::vector<int>{2}));
  EXPECT_EQ(ids_of(second), (std::vector<int>{0, 1}));
  EXPECT_EQ(second[0].physical, 1);
  EXPECT_EQ(second[1].memory_limit_bytes, 20u);
}

TEST(GpuLayout, MemoryGrowthIsTheSameForAllThatAreVisible) {
  RuntimeConfig config;
  config.memory_growth[0] = false;
  EXPECT_TRUE(lay_out_gpus(config, 1)[0].takes_all_memory);
  EXPECT_THROW(lay_out_gpus(config, 2), errors::InvalidArgument);
  config.visible_gpus = {{0}};
  EXPECT_TRUE(lay_out_gpus(config, 2)[0].takes_all_memory);
}

}  // namespace
}  // namespace berth
