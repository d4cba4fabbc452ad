// cuDNN has a plan for what is asked of it, on cards that are not here; those
// for which it has none are named, and Berth's own kernels compute them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "conformance/cudnn_plans/cards.h"
#include "conformance/cudnn_plans/graphs.h"

namespace berth::conformance {
namespace {

class CudnnPlans : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::string why;
    api_ = plan_library(&why);
    if (api_ == nullptr) GTEST_SKIP() << why;
  }
  bool has_plan(const NamedGraph& g, std::string* why) const {
    *why = why_no_plan(*api_, GetParam(), g.graph);
    *why = fmt::format("{}: {}", g.name, why->substr(0, 500));
    return why->size() == g.name.size() + 2;
  }
  void have_plans(const std::vector<NamedGraph>& graphs) const {
    EXPECT_FALSE(graphs.empty());
    std::string why;
    for (const NamedGraph& g : graphs) EXPECT_TRUE(has_plan(g, &why)) << why;
  }
  void have_none(const std::vector<NamedGraph>& graphs) const {
    EXPECT_FALSE(graphs.empty());
    std::string why;
    for (const NamedGraph& g : graphs) EXPECT_FALSE(has_plan(g, &why)) << why;
  }

  const BerthCudnnApi* api_ = nullptr;
};

class CudnnPlansOfModels : public CudnnPlans {};

// cuDNN reads four channels of float32 at a time.
bool is_norm_of_odd_channels(const BerthCudnnGraph& g) {
  return (g.what == BERTH_CUDNN_BATCH_NORM ||
          g.what == BERTH_CUDNN_BATCH_NORM_GRAD) &&
         g.c % 4 != 0;
}

bool is_attention(const BerthCudnnGraph& g) {
  return g.what == BERTH_CUDNN_ATTENTION ||
         g.what == BERTH_CUDNN_ATTENTION_GRAD;
}

TEST_P(CudnnPlans, AreThereForTheSuiteButForNormsOfOddChannels) {
  std::vector<NamedGraph> graphs = suite_graphs(), odd;
  size_t attention = 0;
  for (const NamedGraph& g : graphs) {
    if (is_norm_of_odd_channels(g.graph)) odd.push_back(g);
    attention += is_attention(g.graph);
  }
  // Four shapes in two dtypes, with their gradients.
  EXPECT_EQ(attention, 16u);
  std::erase_if(graphs, [](const NamedGraph& g) {
    return is_norm_of_odd_channels(g.graph);
  });
  // Ten geometries of three convolutions with their forms, and batch norms.
  EXPECT_GT(graphs.size(), 60u);
  have_plans(graphs);
  have_none(odd);
}

TEST_P(CudnnPlansOfModels, AreThereForResNet50InFloat32) {
  have_plans(resnet50_graphs(128, BERTH_CUDNN_FLOAT32));
}

TEST_P(CudnnPlansOfModels, AreThereForResNet50InBfloat16) {
  have_plans(resnet50_graphs(128, BERTH_CUDNN_BFLOAT16));
}

TEST_P(CudnnPlans, AreThereForWhatFollows) {
  have_plans(fused_graphs(BERTH_CUDNN_FLOAT32));
  have_plans(fused_graphs(BERTH_CUDNN_BFLOAT16));
}

TEST_P(CudnnPlans, AreThereForAttentionOfHalfTypes) {
  for (const DType dtype : {bfloat16, float16}) {
    const auto graphs = attention_graphs(16, 512, dtype);
    EXPECT_EQ(graphs.size(), 4u);
    have_plans(graphs);
  }
}

TEST_P(CudnnPlans, AreNotReadBackForAnotherGraph) {
  BerthCudnnGraph conv = fused_graphs(BERTH_CUDNN_FLOAT32)[0].graph;
  conv.relu = 0;
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  BerthCudnnPlan* plan = nullptr;
  BerthCudnnCard* card = planned_card(*api_, GetParam());
  ASSERT_EQ(api_->make_plan(card, &conv, &plan, why), 0) << why;
  EXPECT_EQ(api_->plan_arguments(plan), 3);
  size_t bytes = 0;
  const uint8_t* data = api_->save_plan(plan, &bytes);
  BerthCudnnGraph with_bias = conv;
  with_bias.bias = 1;
  BerthCudnnPlan* other = nullptr;
  EXPECT_NE(api_->load_plan(card, &with_bias, data, bytes, &other, why), 0);
  EXPECT_NE(api_->load_plan(card, &conv, data, bytes / 2, &other, why), 0);
  api_->drop_plan(plan);
}

