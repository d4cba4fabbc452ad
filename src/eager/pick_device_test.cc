// The eager placement rules on a host and two simulated GPUs. The ops named
// Test... are those of eager_test.cc.

#include "eager/pick_device.h"

#include <gtest/gtest.h>

#include "backends/sim/sim_testing.h"
#include "base/diagnostics.h"
#include "base/errors_testing.h"
#include "berth/berth.h"
#include "eager/testing.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"

namespace berth {
namespace {

using config::SoftPlacement;

// x * factor; it has a kernel on the CPU alone.
Tensor host_only(const Tensor& x, double factor) {
  const AttrsRef attrs({{"factor", factor}});
  return call1(op_named("TestHostOnly"), x, attrs.get());
}

// Diagnostics of one test, which begins and ends with the default policies.
class EagerPlacement : public testing::Test {
 protected:
  EagerPlacement() {
    reset_diagnostics_for_testing();
    old_ = debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) { heard_.push_back(d); });
  }
  ~EagerPlacement() override {
    debugging::set_diagnostic_handler(old_);
    debugging::set_log_device_placement(false);
    config::set_soft_device_placement(true);
    config::set_device_policy("silent");
  }

  static int64_t count(const char* id) {
    return debugging::diagnostic_counts()[id];
  }

  std::vector<debugging::Diagnostic> heard_;

 private:
  debugging::DiagnosticHandler old_;
};

TEST_F(EagerPlacement, AMissingKernelFallsBackWithItsBytesOncePerReason) {
  const Tensor x = values_on("/GPU:0", Floats(100, 1));
  const auto on = device("/GPU:1");
  t_state.site = Site{"/src/model.cc", 41};
  Tensor y;
  for (int i = 0; i < 3; ++i) y = host_only(x, 3);
  EXPECT_EQ(y.to_vector<float>(), Floats(100, 3));
  EXPECT_TRUE(says(y.device(), "CPU:0"));
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].id, "fallback");
  EXPECT_EQ(heard_[0].severity, debugging::Severity::kWarning);
  const std::string& text = heard_[0].text;
  EXPECT_TRUE(says(text, "TestHostOnly runs on CPU:0"));
  EXPECT_TRUE(says(text, "device(\"/device:GPU:1\")"));
  EXPECT_TRUE(says(text, "no kernel for float32 on GPU:1"));
  EXPECT_TRUE(says(text, "(model.cc:41)"));
  // 400 come over, 400 would have to go back.
  EXPECT_TRUE(says(text, "each call moves 800 B"));
  EXPECT_EQ(heard_[0].site.line, 41);
  EXPECT_EQ(count("fallback"), 3);
  // Another device is another reason.
  const auto gpu0 = device("/GPU:0");
  host_only(x, 3);
  EXPECT_EQ(heard_.size(), 2u);
}

TEST_F(EagerPlacement, AMissingDeviceFallsBackToTheFirstThatCan) {
  const Tensor x = values_on("/GPU:0", {1, 2});
  const auto on = device("/GPU:7");
  EXPECT_TRUE(says(math::add(x, x).device(), "GPU:0"));
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_TRUE(says(heard_[0].text, "AddV2 runs on GPU:0"));
  EXPECT_TRUE(says(heard_[0].text, "no device matches \"/device:GPU:7\""));
  EXPECT_TRUE(says(heard_[0].text, "ask for one of CPU:0, GPU:0"));
  // Nothing moves, so no bytes are named.
  EXPECT_FALSE(says(heard_[0].text, "moves"));
  // One line for a device that is not there; the rest is counted.
  host_only(x, 2);
  EXPECT_EQ(heard_.size(), 1u);
  EXPECT_EQ(count("fallback"), 2);
}

TEST_F(EagerPlacement, PolicySilentOnlyCounts) {
  config::set_soft_device_placement(SoftPlacement::kSilent);
  const Tensor x = values_on("/GPU:0", {1, 2});
  const auto on = device("/GPU:1");
  EXPECT_EQ(host_only(x, 3).to_vector<float>(), (Floats{3, 6}));
  host_only(x, 3);
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(count("fallback"), 2);
}

TEST_F(EagerPlacement, PolicyErrorThrowsForBothReasons) {
  config::set_soft_device_placement(false);
  EXPECT_FALSE(config::get_soft_device_placement());
  const Tensor x = values_on("/GPU:0", {1, 2});
  {
    const auto on = device("/GPU:1");
    EXPECT_TRUE(
        says(message_of<errors::Unimplemented>([&] { host_only(x, 3); }),
             "no kernel for float32 on GPU:1"));
    // What is possible is not disturbed.
    EXPECT_TRUE(says(math::add(x, x).device(), "GPU:1"));
  }
  const auto on = device("/GPU:7");
  const std::string m =
      message_of<errors::InvalidArgument>([&] { math::add(x, x); });
  EXPECT_TRUE(says(m, "could not satisfy device specification"));
  EXPECT_TRUE(says(m, "soft placement is off"));
  EXPECT_TRUE(says(m, "expected one of GPU:0, GPU:1, CPU:0"));
  EXPECT_EQ(count("fallback"), 0);
}

