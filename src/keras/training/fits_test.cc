// Model::fits: which batch fits a device, without training.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth::keras {
namespace {

using fresh_process::check;

Model small_model() {
  auto model =
      Sequential({Input({8}), Dense(1024, {.activation = "relu"}), Dense(4)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  return model;
}

void simulate(int64_t limit_mb) {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  config::set_logical_device_configuration(gpu,
                                           {{.memory_limit_mb = limit_mb}});
}

void asks() {
  simulate(24);
  const auto on = device("/GPU:0");
  Model model = small_model();
  const FitsReport much = model.fits(20000);
  check(!much, "20000 examples do not fit: " + much.str());
  const int64_t most = much.largest_batch;
  check(most > 100 && most < 20000, much.str());
  check(model.fits(most).fits, "the largest fits");
  check(!model.fits(most + 1).fits, "one more does not");
  check(model.fits(16).largest_batch == most, "from below the same");
  bool named = false;
  for (const auto& h : much.memory) {
    named |= h.what.find("MatMul") != h.what.npos;
  }
  check(named, "tensors are named: " + much.str());
  // Nothing was trained, and what fits runs.
  check(model.optimizer().iterations().value().item<int64_t>() == 0,
        "no step was made");
  model.train_on_batch(ones({most, 8}), zeros({most, 4})).item<float>();
}
TEST(Fits, TheLargestBatchIsTheLast) { IN_A_FRESH_PROCESS(asks()); }

TEST(Fits, MemoryThatIsSaidCountsInsteadOfTheLimit) {
  Model model = small_model();
  const FitsReport little = model.fits(64, 100 << 10);
  EXPECT_FALSE(little);
  EXPECT_EQ(little.largest_batch, 0) << little.str();
  const FitsReport enough = model.fits(64, 1 << 30);
  EXPECT_TRUE(enough);
  EXPECT_GT(enough.largest_batch, 1000) << enough.str();
  EXPECT_FALSE(model.fits(enough.largest_batch + 1, 1 << 30));
  ASSERT_FALSE(enough.devices.empty());
  EXPECT_EQ(enough.devices[0].available_bytes, 1 << 30);
  EXPECT_LT(enough.devices[0].peak_bytes, 1 << 30);
}

TEST(Fits, RefusesWhatCannotBeAsked) {
  Model model = small_model();
  EXPECT_THROW(model.fits(0), errors::InvalidArgument);
  EXPECT_THROW(model.fits(8, -1), errors::InvalidArgument);
  auto bare = Sequential({Dense(4)});
  EXPECT_THROW(bare.fits(8), errors::FailedPrecondition);
  bare.compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THROW(bare.fits(8), errors::FailedPrecondition);
}

TEST(GradientNorms, AreThoseOfTheGradients) {
  auto model = Sequential(
      {Input({3}), Dense(4, {.name = "first"}), Dense(1, {.name = "second"})});
  model.compile({.optimizer = SGD(0.0), .loss = "mse", .gradient_norms = true});
  const Tensor x = random::uniform({8, 3}), y = random::uniform({8, 1});
  std::map<std::string, double> expected;
  {
    GradientTape tape;
    const Tensor loss = math::reduce_mean(math::square(model(x, true) - y));
    const auto variables = model.trainable_variables();
    const Tensors grads = tape.gradient(loss, variables);
    for (size_t i = 0; i < grads.size(); ++i) {
      const std::string& name = variables[i].name();
      expected[name.substr(0, name.find('/'))] +=
          math::reduce_sum(math::square(grads[i])).item<float>();
    }
  }
  const History h =
      model.fit(x, y, {.epochs = 1, .batch_size = 8, .verbose = 0});
  ASSERT_EQ(expected.size(), 2u);
  for (const auto& [layer, square] : expected) {
    EXPECT_NEAR(h.history.at("gradient_norm/" + layer)[0], std::sqrt(square),
                1e-5 * std::sqrt(square))
        << layer;
  }
}

TEST(GradientNorms, AreNotLoggedUnlessAsked) {
  Model model = small_model();
  const History h = model.fit(ones({8, 8}), zeros({8, 4}), {.verbose = 0});
  EXPECT_EQ(h.history.size(), 1u);
}

}  // namespace
}  // namespace berth::keras
