// Device scopes: nesting, merging, and closing in any order.

#include "op/device_scope.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/diagnostics.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/ops/array.h"
#include "op/dispatcher.h"

namespace berth {
namespace {

std::string scope() { return t_state.scope ? t_state.scope->name.str() : "-"; }

TEST(ScopeParts, AreMergedOneByOne) {
  const auto job = device("/job:localhost");
  const auto task = device("/task:0");
  EXPECT_EQ(scope(), "/job:localhost/task:0");
  const auto type = device("/device:CPU");
  EXPECT_EQ(scope(), "/job:localhost/task:0/device:CPU:*");
  {
    const auto full = device("/replica:0/device:CPU:0");
    EXPECT_EQ(scope(), "/job:localhost/replica:0/task:0/device:CPU:0");
    // Another type forgets the number.
    const auto gpu = device("/device:GPU");
    EXPECT_EQ(scope(), "/job:localhost/replica:0/task:0/device:GPU:*");
  }
  EXPECT_EQ(scope(), "/job:localhost/task:0/device:CPU:*");
}

TEST(NoDevice, ForgetsTheOuterScopesUntilItsEnd) {
  const auto outer = device("/job:localhost/GPU:7");
  {
    const auto none = device(no_device);
    EXPECT_EQ(scope(), "");
    EXPECT_NE(t_state.scope_device, nullptr);
    const auto inner = device("/CPU:0");
    EXPECT_EQ(scope(), "/device:CPU:0");
  }
  EXPECT_EQ(scope(), "/job:localhost/device:GPU:7");
}

TEST(ScopeThreads, AScopeStaysOnItsThread) {
  const auto on = device("/GPU:7");
  std::string there = "?";
  std::thread([&] { there = scope(); }).join();
  EXPECT_EQ(there, "-");
  std::thread([&] {
    const auto mine = device("/CPU:0");
    there = scope();
  }).join();
  EXPECT_EQ(there, "/device:CPU:0");
  EXPECT_EQ(scope(), "/device:GPU:7");
}

// Diagnostics of the length of a block, in order.
class Heard {
 public:
  Heard() {
    reset_diagnostics_for_testing();
    old_ = debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { list.push_back(d); });
  }
  ~Heard() {
    debugging::set_diagnostic_handler(old_);
    config::set_soft_device_placement(true);
  }
  std::vector<debugging::Diagnostic> list;

 private:
  debugging::DiagnosticHandler old_;
};

TEST(ScopeDevice, AMissingDeviceFallsBackAndSaysSoOnce) {
  Heard heard;
  const auto on = device("/GPU:7");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(constant({1.f}).to_vector<float>(), (std::vector<float>{1}));
  }
  ASSERT_EQ(heard.list.size(), 1u);
  EXPECT_EQ(heard.list[0].id, "fallback");
  EXPECT_EQ(heard.list[0].severity, debugging::Severity::kWarning);
  EXPECT_NE(heard.list[0].text.find("no device matches \"/device:GPU:7\""),
            std::string::npos)
      << heard.list[0].text;
  EXPECT_EQ(debugging::diagnostic_counts()["fallback"], 3);
}

TEST(ScopeDevice, PolicySilentOnlyCounts) {
  Heard heard;
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  const auto on = device("/GPU:7");
  constant({1.f});
  constant({2.f});
  EXPECT_TRUE(heard.list.empty());
  EXPECT_EQ(debugging::diagnostic_counts()["fallback"], 2);
}

TEST(ScopeDevice, AnotherTaskIsNoFallback) {
  Heard heard;
  const auto on = device("/job:worker/GPU:0");
  EXPECT_THROW(constant({1.f}), errors::InvalidArgument);
  EXPECT_TRUE(heard.list.empty());
}

TEST(ScopeDevice, TheEnginesOwnChoiceIsSoftUnderEveryPolicy) {
  Heard heard;
  config::set_soft_device_placement(false);
  const auto on = device("/GPU:7");
  EXPECT_FALSE(soft_placement_here());
  const auto cpu = device("/CPU:0");
  Device* host = t_state.scope_device;
  ASSERT_NE(host, nullptr);
  {
    const OnDevice engine(host);
    EXPECT_TRUE(soft_placement_here());
  }
  const OnDevice asked(host, ScopeKind::kUser);
  EXPECT_FALSE(soft_placement_here());
}

}  // namespace
}  // namespace berth
