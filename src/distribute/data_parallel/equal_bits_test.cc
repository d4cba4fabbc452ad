// Training steps with slices give the same bits on any number of replicas.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "bench/step_models.h"
#include "distribute/data_parallel/split_batch.h"
#include "function/graph_rewrite.h"

namespace berth::distribute {
namespace {

class SlicedSplit final : public GraphRewrite {
 public:
  explicit SlicedSplit(SplitPlan plan) : plan_(std::move(plan)) {}
  void apply(Graph& graph) const override {
    EXPECT_EQ(split_batch(graph, plan_).whole, std::vector<std::string>{});
  }
  int slices() const override { return plan_.slices; }

 private:
  const SplitPlan plan_;
};

// All replicas on one device: their placement does not matter.
SplitPlan plan_of(const std::vector<int>& shares) {
  SplitPlan plan;
  plan.replicas.assign(shares.size(),
                       {"/job:localhost/replica:0/task:0/device:CPU:0"});
  plan.shares = shares;
  plan.slices = std::accumulate(shares.begin(), shares.end(), 0);
  return plan;
}

// The last losses depend on every weight after the preceding steps.
std::vector<float> losses_of(const char* name, const std::vector<int>& shares,
                             int steps) {
  const auto model = berth_bench::make_step_model(name);
  const auto step = function(
      [&](const Tensor& x, const Tensor& y) {
        return (*model)(x, reshape(y, {-1}));
      },
      {.rewrite = std::make_shared<const SlicedSplit>(plan_of(shares))});
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    const Tensor& x = model->images(i);
    const Tensor y = reshape(model->labels(i), {x.shape()[0], -1});
    losses.push_back(step(x, y).item<float>());
  }
  return losses;
}

void check(const char* model, int steps,
           const std::vector<std::vector<int>>& ways) {
  std::vector<float> one;
  for (const auto& shares : ways) {
    const auto got = losses_of(model, shares, steps);
    if (one.empty()) one = got;
    EXPECT_EQ(got, one) << model << " "
                        << fmt::format("{}", fmt::join(shares, ":"));
  }
}

TEST(EqualBits, OfDenseLayers) {
  check("mlp", 20, {{4}, {2, 2}, {1, 3}, {1, 2, 1}, {1, 1, 1, 1}});
  check("mlp", 3, {{7}, {3, 4}, {1, 6}, {2, 2, 3}, {1, 2, 2, 2}});
}

TEST(EqualBits, OfConvolutions) {
  check("cnn", 20, {{4}, {2, 2}, {1, 3}, {1, 2, 1}, {1, 1, 1, 1}});
  check("cnn", 3, {{7}, {3, 4}, {1, 6}, {2, 2, 3}, {1, 2, 2, 2}});
}

TEST(EqualBitsSlow, OfBatchNormsAndShortcuts) {
  check("resnet18", 2, {{4}, {1, 1, 2}});
}

TEST(EqualBitsSlow, OfAttention) { check("gpt", 2, {{4}, {1, 1, 1, 1}}); }

}  // namespace
}  // namespace berth::distribute
