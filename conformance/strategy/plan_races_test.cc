// The check of plans is a check: it finds plans that lack waits. (Not each of
// them: some wait for steps that do nothing at run time.)

#include "conformance/strategy/plan_races.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/strategy/training.h"

namespace berth::strategy_suite {
namespace {

constexpr char kWaits[] = " waits ";

// The plan without the waits of the step that says so at `at`.
std::string without_waits(std::string plan, size_t at) {
  return plan.erase(at, plan.find('\n', at) - at);
}

TEST(PlanRaces, AreFoundWhenWaitsAreMissing) {
  for (const char* devices : {"CPUx2", "CPUx3", "GPUx2", "GPUx3"}) {
    const Trained t = train({.model = "conv", .devices = devices});
    ASSERT_EQ(race_in(t.plan), "");
    int found = 0;
    std::string none = t.plan;  // without any
    for (size_t at = 0; (at = t.plan.find(kWaits, at)) != t.plan.npos; ++at) {
      found += race_in(without_waits(t.plan, at)).empty() ? 0 : 1;
      none = without_waits(none, none.find(kWaits));
    }
    EXPECT_GT(found, 3) << devices;
    EXPECT_NE(race_in(none), "") << devices;
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
