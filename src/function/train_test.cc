// A two-layer network trains on the cpu, on a simulated accelerator, and split
// over both, with the same losses.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"
#include "function/sim_testing.h"
#include "ops/training.h"

namespace berth {
namespace {

constexpr int kBatch = 32, kIn = 8, kHidden = 16, kClasses = 3;

Tensor random_on(const char* where, const Shape& shape, int seed) {
  std::vector<float> x(static_cast<size_t>(shape.num_elements()));
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 12345;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * 0.5f;
  }
  const auto on = device(where);
  return constant(x, shape);
}

struct Network {
  std::string first, second;
  Variable w1, b1, w2, b2;

  Network(const char* first_device, const char* second_device)
      : first(first_device),
        second(second_device),
        w1(random_on(first_device, {kIn, kHidden}, 1)),
        b1(random_on(first_device, {kHidden}, 2)),
        w2(random_on(second_device, {kHidden, kClasses}, 3)),
        b2(random_on(second_device, {kClasses}, 4)) {}

  Tensor step(const Tensor& x, const Tensor& labels) const {
    GradientTape tape;
    Tensor h, loss;
    {
      const auto on = device(first);
      h = nn::relu(nn::bias_add(matmul(x, w1), b1));
    }
    {
      const auto on = device(second);
      loss = math::reduce_mean(nn::sparse_softmax_cross_entropy_with_logits(
          labels, nn::bias_add(matmul(h, w2), b2)));
    }
    const std::vector<Variable> weights{w1, b1, w2, b2};
    const Tensors grads = tape.gradient(loss, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      training::apply_gradient_descent(weights[i].handle(), constant(0.5f),
                                       grads[i]);
    }
    return loss;
  }

  std::vector<double> train(bool traced) const {
    auto f =
        function([&](const Tensor& x, const Tensor& y) { return step(x, y); });
    std::vector<double> losses;
    for (int i = 0; i < 120; ++i) {
      const Tensor x = random_on("/CPU:0", {kBatch, kIn}, 100 + i % 4);
      // A learnable rule: which of three sums is largest.
      const Tensor parts = math::reduce_sum(
          reshape(x[{slice(), slice(0, 6)}], {kBatch, 3, 2}), {.axis = {{2}}});
      const Tensor y = math::argmax(parts, 1);
      losses.push_back((traced ? f(x, y) : step(x, y)).item<double>());
    }
    return losses;
  }
};

void expect_close(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(Training, OnTheCpuTheLossFalls) {
  const auto losses = Network("/CPU:0", "/CPU:0").train(true);
  EXPECT_NEAR(losses[0], std::log(3.0), 0.2);
  EXPECT_LT(losses.back(), 0.6 * losses[0]);
}

TEST(Training, TracedAndEagerAgree) {
  expect_close(Network("/CPU:0", "/CPU:0").train(true),
               Network("/CPU:0", "/CPU:0").train(false));
}

TEST(Training, OnASimulatedAcceleratorItIsTheSame) {
  const auto want = Network("/CPU:0", "/CPU:0").train(true);
  expect_close(Network("/GPU:0", "/GPU:0").train(true), want);
  expect_close(Network("/GPU:0", "/GPU:0").train(false), want);
}

TEST(Training, SplitOverTwoDevicesItIsTheSame) {
  const auto want = Network("/CPU:0", "/CPU:0").train(true);
  expect_close(Network("/CPU:0", "/GPU:0").train(true), want);
  expect_close(Network("/GPU:0", "/CPU:0").train(true), want);
  expect_close(Network("/GPU:0", "/GPU:1").train(true), want);
  expect_close(Network("/CPU:0", "/GPU:1").train(false), want);
}

TEST(Training, GradientsRunWhereTheirForwardOpRan) {
  const Network net("/GPU:0", "/GPU:1");
  auto f = function(
      [&](const Tensor& x, const Tensor& y) { return net.step(x, y); });
  f(random_on("/CPU:0", {kBatch, kIn}, 7), range(0, kBatch) * 0.0);
  const std::string placed = f.text("place");
  // The weight gradient of each layer is a MatMul on that layer's device.
  int on_first = 0, on_second = 0;
  size_t at = 0;
  while (at < placed.size()) {
    const size_t end = placed.find('\n', at);
    const std::string line = placed.substr(at, end - at);
    if (line.find(" MatMul") != std::string::npos) {
      on_first += line.find("GPU:0") != std::string::npos;
      on_second += line.find("GPU:1") != std::string::npos;
    }
    if (end == std::string::npos) break;
    at = end + 1;
  }
  EXPECT_GE(on_first, 2) << placed;
  EXPECT_GE(on_second, 3) << placed;
}

// Not one product per example and a sum of them, which would need a matrix per
// example.
TEST(Training, AWeightOfManyRowsHasOneProductAsItsGradient) {
  const Tensor x = random_on("CPU:0", {4, 5, kIn}, 1);
  const Tensor w = random_on("CPU:0", {kIn, kHidden}, 2);
  auto f = function([&](const Tensor& x, const Tensor& w) {
    GradientTape tape;
    tape.watch(w);
    return tape.gradient(matmul(x, w), w);
  });
  const Tensor columns = math::reduce_sum(x, {.axis = {{0, 1}}});
  const std::vector<float> sums = columns.to_vector<float>();
  const std::vector<float> got = f(x, w).to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], sums[i / kHidden], 1e-5);
  }
  const std::string text = f.text("optimize");
  EXPECT_EQ(text.find("= Sum("), std::string::npos) << text;
}

}  // namespace
}  // namespace berth