TEST_F(EagerPlacement, AMalformedScopeThrowsUnderEveryPolicy) {
  for (const auto policy :
       {SoftPlacement::kError, SoftPlacement::kWarn, SoftPlacement::kSilent}) {
    config::set_soft_device_placement(policy);
    EXPECT_THROW((void)device("/GPU:one"), errors::InvalidArgument);
    EXPECT_THROW((void)device("/physical_device:GPU:0"),
                 errors::InvalidArgument);
  }
}

TEST_F(EagerPlacement, AGradientWithoutAKernelFallsBackLikeItsForwardOp) {
  const Tensor x = values_on("/GPU:1", {1, 2});
  const auto on = device("/GPU:1");
  GradientTape tape;
  tape.watch(x);
  const Tensor y = host_only(x, 3);
  const Tensor g = tape.gradient(y, x);
  EXPECT_EQ(g.to_vector<float>(), (Floats{3, 3}));
  // The gradient followed its forward op to the CPU, so it did not fall back.
  EXPECT_TRUE(says(g.device(), "CPU:0"));
  EXPECT_EQ(count("fallback"), 1);
}

TEST_F(EagerPlacement, AScopeOpenedAfterTheTapePinsGradients) {
  const Tensor x = values_on("/GPU:0", {1, 2});
  const auto outer = device("/GPU:0");
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = math::square(x);
  EXPECT_TRUE(says(tape.gradient(y, x).device(), "GPU:0"));
  const auto on = device("/GPU:1");
  EXPECT_TRUE(says(tape.gradient(y, x).device(), "GPU:1"));
}

TEST_F(EagerPlacement, PartsOfADecompositionAreAskedForLikeTheWhole) {
  // TestCube is Mul of Square; both exist on the GPUs.
  const Tensor x = values_on("/CPU:0", {2});
  const auto on = device("/GPU:1");
  const Tensor y = call1(op_named("TestCube"), x);
  EXPECT_TRUE(says(y.device(), "GPU:1"));
  EXPECT_EQ(y.item<float>(), 8);
}

TEST_F(EagerPlacement, APartWithoutAKernelBreaksOnlyWhatWasAskedFor) {
  // TestOverHost is Square of TestHostOnly.
  const OpDef& op = op_named("TestOverHost");
  const Tensor x = values_on("/GPU:1", {2});
  config::set_soft_device_placement(false);
  {
    const auto on = device("/GPU:1");
    EXPECT_THROW(call1(op, x), errors::Unimplemented);
  }
  // Nobody asked: the part falls back, and the rest stays where it was.
  const Tensor y = call1(op, x);
  EXPECT_EQ(y.item<float>(), 36);
  EXPECT_TRUE(says(y.device(), "GPU:0"));
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_TRUE(says(heard_[0].text,
                   "TestHostOnly runs on CPU:0, not on GPU:0, "
                   "where what it is part of runs"));
}

TEST_F(EagerPlacement, AVariableInAScopeOfAMissingDeviceFallsBack) {
  const auto on = device("/GPU:7");
  const Variable v(values_on("/CPU:0", {1, 2}), {.name = "w"});
  v.assign_add(constant({1.f, 1.f}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{2, 3}));
  EXPECT_TRUE(says(v.value().backing_device(), "GPU:0"));
  ASSERT_FALSE(heard_.empty());
  EXPECT_TRUE(says(heard_[0].text, "Variable 'w' lives on GPU:0"));
}

TEST_F(EagerPlacement, AFewIntegersStayOnTheHost) {
  const Tensor few = constant({3, 4});
  EXPECT_TRUE(says(few.backing_device(), "CPU:0"));
  EXPECT_TRUE(says(math::add(few, few).device(), "CPU:0"));
  EXPECT_EQ(math::add(few, few).to_vector<int>(), (std::vector<int>{6, 8}));
  const Tensor many = constant(std::vector<int>(65, 1), {65});
  EXPECT_TRUE(says(many.device(), "GPU:0"));
  EXPECT_TRUE(says(math::add(many, many).device(), "GPU:0"));
  // Floats do not.
  EXPECT_TRUE(says(constant({3.f, 4.f}).device(), "GPU:0"));
  // Asked for, they go.
  const auto on = device("/GPU:1");
  EXPECT_TRUE(says(constant({3, 4}).backing_device(), "GPU:1"));
  EXPECT_TRUE(says(math::add(few, few).backing_device(), "GPU:1"));
  EXPECT_TRUE(heard_.empty());
}

TEST_F(EagerPlacement, ShapesOfADeviceTensorAreHostNumbersWithoutTheDevice) {
  const sim::Clean clean;
  const auto on = device("/GPU:1");
  const Tensor x = constant({1.f, 2.f, 3.f});
  sim::fail_launch(sim::gpu(1), 1);
  const Tensor bad = math::add(x, x);
  // Whatever touches the device now fails.
  EXPECT_THROW(bad.to_vector<float>(), errors::Internal);
  for (const Tensor& t : {shape(bad), size(bad)}) {
    EXPECT_EQ(t.to_vector<int>(), (std::vector<int>{3}));
    EXPECT_TRUE(says(t.device(), "GPU:1"));
    EXPECT_TRUE(says(t.backing_device(), "CPU:0"));
  }
  EXPECT_EQ(rank(bad).item<int>(), 1);
}

