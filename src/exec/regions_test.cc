// Which regions form, and that they compute the same.

#include "exec/regions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>

#include "bench/step_models.h"
#include "berth/berth.h"
#include "berth/errors.h"
#include "function/graph_rewrite.h"

namespace berth {
namespace {

using Floats = std::vector<float>;
using berth_bench::StepModel;

// The "region" statements of a plan, their members as "NAME in>out".
std::vector<std::string> regions_of(const std::string& plan) {
  std::vector<std::string> regions;
  size_t at = 0;
  while (at < plan.size()) {
    const size_t end = plan.find('\n', at);
    const std::string line = plan.substr(at, end - at);
    at = end + 1;
    if (line.find(" region ") != std::string::npos) regions.emplace_back();
    char name[100], op[100], in[100] = "", out[100] = "";
    if (line.starts_with("  op ")) {
      const size_t cut = line.find(" cut "), to = line.find(" to ");
      std::sscanf(line.c_str(), "  op %99s %99s", name, op);
      std::sscanf(line.c_str() + cut, " cut %99[-+,0-9]", in);
      std::sscanf(line.c_str() + to, " to %99[-+,0-9]", out);
      regions.back() += fmt::format("{} {}>{}\n", op, in, out);
    }
  }
  return regions;
}

auto step_of(const StepModel& net, int slices) {
  return function(
      [&net](const Tensor& x, const Tensor& y) { return net(x, y); },
      {.name = "step", .slices = slices});
}

std::vector<std::string> regions_of_step(const char* model) {
  const auto on = device("/CPU:0");
  const auto step_model = berth_bench::make_step_model(model);
  const StepModel& net = *step_model;
  auto step = step_of(net, 4);
  step(net.images(0), net.labels(0));
  return regions_of(step.text("plan"));
}

// Everything that is split by images is one region, with the small gradients as
// partial sums, but for the loss and the last bias: tiny sums are never cut.
// The large gradient is split by rows, together with its update.
// Bias and relu are one fused op; the small updates are one instruction.
TEST(Regions, TheMlpStepForksTwice) {
  const auto regions = regions_of_step("mlp");
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0],
            "MatMul 0,->0\n"
            "_Fused 0,->0\n"
            "MatMul 0,->0\n"
            "BiasAdd 0,->0\n"
            "SparseSoftmaxCrossEntropyWithLogits 0,0>0,0\n"
            "Mul 0,0>0\n"
            "MatMul 0,->0\n"
            "MatMul 0,0>+\n"
            "ReluGrad 0,0>0\n"
            "BiasAddGrad 0>+\n");
  EXPECT_EQ(regions[1],
            "MatMul 1,->0\n"
            "ResourceApplyAdam 0,0,0,-,-,-,-,-,-,0>\n");
}

TEST(Regions, TheCnnStepForksTwice) {
  const auto regions = regions_of_step("cnn");
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0],
            "Conv2D 0,->0\n"
            "_Fused 0,->0\n"
            "MaxPool 0>0\n"
            "Reshape 0>0\n"
            "MatMul 0,->0\n"
            "BiasAdd 0,->0\n"
            "SparseSoftmaxCrossEntropyWithLogits 0,0>0,0\n"
            "Mul 0,0>0\n"
            "MatMul 0,->0\n"
            "Reshape 0>0\n"
            "MaxPoolGrad 0,0,0>0\n"
            "ReluGrad 0,0>0\n"
            "BiasAddGrad 0>+\n"
            "Conv2DBackpropFilter 0,0>+\n");
  EXPECT_EQ(regions[1],
            "MatMul 1,->0\n"
            "ResourceApplyAdam 0,0,0,-,-,-,-,-,-,0>\n");
}

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif
constexpr char kTooManyLocks[] =
    "a run locks over 64 variables, more than ThreadSanitizer's detector of "
    "deadlocks can hold";

// "Relu Conv2D": the ops of a region in order, with how many have them.
std::map<std::string, int> kinds_of_regions(const char* model) {
  std::map<std::string, int> kinds;
  for (const std::string& region : regions_of_step(model)) {
    std::string ops;
    std::istringstream lines(region);
    for (std::string line; std::getline(lines, line);) {
      ops += (ops.empty() ? "" : " ") + line.substr(0, line.find(' '));
    }
    ++kinds[ops];
  }
  return kinds;
}

