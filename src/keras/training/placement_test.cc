// What fit tells of placement, and contracts of models. Runs here without
// accelerators and, as keras_test.on_simulated_accelerators, on two.

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"

namespace berth::keras {
namespace {

bool two_accelerators() {
  int gpus = 0;
  for (const Device* d : DeviceManager::get().devices()) {
    gpus += d->type() == "GPU";
  }
  return gpus >= 2;
}

// Two layers on a device each; a batch of 8.
struct Split {
  Sequential model;
  Tensor x = random::normal({8, 6});
  Tensor y = random::normal({8, 2});

  static std::vector<Layer> layers(const char* first, const char* second) {
    std::vector<Layer> list;
    {
      const auto on = device(first);
      list.push_back(Dense(4, {.activation = "relu", .name = "front"}));
    }
    const auto on = device(second);
    list.push_back(Dense(2, {.name = "back"}));
    return list;
  }
  Split(const char* first, const char* second,
        placement::Contracts contracts = {})
      : model(layers(first, second), {.name = "split"}) {
    model.compile({.optimizer = SGD(0.1),
                   .loss = "mse",
                   .contracts = std::move(contracts)});
  }
  void fit(int verbose = 0) {
    model.fit(x, y, {.epochs = 2, .batch_size = 8, .verbose = verbose});
  }
  std::string fit_output(int verbose) {
    testing::internal::CaptureStdout();
    fit(verbose);
    return testing::internal::GetCapturedStdout();
  }
};

TEST(ModelPlacement, OneDeviceSaysNothingUnasked) {
  Split s("/CPU:0", "/CPU:0");
  const auto everywhere = device("/CPU:0");
  EXPECT_EQ(s.fit_output(2).find("placement of"), std::string::npos);
  EXPECT_EQ(s.model.placement().steps, 2);
}

TEST(ModelPlacement, SeveralDevicesGiveATable) {
  if (!two_accelerators()) GTEST_SKIP() << "needs two accelerators";
  Split s("/GPU:0", "/GPU:1");
  const std::string text = s.fit_output(2);
  EXPECT_NE(text.find("placement of \"split\", 2 steps"), text.npos) << text;
  EXPECT_NE(text.find("GPU:1"), text.npos) << text;
  EXPECT_NE(text.find("transfers: "), text.npos) << text;
  EXPECT_EQ(s.fit_output(0), "");
  const placement::Report r = s.model.placement();
  EXPECT_EQ(r.name, "split");
  const std::string first = r.device_of("front/MatMul");
  EXPECT_TRUE(first.ends_with("GPU:0")) << first;
  EXPECT_TRUE(r.device_of("back/MatMul").ends_with("GPU:1"));
  // The prediction [8, 2] goes to the loss on the default device, and the
  // gradient of the activation [8, 4] to the first layer.
  EXPECT_EQ(r.transfer_bytes("/GPU:1", "/GPU:0"), 8 * 2 * 4 + 8 * 4 * 4);
  EXPECT_TRUE(s.model.explain("back").device.ends_with("GPU:1"));
  EXPECT_EQ(s.model.explain("back").op, "back/MatMul");
  EXPECT_THROW(s.model.explain("bakc"), errors::NotFound);
}

void fit_counts_fallbacks() {
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_SIM_MISSING", "Tanh", 1);
  config::set_soft_device_placement(config::SoftPlacement::kSilent);
  const auto on = device("/GPU:0");
  auto model = Sequential({Dense(4, {.activation = "tanh"}), Dense(2)});
  model.compile({.optimizer = SGD(0.1), .loss = "mse"});
  testing::internal::CaptureStdout();
  const History h = model.fit(random::normal({8, 6}), random::normal({8, 2}),
                              {.batch_size = 8, .verbose = 2});
  const std::string text = testing::internal::GetCapturedStdout();
  fresh_process::check(h.fallback_ops == 1, "one op fell back");
  // There and, with what its gradient reads, back.
  fresh_process::check(h.fallback_bytes >= 2 * 8 * 4 * 4, "its bytes count");
  fresh_process::check(text.find("fallbacks: 1 op, ") != text.npos,
                       text.c_str());
}

TEST(ModelPlacement, CountsFallbacks) {
  SKIP_ON_GPUS_OF_MACHINE("it takes a kernel away");
  IN_A_FRESH_PROCESS(fit_counts_fallbacks());
}

void weights_name_the_line_of_their_layer() {
  unsetenv("BERTH_SIM");
  const auto on = device("/GPU:0");
  testing::internal::CaptureStderr();
  Sequential({InputLayer({3}), Dense(4)});
  const std::string text = testing::internal::GetCapturedStderr();
  fresh_process::check(
      text.find("(layer \"dense\", placement_test.cc:") != text.npos,
      text.c_str());
}

TEST(ModelPlacement, AWeightThatFallsBackNamesTheUsersLine) {
  SKIP_ON_GPUS_OF_MACHINE("it wants a machine without GPUs");
  IN_A_FRESH_PROCESS(weights_name_the_line_of_their_layer());
}

TEST(ModelPlacement, ReportsTheStepThatRanMost) {
  Split s("/CPU:0", "/CPU:0");
  s.model.fit(random::normal({20, 6}), random::normal({20, 2}),
              {.epochs = 3, .batch_size = 8, .verbose = 0});
  EXPECT_EQ(s.model.placement().steps, 6);  // 3 times 8, 8; the 4s stand apart
}

TEST(ModelPlacement, NamesOfLayersSurviveATapeAroundAFunction) {
  const auto on = device("/CPU:0");
  auto layer = Dense(4, {.name = "front"});
  auto f = function([&](const Tensor& x) { return layer(x); });
  const Tensor x = random::normal({8, 6});
  {
    GradientTape tape;
    tape.watch(x);
    tape.gradient(math::reduce_sum(f(x)), {x});
  }
  EXPECT_TRUE(f.placement().device_of("front/MatMul").ends_with("CPU:0"));
  // Forward, and the gradient as a step of its own.
  const std::vector<placement::Report> all = f.placements();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[1].name.ends_with("_gradient")) << all[1].name;
  EXPECT_EQ(all[1].steps, 1);
}

TEST(ModelContracts, HoldForTheTrainingStep) {
  Split kept("/CPU:0", "/CPU:0",
             placement::Contract{.ops = {{"front", "/CPU:0"}}});
  kept.fit();
  Split typo("/CPU:0", "/CPU:0",
             placement::Contract{.ops = {{"frint", "/CPU:0"}}});
  EXPECT_THROW(typo.fit(), errors::InvalidArgument);
  if (!two_accelerators()) return;
  Split broken("/GPU:0", "/GPU:1",
               placement::Contract{.transfers = {{"GPU:1", "GPU:0", 191}}});
  EXPECT_THROW(broken.fit(), errors::FailedPrecondition);
  Split enough("/GPU:0", "/GPU:1",
               placement::Contract{.transfers = {{"GPU:1", "GPU:0", 192}}});
  enough.fit();
}

}  // namespace
}  // namespace berth::keras