TEST_F(EagerPlacement, WithoutAScopeShapesGoWithTheirInput) {
  const Tensor x = values_on("/GPU:1", {1, 2});
  EXPECT_TRUE(says(shape(x).device(), "GPU:1"));
  EXPECT_TRUE(says(shape(x).backing_device(), "CPU:0"));
  EXPECT_EQ((shape(x) + shape(x)).to_vector<int>(), (std::vector<int>{4}));
  EXPECT_TRUE(says((shape(x) + shape(x)).backing_device(), "CPU:0"));
}

TEST_F(EagerPlacement, TextStaysOnTheHostWhateverTheScope) {
  const auto on = device("/GPU:0");
  const Tensor t = constant({"a", "b"});
  EXPECT_TRUE(says(t.backing_device(), "CPU:0"));
  EXPECT_EQ(t.to_vector<std::string>(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(heard_.empty());
  EXPECT_EQ(math::equal(t, t).to_vector<bool>(),
            (std::vector<bool>{true, true}));
}

TEST_F(EagerPlacement, InputsElsewhereAreCopiedAsTheDevicePolicySays) {
  const Tensor x = values_on("/CPU:0", {1, 2});
  const Tensor n = with_device("/CPU:0", [] { return constant({1, 2}); });
  const auto on = device("/GPU:1");
  EXPECT_EQ(config::get_device_policy(), "silent");
  math::add(x, x);
  EXPECT_TRUE(heard_.empty());

  config::set_device_policy("warn");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(math::square(x).to_vector<float>(), (Floats{1, 4}));
  }
  ASSERT_EQ(heard_.size(), 1u);
  EXPECT_EQ(heard_[0].id, "input-copied");
  EXPECT_TRUE(says(heard_[0].text, "each call copies 8 B"));
  EXPECT_EQ(count("input-copied"), 2);

  config::set_device_policy("silent_for_int32");
  EXPECT_EQ(math::square(n).to_vector<int>(), (std::vector<int>{1, 4}));
  EXPECT_THROW(math::square(x), errors::InvalidArgument);

  config::set_device_policy("explicit");
  EXPECT_THROW(math::square(n), errors::InvalidArgument);
  const std::string m =
      message_of<errors::InvalidArgument>([&] { math::add(identity(x), x); });
  EXPECT_TRUE(says(m,
                   "tensors on conflicting devices: AddV2 runs on GPU:1 and "
                   "its input 1 (y, float32[2]) is on CPU:0 ("));
  EXPECT_TRUE(says(m, "pick_device_test.cc:"));
  const Tensor there = identity(x);
  EXPECT_EQ(math::add(there, there).to_vector<float>(), (Floats{2, 4}));
  EXPECT_THROW(config::set_device_policy("loud"), errors::InvalidArgument);
  EXPECT_EQ(config::experimental::get_device_policy(), "explicit");
}

TEST_F(EagerPlacement, APlainNumberIsNoTensorOnTheHost) {
  const Tensor x = values_on("/GPU:1", {1, 2});
  const auto on = device("/GPU:1");
  for (const char* policy : {"explicit", "warn"}) {
    config::set_device_policy(policy);
    EXPECT_EQ((2.f * x + 1.f).to_vector<float>(), (Floats{3, 5}));
    EXPECT_TRUE(says((x / 2.f).device(), "GPU:1"));
  }
  EXPECT_EQ(count("input-copied"), 0);
  config::set_device_policy("explicit");
  const Tensor host = with_device("/CPU:0", [] { return constant(2.f); });
  EXPECT_THROW(x * host, errors::InvalidArgument);
}

TEST_F(EagerPlacement, LoggingNamesEveryOpAndItsDevice) {
  const auto on = device("/CPU:0");
  const Tensor x = constant({1.f, 2.f});
  const Variable v(x);
  math::add(x, x);
  EXPECT_TRUE(heard_.empty());
  debugging::set_log_device_placement(true);
  math::add(x, x);  // else the short way
  with_device("/GPU:1", [&] { return math::multiply(x, x); });
  v.assign(x);
  v.value();
  debugging::set_log_device_placement(false);
  math::add(x, x);
  const std::pair<const char*, std::string> kExpected[] = {
      {"AddV2", "CPU:0"},
      {"Mul", "GPU:1"},
      {"AssignVariableOp", "CPU:0"},
      {"ReadVariableOp", "CPU:0"}};
  ASSERT_EQ(heard_.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(heard_[i].id, "placement");
    EXPECT_EQ(heard_[i].severity, debugging::Severity::kInfo);
    EXPECT_TRUE(says(heard_[i].text, std::string("Executing op ") +
                                         kExpected[i].first + " in device " +
                                         kExpected[i].second + " ("));
  }
}

}  // namespace
}  // namespace berth
