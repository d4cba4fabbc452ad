// The check of plans is a check: it finds plans that lack waits. (Not each of
// them: some wait for steps that do nothing at run time.)

#include "conformance/strategy/plan_races.h"

#include <gtest/gtest.h>

#include <regex>

#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

TEST(PlanRaces, AreFoundWhenWaitsAreMissing) {
  for (const char* devices : {"CPUx2", "CPUx3", "GPUx2", "GPUx3"}) {
    const Trained t = train({.model = "conv", .devices = devices});
    ASSERT_EQ(race_in(t.plan), "");
    static const std::regex kWaits(" waits ([0-9,]+)");
    int found = 0;
    for (std::sregex_iterator it(t.plan.begin(), t.plan.end(), kWaits), end;
         it != end; ++it) {
      std::string broken = t.plan;
      broken.erase(static_cast<size_t>(it->position()),
                   static_cast<size_t>(it->length()));
      found += race_in(broken).empty() ? 0 : 1;
    }
    EXPECT_GT(found, 3) << devices;
    EXPECT_NE(race_in(std::regex_replace(t.plan, kWaits, "")), "") << devices;
  }
}

TEST(PlanRaces, AreFoundInSharedBytes) {
  const std::string plan =
      "buffer 0 arena device 0 bytes 64 offset 0 life 0-1\n"
      "buffer 1 arena device 0 bytes 64 offset 32 life 2-3\n"
      "step 0 stream 0 a Relu in  out 0\n"
      "step 1 stream 1 b Relu in 0 out {} waits 0\n"
      "step 2 stream 0 c Relu in  out 1{}\n";
  auto with = [&](const std::string& waits) {
    std::string s = plan;
    s.replace(s.find("{} waits 0"), 2, "");
    s.replace(s.find("{}"), 2, waits);
    return s;
  };
  EXPECT_NE(race_in(with("")), "");
  EXPECT_EQ(race_in(with(" waits 1")), "");
}

}  // namespace
}  // namespace berth::strategy_suite
