// Kernels and plans: their stream, the step counter, a step that trains.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "berth/custom_op.h"
#include "berth/device.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/random.h"
#include "berth/variable.h"
#include "conformance/device/probe_op.h"
#include "conformance/device_run.h"

namespace berth::conformance {
namespace {

TEST(Kernels, FindTheStreamThatTheyAreWorkOf) {
  Device& d = device_under_test();
  const auto on = berth::device(d.str());
  const Tensor x = constant({1.f, 2.f});
  g_probed = nullptr;
  EXPECT_EQ(call_op("Probe", {x})[0].to_vector<float>(),
            (std::vector<float>{1, 2}));
  EXPECT_EQ(g_probed, &d.compute_stream());
  auto step =
      function([](const Tensor& t) { return call_op("Probe", {t})[0]; });
  g_probed = nullptr;
  step(x).to_vector<float>();
  ASSERT_NE(g_probed, nullptr);
  EXPECT_EQ(&g_probed.load()->device(), &d);
}

// Draws of three runs of one plan, which reads the counter where it computes.
std::vector<std::vector<float>> draws_on(const std::string& device) {
  random::set_seed(11);
  const auto on = berth::device(device);
  auto draw = function([] { return random::uniform({64}); });
  std::vector<std::vector<float>> draws;
  for (int i = 0; i < 3; ++i) draws.push_back(draw().to_vector<float>());
  return draws;
}

TEST(Kernels, RandomOpsOfAPlanDrawNewNumbersThatEveryDeviceDraws) {
  const auto draws = draws_on(device_under_test().str());
  EXPECT_NE(draws[0], draws[1]);
  EXPECT_NE(draws[1], draws[2]);
  EXPECT_EQ(draws, draws_on("/CPU:0"));
}

TEST(Kernels, AStepThatTrainsEndsWhereTheClosedFormSays) {
  const auto on = berth::device(device_under_test().str());
  Variable w(constant({4.f, -2.f}));
  auto step = function([&] {
    GradientTape tape;
    const Tensor loss = math::reduce_sum(w.value() * w.value());
    w.assign_sub(0.25 * tape.gradient(loss, std::vector<Variable>{w})[0]);
    return loss;
  });
  for (int i = 0; i < 3; ++i) step();  // w halves
  EXPECT_EQ(w.value().to_vector<float>(), (std::vector<float>{0.5f, -0.25f}));
}

}  // namespace
}  // namespace berth::conformance
