// How fit reports the first loss that is not finite.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/diagnostics_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "berth/keras.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"

namespace berth::keras {
namespace {

bool nan_says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// With accelerators the loss is read at the end of the epoch.
bool losses_are_at_hand() {
  return config::list_logical_devices("GPU").empty();
}

// Logarithms, so that an input of -1 gives NaN.
Sequential log_model() {
  class LogLayer : public LayerBase {
   public:
    LogLayer() : LayerBase("Log", "log_of_x") {}
    Tensors call(const Tensors& x, bool) override {
      return {math::log(x[0], site())};
    }
  };
  auto model =
      Sequential({InputLayer({1}),
                  Dense(1, {.use_bias = false,
                            .kernel_initializer = initializers::Ones()}),
                  make_layer<LogLayer>()});
  model.compile({.optimizer = optimizers::SGD(0.0), .loss = "mse"});
  return model;
}

// Batches of one; the third is negative.
Tensor third_is_negative() {
  return constant(std::vector<float>{1, 2, -1, 1, -1}, {5, 1});
}

History fit_logs(OnNaN policy, int epochs = 1) {
  auto model = log_model();
  return model.fit(third_is_negative(), zeros({5, 1}),
                   {.epochs = epochs,
                    .batch_size = 1,
                    .verbose = 0,
                    .shuffle = false,
                    .on_nan = policy});
}

TEST(NaNLoss, WarnsOnceOfStepBatchAndLayerAndGoesOn) {
  Heard heard;
  const History h = fit_logs(OnNaN::kWarn, 3);
  EXPECT_EQ(h.epoch.size(), 3u);
  const std::string m = heard.text_of("nan-loss");
  EXPECT_TRUE(nan_says(m, "OnNaN::kStop ends it")) << m;
  if (!losses_are_at_hand()) {
    EXPECT_TRUE(nan_says(m, "by step 5 (batch 5, the last of epoch 1)")) << m;
    EXPECT_TRUE(nan_says(m, "callbacks::TerminateOnNaN()")) << m;
    return;
  }
  EXPECT_TRUE(nan_says(m, "after step 3 (batch 3 of epoch 1)")) << m;
  EXPECT_TRUE(nan_says(m,
                       "first layer whose output is not finite is "
                       "\"log_of_x\": log_of_x/Log (nan_watch_test.cc:"))
      << m;
}

TEST(NaNLoss, EndsFitWhereThatIsAskedFor) {
  Heard heard;
  const History h = fit_logs(OnNaN::kStop, 3);
  EXPECT_EQ(h.epoch.size(), 1u);
  EXPECT_TRUE(nan_says(heard.text_of("nan-loss"), "training ends"));
}

TEST(NaNLoss, ThrowsWhereThatIsAskedFor) {
  try {
    fit_logs(OnNaN::kRaise);
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    const bool each = losses_are_at_hand();
    EXPECT_TRUE(nan_says(e.what(), each ? "the loss is nan after step 3"
                                        : "the loss is nan by step 5"))
        << e.what();
    EXPECT_TRUE(nan_says(e.what(), each ? "log_of_x" : "TerminateOnNaN"))
        << e.what();
  }
}

TEST(NaNLoss, IsBorneInSilenceWhereThatIsAskedFor) {
  Heard heard;
  EXPECT_TRUE(std::isnan(fit_logs(OnNaN::kIgnore).history.at("loss")[0]));
  EXPECT_TRUE(heard.of("nan-loss").empty());
}

TEST(NaNLoss, AndTheCallbackThatTellsMoreSpeaksAlone) {
  Heard heard;
  auto model = log_model();
  model.fit(third_is_negative(), zeros({5, 1}),
            {.batch_size = 1,
             .verbose = 0,
             .callbacks = {callbacks::TerminateOnNaN()},
             .shuffle = false});
  EXPECT_TRUE(heard.of("nan-loss").empty());
}

TEST(NaNLoss, OfATooLargeRateIsFoundInTheLoss) {
  Heard heard;
  auto model = Sequential({InputLayer({1}), Dense(1, {.name = "wide"})});
  model.compile({.optimizer = optimizers::SGD(1e15), .loss = "mse"});
  model.fit(ones({64, 1}), zeros({64, 1}),
            {.batch_size = 1, .verbose = 0, .shuffle = false});
  const std::string m = heard.text_of("nan-loss");
  if (!losses_are_at_hand()) {
    EXPECT_TRUE(nan_says(m, "the loss is nan by step 64")) << m;
    return;
  }
  EXPECT_TRUE(nan_says(m, "the loss is inf after step ")) << m;
  // A square of what the layer gave, which was finite.
  EXPECT_TRUE(nan_says(m, "outputs of all layers are finite")) << m;
}

TEST(NaNLoss, OfABatchThatIsNotFiniteNamesThatInput) {
  Heard heard;
  auto model = Sequential({InputLayer({1}), Dense(1)});
  model.compile({.optimizer = optimizers::SGD(0.1), .loss = "mse"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  model.fit(constant(std::vector<float>{1, nan}, {2, 1}), zeros({2, 1}),
            {.batch_size = 1, .verbose = 0, .shuffle = false});
  const std::string m = heard.text_of("nan-loss");
  if (!losses_are_at_hand()) {
    EXPECT_TRUE(nan_says(m, "by step 2 (batch 2, the last of epoch 1)")) << m;
    return;
  }
  EXPECT_TRUE(nan_says(m, "after step 2 (batch 2 of epoch 1)")) << m;
  EXPECT_TRUE(nan_says(m, "input 0 of the batch is not finite")) << m;
}

TEST(NaNLoss, IsNoWordOfLossesThatAreFinite) {
  Heard heard;
  auto model = Sequential({InputLayer({1}), Dense(1)});
  model.compile({.optimizer = optimizers::SGD(0.01), .loss = "mse"});
  model.fit(ones({32, 1}), zeros({32, 1}),
            {.epochs = 2, .batch_size = 1, .verbose = 0});
  EXPECT_TRUE(heard.of("nan-loss").empty());
}

}  // namespace
}  // namespace berth::keras