// Batch norm is a border: it needs the moments of all slices. Between two of
// them stand an activation and the convolutions that read it.
TEST(RegionsSlow, TheResNetStepForksBetweenItsBatchNorms) {
  if (kThreadSanitizer) GTEST_SKIP() << kTooManyLocks;
  auto kinds = kinds_of_regions("resnet18");
  // The second convolution of 8 blocks, and the first of the first block.
  EXPECT_EQ(kinds["Relu Conv2D"], 9);
  // The other blocks begin with the sum and relu that end the block before;
  // three of them read it by a shortcut of 1x1, too.
  EXPECT_EQ(kinds["_Fused Conv2D"], 4);
  EXPECT_EQ(kinds["_Fused Conv2D Conv2D"], 3);
  // 20 filters, decay fused; the stem's is small and goes with the others.
  EXPECT_EQ(kinds["_Fused ResourceApplyMomentum"], 19);
  // The head, forward, loss and backward, up to the mean over pixels.
  EXPECT_EQ(kinds["_Fused Mean MatMul BiasAdd "
                  "SparseSoftmaxCrossEntropyWithLogits Mul "
                  "MatMul Mul Reshape BroadcastTo ReluGrad"],
            1);
}

// The split of the heads ends a region; from one to the next, sequences go
// through projection, sum, norm, the two dense layers, sum, norm and the next
// product together.
TEST(RegionsSlow, TheTransformerStepForksBetweenItsHeads) {
  if (kThreadSanitizer) GTEST_SKIP() << kTooManyLocks;
  auto kinds = kinds_of_regions("gpt");
  EXPECT_EQ(kinds["LayerNorm MatMul BiasAdd"], 1);
  EXPECT_EQ(kinds["MatMul MaskedSoftmax MatMul Transpose"], 4);
  EXPECT_EQ(kinds["MatMul _Fused LayerNorm MatMul _Fused MatMul _Fused "
                  "LayerNorm MatMul BiasAdd"],
            3);
  // Back through one layer: dense layers, norms and sums, small gradients.
  EXPECT_EQ(kinds["BiasAddGrad MatMul MatMul LayerNormGrad AddV2 BiasAddGrad "
                  "MatMul MatMul GeluGrad BiasAddGrad MatMul MatMul "
                  "LayerNormGrad AddV2 BiasAddGrad MatMul MatMul"],
            3);
}

constexpr int kSliceCounts[] = {1, 2, 3, 4, 8, 32};

Floats losses_of(const char* model, int slices) {
  const auto step_model = berth_bench::make_step_model(model);
  const StepModel& net = *step_model;
  auto step = step_of(net, slices);
  Floats losses;
  for (int i = 0; i < 4; ++i) {
    losses.push_back(step(net.images(i), net.labels(i)).item<float>());
  }
  return losses;
}

TEST(Regions, CutOrNotTheLossesAreTheSame) {
  const auto on = device("/CPU:0");
  for (const char* model : {"mlp", "cnn"}) {
    const Floats whole = losses_of(model, 1);
    for (int slices : kSliceCounts) {
      const Floats cut = losses_of(model, slices);
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_NEAR(cut[i], whole[i], 1e-4f) << model << " " << slices;
      }
    }
  }
}

// Run by the test below in processes with other numbers of workers: the last
// loss depends on every weight of three updates.
TEST(RegionsChild, DISABLED_PrintsLosses) {
  const auto on = device("/CPU:0");
  for (const char* model : {"mlp", "cnn"}) {
    for (int slices : kSliceCounts) {
      std::string line = fmt::format("BITS {} {}", model, slices);
      for (float loss : losses_of(model, slices)) {
        uint32_t bits;
        std::memcpy(&bits, &loss, sizeof bits);
        line += fmt::format(" {:08x}", bits);
      }
      std::puts(line.c_str());
    }
  }
}

std::string losses_with_workers(int workers) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return "";
  const std::string command = fmt::format(
      "BERTH_CPU_WORKERS={} '{}' --gtest_also_run_disabled_tests "
      "--gtest_filter=RegionsChild.* 2>&1",
      workers, self);
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string bits;
  char line[256];
  while (pipe && std::fgets(line, sizeof line, pipe)) {
    if (std::strncmp(line, "BITS", 4) == 0) bits += line;
  }
  EXPECT_EQ(pipe ? pclose(pipe) : -1, 0);
  return bits;
}

TEST(Regions, BitsDependOnTheSlicesAlone) {
  const std::string one = losses_with_workers(1);
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 12) << one;
  for (int workers : {2, 3, 4}) {
    EXPECT_EQ(losses_with_workers(workers), one) << workers << " workers";
  }
}

// Cuts all that can be split.
class CutsEverything final : public GraphRewrite {
 public:
  void apply(Graph&) const override {}
  SlicingRule slicing_rule() const override { return kSliceEverything; }
};

class SmallRegions : public testing::Test {
 protected:
  static FunctionOptions in_slices(int slices) {
    return {.slices = slices, .rewrite = std::make_shared<CutsEverything>()};
  }
  DeviceGuard on_ = device("/CPU:0");
};

