#include <gtest/gtest.h>

#include <sstream>

#include "berth/berth.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

// Four points on y = 2 a - 3 b + 1.
struct Line {
  Tensor x = constant({{0.f, 0.f}, {1.f, 0.f}, {0.f, 1.f}, {1.f, 1.f}});
  Tensor y = constant({{1.f}, {3.f}, {-2.f}, {0.f}});
};

TEST(Fit, FindsTheLineThroughPoints) {
  const Line line;
  auto model = keras::Sequential({keras::Dense(1)});
  model.compile({.optimizer = keras::SGD(0.3), .loss = "mse"});
  const auto history =
      model.fit(line.x, line.y, {.epochs = 300, .batch_size = 4, .verbose = 0});
  EXPECT_EQ(history.history.at("loss").size(), 300u);
  EXPECT_LT(history.history.at("loss").back(), 1e-6);
  const Tensors w = model.get_weights();
  EXPECT_NEAR(w[0].to_vector<float>()[0], 2, 1e-3);
  EXPECT_NEAR(w[0].to_vector<float>()[1], -3, 1e-3);
  EXPECT_NEAR(w[1].item<float>(), 1, 1e-3);
  EXPECT_EQ(model.num_train_traces(), 1);
}

TEST(Fit, TracesOncePerBatchShape) {
  auto model = keras::Sequential(
      {keras::Dense(4, {.activation = "relu"}), keras::Dense(3)});
  model.compile({.optimizer = "adam",
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true}),
                 .metrics = {"accuracy"}});
  const Tensor x = random::normal({10, 5});
  const Tensor y = constant({0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  const auto h = model.fit(x, y, {.epochs = 5, .batch_size = 4, .verbose = 0});
  EXPECT_EQ(model.num_train_traces(), 2);  // 4 and the last 2
  EXPECT_EQ(h.history.at("accuracy").size(), 5u);
  EXPECT_GT(model.train_plan_info().regions, 5);
  EXPECT_NE(model.train_plan_text().find("ResourceApplyAdam"),
            std::string::npos);
}

}  // namespace
}  // namespace berth
