// The models of bench_gpu: as many parameters as published, losses as PyTorch
// computes them (losses.json, written by bench/peers/gpu_torch.py --fixture),
// and training that learns.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/gpu/timed.h"

namespace berth_bench {
namespace {

using berth::bfloat16;
using berth::float32;
using berth::Tensor;

TEST(BenchModels, HaveThePublishedParameterCounts) {
  // torchvision's resnet50.
  EXPECT_EQ(ResNet50().declared_parameters(), 25'557'032);
  // GPT-2 small, without the rows that round its embedding up.
  EXPECT_EQ(Gpt2(Gpt2::Sizes{.rows = 50257}).declared_parameters(),
            124'439'808);
  EXPECT_EQ(Mlp().declared_parameters(), 784 * 128 + 128 + 128 * 10 + 10);
}

TEST(BenchModels, MakeWhatTheyDeclare) {
  for (const char* name : {"mlp", "resnet50", "gpt2"}) {
    const auto net = make_drawn_model(name, true);
    net->make(1);
    EXPECT_EQ(net->parameters(), net->declared_parameters()) << name;
  }
}

// Losses of steps on one batch after the other, two batches in turns.
std::vector<float> losses(const std::string& name, berth::DType compute,
                          int steps) {
  const auto net = make_drawn_model(name, true, compute);
  net->make(2);
  auto step = berth::function(
      [&](const Tensor& x, const Tensor& y) { return (*net)(x, y); });
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    all.push_back(step(net->images(i), net->labels(i)).item<float>());
  }
  return all;
}

std::vector<float> losses_of_torch(const std::string& model) {
  std::ifstream file(BERTH_BENCH_LOSSES);
  return nlohmann::json::parse(file)
      .at("losses")
      .at(model)
      .get<std::vector<float>>();
}

class BenchModel : public testing::TestWithParam<const char*> {};

TEST_P(BenchModel, HasTheLossesOfPyTorch) {
  const std::vector<float> wanted = losses_of_torch(GetParam());
  ASSERT_GE(wanted.size(), 2u);
  const auto got = losses(GetParam(), float32, static_cast<int>(wanted.size()));
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 3e-4 * wanted[i]) << "step " << i;
  }
}

TEST(BenchModels, LearnInBfloat16) {
  for (const char* name : {"resnet50", "gpt2"}) {
    SCOPED_TRACE(name);
    const auto got = losses(name, bfloat16, 12);
    EXPECT_NEAR(got[0], losses_of_torch(name)[0], 0.03 * got[0]);
    EXPECT_LT(got[10] + got[11], 0.95 * (got[0] + got[1]));
  }
}

TEST(BenchModels, ComputeAllInBfloat16) {
  for (const char* name : {"resnet50", "gpt2"}) {
    const auto net = make_drawn_model(name, true, bfloat16);
    net->make(1);
    (*net)(net->images(0), net->labels(0));
    EXPECT_EQ(net->in_float32(), std::set<std::string>{}) << name;
  }
}

TEST_P(BenchModel, Learns) {
  const auto got = losses(GetParam(), float32, 12);
  EXPECT_LT(got[10] + got[11], 0.95 * (got[0] + got[1]));
}

INSTANTIATE_TEST_SUITE_P(All, BenchModel,
                         testing::Values("mlp", "resnet50", "gpt2"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace berth_bench