Floats ramp(int n) {
  Floats v(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return v;
}

// 0 + 1 + ... + 63, over any number of slices, of any of which the last are
// shorter.
TEST_F(SmallRegions, PartialSumsAddUp) {
  const Tensor x = constant(ramp(64), {64});
  for (int slices = 1; slices <= 32; ++slices) {
    auto f = function(
        [](const Tensor& t) {
          const Tensor twice = t * 2.0;
          return Tensors{math::reduce_sum(twice), math::reduce_mean(twice)};
        },
        in_slices(slices));
    for (int run = 0; run < 3; ++run) {
      const Tensors r = f(x);
      EXPECT_EQ(r[0].item<float>(), 64 * 63) << slices;
      EXPECT_EQ(r[1].item<float>(), 63) << slices;
    }
    const auto regions = regions_of(f.text("plan"));
    EXPECT_EQ(regions.size(), slices > 1 ? 1u : 0u);
  }
}

// A value that a member needs whole ends the region.
TEST_F(SmallRegions, WhatIsNeededWholeComesFromBefore) {
  auto f = function(
      [](const Tensor& x) {
        const Tensor y = x + 1.0;
        return matmul(y, y) + y;
      },
      in_slices(2));
  const Tensor y = f(constant(ramp(4), {2, 2}));
  // [1 2; 3 4]^2 + [1 2; 3 4]
  EXPECT_EQ(y.to_vector<float>(), (Floats{8, 12, 18, 26}));
  const auto regions = regions_of(f.text("plan"));
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[1], "MatMul 0,->0\nAddV2 0,0>0\n");
}

// The read and the write of a variable are one region when both are split
// alike; a reader of all of it must come before.
TEST_F(SmallRegions, AVariableIsReadBeforeItsNextWrite) {
  const Variable v(constant(ramp(16), {4, 4}));
  auto f = function(
      [&](const Tensor& x) {
        const Tensor y = matmul(x, v.value());
        v.assign_sub(v.value() * 0.5);
        return y;
      },
      in_slices(4));
  const Tensor x =
      constant(Floats{2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2}, {4, 4});
  for (float scale = 2; scale > 0.1f; scale /= 2) {
    Floats want = ramp(16);
    for (float& w : want) w *= scale;
    EXPECT_EQ(f(x).to_vector<float>(), want);
  }
  // The product reads all of it.
  EXPECT_EQ(regions_of(f.text("plan")),
            (std::vector<std::string>{"MatMul 0,->0\nMul 0,->0\n",
                                      "AssignSubVariableOp 0,0>\n"}));
  auto decay = function(
      [&](const Tensor& x) {
        v.assign(v.value() * 0.5 + x);
        return x;
      },
      in_slices(4));
  v.assign(constant(ramp(16), {4, 4}));
  decay(constant(Floats(16, 1), {4, 4}));
  Floats want = ramp(16);
  for (float& w : want) w = w * 0.5f + 1;
  EXPECT_EQ(v.value().to_vector<float>(), want);
  EXPECT_EQ(regions_of(decay.text("plan")),
            (std::vector<std::string>{
                "Mul 0,->0\nAddV2 0,0>0\nAssignVariableOp 0,0>\n"}));
}

// Slices draw the numbers of the unsplit tensor.
TEST_F(SmallRegions, RandomNumbersDoNotDependOnSlices) {
  auto draw = [](int slices) {
    random::set_seed(7);
    auto f = function(
        [](const Tensor& x) {
          return nn::dropout(x * 2.0, 0.5, {.seed = 3}) + 1.0;
        },
        in_slices(slices));
    return f(ones({13, 5})).to_vector<float>();
  };
  const Floats whole = draw(1);
  for (int slices : {2, 3, 13}) EXPECT_EQ(draw(slices), whole) << slices;
}

TEST_F(SmallRegions, AFailingSliceNamesTheNodeAndTheNextRunIsRight) {
  auto f = function(
      [](const Tensor& x, const Tensor& i) {
        return math::reduce_sum(gather(x, i) * 1.5);
      },
      in_slices(4));
  const Tensor x = ones({8});
  const Tensor good = constant({0, 1, 2, 3, 4, 5, 6, 7});
  for (int bad = 0; bad < 8; ++bad) {
    std::vector<int32_t> at{0, 1, 2, 3, 4, 5, 6, 7};
    at[static_cast<size_t>(bad)] = 99;
    try {
      f(x, constant(at, {8}));
      FAIL();
    } catch (const errors::InvalidArgument& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find("GatherV2"), std::string::npos) << what;
      const size_t line = what.find("regions_test.cc:");
      EXPECT_NE(line, std::string::npos) << what;
      EXPECT_EQ(what.find("regions_test.cc:", line + 1), std::string::npos);
    }
    EXPECT_EQ(f(x, good).item<float>(), 12);
  }
  ASSERT_EQ(regions_of(f.text("plan")).size(), 1u) << f.text("plan");
}

}  // namespace
}  // namespace berth