TEST_P(CudnnPlans, DoNotRunOnACardThatIsNotHere) {
  BerthCudnnGraph conv = fused_graphs(BERTH_CUDNN_FLOAT32)[0].graph;
  conv.relu = 0;
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  BerthCudnnPlan* plan = nullptr;
  BerthCudnnCard* card = planned_card(*api_, GetParam());
  ASSERT_EQ(api_->make_plan(card, &conv, &plan, why), 0) << why;
  void* arguments[3] = {};
  EXPECT_NE(api_->run_plan(plan, nullptr, arguments, 3, nullptr, why), 0);
  EXPECT_STREQ(why, "the card is not here");
  EXPECT_NE(api_->run_plan(plan, nullptr, arguments, 2, nullptr, why), 0);
  api_->drop_plan(plan);
}

TEST_P(CudnnPlans, AreRefusedForWhatIsNoGraph) {
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  BerthCudnnPlan* plan = nullptr;
  BerthCudnnCard* card = planned_card(*api_, GetParam());
  BerthCudnnGraph g{};
  g.what = 77;
  EXPECT_NE(api_->make_plan(card, &g, &plan, why), 0);
  EXPECT_STREQ(why, "no such kind of graph");
  g.what = BERTH_CUDNN_CONV;
  g.groups = 1;
  EXPECT_NE(api_->make_plan(card, &g, &plan, why), 0);  // all lengths are 0
  EXPECT_EQ(plan, nullptr);
}

TEST_P(CudnnPlans, AreNotThereForAttentionOfFloat32) {
  have_none(wide_attention_gradients(16, 512));
  EXPECT_TRUE(attention_graphs(16, 512, float32).empty());
}

// In float32, Winograd's forms have errors above what conformance allows, and
// tensor cores round to TF32.
TEST_P(CudnnPlans, OfFloat32AreFloat32) {
  BerthCudnnCard* card = planned_card(*api_, GetParam());
  char why[BERTH_CUDNN_WHY_BYTES] = "";
  const auto name_of = [&](const NamedGraph& g) {
    BerthCudnnPlan* plan = nullptr;
    if (api_->make_plan(card, &g.graph, &plan, why) != 0) return g.name + why;
    const std::string name = g.name + " " + api_->plan_name(plan);
    api_->drop_plan(plan);
    return name;
  };
  const auto has = [](const std::string& name, const char* note) {
    return name.find(note) != std::string::npos;
  };
  int on_tensor_cores = 0;
  for (const auto type : {BERTH_CUDNN_FLOAT32, BERTH_CUDNN_BFLOAT16}) {
    for (const NamedGraph& g : resnet50_graphs(8, type)) {
      if (g.graph.what > BERTH_CUDNN_CONV_FILTER_GRAD || g.graph.kh != 3) {
        continue;
      }
      const std::string name = name_of(g);
      if (type == BERTH_CUDNN_BFLOAT16) {
        on_tensor_cores += has(name, " TENSOR_CORE");
        continue;
      }
      for (const char* note : {"WINOGRAD", "TENSOR_CORE", "DOWN_CONVERT"}) {
        EXPECT_FALSE(has(name, note)) << name;
      }
    }
  }
  EXPECT_GT(on_tensor_cores, 0) << "names have no notes";
}

INSTANTIATE_TEST_SUITE_P(Sm80, CudnnPlans, testing::Values(80));
INSTANTIATE_TEST_SUITE_P(Sm90, CudnnPlans, testing::Values(90));
INSTANTIATE_TEST_SUITE_P(Sm100, CudnnPlans, testing::Values(100));
INSTANTIATE_TEST_SUITE_P(SlowSm80, CudnnPlansOfModels, testing::Values(80));
INSTANTIATE_TEST_SUITE_P(SlowSm90, CudnnPlansOfModels, testing::Values(90));
INSTANTIATE_TEST_SUITE_P(SlowSm100, CudnnPlansOfModels, testing::Values(100));

}  // namespace
}  // namespace berth::conformance
