// Eager calls that fetch more than they give back. The program has two
// simulated GPUs (eager_test.cc).

#include "eager/lint_moves.h"

#include <gtest/gtest.h>

#include "base/diagnostics_testing.h"
#include "berth/berth.h"
#include "eager/testing.h"
#include "ops/op_call.h"

namespace berth {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Tensor on(const char* name, const Shape& shape) {
  const auto scope = device(name);
  return ones(shape);
}

TEST(LintMoves, NamesTheLineThatFetchesTwoMebibytesForOneNumber) {
  const Tensor scores = on("/GPU:1", {512, 1024});
  const Heard heard;
  for (int step = 0; step < 3; ++step) {
    const auto host = device("/CPU:0");
    math::reduce_max(scores);
  }
  const std::string line =
      "(lint_moves_test.cc:" + std::to_string(__LINE__ - 3) + ")";
  const std::string text = heard.text_of("reduce-placement");
  EXPECT_TRUE(has(text, line)) << text;
  EXPECT_TRUE(has(text, "on CPU:0, which fetches 2 MiB from GPU:1")) << text;
  EXPECT_TRUE(has(text, "would send 4 B")) << text;
  EXPECT_EQ(debugging::diagnostic_counts().at("reduce-placement"), 3);
}

TEST(LintMoves, IsSilentWhereTheInputIs) {
  const Tensor scores = on("/GPU:1", {512, 1024});
  const Heard heard;
  const auto there = device("/GPU:1");
  math::reduce_max(scores);
  EXPECT_EQ(heard.text_of("reduce-placement"), "0");
}

TEST(LintMoves, IsSilentWithoutAScopeOfTheUser) {
  const Tensor rows = on("/CPU:0", {512, 1024});
  const Heard heard;
  math::reduce_max(rows);  // GPU:0, as everything else
  EXPECT_EQ(heard.text_of("reduce-placement"), "0");
}

TEST(LintMoves, NamesAnOpThatTheDeviceOfItsInputLacks) {
  const Tensor rows = on("/GPU:0", {512, 1024});
  const Tensor few = on("/GPU:0", {8});
  const AttrsRef attrs({{"factor", 2.0}});
  const auto host_only = [&](const Tensor& x) {
    return call1(op_named("TestHostOnly"), x, attrs.get());
  };
  const Heard heard;
  host_only(few);
  EXPECT_EQ(heard.text_of("kernel-missing"), "0");
  for (int step = 0; step < 3; ++step) host_only(rows);
  const std::string text = heard.text_of("kernel-missing");
  EXPECT_TRUE(has(text, "TestHostOnly")) << text;
  EXPECT_TRUE(has(text, "runs on CPU:0, for GPU:0 has no kernel")) << text;
  EXPECT_TRUE(has(text, "fetches 2 MiB per call")) << text;
  EXPECT_EQ(debugging::diagnostic_counts().at("kernel-missing"), 3);
  const auto asked = device("/CPU:0");
  host_only(rows);
  EXPECT_EQ(debugging::diagnostic_counts().at("kernel-missing"), 3);
}

TEST(LintMoves, IsSilentAboutSmallTensors) {
  const Tensor scores = on("/GPU:1", {64, 64});
  const Heard heard;
  const auto host = device("/CPU:0");
  math::reduce_max(scores);
  EXPECT_EQ(heard.text_of("reduce-placement"), "0");
}

TEST(LintMoves, IsSilentWhenTheResultIsAsLarge) {
  const Tensor scores = on("/GPU:1", {512, 1024});
  const Heard heard;
  const auto host = device("/CPU:0");
  math::exp(scores);
  EXPECT_EQ(heard.text_of("reduce-placement"), "0");
}

TEST(LintMoves, IsSilentAboutArithmeticThatIsWorthTheWay) {
  const Tensor wide = on("/CPU:0", {128, 1 << 12});
  const Heard heard;
  const auto fast = device("/GPU:0");
  linalg::matmul(wide, wide, {.transpose_b = true});  // 64 flops per byte
  EXPECT_EQ(heard.text_of("reduce-placement"), "0");
}

}  // namespace
}  // namespace berth
