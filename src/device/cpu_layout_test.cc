#include "device/cpu_layout.h"

#include <gtest/gtest.h>

#include "berth/errors.h"

namespace berth {
namespace {

const CoreSet kEight({0, 1, 2, 3, 4, 5, 6, 7});

TEST(CpuLayout, OneDeviceOwnsAllWhenNothingIsSaid) {
  const CpuLayout l = lay_out_cpus({}, kEight);
  ASSERT_EQ(l.devices.size(), 1u);
  EXPECT_EQ(l.devices[0].cores, kEight);
  EXPECT_EQ(l.devices[0].workers, 8);
  EXPECT_TRUE(l.host.empty());
}

TEST(CpuLayout, NamedSetsAreTakenAndTheRestIsCutEvenly) {
  RuntimeConfig c;
  c.host_cores = "0";
  c.cpu_parts = {{.cores = "6-7"}, {}, {}};
  const CpuLayout l = lay_out_cpus(c, kEight);
  ASSERT_EQ(l.devices.size(), 3u);
  EXPECT_EQ(l.host.str(), "0");
  EXPECT_EQ(l.devices[0].cores.str(), "6-7");
  // Five cores are left: 1 to 5.
  EXPECT_EQ(l.devices[1].cores.size() + l.devices[2].cores.size(), 5);
  EXPECT_FALSE(l.devices[1].cores.overlaps(l.devices[2].cores));
  for (int i : {1, 2}) {
    EXPECT_TRUE(CoreSet({1, 2, 3, 4, 5}).contains(l.devices[i].cores));
  }
}

TEST(CpuLayout, SharedPartsMayOverlapAndOutnumberTheCores) {
  RuntimeConfig c;
  for (int i = 0; i < 4; ++i) {
    c.cpu_parts.push_back({.workers = 1, .shared = true});
  }
  const CpuLayout l = lay_out_cpus(c, CoreSet({0, 1}));
  ASSERT_EQ(l.devices.size(), 4u);
  for (const auto& d : l.devices) {
    EXPECT_EQ(d.cores.str(), "0-1");
    EXPECT_EQ(d.workers, 1);
    EXPECT_TRUE(d.shared);
  }
}

std::string refusal(const RuntimeConfig& c, const CoreSet& allowed) {
  try {
    lay_out_cpus(c, allowed);
  } catch (const errors::InvalidArgument& e) {
    return e.what();
  }
  return "";
}

TEST(CpuLayout, RefusesWhatCannotBeAndSaysWhatCould) {
  RuntimeConfig c;
  c.cpu_parts = {{.cores = "0-3"}, {.cores = "3-5"}};
  EXPECT_NE(refusal(c, kEight).find("overlap"), std::string::npos);
  c.cpu_parts = {{.cores = "0-9"}};
  EXPECT_NE(refusal(c, kEight).find("\"0-7\""), std::string::npos);
  c.cpu_parts = {{}, {}, {}};
  EXPECT_NE(refusal(c, CoreSet({0, 1})).find(".shared = true"),
            std::string::npos);
  RuntimeConfig greedy;
  greedy.host_cores = "0-7";
  EXPECT_NE(refusal(greedy, kEight).find("leave none for the CPU devices"),
            std::string::npos);
  c.cpu_parts = {{.cores = "nonsense"}};
  EXPECT_NE(refusal(c, kEight), "");
  c.cpu_parts = {{.workers = 33}};
  EXPECT_NE(refusal(c, kEight).find("33 workers"), std::string::npos);
}

}  // namespace
}  // namespace berth
