// The scope a layer is made in, and the scope it is called in.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/diagnostics.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/testing.h"

namespace berth::keras {
namespace {

// One test begins and ends with the default policy and no diagnostics.
class LayerScope : public testing::Test {
 protected:
  LayerScope() {
    reset_diagnostics_for_testing();
    old_ = debugging::set_diagnostic_handler(
        [this](const debugging::Diagnostic& d) {
          if (d.id == "layer-scope") lints_.push_back(d);
        });
  }
  ~LayerScope() override {
    debugging::set_diagnostic_handler(old_);
    config::set_soft_device_placement(true);
  }
  static int64_t count() {
    return debugging::diagnostic_counts()["layer-scope"];
  }

  std::vector<debugging::Diagnostic> lints_;

 private:
  debugging::DiagnosticHandler old_;
};

// /CPU:7 stands for any other device than the layer's: the lint is about names.
TEST_F(LayerScope, ADifferingCallScopeIsALintWithItsBytes) {
  const Layer dense =
      with_device("/CPU:0", [] { return Dense(4, {.name = "head"}); });
  const Tensor x = constant(std::vector<float>(6, 1), {2, 3});
  const int line = __LINE__ + 1;
  const auto on = device("/CPU:7");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(dense(x).device(),
              "/job:localhost/replica:0/task:0/device:CPU:0");
  }
  ASSERT_EQ(lints_.size(), 1u);
  EXPECT_EQ(lints_[0].severity, debugging::Severity::kLint);
  EXPECT_EQ(lints_[0].site.line, line);
  expect_has(lints_[0].text, "made in device(\"/device:CPU:0\")");
  expect_has(lints_[0].text, "layer \"head\"");
  expect_has(lints_[0].text, "called in device(\"/device:CPU:7\")");
  // [2, 3] in, [2, 4] out, 4 bytes each.
  expect_has(lints_[0].text, "each call moves 56 B");
  EXPECT_EQ(count(), 3);
}

TEST_F(LayerScope, NoBytesAreSaidOfAnUnknownBatch) {
  const Layer dense = with_device("/CPU:0", [] { return Dense(4); });
  const auto on = device("/CPU:7");
  dense(Input({3}));
  ASSERT_EQ(lints_.size(), 1u);
  expect_has(lints_[0].text, "; each call moves its values between them");
}

TEST_F(LayerScope, WhatDoesNotContradictIsNoLint) {
  const Tensor x = constant({{1.f, 2.f}});
  const Layer inside = with_device("/CPU:0", [] { return Dense(1); });
  const Layer outside = Dense(1);
  inside(x);
  {
    const auto on = device("/job:localhost/device:CPU");
    inside(x);
  }
  {
    const auto on = device("/CPU:0");
    inside(x);
    outside(x);
  }
  {
    const auto on = device("/CPU:7");
    outside(x);  // made without a scope: the call's counts
    const auto none = device(no_device);
    inside(x);
  }
  EXPECT_TRUE(lints_.empty());
  EXPECT_EQ(count(), 0);
}

TEST_F(LayerScope, LayersInsideAModelMayDifferFromItsScope) {
  // The scope that is open when the inner layer runs is the model's, not one
  // that the user called it in.
  const Tensor x = constant({{1.f, 2.f}});
  const auto model = with_device("/CPU:0", [] {
    const Layer far = with_device("/CPU:7", [] { return Dense(1); });
    return Sequential({far});
  });
  model(x);
  EXPECT_TRUE(lints_.empty());
  EXPECT_EQ(count(), 0);
}

TEST_F(LayerScope, PolicyErrorRefusesAndPolicySilentCounts) {
  const Tensor x = constant({{1.f, 2.f}});
  const Layer dense = with_device("/CPU:0", [] { return Dense(1); });
  dense(x);
  const auto on = device("/CPU:7");
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  dense(x);
  EXPECT_TRUE(lints_.empty());
  EXPECT_EQ(count(), 1);
  config::set_soft_device_placement(false);
  try {
    dense(x);
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    expect_has(e.what(), "called in device(\"/device:CPU:7\")");
    expect_has(e.what(), "layer_scope_test.cc:");
  }
  // The refused call left nothing open.
  EXPECT_EQ(count(), 1);
}

TEST_F(LayerScope, ATraceLintsOnceAndCountsWhatIsKnown) {
  const Layer dense = with_device("/CPU:0", [] { return Dense(4); });
  auto f = function(
      [&](const Tensor& x) {
        const auto on = device("/CPU:7");
        return dense(x);
      },
      {.input_signature = {{Shape{-1, 3}, float32, ""}}});
  f(constant(std::vector<float>(6, 1), {2, 3}));
  f(constant(std::vector<float>(9, 1), {3, 3}));
  ASSERT_EQ(lints_.size(), 1u);
  expect_has(lints_[0].text, "; each call moves its values between them");
}

// Whatever room the first device has: for what the initializer computes, for
// the draw but not the variable, for both.
void weights_elsewhere() {
  config::set_simulated_devices("GPUx1");
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0],
      {{.memory_limit_mb = 8}, {.memory_limit_mb = 8}});
  const auto kernel = [] {
    random::set_seed(3);
    clear_session();
    const Layer dense = Dense(640, {.use_bias = false});
    dense.build({Shape({-1, 512})});
    return dense.weights()[0].read_value();
  };
  const auto want = with_device("/CPU:0", kernel).to_vector<float>();
  size_t there = 0;
  for (int64_t quarters = 8; quarters <= 32; ++quarters) {
    const Tensor full =
        with_device("/GPU:0", [&] { return ones({quarters << 16}); });
    const Tensor got = kernel();
    there += got.device().ends_with("GPU:1");
    fresh_process::check(got.to_vector<float>() == want,
                         fmt::format("{} quarters of 1 MB", quarters));
  }
  fresh_process::check(there > 3, "some were made on the second GPU");
}

TEST(WeightsElsewhere, AreThoseOfTheSeed) {
  IN_A_FRESH_PROCESS(weights_elsewhere());
}

}  // namespace
}  // namespace berth::keras
